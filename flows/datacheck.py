"""`papo data check` and `papo data prepare`: a file, or the data of a run config, held to the rules of training."""

import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from flows.proposals import PLAIN, Proposals
from flows.reporters import reporter_for
from papo.engines.settings import PromptFormat
from papo.errors import ConfigError, DataError
from papo.rewards import Verifier
from schemas.config import RunConfig
from schemas.data import Columns, DataSource, FileSource
from schemas.filechecks import resolve
from schemas.loading import load_config
from schemas.mappings import PROGRAMS, MappingName
from schemas.rewardmodels import verifier_of
from tasks.datacheck import FLAGS, Checked, check_data
from tasks.dataprepare import Format, prepare_data
from tasks.datareport import MEANINGS, page_of, report_of
from tasks.datarows import data_rows
from tasks.difficulty import PassRate, read_rates
from tasks.promptlengths import prompt_lengths
from tasks.references import TASKS, unusable

EXPLAINED = ("faulty", "unverifiable")
"""Findings that say what is wrong with a row only in their detail."""
DETAILS = 3
"""Details that are shown of one finding."""
LONGEST = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is to be checked, and by what."""

    source: Path
    """A run config (.yaml), or a file of rows."""
    overrides: Sequence[str] = ()
    against: Path | None = None
    """Evaluation rows beside a file of rows."""
    mapping: str | None = None
    prompt: str = "prompt"
    reference_answer: str = "answer"
    task: str | None = None
    """Which reward a file's references are for."""
    model: Path | None = None
    max_prompt_length: int | None = None
    rates: Path | None = None

    @property
    def is_config(self) -> bool:
        return self.source.suffix in (".yaml", ".yml")

    @property
    def typed(self) -> list[tuple[str, str]]:
        """The options that say all this, but for the config's fields."""
        given = {
            "--against": self.against,
            "--mapping": self.mapping,
            "--prompt": None if self.prompt == "prompt" else self.prompt,
            "--reference-answer": None if self.reference_answer == "answer" else self.reference_answer,
            "--task": self.task,
            "--model": self.model,
            "--max-prompt-length": self.max_prompt_length,
            "--pass-rates": self.rates,
        }
        return [(name, str(value)) for name, value in given.items() if value is not None]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    sources: dict[str, DataSource]
    base: Path
    reward: Verifier | None
    """None where a reward model alone judges."""
    model: Path | None
    limit: int | None
    style: PromptFormat
    trust_remote_code: bool = False

    @property
    def reward_version(self) -> str:
        """What the references were held to."""
        return "none" if self.reward is None else self.reward.version


@dataclass(frozen=True, slots=True, kw_only=True)
class Policies:
    """What is written, and what findings are no reason to go on."""

    form: str = "jsonl"
    conflicts: str = "fail"
    overlap: str = "drop"
    per_tier: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    lines: list[str]
    removed: int
    """Rows that preparation would leave out."""


def check(asked: Asked, *, output: Path | None, html: Path | None, by: Proposals = PLAIN) -> Found:
    """Check, write what was asked for, and say what was found."""
    plan = _plan(asked)
    checked, _ = _checked(asked, plan)
    if output is not None:
        record = report_of(checked, reward_version=plan.reward_version)
        _write(output, json.dumps(record, indent=2, ensure_ascii=False) + "\n")
    if html is not None:
        _write(html, page_of(checked, title=f"Data of {asked.source.name}"))
    removed = len(checked.removed())
    written = [f"Written: {path}" for path in (output, html) if path is not None]
    folder = asked.source.with_name(f"{asked.source.stem}-clean")
    prepare_them = by("data prepare", asked.source, options=[*asked.typed, ("--output", str(folder))])
    verdict = f"{removed} rows would be left out by: {prepare_them}" if removed else "Every row is clean."
    return Found(lines=[*_lines(checked), *written, verdict], removed=removed)


def prepare(asked: Asked, folder: Path, policies: Policies) -> Iterator[str]:
    """Write clean data to a new folder and say what came of it. Raises DataError where a policy is to fail."""
    faults = [*_unknown("format", policies.form, get_args(Format))]
    for name, policy in (("conflicts", policies.conflicts), ("overlap", policies.overlap)):
        faults += _unknown(name, policy, ("fail", "drop"))
    if policies.per_tier is not None and asked.rates is None:
        faults.append("--per-tier needs --pass-rates FILE: prompt_id and pass_rate, one JSON object a line.")
    if folder.exists():
        faults.append(f"--output {folder} is there already: name a new folder.")
    plan = _plan(asked, faults)
    checked, rates = _checked(asked, plan)
    _refuse(checked, "conflict", "--conflicts drop leaves all of them out", policies.conflicts == "fail")
    _refuse(checked, "overlap_", "--overlap drop leaves them out of training", policies.overlap == "fail")
    manifest = prepare_data(
        checked,
        folder,
        reward_version=plan.reward_version,
        form="parquet" if policies.form == "parquet" else "jsonl",
        rates=rates,
        per_tier=policies.per_tier,
    )
    yield from _lines(checked)
    for split, found in manifest["splits"].items():
        kept = f"{found['kept']} of {found['read']} rows"
        yield f"{split}: {kept} in {folder / found['file']}, sha256 {found['sha256'][:16]}…"
    columns = "{prompt: prompt, reference_answer: answer, prompt_id: prompt_id}"
    yield f"Use it: {{kind: file, path: {folder / manifest['splits']['train']['file']}, columns: {columns}}}"


