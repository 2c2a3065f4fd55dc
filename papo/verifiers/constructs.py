"""What a command makes of the parts behind it: functions and logarithms, sums and integrals, matrices."""

from papo.verifiers.cursor import Cursor
from papo.verifiers.syntax import Node, Op, Sym, Unreadable, number, words
from papo.verifiers.tokens import FUNCTIONS

_ALIASES = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "sgn": "sign"}
_MATRICES = words("pmatrix bmatrix Bmatrix vmatrix matrix smallmatrix array")


class Constructs(Cursor):
    """The grammar above gives the parts: `primary`, `argument`, `factor`, `term`, `expression`, `junction`."""

    def primary(self) -> Node:
        raise NotImplementedError

    def starts_primary(self) -> bool:
        raise NotImplementedError

    def argument(self) -> Node:
        raise NotImplementedError

    def factor(self) -> Node:
        raise NotImplementedError

    def term(self) -> Node:
        raise NotImplementedError

    def expression(self) -> Node:
        raise NotImplementedError

    def junction(self) -> Node:
        raise NotImplementedError

    def function(self, name: str) -> Node:
        if name == "sqrt":
            index = number(2)
            if self.skip("["):
                index = self.expression()
                self.expect("]")
            return Op("root", (index, self.argument()))
        if name == "cbrt":
            return Op("root", (number(3), self.argument()))
        base = self._log_base(name)
        power = self._power_of_function()
        inner = self._operand()
        found = Op("log", (base, inner)) if base is not None else Op(f"call:{_ALIASES.get(name, name)}", (inner,))
        if power == number(-1) and name in ("sin", "cos", "tan", "cot"):
            return Op(f"call:arc{name}", (inner,))
        return found if power is None else Op("pow", (found, power))

    def _log_base(self, name: str) -> Node | None:
        if name in ("log", "lg") and self.skip("_"):
            return self.argument()
        return {"ln": Sym("e"), "lg": number(10), "log": number(10)}.get(name)

    def _power_of_function(self) -> Node | None:
        if not self.skip("^"):
            return None
        if self.skip("-"):
            return Op("neg", (self.argument(),))
        found = self.argument()
        return number(-1) if found == Op("neg", (number(1),)) else found

    def _operand(self) -> Node:
        """What a function applies to: brackets, or a product up to the next sign or function."""
        if self.sign("(", "{"):
            return self.factor() if self.ahead(0).text == "(" else self.primary()
        parts = [self.factor()]
        while self.starts_primary() and not (self.token.kind == "command" and self.token.text in FUNCTIONS - {"sqrt"}):
            if self.sign("("):
                break
            parts.append(self.factor())
        return parts[0] if len(parts) == 1 else Op("mul", tuple(parts))

    def big(self, name: str) -> Node:
        lower, upper, variable = None, None, ""
        for _ in range(2):
            if self.skip("_"):
                variable, lower = self._bound(name)
            elif self.skip("^"):
                upper = self.argument()
        body = self.term()
        if name == "int":
            variable, body = _differential(body)
        if not variable or lower is None or (name != "lim" and upper is None):
            raise Unreadable(f"\\{name} without its bounds")
        return Op(f"{name}:{variable}", (lower, body) if upper is None else (lower, upper, body))

    def _bound(self, name: str) -> tuple[str, Node]:
        if name == "int":
            return "", self.argument()
        self.expect("{")
        variable = self.primary()
        self.expect("to" if name == "lim" else "=")
        lower = self.expression()
        self.expect("}")
        if not isinstance(variable, Sym):
            raise Unreadable("a bound of no variable")
        return variable.name, lower

    def matrix(self) -> Node:
        name = self._environment()
        if name not in _MATRICES:
            raise Unreadable(f"the environment {name}")
        if name == "array":
            self.argument_text()
        rows: list[list[Node]] = [[]]
        while not self.command("end"):
            rows[-1].append(self.expression())
            if self.skip("\\"):
                if not self.command("end"):
                    rows.append([])
            elif not self.command("end"):
                self.expect("&")
        self.take()
        self._environment()
        if len({len(row) for row in rows}) != 1 or not rows[0]:
            raise Unreadable("a matrix whose rows differ in length")
        return Op(
            f"{'det' if name == 'vmatrix' else 'matrix'}:{len(rows)}", tuple(entry for row in rows for entry in row)
        )

    def argument_text(self) -> str:
        """The letters of a group."""
        self.expect("{")
        parts: list[str] = []
        while not self.skip("}"):
            if self.ended:
                raise Unreadable("a group without end")
            parts.append(self.take().text)
        return "".join(parts)

    def _environment(self) -> str:
        return self.argument_text().rstrip("*")


def _differential(body: Node) -> tuple[str, Node]:
    """∫ f dx as a product whose last factors are d and x. Raises Unreadable."""
    if isinstance(body, Op) and body.head == "div" and isinstance(body.args[0], Op):
        variable, top = _differential(body.args[0])
        return variable, Op("div", (top, body.args[1]))
    factors = body.args if isinstance(body, Op) and body.head == "mul" else ()
    if len(factors) >= 2 and factors[-2] == Sym("d") and isinstance(factors[-1], Sym):
        rest = factors[:-2]
        return factors[-1].name, Op("mul", rest) if rest else number(1)
    raise Unreadable("an integral without its variable")
