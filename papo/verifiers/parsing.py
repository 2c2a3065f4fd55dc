"""The grammar above the primaries: lists, relations, sets, sums, products, powers, units."""

from papo.verifiers.cleaning import clean
from papo.verifiers.phrases import NEUTRAL_WORDS, measured
from papo.verifiers.primaries import Primaries
from papo.verifiers.syntax import Node, Num, Op, Unreadable
from papo.verifiers.texts import all_but, is_all_but
from papo.verifiers.tokens import SIGN_WORDS, tokenize

LONGEST = 4000
"""Characters; a longer answer is read by no rule."""
RELATIONS = {"=": "=", "<": "<", ">": ">", "le": "≤", "ge": "≥", "ne": "≠", "in": "∈", "approx": "≈", "equiv": "≡"}


def parse(text: str) -> Node:
    """The tree of an answer. Raises Unreadable."""
    if len(text) > LONGEST:
        raise Unreadable(f"longer than {LONGEST} characters")
    try:
        parser = Parser(tokenize(_unwrapped(clean(text))))
        found = parser.junction()
    except RecursionError:
        raise Unreadable("nested too deep") from None
    if not parser.ended:
        raise Unreadable(f"{parser.token.text!r} is left over")
    return found


def _unwrapped(text: str) -> str:
    """((…)) as (…), however deep: brackets around brackets say nothing."""
    pairs: dict[int, int] = {}
    opened: list[int] = []
    for place, char in enumerate(text):
        if char == "(":
            opened.append(place)
        elif char == ")" and opened:
            pairs[opened.pop()] = place
    first, last = 0, len(text) - 1
    while pairs.get(first) == last and pairs.get(first + 1) == last - 1:
        first, last = first + 1, last - 1
    return text[first : last + 1]


