"""The commands `papo data check` and `papo data prepare`, as they are typed."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flows.output import failures, say
from flows.proposals import Places, Proposals
from papo.later import Later

if TYPE_CHECKING:
    from flows import datacheck, rating, reporters
else:
    datacheck, rating, reporters = Later("flows.datacheck"), Later("flows.rating"), Later("flows.reporters")

data = typer.Typer(no_args_is_help=True, help="Data before a run: what is wrong with it, and clean files of it.")

Source = Annotated[
    Path, typer.Argument(metavar="FILE|CONFIG", help="Rows (.jsonl, .parquet), or a run config (.yaml).")
]
Set = Annotated[list[str] | None, typer.Option("--set", metavar="A.B=C", help="Set a field of the config. Repeatable.")]
Against = Annotated[Path | None, typer.Option("--against", help="A file's evaluation rows, for the overlap.")]
Mapping = Annotated[str | None, typer.Option("--mapping", help="The file's public data set: gsm8k, math …")]
Prompt = Annotated[str, typer.Option("--prompt", help="The file's column of prompts.")]
Reference = Annotated[str, typer.Option("--reference-answer", help="The file's column of references.")]
Task = Annotated[str | None, typer.Option("--task", help="What the file's references are: math, countdown …")]
Model = Annotated[Path | None, typer.Option("--model", help="Model folder whose tokens count, for a file.")]
MaxPrompt = Annotated[int | None, typer.Option("--max-prompt-length", help="Tokens of a prompt, for a file.")]
PassRates = Annotated[
    Path | None, typer.Option("--pass-rates", help="JSONL of prompt_id, pass_rate (0 to 1) and maybe tries.")
]


@data.command()
def check(  # noqa: PLR0913, PLR0917  # a command has its options
    source: Source,
    set_: Set = None,
    against: Against = None,
    mapping: Mapping = None,
    prompt: Prompt = "prompt",
    reference_answer: Reference = "answer",
    task: Task = None,
    model: Model = None,
    max_prompt_length: MaxPrompt = None,
    pass_rates: PassRates = None,
    output: Annotated[Path | None, typer.Option("--output", help="All findings, as JSON.")] = None,
    html: Annotated[Path | None, typer.Option("--html", help="A page to look at.")] = None,
) -> None:
    """What is wrong with data, row by row: faults, references, duplicates, lengths, overlap. Changes nothing."""
    by = Proposals(overrides=tuple(set_ or ()))
    with failures(by):
        asked = datacheck.Asked(
            source=source,
            overrides=set_ or [],
            against=against,
            mapping=mapping,
            prompt=prompt,
            reference_answer=reference_answer,
            task=task,
            model=model,
            max_prompt_length=max_prompt_length,
            rates=pass_rates,
        )
        found = datacheck.check(asked, output=output, html=html, by=by)
        for line in found.lines:
            say(line)
        if found.removed:
            raise typer.Exit(4)


@data.command()
def rate(
    config: Annotated[str, typer.Argument(help="A run config (YAML): its data, first policy, sampling and reward.")],
    output: Annotated[Path, typer.Option("--output", help="JSONL, as --pass-rates of data prepare reads it.")],
    samples: Annotated[int, typer.Option("--samples", min=1, help="Tries a row.")] = 8,
    set_: Set = None,
    runs: Annotated[Path, typer.Option("--runs", help="Folder that holds the runs.")] = Path("runs"),
    models: Annotated[Path, typer.Option("--models", help="Folder that holds models made by papo.")] = Path("models"),
) -> None:
    """How often the first policy solves each training row. Interrupted, it goes on by the same command."""
    by = Proposals(places=Places(runs=runs, models=models), overrides=tuple(set_ or ()))
    with failures(by):
        lines = rating.rate(config, samples=samples, output=output, reporter=reporters.reporter_for(), by=by)
        for line in lines:
            say(line)


@data.command()
def visits(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The run's id.")],
    min_visits: Annotated[int, typer.Option("--min-visits", min=1, help="Rows visited so often or more.")] = 3,
    output: Annotated[Path | None, typer.Option("--output", help="All rows with their rates, as JSONL.")] = None,
    runs: Annotated[Path, typer.Option("--runs", help="Folder that holds the runs.")] = Path("runs"),
) -> None:
    """Which rows a run has never solved, or always: too hard, too easy, or with a wrong reference."""
    by = Proposals(places=Places(runs=runs))
    with failures(by):
        for line in rating.visits(by.places.run(run), min_visits=min_visits, output=output):
            say(line)


@data.command()
def prepare(  # noqa: PLR0913, PLR0917  # a command has its options
    source: Source,
    output: Annotated[Path, typer.Option("--output", help="New folder for the clean rows, report and manifest.")],
    set_: Set = None,
    against: Against = None,
    mapping: Mapping = None,
    prompt: Prompt = "prompt",
    reference_answer: Reference = "answer",
    task: Task = None,
    model: Model = None,
    max_prompt_length: MaxPrompt = None,
    pass_rates: PassRates = None,
    form: Annotated[str, typer.Option("--format", help="jsonl or parquet.")] = "jsonl",
    conflicts: Annotated[str, typer.Option(help="One prompt, several references: fail, or drop all of them.")] = "fail",
    overlap: Annotated[str, typer.Option(help="Training rows of the evaluation data: fail, or drop.")] = "drop",
    per_tier: Annotated[
        int | None, typer.Option("--per-tier", min=1, help="Rows of each tier of difficulty, by --pass-rates.")
    ] = None,
) -> None:
    """Write the rows without findings to a new folder, with a report and a manifest."""
    by = Proposals(overrides=tuple(set_ or ()))
    with failures(by):
        asked = datacheck.Asked(
            source=source,
            overrides=set_ or [],
            against=against,
            mapping=mapping,
            prompt=prompt,
            reference_answer=reference_answer,
            task=task,
            model=model,
            max_prompt_length=max_prompt_length,
            rates=pass_rates,
        )
        policies = datacheck.Policies(form=form, conflicts=conflicts, overlap=overlap, per_tier=per_tier)
        for line in datacheck.prepare(asked, output, policies):
            say(line)
