"""Each `papo …` line on the README and the pages of docs is one that the command line takes; none of them is run."""

import io
import re
import shlex
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
import typer

from flows.cli import app

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
CODE = re.compile(r"`([^`\n]+)`")
CALL = re.compile(r"^(?:\$ )?(?:[A-Z_]+=\S+ )*(?:\S*/)?papo (?P<words>[a-z-][^|&;<>]*)")
LEFT_OUT = {"…", "..."}
SAID = {"needs Python 3.11 or newer"}
"""What papo says and nobody types."""


def commands_in(text: str) -> list[str]:
    """What stands after `papo` in code spans and in blocks of code."""
    blocks = re.findall(r"^ *```[a-z]*\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL)
    lines = [line.strip() for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    spans = CODE.findall(re.sub(r"^ *```[a-z]*\n.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL))
    found = [CALL.match(line.replace("\\|", "/")) for line in (*lines, *spans)]
    return [call["words"].strip() for call in found if call is not None and call["words"] not in SAID]


def checked(line: str) -> str | None:
    """What is wrong with a command, which does nothing here; prose may leave its arguments out (`papo validate`)."""
    plain = re.sub(r"\$\(\(.*?\)\)|\bN\b", "1", line).replace("[", "").replace("]", "")
    words = [word for word in shlex.split(plain, comments=True) if word not in LEFT_OUT]
    command: Any = typer.main.get_command(app)
    _disarm(command)
    told = io.StringIO()
    try:
        with redirect_stderr(told), redirect_stdout(io.StringIO()):
            command.main(words, prog_name="papo")
    except SystemExit as end:
        return told.getvalue() if end.code and "Missing argument" not in told.getvalue() else None
    return None


def _disarm(command: Any) -> None:
    command.callback = None
    for inner in getattr(command, "commands", {}).values():
        _disarm(inner)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_each_command_on_a_page_is_one_that_papo_takes(page: Path) -> None:
    wrong = {line: fault for line in commands_in(page.read_text(encoding="utf-8")) if (fault := checked(line))}

    assert wrong == {}


def test_the_pages_have_commands() -> None:
    assert sum(len(commands_in(page.read_text(encoding="utf-8"))) for page in PAGES) > 60


@pytest.mark.parametrize("line", ["fly run", "train x.yaml --limt 3", "ls extra", "resume x --limit 0", "data mend x"])
def test_a_command_that_papo_does_not_take_would_be_seen(line: str) -> None:
    assert checked(line) is not None


def test_commands_are_found_in_spans_and_blocks() -> None:
    text = "Say `papo ls --runs x`, or `ls`.\n\n```sh\n$ papo train a.yaml \\\n  --limit 2 | tee log\n```\n"

    assert commands_in(text) == ["train a.yaml    --limit 2", "ls --runs x"]
