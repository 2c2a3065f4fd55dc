"""What commands say of a run and refuse, at once; what they propose is typed and works."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from flows.cli import app
from flows.commands import farewell
from flows.conduct import Ended
from flows.proposals import Places, Proposals
from papo.version import papo_version
from tests.simulation.world import config_with
from tests.unit.tasks.bench import Bench

PROPOSED = re.compile(r"(?:^|: |  )(papo [a-z].*?)(?=  \(|\)|; |$)", re.MULTILINE)
"""The commands in what was printed."""


@pytest.fixture(autouse=True)
def on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["papo"])


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a finished run of the scripted engine."""
    folder = tmp_path_factory.mktemp("my runs")
    bench = Bench(folder / "bench", config_with(iterations=2))
    bench.run()
    events = folder / "bench" / "events.jsonl"
    line = '{"event": "ended", "time": 1764550000.0, "state": "done", "reason": null, "iteration": 2}\n'
    events.write_text(events.read_text() + line)
    return folder


def papo(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def proposed(text: str) -> list[list[str]]:
    return [shlex.split(command)[1:] for command in PROPOSED.findall(text)]


def test_c_31_the_version_and_the_help_need_nothing_of_a_run() -> None:
    assert papo("--version").output.strip() == f"papo {papo_version()}"
    script = (
        "import sys; sys.argv = ['papo', '--help']\nfrom flows.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'polars', 'pydantic', 'pandera', 'numpy', 'prefect', 'mlflow'} & sys.modules.keys()\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("train", "x.yaml", "--limit", "-3"),
        ("resume", "x", "--limit", "0"),
        ("samples", "x", "-n", "0"),
        ("export", "x", "--at", "-1"),
    ],
)
def test_c_31_numbers_that_mean_nothing_are_refused(words: tuple[str, ...]) -> None:
    assert papo(*words).exit_code == 2