class Parser(Primaries):
    def junction(self) -> Node:
        """Clauses joined by commas, `or`, `and`."""
        items, joins = [self.clause()], set[str]()
        while self.sign(",", ";") or self.command("or", "and", "wedge", "vee"):
            while self.sign(",", ";") or self.command("or", "and", "wedge", "vee"):
                joins.add({"wedge": "and", "vee": "or"}.get(self.token.text, self.token.text))
                self.take()
            if self.ended or self.sign("}", ")", "]"):
                break
            items.append(self.clause())
        if len(items) == 1:
            return items[0]
        words = joins & {"or", "and"}
        if len(words) > 1:
            raise Unreadable("both `and` and `or`")
        return Op(words.pop() if words else "list", tuple(items))

    def clause(self) -> Node:
        """One statement or value, with the words around it."""
        if self.token.kind == "words" and (named := self._words_first()) is not None:
            return named
        if self.sign("="):
            self.take()
        signs, sides = list[str](), [self._side()]
        while (sign := self._relation()) is not None:
            signs.append(sign)
            sides.append(self._side())
        found = sides[0] if not signs else Op(f"rel:{' '.join(signs)}", tuple(sides))
        if self.command("pmod"):
            self.take()
            return Op("pmod", (found, self.argument()))
        return found

    def _relation(self) -> str | None:
        name = self.token.text
        if name in RELATIONS and (self.token.kind == "command" or self.sign(name)):
            self.take()
            return RELATIONS[name]
        return None

    def _words_first(self) -> Node | None:
        """Words at a clause's start: text as an answer, or words that say nothing before one (then None)."""
        found = list[str]()
        while self.token.kind == "words":
            found.append(self.take().text)
        if self.ended or self.sign(",", ";", ")", "}", "]") or self.command("or", "and"):
            return Op(f"text:{' '.join(found)}", ())
        spelled = " ".join(found).lower()
        if spelled in SIGN_WORDS:
            return Op("neg", (self._side(),))
        if is_all_but(spelled):
            return all_but(self.junction())
        if self.skip("=", ":") or all(word.lower() in NEUTRAL_WORDS for word in found):
            return None
        if len(found) == 1 and len(found[0]) == 1:
            self.back()
            return None
        raise Unreadable(f"the words {' '.join(found)!r} before an expression")

    def _side(self) -> Node:
        if self.command("approx"):
            self.take()
        found = self.expression()
        while self.command("cup", "cap", "setminus"):
            head = {"cup": "cup", "cap": "cap", "setminus": "minus"}[self.take().text]
            found = Op(head, (found, self.expression()))
        if self.sign(":") and self.ahead(1).kind == "number":
            return self._ratio(found)
        return self._with_unit(found)

    def _ratio(self, first: Node) -> Node:
        spelled, parts = [self.ahead(1).text], [first]
        while self.skip(":"):
            spelled.append(self.token.text)
            parts.append(self.expression())
        clock = len(spelled) == 2 and len(spelled[-1]) == 2 and spelled[-1].isdigit() and all(map(_is_number, parts))
        found = Op("clock" if clock else "ratio", tuple(parts))
        words = "".join(self._rest_of_words()).lower().replace(".", "").replace(" ", "")
        if words not in ("", "am", "pm") or (words and not clock):
            raise Unreadable("words behind a ratio")
        return Op(f"clock:{words}", found.args) if clock else found

    def _rest_of_words(self) -> list[str]:
        words = list[str]()
        while self.token.kind in ("words", "symbol") and len(words) < 6:
            words.append(self.take().text)
        return words

    def _with_unit(self, value: Node) -> Node:
        words = list[str]()
        while self.token.kind == "words" or (words and self.sign("/", "^")):
            token = self.take()
            if token.text == "^" and words:
                power = self.argument()
                if not isinstance(power, Num) or power.value.denominator != 1:
                    raise Unreadable("a unit to a power that is no whole number")
                words[-1] += f"^{power.value}"
            elif token.text == "/":
                words += ["/", self.take().text]
            else:
                words.append(token.text)
        return value if not words else measured(value, words)

    def expression(self) -> Node:
        """A sum of terms with their signs."""
        with self.deeper():
            parts = [self._signed()]
            while self.sign("+", "-") or self.command("pm", "mp"):
                parts.append(self._signed())
        return parts[0] if len(parts) == 1 else Op("add", tuple(parts))

    def _signed(self) -> Node:
        sign = self.take().text if self.sign("+", "-") or self.command("pm", "mp") else "+"
        # A sign after a sign: a + −b is read, −−b is not.
        second = self.take().text if sign == "+" and self.sign("-") else ""
        term = self.term()
        if second:
            term = Op("neg", (term,))
        heads = {"-": "neg", "pm": "pm", "mp": "mp"}
        return term if sign == "+" else Op(heads[sign], (term,))

    def term(self) -> Node:
        """A product of factors, explicit or side by side, and mixed numbers."""
        found = self._mixed()
        while True:
            if self.sign("*") or self.command("cdot", "times"):
                self.take()
                found = Op("mul", (*_factors(found), self._after_sign()))
            elif self.sign("/"):
                self.take()
                found = Op("div", (found, self._after_sign()))
            elif self.starts_primary() or (self.token.kind == "number" and self.ahead(-1).text in (")", "}", "!")):
                found = Op("mul", (*_factors(found), self.factor()))
            else:
                return found

    def _after_sign(self) -> Node:
        if self.sign("-"):
            self.take()
            return Op("neg", (self.factor(),))
        return self.factor()

    def _mixed(self) -> Node:
        whole = self.token
        first = self.factor()
        if whole.kind != "number" or not isinstance(first, Num) or first.value.denominator != 1:
            return first
        if self.command("frac"):
            fraction = self.factor()
            if isinstance(fraction, Op) and fraction.head == "percent":
                return Op("percent", (Op("add", (first, fraction.args[0])),))
            proper = isinstance(fraction, Op) and fraction.head == "div" and all(map(_is_number, fraction.args))
            return Op("add" if proper else "mul", (first, fraction))
        if self.token.kind == "number" and self.ahead(1).text == "/" and self.ahead(2).kind == "number":
            top, bottom = self.factor(), (self.take(), self.factor())[1]
            if isinstance(bottom, Op) and bottom.head == "percent":
                return Op("percent", (Op("add", (first, Op("div", (top, bottom.args[0])))),))
            return Op("add", (first, Op("div", (top, bottom))))
        return first

    def factor(self) -> Node:
        """A primary with what stands behind it: !, %, °, a base, a power."""
        found = self.primary()
        while True:
            if self.skip("!"):
                found = Op("fact", (found,))
            elif self.skip("%"):
                found = Op("percent", (found,))
            elif self.skip("degree"):
                found = self._degrees(found)
            elif isinstance(found, Num) and self.command("currency"):
                self.take()
                found = Op(f"unit:{self.take().text}", (found,))
            elif self.sign("_") and isinstance(found, Num):
                self.take()
                found = Op("based", (found, self.argument()))
            elif self.skip("^"):
                found = Op("pow", (found, self._exponent()))
            else:
                return found

    def _degrees(self, value: Node) -> Node:
        if self.token.text in ("C", "F") and self.token.kind in ("symbol", "words"):
            return Op(f"unit:°{self.take().text.lower()}", (value,))
        return Op("unit:degree", (value,))

    def _exponent(self) -> Node:
        with self.deeper():
            return self._tower()

    def _tower(self) -> Node:
        if self.sign("-", "+"):
            sign = self.take().text
            inner = self._exponent()
            return Op("neg", (inner,)) if sign == "-" else inner
        found = self.primary()
        if self.skip("^"):
            return Op("pow", (found, self._exponent()))
        return found


def _is_number(node: Node) -> bool:
    return isinstance(node, Num)


def _factors(node: Node) -> tuple[Node, ...]:
    return node.args if isinstance(node, Op) and node.head == "mul" else (node,)