def _plan(asked: Asked, faults: Sequence[str] = ()) -> _Plan:
    """What is to be done. Raises ConfigError with all `faults` of the options, and those that it finds itself."""
    task = asked.task or ("code_tests" if asked.mapping in PROGRAMS else "math")
    told = [*faults, *(() if asked.is_config else _file_faults(asked, task))]
    if told:
        raise ConfigError("\n".join(told))
    if asked.is_config:
        config = load_config(asked.source, asked.overrides)
        return _of_config(config, asked)
    sources: dict[str, DataSource] = {"train": _file(asked, asked.source)}
    if asked.against is not None:
        sources["evaluation"] = _file(asked, asked.against)
    return _Plan(
        sources=sources,
        base=Path(),
        reward=TASKS[task],
        model=asked.model,
        limit=asked.max_prompt_length,
        style=PromptFormat(),
    )


def _file_faults(asked: Asked, task: str) -> Iterator[str]:
    if asked.mapping is not None:
        yield from _unknown("mapping", asked.mapping, get_args(MappingName))
    if task not in TASKS:
        yield from _unknown("task", task, tuple(TASKS))
    elif (reason := unusable(task)) is not None:
        yield f"--task {task}: no reference can be judged here ({reason})."
    if (asked.model is None) != (asked.max_prompt_length is None):
        yield "--model and --max-prompt-length go together: the limit is in tokens of that model."


def _of_config(config: RunConfig, asked: Asked) -> _Plan:
    base, data = asked.source.parent, config.data
    sources: dict[str, DataSource] = {"train": data.train}
    if data.evaluation is not None:
        sources["evaluation"] = data.evaluation
    return _Plan(
        sources=sources,
        base=base,
        reward=verifier_of(config),
        model=None if config.model.path is None else resolve(config.model.path, base),
        limit=config.sampling.max_prompt_length,
        style=data.prompt,
        trust_remote_code=config.model.trust_remote_code,
    )


def _file(asked: Asked, path: Path) -> FileSource:
    columns = Columns(prompt=asked.prompt, reference_answer=asked.reference_answer)
    return FileSource.model_validate({"path": str(path), "mapping": asked.mapping, "columns": columns})


def _checked(asked: Asked, plan: _Plan) -> tuple[Checked, dict[str, PassRate] | None]:
    rates = None if asked.rates is None else read_rates(asked.rates)
    rows = {split: data_rows(source, plan.base, split=split) for split, source in plan.sources.items()}
    every = [row for found in rows.values() for row in found]
    lengths = None
    if plan.model is not None and plan.limit is not None:
        lengths = prompt_lengths(every, plan.model, plan.style, trust_remote_code=plan.trust_remote_code)
    bars = reporter_for(sys.stderr)
    try:
        found = check_data(
            rows, plan.reward, lengths=lengths, limit=plan.limit or 0, rates=rates, progress=bars.progress
        )
    finally:
        bars.end()
    return found, rates


def _lines(checked: Checked) -> Iterator[str]:
    for split, rows in checked.rows.items():
        yield f"{split}: {len(rows)} rows, {len(checked.clean(split))} of them clean."
    for reason, count in checked.counts().items():
        places = [found.row.place for found in checked.findings if found.reason == reason]
        more = f" and {count - 5} more" if count > 5 else ""
        mark = "look at" if reason in FLAGS else "remove "
        yield f"{mark} {reason} {count}: {', '.join(places[:5])}{more} ({MEANINGS[reason]})"
        if reason in EXPLAINED:
            yield from _details([found.detail for found in checked.findings if found.reason == reason])


def _details(told: Sequence[str]) -> Iterator[str]:
    """What is said of the rows, the most frequent first: a wrong column name or task is said of all of them."""
    often = Counter(told).most_common()
    yield from (f"          {count} × {detail[:LONGEST]}" for detail, count in often[:DETAILS])
    if len(often) > DETAILS:
        yield f"          and {len(often) - DETAILS} further reasons: --output FILE or --html FILE has them row by row"


def _refuse(checked: Checked, reason: str, way_out: str, is_on: bool) -> None:
    found = [finding for finding in checked.findings if finding.reason.startswith(reason)]
    if found and is_on:
        places = ", ".join(f"{finding.row.split} {finding.row.place}" for finding in found[:10])
        raise DataError(f"{len(found)} rows are in {reason.rstrip('_')}: {places}. Repair the data, or {way_out}.")


def _unknown(name: str, given: str, known: Sequence[str]) -> Iterator[str]:
    if given not in known:
        yield f"--{name} is {given!r}: use one of {', '.join(known)}."


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise DataError(f"{path} cannot be written ({error.strerror}): check folder and permissions.") from None
