"""The steps of Lean's judgement, with a stand-in for the program: what Lean itself would say is not tried here.

The stand-in takes files to be compiled unless they say `bad`, and judges that nothing is wrong but what a candidate
names: `uses X` is an axiom, `differs` another declaration.
"""

import json
from pathlib import Path

import pytest

from papo.rewards import FormalProof
from papo.rewards.leanproof import Lean, candidate, check_axioms
from papo.rewards.prooftask import Unproved, read_task

STAND_IN = r"""#!/bin/sh
case " $* " in
*" --version "*) echo "Lean (version 4.99.0, stand-in)" ;;
*" -o "*)
    if grep -q bad "$4"; then echo "$4:1:2: error: it is bad"; exit 1; fi
    { echo "LEAN_PATH=$LEAN_PATH"; cat "$4"; } >"$3" ;;
*" --run "*)
    grep -q "theorem t : True := sorry" PapoTarget.olean || exit 7
    grep -q readModuleData PapoJudge.lean || exit 8
    ls | grep -q "PapoCandidate.lean" && exit 9
    if grep -q in_a_library PapoCandidate.olean; then grep -q "LEAN_PATH=/.*:/usr/lib" PapoCandidate.olean || exit 1; fi
    if grep -q differs PapoCandidate.olean; then echo "uncaught exception: its t is not the task's" >&2; exit 1; fi
    sed -n 's/.*uses \([^ "]*\).*/axiom \1/p' PapoCandidate.olean
    if grep -q silent PapoCandidate.olean; then exit 0; fi
    echo proved ;;
esac
"""
TASK = json.dumps({"name": "t", "statement": "True", "preamble": "import Mathlib"})


@pytest.fixture
def reward(tmp_path: Path) -> FormalProof:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "lean").write_text(STAND_IN)
    (tmp_path / "bin" / "lean").chmod(0o755)
    tmp_path.chmod(0o755)
    return FormalProof(checker="lean4", toolchain=str(tmp_path), axioms=("propext",))


@pytest.mark.parametrize(
    ("script", "accuracy", "reason"),
    [
        ("trivial", 1.0, None),
        ('exact by_name "uses propext"', 1.0, None),
        ('exact by_name "uses Classical.choice"', 0.0, "axiom Classical.choice"),
        ('exact by_name "uses sorryAx"', 0.0, "gives the proof up"),
        ("sorry", 0.0, "gives the proof up"),
        ("exact bad", 0.0, "it is bad"),
        ("exact differs", 0.0, "is not the task's"),
        ("exact silent", 0.0, "not known what it rests on"),
    ],
)
def test_the_steps(reward: FormalProof, script: str, accuracy: float, reason: str | None) -> None:
    verdict = reward(f"```lean4\n{script}\n```", reference_answer=TASK, finish_reason="stop")
    assert (verdict.accuracy, verdict.status) == (accuracy, "ok")
    assert verdict.reason is None if reason is None else reason in (verdict.reason or "")


def test_a_task_that_does_not_compile_is_nobodys_fault(reward: FormalProof) -> None:
    bad = json.dumps({"name": "t", "statement": "bad"})
    assert reward("trivial", reference_answer=bad, finish_reason="stop").status == "unscorable"
    assert "does not compile" in (reward.check_reference(bad) or "")


def test_the_version_and_the_checker_that_is_not_there(reward: FormalProof) -> None:
    assert reward.version.endswith("Lean (version 4.99.0, stand-in)")
    missing = FormalProof(checker="lean4", toolchain="/nowhere").self_test() or ""
    assert "lean is not installed" in missing
    assert "elan" in missing


def test_libraries_are_where_lean_looks(reward: FormalProof, tmp_path: Path) -> None:
    named = FormalProof(checker="lean4", toolchain=reward.toolchain, libraries=(str(tmp_path), "/usr/lib"))
    assert named("exact in_a_library", reference_answer=TASK, finish_reason="stop").correct
    assert reward("exact in_a_library", reference_answer=TASK, finish_reason="stop").accuracy == 0.0


@pytest.mark.parametrize(
    ("script", "ending"),
    [
        ("simp\ntrivial", "theorem t : True := by\n  simp\n  trivial\n"),
        ("by simp", "theorem t : True := by simp\n"),
        (":= trivial", "theorem t : True := trivial\n"),
        ("theorem t : True := trivial", "\n\ntheorem t : True := trivial\n"),
        ("theorem t' : True := trivial", "theorem t : True := by\n  theorem t' : True := trivial\n"),
    ],
)
def test_the_statement_is_in_front_unless_it_is_restated(script: str, ending: str) -> None:
    assert candidate(script, read_task(TASK)).endswith(ending)


@pytest.mark.parametrize(
    "printed", ["", "proved\naxiom f", "axiom f\nproved", "axiom propext", "axiom «propext\n»\nproved"]
)
def test_what_the_judge_prints_is_read_strictly(printed: str) -> None:
    with pytest.raises(Unproved):
        check_axioms(printed, ("propext",))


@pytest.mark.parametrize("name", ["", "a b", "1a", "a.", "a;b", "$(x)"])
def test_names_of_theorems(name: str) -> None:
    task = read_task(TASK)
    assert Lean().task_fault(task) is None
    fault = Lean().task_fault(type(task)(name=name, statement="True"))
    assert fault is not None
