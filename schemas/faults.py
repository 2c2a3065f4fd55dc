"""One fault of a config, and the words in which all of them are reported."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from papo.masking import masked

Field = tuple[str | int, ...]
"""A field's place: ("sampling", "temperature"), ("phases", 0, "share")."""


@dataclass(frozen=True)
class Fault:
    """What is wrong with `field`, as the sentence that goes on after its name."""

    field: Field
    text: str
    others: tuple[Field, ...] = ()
    """Fields that it is at odds with."""

    def __str__(self) -> str:
        return f"{dotted(self.field)} {self.text}" if self.field else self.text

    def touches(self, fields: set[Field]) -> bool:
        """Whether it is about one of `fields`, something within it or something around it."""
        mine = (self.field, *self.others)
        return any(a[: len(b)] == b or b[: len(a)] == a for a in mine for b in fields)


def report(faults: Sequence[Fault], named: str) -> str:
    """All faults, one a line, and at the end what they are in."""
    count = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
    lines = "\n".join(f"  {fault}" for fault in faults)
    # A faulty field may be one that was to hold a secret.
    return masked(f"The config has {count}, so nothing was started:\n{lines}\nin {named}")


def dotted(field: Field) -> str:
    """`sampling.temperature`, `phases[0].share`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in field)
    return text.removeprefix(".")


def shown(value: Any) -> str:
    """A value as a file spells it, cut to a line."""
    spelled = json.dumps(value, ensure_ascii=False, default=str)
    return spelled if len(spelled) <= 80 else spelled[:77] + "…"


def nearest(name: str, known: Sequence[str]) -> str:
    """The way out of a wrong name."""
    close = get_close_matches(name, known, n=3, cutoff=0.5)
    return f"did you mean {' or '.join(close)}?" if close else f"use one of {', '.join(known)}."
