"""The reference pages, written from the docstrings under the fields: `python -m flows.reference`.

A test holds docs/reference to what this makes, so a field cannot change without its page.
"""

import ast
import inspect
import textwrap
from collections.abc import Iterator
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel

from papo.correctness import OF_CORRECTNESS
from papo.metrics import BatchFigures, IterationSummary, OpinionFigures, PrmFigures, PrmStats, UpdateStats
from schemas.config import RunConfig
from schemas.section import Role
from schemas.sft import SftConfig
from schemas.shape import REQUIRED, Entry, entries_of, is_section

FOLDER = Path("docs/reference")
_PREDICTED = (
    "Where a reward model judges, metrics that speak of right or wrong rows have `predicted_` before their names"
    " (`predicted_accuracy`, `evaluation/predicted_accuracy`), and the plain names are absent."
)
_HEAD = "<!-- Written by `python -m flows.reference` from the docstrings under the fields. -->\n"


def pages() -> dict[str, str]:
    """Each reference page by its file name."""
    run = _config_page("Run config", "`papo train CONFIG`", RunConfig)
    sft = _config_page("SFT config", "`papo sft CONFIG`", SftConfig)
    return {"config.md": run, "sft.md": sft, "metrics.md": _metrics_page()}


def write(folder: Path = FOLDER) -> None:
    """Bring the pages in `folder` up to date."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, page in pages().items():
        (folder / name).write_text(page, encoding="utf-8")


def field_docs(section: type) -> dict[str, str]:
    """The docstring under each field of a class and of those it inherits from."""
    found: dict[str, str] = {}
    for cls in reversed(section.__mro__):
        if cls.__module__.split(".")[0] in ("papo", "schemas"):
            found |= dict(_docs_in(ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]))
    return found


def _docs_in(node: ast.stmt) -> Iterator[tuple[str, str]]:
    for field, after in pairwise(cast("ast.ClassDef", node).body):
        match field, after:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                yield name, " ".join(text.split())
            case _:
                continue


def _config_page(title: str, command: str, config: type) -> str:
    lines = [
        _HEAD,
        f"# {title}",
        "",
        f"Read by {command}. A field is part of the run's identity unless it is marked *horizon* or *operational*:"
        " those may change at any resume. A section that a file gives in part keeps its other defaults.",
    ]
    seen: list[type] = []
    queue: list[tuple[str, type]] = [("", config)]
    while queue:
        name, section = queue.pop(0)
        if section in seen:
            continue
        seen.append(section)
        lines += ["", f"## {_title(name, section)}", "", *_summary(section), "| field | default | |", "|---|---|---|"]
        docs = field_docs(section)
        for field, entry in entries_of(section).items():
            if field == "kind":
                continue
            lines.append(f"| `{field}` | {_default(entry)} | {_role(section, field)}{_cell(docs.get(field, ''))} |")
            inner = [*entry.sections, *(entry.of_many.sections if entry.of_many else [])]
            queue += [(f"{name}.{field}" if name else field, member) for member in inner]
    return "\n".join(lines) + "\n"


def _metrics_page() -> str:
    lines = [
        _HEAD,
        "# Metrics",
        "",
        "In `metrics.jsonl`, in each commit's summary and in MLflow (`update/` before the names of the update's).",
    ]
    pages: tuple[tuple[str, type, str], ...] = (
        ("Iteration", IterationSummary, ""),
        ("Batch", BatchFigures, ""),
        ("Update", UpdateStats, "update/"),
        ("Second opinion", OpinionFigures, ""),
        ("Implicit PRM", PrmFigures, ""),
        ("Its training", PrmStats, "train_prm/"),
    )
    for title, kind, prefix in pages:
        docs = field_docs(kind)
        lines += ["", f"## {title}", "", "| metric | |", "|---|---|"]
        lines += [f"| `{prefix}{field.name}` | {_cell(docs.get(field.name, ''))} |" for field in fields(kind)]
    named = ", ".join(f"`{name}`" for name in OF_CORRECTNESS)
    lines += ["", "## Predicted", "", f"{_PREDICTED} These are {named}, and `accuracy/NAME` of a source."]
    return "\n".join(lines) + "\n"


def _title(name: str, section: type) -> str:
    kind = next((entry.default for field, entry in entries_of(section).items() if field == "kind"), None)
    return (f"`{name}`" if name else "Top level") + (f" of kind `{kind}`" if isinstance(kind, str) else "")


def _summary(section: type) -> list[str]:
    text = inspect.getdoc(section) or ""
    return [text, ""] if section.__doc__ and text and not text.startswith(section.__name__ + "(") else []


def _default(entry: Entry) -> str:
    if entry.default is REQUIRED:
        return "required"
    if is_section(type(entry.default)):
        return "(below)"
    return f"`{_shown(entry.default)}`"


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        items = cast("tuple[Any, ...]", value)
        return f"[{', '.join(_shown(item) for item in items)}]"
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    # A cell of a table is one line.
    return str(value).replace("\n", "\\n")


def _role(section: type, field: str) -> str:
    if not issubclass(section, BaseModel):
        marked = {each.name for each in fields(cast("Any", section)) if each.metadata.get("operational")}
        return "*operational* " if field in marked else ""
    marks = section.model_fields[field].metadata
    return next((f"*{mark.name}* " for mark in marks if isinstance(mark, Role)), "")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    write()
