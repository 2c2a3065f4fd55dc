"""No hostile program passes, harms, or survives; each ends by its limits. BUG-072, BUG-075, BUG-076, BUG-078."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from papo.rewards import CodeTests
from papo.sandbox import Isolation, Limits, Outcome, SandboxError, box, chosen, isolation, run
from papo.sandbox.isolation import python
from tests.unit.papo.sandbox.hostile import BOMBS, FORGERS, QUIET

LIMITS = Limits(cpu_seconds=0.5, wall_seconds=4.0, memory_bytes=200 * 2**20, disk_bytes=16 * 2**20, output_bytes=2**20)
REWARD = CodeTests(cpu_seconds=1.0, wall_seconds=6.0, memory_mib=200)
CALLS = json.dumps({"fn_name": "f", "inputs": [[71]], "outputs": [5041]})
CHECKING = "def check(candidate):\n    assert candidate(71) == 5041\n"
CHECK = json.dumps({"prompt": "def f(x):\n    pass\n", "entry_point": "f", "test": CHECKING})
FOLDER = f"/box{os.getpid()}"
MARK = f"HOME={FOLDER}\0".encode()
LISTED = json.dumps({"test_list": ["assert f(71) == 5041"]})
USABLE = [kind for kind in isolation.ORDER if isolation.fault_of(kind) is None]


def crossed(names: Iterable[str]) -> list[ParameterSet]:
    """Each under the isolation that a run takes here; a third under the others, and all in a long run."""
    return [
        pytest.param(
            name, kind, id=f"{name}-{kind}", marks=[pytest.mark.long] if place % 3 and kind != USABLE[0] else []
        )
        for place, name in enumerate(names)
        for kind in USABLE
    ]


def hostile(code: str, kind: Isolation | None = None) -> Outcome:
    return run(
        [python(), "-I", "-B", "{program}/main.py"],
        files={"main.py": code.encode()},
        limits=LIMITS,
        isolation=kind or chosen(allow_unsandboxed=False),
    )


def survivors() -> list[str]:
    """Processes of any sandbox of this test process, by the environment that only they have (FOLDER)."""
    found: list[str] = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if MARK in Path(f"/proc/{pid}/environ").read_bytes():
                found.append(pid)
        except OSError:
            continue
    return found


@pytest.fixture(autouse=True)
def _nothing_survives(  # pyright: ignore[reportUnusedFunction]  # pytest uses it
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[None]:
    monkeypatch.setattr(box, "FOLDER", FOLDER)
    yield
    assert survivors() == []


def within(outcome: Outcome) -> bool:
    """By the program's own clock, as its supervisor measured it."""
    return outcome.wall_seconds <= LIMITS.wall_seconds + 2 and outcome.cpu_seconds <= LIMITS.cpu_seconds + 2


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kind"), crossed(BOMBS))
def test_a_bomb_ends_at_its_limit(name: str, kind: Isolation) -> None:
    code, endings = BOMBS[name]
    outcome = hostile(code, kind)
    # A host that gives it no processor for seconds says so: nothing is known of it, and nothing paid.
    assert outcome.ending in endings | {"busy"}, outcome
    assert b"HARM" not in outcome.stdout
    assert within(outcome)
    assert outcome.memory_bytes <= LIMITS.memory_bytes + 200 * 2**20
    assert len(outcome.stdout) <= LIMITS.output_bytes + 65536


