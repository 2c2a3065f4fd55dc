"""C-16 for every command: what it prints of names, paths, configs, rows and rollouts steers no terminal.

A command that is not in `CASES` or `NOT_TRIED` fails a test, so that a new one comes with its case.
"""

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import typer
import yaml
from typer.testing import CliRunner

from flows.cli import app
from papo.runs import RunView
from tests.simulation.world import config_with
from tests.unit.tasks.bench import Bench

HOSTILE = "\x1b[2J[red]x\u202e:smile:\x07\r\x9b31m\u2066\x08"
OBEYED = {sign for sign in HOSTILE if not sign.isprintable()}

# What is typed, and whether the hostile text is part of what is said. {at}: a folder with a hostile name.
CASES: dict[str, list[tuple[list[str], bool]]] = {
    "train": [(["train", "{at}/bad.yaml"], True), (["train", "{at}/run.yaml"], True)],
    "resume": [(["resume", HOSTILE, "--runs", "{at}/runs"], True), (["resume", "bench", "--runs", "{at}/runs"], True)],
    "sft": [(["sft", "{at}/bad.yaml"], True)],
    "status": [(["status", HOSTILE, "--runs", "{at}/runs"], True), (["status", "bench", "--runs", "{at}/runs"], True)],
    "ls": [(["ls", "--runs", "{at}/runs"], True), (["ls", "--runs", "{at}/empty"], True)],
    "validate": [(["validate", "{at}/bad.yaml"], True), (["validate", "{at}/run.yaml"], True)],
    "up": [(["up", "--runs", "{at}/run.yaml"], True)],
    "presets": [(["presets", HOSTILE], False)],
    "samples": [(["samples", "bench", "--runs", "{at}/runs"], True)],
    "export": [(["export", "bench", "--runs", "{at}/runs", "--output", "{at}"], True)],
    "try": [(["try", "{at}/bad.yaml"], True), (["try", "{at}/run.yaml"], True)],
    "verify": [
        (["verify", "{at}/rows.jsonl", "--references", "answer"], True),
        (["verify", "{at}/rows.jsonl", "--output", "{at}/verdicts.jsonl"], True),
    ],
    "data check": [(["data", "check", "{at}/rows.jsonl", "--prompt", "question", "--task", "math"], True)],
    "data prepare": [(["data", "prepare", "{at}/rows.jsonl", "--output", "{at}/clean"], False)],
    "data rate": [(["data", "rate", "{at}/run.yaml", "--output", "{at}/rates.jsonl"], True)],
    "data visits": [(["data", "visits", "bench", "--runs", "{at}/none"], True)],
    "models smollm2": [(["models", "smollm2", "{at}/model"], True)],
    "engines install-vllm": [(["engines", "install-vllm", "--build", HOSTILE], True)],
    "engines serve-vllm": [(["engines", "serve-vllm", "{at}", "--environment", "{at}/vllm"], True)],
}
NOT_TRIED = {"doctor": "starts an engine, and prints through `say` as the others do"}


def leaves(command: Any, above: tuple[str, ...] = ()) -> Iterator[str]:
    inner = getattr(command, "commands", None)
    if inner is None:
        yield " ".join(above)
        return
    for name, one in inner.items():
        yield from leaves(one, (*above, name))


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of that name, with data, configs and a finished run that are as hostile."""
    folder = tmp_path_factory.mktemp("hostile") / HOSTILE
    (folder / "empty").mkdir(parents=True)
    (folder / "runs").mkdir()
    (folder / "model").mkdir()
    (folder / "model" / "config.json").write_text(json.dumps({"model_type": HOSTILE}))
    rows = [{"id": f"{HOSTILE}{at}", "question": f"{HOSTILE}?", "answer": f"{HOSTILE}={at}"} for at in range(4)]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = {
        "data": {"train": {"kind": "file", "path": "rows.jsonl", "columns": {"prompt": "question"}}},
        "model": {"path": "model"},
        "reward": {"outcome": {"kind": "math_answer"}},
        "algorithm": {"advantage": {"kind": "grpo"}},
    }
    config["data"]["train"]["columns"]["reference_answer"] = "answer"  # type: ignore[index]
    (folder / "run.yaml").write_text(yaml.safe_dump(config))
    (folder / "bad.yaml").write_text(yaml.safe_dump({HOSTILE: HOSTILE, "model": {"path": HOSTILE}, "data": HOSTILE}))
    bench = Bench(folder / "runs" / "bench", config_with(iterations=1))
    bench.run()
    line = {"event": "ended", "time": 1764550000.0, "state": "done", "reason": HOSTILE, "iteration": 1}
    with (folder / "runs" / "bench" / "events.jsonl").open("a") as events:
        events.write(json.dumps(line) + "\n")
    shutil.copytree(folder / "runs" / "bench", folder / "runs" / HOSTILE)
    return folder


def test_c_16_every_command_has_a_case() -> None:
    assert set(leaves(typer.main.get_command(app))) == {*CASES, *NOT_TRIED}


@pytest.mark.parametrize(
    ("words", "is_quoted"),
    [pytest.param(*case, id=f"{name} {number}") for name, cases in CASES.items() for number, case in enumerate(cases)],
)
def test_c_16_no_command_prints_what_a_terminal_obeys(
    at: Path, words: list[str], *, is_quoted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["papo"])
    monkeypatch.chdir(at.parent)
    real = RunView.rollouts

    def hostile(view: RunView, iteration: int) -> pl.DataFrame:
        text = pl.lit(HOSTILE)
        return real(view, iteration).with_columns(completion=text, question=text, extracted=text)

    monkeypatch.setattr(RunView, "rollouts", hostile)
    done = CliRunner().invoke(app, [word.replace("{at}", str(at)) for word in words])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert done.output
    assert not OBEYED & {*done.output} - {"\n"}, repr(done.output)
    if is_quoted:
        assert "\\x1b[2J[red]x" in done.output.replace("\n", ""), done.output