@pytest.mark.parametrize("words", [("resume", "bench"), ("status", "bench"), ("ls",), ("resume", "nowhere")])
def test_c_31_what_needs_no_frame_waits_for_no_library_of_frames(runs: Path, words: tuple[str, ...]) -> None:
    script = (
        "import sys\nfrom flows.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'polars', 'pandera', 'pandas', 'pyarrow', 'prefect', 'mlflow', 'torch'} & sys.modules.keys()\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    command = [sys.executable, "-c", script, *words, "--runs", str(runs)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "bench" in done.stdout + done.stderr


def test_c_31_a_finished_run_says_so_and_starts_nothing(runs: Path) -> None:
    done = papo("resume", "bench", "--runs", runs)
    assert done.exit_code == 0, done.output
    assert "Run bench is done: 2 of 2 iterations." in done.output
    assert proposed(done.output) == [["resume", "bench", "--set", "iterations=4", "--runs", str(runs)]]
    assert not (runs / ".prefect").exists()


def test_c_31_fewer_iterations_than_there_are_is_refused_in_words(runs: Path) -> None:
    done = papo("resume", "bench", "--runs", runs, "--set", "iterations=1")
    assert done.exit_code == 2
    assert "iterations is 1, but run bench has had 2 already" in done.output
    assert proposed(done.output) == [["export", "bench", "--at", "1", "--runs", str(runs)]]


def test_c_31_another_identity_is_refused_before_anything_is_started(runs: Path) -> None:
    done = papo("resume", "bench", "--runs", runs, "--set", "sampling.temperature=0.5")
    assert done.exit_code == 2
    assert "sampling.temperature: 1.0 in the run, 0.5 now" in done.output
    (way_out,) = proposed(done.output)
    assert way_out == ["resume", "bench", "--amend", "sampling.temperature=0.5", "--runs", str(runs)]
    assert not (runs / ".prefect").exists()


def test_c_31_an_export_to_what_is_there_is_refused_first(runs: Path, tmp_path: Path) -> None:
    done = papo("export", "bench", "--runs", runs, "--output", tmp_path)
    assert done.exit_code == 2
    assert "is there already" in done.output
    assert papo("export", "bench", "--runs", runs, "--at", "7").exit_code == 2


def test_c_31_ls_says_when_a_run_last_moved_and_status_what_was_amended(runs: Path, tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    bench = Bench(folder / "bench", config_with(iterations=1))
    bench.run()
    bench.config = config_with(iterations=2, optimizer={**bench.config.model_dump()["optimizer"], "eps": 1e-7})
    from tasks.opening import close_run, open_run

    run, _ = open_run(bench.around(), "bench", bench.config, amend=True)
    close_run(run)
    assert re.search(r"bench .* \d{4}-\d\d-\d\d \d\d:\d\d", papo("ls", "--runs", folder).output)
    said = papo("status", "bench", "--runs", folder).output
    assert re.search(r"amended +from iteration 1 on: .*optimizer.eps: 1e-08 → 1e-07", said), said


def test_c_11_what_is_proposed_at_the_end_works_when_it_is_typed(runs: Path) -> None:
    by = Proposals(places=Places(runs=runs))
    text = "\n".join(farewell(Ended(state="paused", reason=None, iteration=2), "bench", by))
    commands = [words for words in proposed(text) if words[0] in ("status", "samples")]
    assert len(commands) == 2
    for words in commands:
        done = papo(*words)
        assert done.exit_code == 0, (words, done.output)


def test_c_11_a_run_that_is_not_there_is_told_with_those_that_are(runs: Path) -> None:
    done = papo("resume", "nobody", "--runs", runs)
    assert done.exit_code == 2
    assert "(there are: bench)" in done.output
    assert proposed(done.output) == [["train", "CONFIG.yaml", "--runs", str(runs)]]


def test_c_16_hostile_rollouts_are_shown_escaped(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from papo.runs import RunView

    real = RunView.rollouts

    def hostile(view: RunView, iteration: int) -> Any:
        import polars as pl

        text = pl.lit("\x1b[2J[red]x\u202e:smile:\rverdict     right\nverdict     right")
        return real(view, iteration).with_columns(completion=text, question=text, extracted=text)

    monkeypatch.setattr(RunView, "rollouts", hostile)
    done = papo("samples", "bench", "--runs", runs, "-n", "1")
    assert done.exit_code == 0, done.output
    assert not any(char in done.output for char in "\x1b\u202e\r")
    assert "\\x1b[2J[red]x\\u202e:smile:\\x0dverdict" in done.output
    assert not re.search(r"^verdict     right$", done.output, re.MULTILINE)


def test_c_14_runs_at_a_file_is_one_sentence(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    done = papo("ls", "--runs", file)
    assert (done.exit_code, "Traceback" in done.output) == (2, False)
    assert "Not a directory" in done.output


@pytest.mark.skipif(shutil.which("setpriv") is None or os.geteuid() != 0, reason="needs root, to be somebody else")
@pytest.mark.parametrize("command", ["status", "samples"])
def test_c_14_a_run_that_cannot_be_written_is_looked_at_by_a_user_without_a_home(runs: Path, command: str) -> None:
    # May read anything, as its Python and this run may be below a closed folder, and may write nothing.
    only = "-all,+dac_read_search"
    user = ["setpriv", "--reuid=12345", "--regid=12345", "--clear-groups", f"--inh-caps={only}"]
    user += [f"--ambient-caps={only}", f"--bounding-set={only}", "env", "-u", "HOME"]
    if subprocess.run([*user, sys.executable, "-c", ""], check=False, capture_output=True).returncode:
        pytest.skip("capabilities cannot be given here")
    with tempfile.TemporaryDirectory() as place:
        shutil.copytree(runs / "bench", Path(place) / "bench")
        subprocess.run(["chmod", "-R", "a+rX,a-w", place], check=True)
        call = [*user, sys.executable, "-m", "flows.cli", command, "bench", "--runs", place]
        done = subprocess.run(call, check=False, capture_output=True, text=True, cwd=Path(__file__).parents[3])
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
