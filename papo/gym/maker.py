"""The program that makes problems: `python -m papo.gym.maker`, with one line of JSON in and one line a problem out.

In: {task, settings, seed, count, split}. Problems differ in their questions; one in sixteen, by a hash of the question
that no seed enters, belongs to the split heldout and the others to train. Left out is a problem whose own answer does
not verify once it has been JSON.
"""

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

from papo.gym.references import GymReference, read_reference, write_reference
from papo.gym.scoring import scorer_of
from papo.seeding import seed_for

CHUNK = 64
"""Problems of one seed of the library's; some of its tasks make all of them at once."""
MOST_TRIES = 200
"""Problems that are made at most for each that is wanted."""
HELD_OUT = 16
DRAWN = ("source_index", "source_dataset")
"""Of a problem's metadata: how it was come by, which is no part of it."""


def main() -> None:
    """Make them. A fault is one line of JSON too: {fault}."""
    request = json.loads(sys.stdin.readline())
    lines = os.fdopen(os.dup(1), "w", encoding="utf-8")
    # Whatever the library prints must not be taken for a problem.
    os.dup2(2, 1)
    try:
        for problem in problems(**request):
            lines.write(json.dumps(problem) + "\n")
    except (ValueError, TypeError, AssertionError, KeyError) as error:
        lines.write(json.dumps({"fault": str(error) or type(error).__name__}) + "\n")
    lines.flush()


def problems(*, task: str, settings: dict[str, Any], seed: int, count: int, split: str) -> Iterator[dict[str, str]]:
    """prompt and reference_answer of `count` problems. Raises what the library raises for a wrong task or setting."""
    score = scorer_of(task, json.dumps(settings))
    seen = set[str]()
    made = 0
    for tries, entry in enumerate(_entries(task, settings, seed)):
        if made == count:
            return
        if tries >= MOST_TRIES * count:
            raise ValueError(
                f"it gave {made} different problems that verify in {tries} tries, not {count}: use a smaller count or"
                " wider settings"
            )
        question = entry["question"]
        held_out = sha256(question.encode()).digest()[0] % HELD_OUT == 0
        if question in seen or held_out != (split == "heldout"):
            continue
        seen.add(question)
        reference = _verified(entry, task, settings, score)
        if reference is not None:
            made += 1
            yield {"prompt": question, "reference_answer": reference}


def _entries(task: str, settings: dict[str, Any], seed: int) -> Iterator[dict[str, Any]]:
    import reasoning_gym  # noqa: PLC0415  # an optional extra, of which only children know

    chunk = 0
    while True:
        drawn = seed_for(seed, stage="reasoning_gym", iteration=chunk) % 2**31
        dataset: Any = reasoning_gym.create_dataset(task, size=CHUNK, seed=drawn, **settings)
        yield from (dataset[index] for index in range(CHUNK))
        chunk += 1


def _verified(entry: dict[str, Any], task: str, settings: dict[str, Any], score: Any) -> str | None:
    """The problem's reference; None where its own answer does not verify against it."""
    answer = entry["answer"]
    if not isinstance(answer, str | None):
        return None
    metadata = {name: part for name, part in entry["metadata"].items() if name not in DRAWN}
    reference = GymReference(task=task, settings=settings, question=entry["question"], answer=answer, metadata=metadata)
    with contextlib.suppress(Exception):
        text = write_reference(reference)
        found = score(answer or "", read_reference(text).entry)
        return text if answer is None or found >= 1.0 else None
    return None


if __name__ == "__main__":
    main()
