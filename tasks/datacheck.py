"""What is wrong with a run's data before it is trained on: every finding by row, nothing changed."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from papo.rewards import Verifier
from papo.verifiers.pool import rest_all
from tasks.answerfiles import Progress
from tasks.datarows import WORDS, DataRow, grams
from tasks.difficulty import PassRate
from tasks.references import self_check, spelled_out

Reason = Literal[
    "faulty",
    "repeated_id",
    "unverifiable",
    "duplicate",
    "conflict",
    "overlong",
    "overlap_exact",
    "overlap_words",
    "never_solved",
    "unclear",
    "always_solved",
]
FLAGS: tuple[Reason, ...] = ("unclear", "always_solved")
"""Findings to look at; rows with nothing else stay."""
COMMON_SHARE = 0.5
COMMON_ROWS = 3
_SEVERAL = (",", ";", " or ", " and ", "\\pm")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    row: DataRow
    reason: Reason
    detail: str
    other: DataRow | None = None
    """The row that it is in conflict with, repeats or overlaps."""


@dataclass(kw_only=True)
class Checked:
    """All rows and what was found, in the rows' order."""

    rows: dict[str, list[DataRow]]
    findings: list[Finding] = field(default_factory=list[Finding])
    common: int = 0
    """Runs of words left out of the overlap because half of the evaluation prompts have them: a common instruction."""

    def removed(self) -> set[tuple[str, str]]:
        """(split, place) of the rows that preparation leaves out."""
        return {(found.row.split, found.row.place) for found in self.findings if found.reason not in FLAGS}

    def clean(self, split: str) -> list[DataRow]:
        """A split's rows without those."""
        removed = self.removed()
        return [row for row in self.rows[split] if (row.split, row.place) not in removed]

    def counts(self) -> dict[str, int]:
        """Findings by reason."""
        return dict(sorted(Counter(found.reason for found in self.findings).items()))


def check_data(
    rows: Mapping[str, Sequence[DataRow]],
    reward: Verifier | None,
    *,
    lengths: Mapping[tuple[str, str], int] | None = None,
    limit: int = 0,
    rates: Mapping[str, PassRate] | None = None,
    progress: Progress = lambda done, total: None,
) -> Checked:
    """Hold `rows` (by split: train, and maybe evaluation) to every rule of docs/data.md.

    `reward`: what references must verify under; None: nothing looks at them. `lengths`: tokens of a prompt after the
    template, by (split, place); `limit`: the most that it may have. `rates`: by prompt_id. Nothing raises for what a
    row holds.
    """
    checked = Checked(rows={split: list(found) for split, found in rows.items()})
    every = [row for found in checked.rows.values() for row in found]
    found: list[Finding] = []
    try:
        for done, row in enumerate(every, start=1):
            found += _alone(row, reward)
            if lengths is not None and not row.faults and (tokens := lengths[row.split, row.place]) > limit:
                found.append(Finding(row=row, reason="overlong", detail=f"{tokens} tokens, {limit} allowed"))
            progress(done, len(every))
    finally:
        rest_all()
    for split in checked.rows.values():
        found += _repeated(split)
        found += _same_prompts(split, reward)
    found += _overlaps(checked)
    found += _by_rate(checked.rows["train"], rates or {})
    order = {(row.split, row.place): number for number, row in enumerate(every)}
    # Sorted by row; what concerns one row stays in the order of the checks.
    checked.findings = sorted(found, key=lambda finding: order[finding.row.split, finding.row.place])
    return checked


def _alone(row: DataRow, reward: Verifier | None) -> list[Finding]:
    if row.faults:
        return [Finding(row=row, reason="faulty", detail="; ".join(row.faults))]
    reason = _unverifiable(row, reward)
    if reason is not None:
        return [Finding(row=row, reason="unverifiable", detail=reason)]
    if reward is not None and reward.kind in ("math_answer", "answer_match") and _may_be_several(row):
        return [Finding(row=row, reason="unclear", detail="the reference may hold several values")]
    return []


