"""The commands `papo data check` and `papo data prepare`, as they are typed."""

from pathlib import Path
from typing import Annotated

import typer

from flows import datacheck
from flows.saying import failures, out

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
    with failures():
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
        found = datacheck.check(asked, output=output, html=html)
        for line in found.lines:
            out.print(line, markup=False, soft_wrap=True)
        if found.removed:
            raise typer.Exit(4)


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
        int | None, typer.Option("--per-tier", help="Rows of each tier of difficulty, by --pass-rates.")
    ] = None,
) -> None:
    """Write the rows without findings to a new folder, with a report and a manifest."""
    with failures():
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
            out.print(line, markup=False, soft_wrap=True)
