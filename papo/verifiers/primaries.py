"""The smallest whole parts of an expression: numbers, symbols, brackets, fractions, roots, commands."""

from papo.verifiers.constructs import Constructs
from papo.verifiers.syntax import Node, Num, Op, Sym, Unreadable, number, words
from papo.verifiers.tokens import FUNCTIONS

_SYMBOLS = words(
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi rho sigma tau upsilon phi chi psi omega"
    " Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi Omega pi infty reals integers naturals rationals complexes emptyset"
    " ldots ell hbar aleph Re Im mho"
)
_ACCENTS = words("vec hat overline tilde dot ddot angle triangle widetilde mathring")
_BIG = words("sum prod int lim")
_CLOSING = {"lfloor": ("rfloor", "floor"), "lceil": ("rceil", "ceil")}
_PAIRS = {"frac": "div", "binom": "binom"}
_STARTING = words("frac sqrt cbrt binom langle begin {") | _SYMBOLS | _ACCENTS | FUNCTIONS | _BIG | _CLOSING.keys()


class Primaries(Constructs):
    """`primary`, for the grammar above."""

    def starts_primary(self) -> bool:
        """Whether the token can begin a factor that stands beside another without a sign."""
        token = self.token
        if token.kind == "symbol" or (token.kind == "sign" and token.text in ("(", "{")):
            return True
        if self.sign("|"):
            return self.bars == 0
        return token.kind == "command" and token.text in _STARTING

    def primary(self) -> Node:
        """One primary. Raises Unreadable."""
        with self.deeper():
            token = self.token
            if token.kind == "number" and token.value is not None:
                self.take()
                return Num(token.value)
            if token.kind == "symbol" or (token.kind == "words" and len(token.text) == 1):
                self.take()
                return self._subscripted(token.text)
            if token.kind == "sign":
                return self._bracketed()
            if token.kind == "command":
                return self._command()
            raise Unreadable(f"{token.text!r} where an expression should be")

    def _subscripted(self, name: str) -> Sym:
        while self.sign("'"):
            name += self.take().text
        if self.skip("_"):
            name += "_" + self._script()
        return Sym(name)

    def _script(self) -> str:
        if not self.skip("{"):
            return (self.first_digit() if self.token.kind == "number" else self.take()).text
        parts: list[str] = []
        while not self.sign("}"):
            if self.ended or self.sign("{"):
                raise Unreadable("a subscript without end")
            parts.append(self.take().text)
        self.take()
        return "".join(parts)

    def _bracketed(self) -> Node:
        opening = self.take().text
        if opening == "|":
            self.bars += 1
            inner = self.expression()
            self.bars -= 1
            self.expect("|")
            return Op("abs", (inner,))
        if opening not in ("(", "[", "]", "{"):
            raise Unreadable(f"{opening or 'the end'!r} where an expression should be")
        with self.outside_bars():
            if opening == "{":
                return self._group()
            inner = self.junction()
            closing = self.expect(")", "]", "[") if opening in ("[", "]") else self.expect(")", "]")
        return _pair(opening, inner, closing)

    def _group(self) -> Node:
        """The inside of { … }: invisible in LaTeX, a set in plain text."""
        if self.skip("}"):
            return Op("set", ())
        inner = self.junction()
        for name, head in (("over", "div"), ("choose", "binom"), ("atop", "binom")):
            if self.skip(name):
                inner = Op(head, (inner, self.expression()))
        self.expect("}")
        return Op("set", inner.args) if isinstance(inner, Op) and inner.head == "list" else inner

    def _command(self) -> Node:
        name = self.take().text
        if name in FUNCTIONS:
            return self.function(name)
        if name in _SYMBOLS:
            gamma = name == "Gamma" and self.sign("(")
            return _factorial_before(self.primary()) if gamma else self._subscripted(name)
        if name in _ACCENTS:
            letters = self._corners() if name in ("angle", "triangle") else _letters_of(self.argument())
            return self._subscripted(f"{name} {letters}")
        if name in _BIG:
            return self.big(name)
        if name in _PAIRS:
            return Op(_PAIRS[name], (self.argument(), self.argument()))
        return self._delimited(name)

    def _corners(self) -> str:
        """The letters of ∠ABC."""
        letters = [self.take().text]
        while self.token.kind == "symbol" and not self.token.spaced and self.token.text.isupper():
            letters.append(self.take().text)
        return "".join(letters)

    def _delimited(self, name: str) -> Node:
        if name in _CLOSING:
            closing, head = _CLOSING[name]
            found = Op(head, (self.expression(),))
            self.expect(closing)
        elif name == "{":
            found = self._set()
        elif name == "langle":
            with self.outside_bars():
                inner = self.junction()
            self.expect("rangle")
            found = Op("vector", inner.args if isinstance(inner, Op) and inner.head == "list" else (inner,))
        elif name == "begin":
            found = self.matrix()
        elif name == "currency":
            found = Op(f"unit:{self.take().text}", (self.factor(),))
        else:
            raise Unreadable(f"the command \\{name}")
        return found

    def _set(self) -> Node:
        with self.outside_bars():
            if self.skip("}"):
                return Op("set", ())
            builder = self._set_builder()
            inner = self.junction()
            self.expect("}")
        if builder:
            return inner
        return Op("set", inner.args if isinstance(inner, Op) and inner.head == "list" else (inner,))

    def _set_builder(self) -> bool:
        """Take `x |` or `x ∈ ℝ |`: what follows is the condition."""
        for bar in (1, 3):
            token = self.ahead(bar)
            if self.token.kind == "symbol" and token.kind == "sign" and token.text in ("|", ":"):
                if bar == 3 and (self.ahead(1).text, self.ahead(2).text) != ("in", "reals"):
                    return False
                for _ in range(bar + 1):
                    self.take()
                return True
        return False

    def argument(self) -> Node:
        """What a command takes: a group, or the next single sign."""
        if self.sign("{"):
            return self.primary()
        if self.token.kind == "number":
            digit = self.first_digit()
            if digit.value is None:
                raise Unreadable("a number that cannot be read")
            return Num(digit.value)
        return self.primary()


