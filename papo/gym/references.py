"""What a problem is scored by, as text: the reference answer of its row."""

import json
from dataclasses import dataclass
from typing import Any, cast

KEYS = ("task", "settings", "question", "answer", "metadata")


@dataclass(frozen=True, slots=True, kw_only=True)
class GymReference:
    """A problem as the library has it, and what it was made with."""

    task: str
    settings: dict[str, Any]
    question: str
    answer: str | None
    """One right answer; None where the library knows only how to check one."""
    metadata: dict[str, Any]

    @property
    def entry(self) -> dict[str, Any]:
        """What the library's scorers are given."""
        return {"question": self.question, "answer": self.answer, "metadata": self.metadata}


def write_reference(reference: GymReference) -> str:
    """The reference as JSON. Raises TypeError or ValueError where JSON cannot hold it."""
    held = {name: getattr(reference, name) for name in KEYS}
    return json.dumps(held, sort_keys=True, allow_nan=False, ensure_ascii=False)


def read_reference(text: str) -> GymReference:
    """Raises ValueError for a text that is no reference; the message says why."""
    try:
        held: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is no JSON ({str(error)[:120]})") from None
    fields = cast("dict[str, Any]", held) if isinstance(held, dict) else {}
    if set(fields) != set(KEYS):
        raise ValueError(f"it is no JSON object of {', '.join(KEYS)}")
    kinds = {"task": str, "settings": dict, "question": str, "answer": str | None, "metadata": dict}
    wrong = [name for name, kind in kinds.items() if not isinstance(fields[name], kind)]
    if wrong:
        raise ValueError(f"its {' and '.join(wrong)} are of another kind than reasoning-gym's")
    return GymReference(**fields)