@pytest.mark.parametrize(("name", "kind"), crossed(QUIET))
def test_a_quiet_one_does_no_harm(name: str, kind: Isolation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAPO_SECRET", "tell nobody")
    kept = tmp_path / "rewards.jsonl"
    kept.write_text("a run's file")
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as abstract:
        port = server.getsockname()[1]
        abstract.bind(f"\0papo-{port}")
        abstract.listen()
        marks = {"@file@": str(kept), "@folder@": str(tmp_path), "@port@": str(port), "@pid@": str(os.getpid())}
        code = QUIET[name]
        for mark, value in marks.items():
            code = code.replace(mark, value)
        outcome = hostile(code, kind)
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()
    assert b"HARM" not in outcome.stdout, outcome
    assert b"tell nobody" not in outcome.stdout
    assert b"SyntaxError" not in outcome.stderr
    assert within(outcome)
    assert [path.name for path in tmp_path.iterdir()] == [kept.name]
    assert kept.read_text() == "a run's file"


@pytest.mark.parametrize(("name", "kind"), crossed(FORGERS))
@pytest.mark.parametrize("reference", [CALLS, CHECK, LISTED], ids=["calls", "check", "list"])
def test_no_forger_passes(name: str, kind: Isolation, reference: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "ORDER", (kind,))
    verdict = REWARD(FORGERS[name], reference_answer=reference, finish_reason="stop")
    assert not verdict.accuracy, verdict
    assert verdict.reason is not None
    assert "SyntaxError" not in verdict.reason


@pytest.mark.parametrize("kind", USABLE)
@pytest.mark.parametrize("reference", [CALLS, CHECK, LISTED], ids=["calls", "check", "list"])
def test_the_honest_one_passes(reference: str, kind: Isolation, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else none of the above says anything."""
    monkeypatch.setattr(isolation, "ORDER", (kind,))
    verdict = REWARD("def f(x): return x * x", reference_answer=reference, finish_reason="stop")
    assert verdict.correct, verdict


@pytest.mark.parametrize("kind", USABLE)
def test_what_is_left_behind_is_counted_and_killed(kind: Isolation) -> None:
    outcome = hostile(QUIET["daemon that holds the output open"], kind)
    assert (outcome.ending, outcome.left) == ("exit", 1)


def test_an_argument_may_hold_braces() -> None:
    """It used to raise, after pipes were opened that nobody closed."""
    opened = len(os.listdir("/proc/self/fd"))
    outcome = run(["/bin/echo", "{x} {", "{program}"], files={}, limits=Limits(), isolation="namespaces")
    assert outcome.stdout.startswith(b"{x} { /")
    assert len(os.listdir("/proc/self/fd")) == opened


def test_survivors_would_be_seen() -> None:
    """Else the check after each of these tests says nothing."""
    argv = [python(), "-c", "import time; print(0, flush=True); time.sleep(60)"]
    with box.Box(argv, files={}, limits=LIMITS, isolation=chosen(allow_unsandboxed=False), talking=True) as running:
        while not survivors():
            time.sleep(0.01)
        assert running.finish(stop=True).ending == "stopped"


def test_other_programs_go_on_beside_a_bomb() -> None:
    """BUG-075: the limit is the bomb's own."""
    bomb = hostile(BOMBS["fork tree that sleeps"][0])
    assert bomb.ending == "processes"
    assert hostile("import subprocess; print(subprocess.run(['echo', 'fine'], capture_output=True).stdout)").finished


@pytest.mark.parametrize("kind", USABLE)
def test_a_program_ends_with_the_caller(kind: Isolation) -> None:
    """Killed without a chance to clean up, it still leaves no process."""
    code = f"""
import time
from papo.sandbox import Limits, box
box.FOLDER = {FOLDER!r}
running = box.Box([{python()!r}, "-c", "import time; time.sleep(60)"], files={{}}, limits=Limits(), isolation={kind!r})
time.sleep(60)
"""
    caller = subprocess.Popen([sys.executable, "-c", code], cwd=Path(__file__).parents[4])
    try:
        while not survivors():
            assert caller.poll() is None
            time.sleep(0.01)
    finally:
        caller.kill()
        caller.wait()
    for _ in range(1000):
        if not survivors():
            return
        time.sleep(0.01)
    pytest.fail("processes outlive their caller")


def test_what_bubblewrap_says_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(box, "bubblewrap", lambda: "/usr/bin/env")
    with pytest.raises(SandboxError, match="env: unrecognized option"):
        hostile("print()", "bubblewrap")


def test_bubblewrap_comes_first_and_namespaces_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "fault_of", lambda kind: None)
    assert chosen(allow_unsandboxed=True) == "bubblewrap"
    monkeypatch.setattr(isolation, "fault_of", {"bubblewrap": "it is not installed", "namespaces": None}.get)
    assert chosen(allow_unsandboxed=False) == "namespaces"
    monkeypatch.setattr(isolation, "fault_of", lambda kind: f"no {kind}")
    with pytest.raises(SandboxError, match="bubblewrap: no bubblewrap; namespaces: no namespaces"):
        chosen(allow_unsandboxed=False)
    assert chosen(allow_unsandboxed=True) == "none"
    monkeypatch.undo()
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(SandboxError, match="bubblewrap is not installed"):
        hostile("print()", "bubblewrap")