def _may_be_several(row: DataRow) -> bool:
    is_number = row.gold.replace("/", "").lstrip("-").isdigit()
    return not is_number and any(sign in row.reference_answer for sign in _SEVERAL)


def _unverifiable(row: DataRow, reward: Verifier | None) -> str | None:
    if reward is None:
        return None
    try:
        return self_check(reward, row.reference_answer)
    except Exception as error:  # a custom reward is anybody's code; here it is data that is checked
        return f"the reward raised {type(error).__name__}: {error}"[:300]


def _repeated(rows: Sequence[DataRow]) -> list[Finding]:
    seen: dict[str, DataRow] = {}
    return [
        Finding(row=row, reason="repeated_id", detail="prompt_id is that of an earlier row", other=first)
        for row in rows
        if not row.faults and (first := seen.setdefault(row.prompt_id, row)) is not row
    ]


def _same_prompts(rows: Sequence[DataRow], reward: Verifier | None) -> list[Finding]:
    """Rows after the first of one prompt: duplicates if all references are the same, all in conflict if not."""
    groups: dict[str, list[DataRow]] = {}
    for row in rows:
        if not row.faults:
            groups.setdefault(row.folded, []).append(row)
    found: list[Finding] = []
    for first, *others in groups.values():
        odd = next((row for row in others if not _same_gold(first, row, reward)), None)
        if odd is not None:
            detail = f"one prompt, references {first.reference_answer[:60]!r} and {odd.reference_answer[:60]!r}"
            found += [
                Finding(row=row, reason="conflict", detail=detail, other=odd if row is first else first)
                for row in (first, *others)
            ]
        else:
            found += [
                Finding(row=row, reason="duplicate", detail="prompt and reference of an earlier row", other=first)
                for row in others
            ]
    return found


def _same_gold(first: DataRow, row: DataRow, reward: Verifier | None) -> bool:
    if reward is None or first.gold == row.gold:
        return True
    try:
        found = spelled_out(reward, row.reference_answer, first.reference_answer)
        return any(verdict.correct is True for verdict in found)
    except Exception:  # a custom reward's bug, found above already
        return False


def _overlaps(checked: Checked) -> list[Finding]:
    """Training rows that an evaluation row has too, as a whole or by `WORDS` words in a row."""
    held_out = [row for row in checked.rows.get("evaluation", []) if not row.faults]
    exact = {row.folded: row for row in reversed(held_out)}
    shared: dict[str, DataRow] = {}
    often: Counter[str] = Counter()
    for row in held_out:
        for gram in grams(row.folded):
            shared.setdefault(gram, row)
            often[gram] += 1
    many = max(COMMON_ROWS, COMMON_SHARE * len(held_out))
    common = {gram for gram, count in often.items() if count > many}
    checked.common = len(common)
    found: list[Finding] = []
    for row in checked.rows["train"]:
        if row.faults:
            continue
        if row.folded in exact:
            detail = "the prompt is in the evaluation data"
            found.append(Finding(row=row, reason="overlap_exact", detail=detail, other=exact[row.folded]))
        elif hits := sorted(gram for gram in grams(row.folded) if gram in shared and gram not in common):
            detail = f"{WORDS} words in a row are in the evaluation data: {hits[0][:120]}"
            found.append(Finding(row=row, reason="overlap_words", detail=detail, other=shared[hits[0]]))
    return found


def _by_rate(rows: Sequence[DataRow], rates: Mapping[str, PassRate]) -> list[Finding]:
    found: list[Finding] = []
    for row in rows:
        rate = rates.get(row.prompt_id)
        if rate is not None and rate.share in (0, 1):
            reason: Reason = "always_solved" if rate.share else "never_solved"
            tries = "" if rate.tries is None else f" of {rate.tries} tries"
            found.append(Finding(row=row, reason=reason, detail=f"pass rate {rate.share:g}{tries}"))
    return found
