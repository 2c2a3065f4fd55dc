"""A place in a list of tokens, with the limits that every parse keeps."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction

from papo.verifiers.syntax import Unreadable
from papo.verifiers.tokens import Token

DEEPEST = 40
"""Levels of nesting; what is deeper is unreadable."""
END = Token("sign", "")


class Cursor:
    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0
        self.bars = 0
        """Open |…|: a bar closes the innermost instead of opening another."""

    @property
    def token(self) -> Token:
        return self.ahead(0)

    def ahead(self, count: int) -> Token:
        """The token `count` places on; END where there is none."""
        place = self._at + count
        return self._tokens[place] if place < len(self._tokens) else END

    @property
    def ended(self) -> bool:
        return self._at >= len(self._tokens)

    def take(self) -> Token:
        found = self.token
        self._at += 1
        return found

    def back(self) -> None:
        """Untake the last token."""
        self._at -= 1

    def sign(self, *texts: str) -> bool:
        """Whether the token is one of these signs."""
        return self.token.kind == "sign" and self.token.text in texts and self.token is not END

    def command(self, *names: str) -> bool:
        """Whether the token is one of these commands."""
        return self.token.kind == "command" and self.token.text in names

    def skip(self, *texts: str) -> bool:
        """Take the token if it is one of these signs or commands."""
        found = self.sign(*texts) or self.command(*texts)
        self._at += found
        return found

    def expect(self, *texts: str) -> str:
        """Take one of these signs or commands. Raises Unreadable."""
        found = self.token.text
        if not self.skip(*texts):
            raise Unreadable(f"{found or 'the end'!r} where {' or '.join(texts)} should be")
        return found

    def first_digit(self) -> Token:
        """The next number's first digit alone: what a LaTeX command without braces takes."""
        token = self.take()
        if len(token.text) > 1 and token.text.isdigit():
            rest = token.text[1:]
            self._at -= 1
            self._tokens[self._at] = replace(token, text=rest, value=Fraction(rest))
            return replace(token, text=token.text[0], value=Fraction(token.text[0]))
        return token

    @contextmanager
    def deeper(self) -> Generator[None]:
        """One level of nesting. Raises Unreadable beyond DEEPEST."""
        self._depth += 1
        if self._depth > DEEPEST:
            raise Unreadable(f"nested more than {DEEPEST} levels deep")
        try:
            yield
        finally:
            self._depth -= 1

    @contextmanager
    def outside_bars(self) -> Generator[None]:
        """Inside brackets a bar opens again."""
        bars, self.bars = self.bars, 0
        try:
            yield
        finally:
            self.bars = bars
