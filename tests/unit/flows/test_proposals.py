"""C-11: every command that papo proposes is built in one place, with the caller's options and the shell's quoting."""

import ast
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from flows.cli import app
from flows.proposals import CARRIED, Places, Proposals, written
from papo.errors import WayOut

ROOT = Path(__file__).parents[3]
GROUP: Any = typer.main.get_command(app)
NAMES = sorted(GROUP.commands)
SPELLED = re.compile(rf"\bpapo (?:{'|'.join(map(re.escape, NAMES))})\b")
WRITES_PAGES = {"flows/reference.py"}
"""Writes the reference, which is prose and not a proposal."""


@pytest.fixture(autouse=True)
def on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["papo"])


def command_of(name: str) -> Any:
    found = GROUP
    for word in name.split():
        found = found.commands[word]
    return found


def test_c_11_the_callers_options_and_quotes_are_kept() -> None:
    places = Places(runs=Path("my runs"), models=Path("m"))
    by = Proposals(places=places, overrides=("a.b='x y'", "c=[1, 2]"), direct=True)
    assert shlex.split(by("train", "my run.yaml")) == [
        "papo", "train", "my run.yaml", "--set", "a.b='x y'", "--set", "c=[1, 2]", "--direct", "--runs", "my runs",
        "--models", "m",
    ]  # fmt: skip
    assert by("status", "r") == "papo status r --runs 'my runs'"
    assert Proposals()("resume", "r", options=[("--set", "iterations=4")]) == "papo resume r --set iterations=4"


def test_c_11_a_name_that_begins_with_a_dash_is_no_option() -> None:
    assert Proposals(direct=True)("train", "-x.yaml") == "papo train --direct -- -x.yaml"


def test_c_11_papo_is_called_as_it_was_called(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    called = tmp_path / "bin" / "papo"
    monkeypatch.setattr(sys, "argv", [str(called)])
    monkeypatch.setenv("PATH", "/nowhere")
    assert Proposals()("up") == f"{called} up"


@pytest.mark.parametrize("name", sorted(CARRIED))
def test_c_11_a_command_has_the_options_that_it_is_given(name: str) -> None:
    known = {spelling for parameter in command_of(name).params for spelling in parameter.opts}
    assert set(CARRIED[name]) <= known


def test_c_11_a_way_out_of_an_error_is_written_with_the_callers_options() -> None:
    way_out = WayOut(text="Go on", command="resume", arguments=("r",), options=(("--amend", "a=b c"),))
    assert written(way_out, Proposals(direct=True)) == "Go on: papo resume r --amend 'a=b c' --direct"


def texts_of(path: Path) -> Iterator[str]:
    """Every string of a module but its docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield node.value


@pytest.mark.parametrize("layer", ["flows", "tasks", "schemas", "papo"])
def test_c_11_no_other_module_spells_a_command(layer: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}: {text.strip()[:100]}"
        for path in sorted((ROOT / layer).rglob("*.py"))
        if str(path.relative_to(ROOT)) not in WRITES_PAGES
        for text in texts_of(path)
        if SPELLED.search(text)
    ]
    assert found == []