def _factorial_before(inner: Node) -> Op:
    """Γ(n) is (n − 1)!."""
    return Op("fact", (Op("add", (inner, Op("neg", (number(1),)))),))


def _pair(opening: str, inner: Node, closing: str) -> Node:
    items = inner.args if isinstance(inner, Op) and inner.head == "list" else (inner,)
    if opening == "(" and closing == ")":
        return Op("tuple", items) if len(items) > 1 else Op("paren", items)
    if (opening, closing) == ("[", "]"):
        if (rows := _rows(items)) is not None:
            return rows
        if len(items) == 1:
            return Op("paren", items)
    if len(items) != 2:
        if (opening, closing) == ("[", "]"):
            return Op("tuple", items)
        raise Unreadable("an interval without two ends")
    # The French way turns the brackets outward: ]1,2[ is (1,2).
    bounds = ("(" if opening in ("(", "]") else "[") + (")" if closing in (")", "[") else "]")
    return Op(f"interval:{bounds}", items)


def _rows(items: tuple[Node, ...]) -> Op | None:
    """[[1, 2], [3, 4]] as a matrix; None where the items are no rows of one length."""
    rows = [item.args for item in items if isinstance(item, Op) and item.head in ("interval:[]", "tuple", "paren")]
    if len(rows) != len(items) or len({len(row) for row in rows}) != 1 or (len(items) == 1 and len(rows[0]) == 1):
        return None
    return Op(f"matrix:{len(rows)}", tuple(entry for row in rows for entry in row))


def _letters_of(node: Node) -> str:
    names = [part.name for part in ((node,) if not isinstance(node, Op) else node.args) if isinstance(part, Sym)]
    if not names:
        raise Unreadable("an accent over no letter")
    return "".join(names)
