"""No cheat is paid: neither by the reward, nor, where the text is not looked at, by the checker's judgement alone."""

import json
from collections.abc import Callable

import pytest

from papo.rewards import FormalProof, coqproof
from papo.rewards.coqproof import Coq
from papo.rewards.coqtext import refusal
from papo.rewards.proofbench import Bench, checked
from papo.rewards.prooftask import Unproved, read_task
from papo.sandbox import Limits, chosen
from tests.unit.papo.rewards.proof_cheats import CHEATS, KERNELS_OWN, TASKS
from tests.unit.papo.rewards.proofs_here import needs_coq

pytestmark = needs_coq
REWARD = FormalProof(cpu_seconds=20.0)
UNSEEN = [
    "an admitted lemma",
    "Axiom",
    "an axiom behind an opaque seal",
    "an axiom that prints the verdict",
    "Unset Guard Checking",
    "bypass_check(universes)",
    "Unset Positivity Checking",
]
"""Cheats that each of two lines stops alone: what the proof rests on, and the kernel's own check."""


def reference(name: str) -> str:
    return json.dumps({"name": "t", **TASKS[CHEATS[name][0]]})


def judged_by_coq_alone(name: str, axioms: tuple[str, ...] = ()) -> str | None:
    """Why the judgement refuses it, with no look at the text; None if it is paid."""
    limits = Limits(cpu_seconds=20.0, wall_seconds=120.0, memory_bytes=2**31, output_bytes=2**25)
    bench = Bench(limits=limits, isolation=chosen(allow_unsandboxed=False), axioms=axioms)
    try:
        checked(Coq(), CHEATS[name][1], read_task(reference(name)), bench)
    except Unproved as error:
        return f"{error}"
    return None


@pytest.mark.parametrize("name", CHEATS)
def test_no_cheat_is_paid(name: str) -> None:
    script = CHEATS[name][1]
    verdict = REWARD(script, reference_answer=reference(name), finish_reason="stop")
    assert (verdict.accuracy, verdict.status) == (0.0, "ok")
    assert 0 < len(verdict.reason or "") < 400
    # What the text does not give away has come before the judge already.
    if refusal(script, recursion=False) is not None and name not in KERNELS_OWN:
        assert judged_by_coq_alone(name) is not None


@pytest.mark.parametrize("name", KERNELS_OWN)
def test_what_released_kernels_accept_is_refused_by_its_text(name: str) -> None:
    """Coq 8.16 and its coqchk take these for proofs of 0 = 1; a later kernel that does not changes nothing here."""
    assert refusal(CHEATS[name][1], recursion=False) is not None


def test_cheats_are_many() -> None:
    assert len(CHEATS) >= 75


def _pass(*_: object) -> None: ...


@pytest.mark.parametrize("name", UNSEEN)
@pytest.mark.parametrize("line", ["check_kernel", "check_axioms"])
def test_each_line_holds_alone(name: str, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coqproof, line, _pass)
    assert judged_by_coq_alone(name) is not None


def test_these_are_cheats_indeed_and_settings_are_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without both lines they pass; a smaller universe does not, as the judge turns its own checks on again."""
    monkeypatch.setattr(coqproof, "check_kernel", _pass)
    monkeypatch.setattr(coqproof, "check_axioms", _pass)
    assert [name for name in UNSEEN if judged_by_coq_alone(name) is not None] == []
    assert judged_by_coq_alone("a smaller universe, unchecked by whoever requires it") is not None


def test_an_axiom_of_a_permitted_name_is_the_librarys_only() -> None:
    assert "declares an axiom" in (judged_by_coq_alone("an axiom named like the permitted one", ("classic",)) or "")
    assert judged_by_coq_alone("classical logic", ("classic",)) is None
    assert judged_by_coq_alone("classical logic", ("Coq.Logic.Classical_Prop.classic",)) is None
    assert judged_by_coq_alone("classical logic", ("sic", "Classical")) is not None


CLEAN = """
CONTEXT SUMMARY
===============

* Theory: Set is predicative

* Axioms:
    Coq.Logic.Classical_Prop.classic

* Constants/Inductives relying on type-in-type: <none>

* Constants/Inductives relying on unsafe (co)fixpoints: <none>

* Inductives whose positivity is assumed: <none>
"""


def test_what_the_kernels_check_says_is_read_strictly() -> None:
    coqproof.check_kernel(CLEAN)
    for broken in ("", CLEAN.replace("Axioms", "Axiom"), CLEAN.replace("classic", "classic\n    PapoCandidate.x")):
        with pytest.raises(Unproved):
            coqproof.check_kernel(broken)


@pytest.mark.parametrize(
    "said",
    [
        "",
        "Closed under the global context\nAxioms:\nf : False",
        "Debug: x\nClosed under the global context",
        "Axioms:\nf : False",
        "Axioms:\nclassic : True\nf\n  : False",
        "Axioms:\npapo_judged relies on an unsafe hierarchy.",
        "Section Variables:\nclassic : False",
    ],
)
def test_what_a_proof_rests_on_is_read_strictly(said: str) -> None:
    with pytest.raises(Unproved):
        coqproof.check_axioms(said, ("classic",))


def test_what_is_permitted_passes() -> None:
    check: Callable[[str, tuple[str, ...]], None] = coqproof.check_axioms
    check("Closed under the global context\n", ())
    check("Axioms:\nClassical_Prop.classic : forall P : Prop, P \\/ ~ P\n", ("classic",))
    check("Axioms:\nclassic\n  : forall P : Prop,\n    P \\/ ~ P\n", ("Coq.Logic.Classical_Prop.classic",))
