"""`papo verify`: completions in a JSONL file to verdicts in another, in the same order, a few rows in memory at a time.

A row has an id (text or a whole number), a reference_answer (text or a number), a completion (text) and, where it wants
another verifier than the command's, its `task`: one of `TASKS`.
"""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from papo.errors import DataError
from papo.rewards import Answered, Verdict, Verifier, judge_all
from papo.rewards.second_opinion import ASKED_OF
from tasks.fileopinions import ConsiderRows, by_rules
from tasks.opinions import Considered
from tasks.references import TASKS, unusable
from tasks.rowfaults import FaultyRow, RowFaults, Spelled, id_of, named
from tasks.rowfiles import Row, named_rows

COLUMNS = ("id", "reference_answer", "completion", "task")
QUESTION = "question"
"""A further column, which a second opinion is shown."""
_WAY_OUT = (
    "Repair these rows: id, reference_answer and completion are what each needs; task is math where it is left out."
)


Progress = Callable[[int, int], None]


@dataclass
class Figures:
    """What came of a file."""

    rows: int = 0
    correct: int = 0
    corrected: int = 0
    """Of the correct ones, those that the rules had rejected."""
    undecided: int = 0
    statuses: Counter[str] = field(default_factory=Counter[str])


def check_answers(source: Path) -> int:
    """The number of rows. Raises DataError with every fault of the file, each with its lines."""
    faults = RowFaults(str(source), way_out=_WAY_OUT)
    seen: dict[str, str] = {}
    count = 0
    for row in named_rows(source, COLUMNS, skip=0, take=None):
        count += 1
        found = [row.fault] if row.fault is not None else _faults_of(row, seen)
        for fault in found:
            faults.add(fault, row.place)
    faults.raise_if_any()
    if not count:
        raise DataError(f"{source} has no rows: give it one JSON object a line.")
    return count


def verify_answers(
    source: Path, output: Path, reward: Verifier, *, progress: Progress, consider: ConsiderRows | None = None
) -> Figures:
    """Write one verdict a row to `output`, which appears when it is whole. Raises DataError before judging anything.

    `consider`: the second opinion, whose columns each row has then.
    """
    total = check_answers(source)
    if output.exists() and output.samefile(source):
        raise DataError(f"{output} is the file that is read: name another one.")
    figures = Figures()
    draft = output.with_name(f".tmp-{os.getpid()}-{output.name}")
    try:
        with draft.open("w", encoding="utf-8") as file:
            ids = (_spelled(row.values["id"]) for row in named_rows(source, COLUMNS, skip=0, take=None))
            verdicts = judge_all(reward, _answered(source))
            found = by_rules(verdicts) if consider is None else consider(verdicts, _asked_about(source, reward))
            for name, (judged, version) in zip(ids, _versioned(found, source, reward), strict=True):
                verdict = judged.verdict
                said = {} if consider is None else {"llm_verdict": judged.opinion, "llm_reply": judged.reply}
                file.write(json.dumps(_record(name, verdict, version) | said) + "\n")
                figures.rows += 1
                figures.correct += verdict.correct is True
                figures.corrected += judged.opinion == "equivalent"
                figures.undecided += verdict.correct is None
                figures.statuses[verdict.status] += 1
                progress(figures.rows, total)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(output)
    except OSError as error:
        raise DataError(
            f"{output} cannot be written ({error.strerror}): check folder, permissions and space."
        ) from None
    finally:
        draft.unlink(missing_ok=True)
    return figures


def _answered(source: Path) -> Iterator[Answered]:
    for row in named_rows(source, COLUMNS, skip=0, take=None):
        yield Answered(
            completion=row.values["completion"],
            reference_answer=str(row.values["reference_answer"]),
            reward=_reward_of(row),
        )


def _asked_about(source: Path, reward: Verifier) -> Iterator[tuple[str, str] | None]:
    """Question (where a row has one) and reference of each row; None where its verifier's rules are complete."""
    for row in named_rows(source, (*COLUMNS, QUESTION), skip=0, take=None):
        asked = (_reward_of(row) or reward).kind in ASKED_OF
        question = row.values.get(QUESTION)
        known = str(question) if isinstance(question, str) else ""
        yield (known, str(row.values["reference_answer"])) if asked else None


def _versioned(verdicts: Iterable[Considered], source: Path, reward: Verifier) -> Iterator[tuple[Considered, str]]:
    versions = {name: found.version for name, found in TASKS.items()}
    usual = reward.version
    rows = named_rows(source, COLUMNS, skip=0, take=None)
    for row, verdict in zip(rows, verdicts, strict=True):
        task = row.values.get("task")
        yield verdict, usual if task is None else versions[task]


def _record(name: str | int, verdict: Verdict, version: str) -> dict[str, Any]:
    return {
        "id": name,
        "correct": verdict.correct,
        "reward": verdict.accuracy,
        "status": verdict.status,
        "extracted": verdict.extracted,
        "canonical": verdict.canonical,
        "reason": verdict.reason,
        "judged_by": verdict.judged_by,
        "verifier_version": version,
    }


def _reward_of(row: Row) -> Verifier | None:
    task = row.values.get("task")
    return None if task is None else TASKS[task]


def _spelled(value: Any) -> str | int:
    """An id as the file has it: a number stays one."""
    return int(value) if isinstance(value, Spelled) else value


def _faults_of(row: Row, seen: dict[str, str]) -> list[str]:
    found = [f"{name} is missing" for name in COLUMNS[:3] if name not in row.values]
    values = row.values
    if "id" in values:
        try:
            name = id_of(values["id"])
            if seen.setdefault(name, row.place) != row.place:
                found.append("id is that of an earlier row")
        except FaultyRow as fault:
            found.append(f"id {fault}")
    if "reference_answer" in values and not isinstance(values["reference_answer"], str):
        found.append(f"reference_answer is {named(values['reference_answer'])}: use text or a number")
    if "completion" in values and (
        not isinstance(values["completion"], str) or isinstance(values["completion"], Spelled)
    ):
        found.append(f"completion is {named(values['completion'])}: use text")
    task = values.get("task")
    if task is not None and (not isinstance(task, str) or task not in TASKS):
        found.append(f"task is none of {', '.join(TASKS)}")
    elif task is not None and (reason := unusable(task)) is not None:
        found.append(f"task {task} cannot be judged here: {reason}")
    return found
