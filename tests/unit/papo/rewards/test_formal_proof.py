"""Formal proofs judged by Coq: honest ones of many kinds are paid; what is undecided is null, never wrong."""

# ruff: noqa: E501  # scripts are clearer on one line

import json
from pathlib import Path
from typing import Any

import pytest

from papo.rewards import FormalProof, Verdict, formal_proof, proofbench
from papo.rewards.prooftask import read_task
from papo.sandbox import Outcome, isolation
from tests.unit.papo.rewards.proofs_here import needs_coq

REWARD = FormalProof(cpu_seconds=30.0)
QUICK = FormalProof(cpu_seconds=2.0, wall_seconds=60.0, memory_mib=600)
DOUBLE = "Fixpoint double n := match n with 0 => 0 | S m => S (S (double m)) end."
LISTS = f"Require Import List Arith.\nImport ListNotations.\nOpen Scope list_scope.\n{DOUBLE}"
EVEN = "Inductive even : nat -> Prop := even0 : even 0 | even2 : forall n, even n -> even (S (S n))."
PROOFS: dict[str, tuple[str, str, str]] = {
    "induction": ("", "forall n, n + 0 = n", "induction n as [|n IH]. reflexivity. simpl. rewrite IH. reflexivity."),
    "lia": ("Require Import Lia.", "forall a b : nat, a < b -> 2 * a + 1 < 2 * b", "Proof.\n  intros a b h. lia.\nQed."),
    "nia": ("Require Import ZArith Lia.\nOpen Scope Z_scope.", "forall x y, 0 <= x * x + y * y", "intros; nia."),
    "ring": (
        "Require Import ZArith.\nOpen Scope Z_scope.",
        "forall a b, (a + b) * (a + b) = a * a + 2 * a * b + b * b",
        "(* a square *) intros a b. ring.",
    ),
    "rewriting": ("Require Import Arith.", "forall a b c, a = b -> a + c = c + b", "intros a b c ->. apply Nat.add_comm."),
    "inversion": (EVEN, "~ even 1", "intro h. inversion h."),
    "bullets and braces": (
        "", "forall a b : bool, (a && b = b && a)%bool", "intros [] b.\n- destruct b.\n  + auto.\n  + auto.\n- { now destruct b. }",
    ),
    "Defined": ("", "{n : nat | n > 2}", "Proof. exists 3. repeat constructor. Defined."),
    "a proof term": ("", "forall A : Prop, A -> A", "Proof (fun A a => a)."),
    "a definition": ("", "forall A B : Prop, A /\\ B -> B", "Definition t : forall A B : Prop, A /\\ B -> B := fun _ _ h => proj2 h."),
    "lemmas before it": (
        LISTS,
        "forall (A : Type) (l m : list A), length (rev (l ++ m)) = length m + length l",
        "Lemma helps : forall A (l : list A), length (rev l) = length l.\nProof. intros. apply rev_length. Qed.\n"
        "Theorem t : forall (A : Type) (l m : list A), length (rev (l ++ m)) = length m + length l.\n"
        "Proof. intros. rewrite helps, app_length. apply Nat.add_comm. Qed.",
    ),
    "the theorem restated": (
        LISTS, "forall n, double n = n + n", "Require Import Lia.\nLemma t n : double n = n + n.\nProof. induction n; simpl; lia. Qed.",
    ),
    "a notation of the preamble": (LISTS, "forall x : nat, [x] ++ [] = [x]", "reflexivity."),
    "automation of its own": (
        "",
        "forall P Q R : Prop, P /\\ Q /\\ R -> R /\\ P",
        "Ltac open := repeat match goal with h : _ /\\ _ |- _ => destruct h end.\n"
        "Theorem t : forall P Q R : Prop, P /\\ Q /\\ R -> R /\\ P.\nProof. intros; open; split; assumption. Qed.",
    ),
    "a section": (
        "",
        "forall A (f : A -> A), (forall x, f x = x) -> forall x, f (f x) = x",
        "Section s. Variable A : Type. Variable f : A -> A. Hypothesis h : forall x, f x = x.\n"
        "Theorem t : forall x, f (f x) = x. Proof. intro x. now rewrite h, h. Qed. End s.",
    ),
    "reflection": ("", "Nat.eqb (20 * 20) 400 = true", "vm_compute. reflexivity."),
    "words in comments and strings": (
        "Require Import String.\nOpen Scope string_scope.",
        'length "Axiom. (*" = 9',
        '(* Admitted. "*)" Axiom f : False. (* fix *) *) reflexivity.',
    ),
    "a name with a prime": ("", "True", "exact I."),
    "another proof of a type": ("", "forall A : Type, A -> A * A", "intros A a. split; exact a."),
}  # fmt: skip


def task(preamble: str, statement: str, proof: str | None = None, name: str = "t") -> str:
    return json.dumps({"name": name, "preamble": preamble, "statement": statement, "proof": proof})


def judged(script: str, preamble: str = "", statement: str = "0 = 0", reward: FormalProof = REWARD) -> Verdict:
    return reward(script, reference_answer=task(preamble, statement), finish_reason="stop")


@needs_coq
@pytest.mark.parametrize("kind", PROOFS)
def test_honest_proofs_are_paid(kind: str) -> None:
    preamble, statement, proof = PROOFS[kind]
    name = "t'" if "prime" in kind else "t"
    fenced = f"By hand:\n```coq\n{proof}\n```\nwhich is it."
    verdict = REWARD(fenced, reference_answer=task(preamble, statement, name=name), finish_reason="stop")
    assert (verdict.accuracy, verdict.status, verdict.reason) == (1.0, "ok", None)


@needs_coq
@pytest.mark.parametrize("kind", ["induction", "lemmas before it", "a definition"])
def test_an_emptied_or_perturbed_proof_is_wrong(kind: str) -> None:
    preamble, statement, proof = PROOFS[kind]
    for broken in ("idtac.", "Proof. Qed.", proof.replace("t :", "u :"), proof[: len(proof) // 2]):
        if broken != proof:
            assert judged(broken, preamble, statement).accuracy == 0.0


@needs_coq
def test_what_scripts_define_is_asked_for() -> None:
    script = f"{EVEN} Theorem t : 0 = 0. reflexivity. Qed."
    refused = judged(script)
    assert refused.accuracy == 0.0
    assert "belongs in the preamble" in (refused.reason or "")
    assert judged(script, reward=FormalProof(recursion="allow")).correct


@needs_coq
def test_axioms_are_paid_where_they_are_permitted() -> None:
    script, statement = "exact classic.", "forall P : Prop, P \\/ ~ P"
    assert judged(script, "Require Import Classical.", statement).accuracy == 0.0
    assert judged(script, "Require Import Classical.", statement, FormalProof(axioms=("classic",))).correct
    assert judged("exact no.", "Axiom no : False.", "False").accuracy == 0.0


@needs_coq
@pytest.mark.parametrize(
    "script",
    [
        "Ltac on := idtac; on. Theorem t : 0 = 0. on.",
        "do 1000000000 (try fail).",
        "assert (Nat.pow 2 40 = 0). vm_compute.",
        "do 40 (match goal with |- ?G => cut (G /\\ G); [tauto|split] end).",
        'do 1000000000 idtac "words".',
    ],
)
def test_scripts_without_end_are_wrong_and_end(script: str) -> None:
    verdict = judged(script, reward=QUICK)
    assert (verdict.accuracy, verdict.status) == (0.0, "ok")
    assert any(word in (verdict.reason or "").lower() for word in ("limit", "memory", "overflow"))


AWKWARD = [
    "\0", "exact I.\0", "\ud800", "exact \ud800.", "'", '"', "(*", "*)", "(* (* *)", '(* " *)', "}", "{", "...", ".", "- - -", "Qed", "Proof.",
    "é ∀ ∃ λ.", "exact (I.", "\r\nreflexivity.\r\n", "`", "#[", "#[x] reflexivity.", "1: 2: reflexivity.", "{{{{ }}}}",
    "{program}", "$program", "'; cat /etc/passwd #", "(" * 20_000, "Qed. " * 2_000, "x" * 300_000, "\x1b[2J", "```",
]  # fmt: skip


@needs_coq
@pytest.mark.parametrize("at", range(len(AWKWARD)))
def test_no_text_makes_it_raise(at: int) -> None:
    verdict = judged(AWKWARD[at], statement="0 = 1")
    assert verdict.accuracy == 0.0
    assert verdict.status in ("ok", "no_answer")


@needs_coq
def test_references_are_tried_with_their_own_proof() -> None:
    assert REWARD.check_reference(task(LISTS, "forall n, double n = n + n")) is None
    assert REWARD.check_reference(task("", "0 = 0", "reflexivity.")) is None
    assert "its own proof fails" in (REWARD.check_reference(task("", "0 = 1", "reflexivity.")) or "")
    assert "does not compile" in (REWARD.check_reference(task("Require Import Nowhere.", "0 = 0")) or "")
    assert "does not compile" in (REWARD.check_reference(task("", "0 = zero")) or "")


@needs_coq
def test_the_task_in_the_docs_verifies_against_itself() -> None:
    page = (Path(__file__).parents[4] / "docs" / "proofs.md").read_text()
    assert REWARD.check_reference(page.partition("```json\n")[2].partition("```")[0]) is None


@needs_coq
def test_a_statement_that_coq_refuses_is_nobodys_fault() -> None:
    verdict = judged("reflexivity.", statement="0 = zero")
    assert (verdict.accuracy, verdict.status) == (None, "unscorable")


@pytest.mark.parametrize(
    ("reference", "faults"),
    [
        ("no", ["no JSON"]),
        ("[]", ["a list"]),
        (json.dumps({"name": 1, "statement": " . ", "goal": ""}), ["goal", "name is a int", "statement is blank"]),
        (json.dumps({"name": "t", "statement": "\0 = 0", "preamble": "\ud800"}), ["NUL", "surrogate"]),
        (task("", "0 = 0. Axiom f : False"), ["more than one sentence"]),
        (task("", "0 = 0 (* "), ["no end"]),
        (task("(* ", "0 = 0"), ["no end"]),
        (task("", "0 = 0", name="a b"), ["no name"]),
        (task("", "0 = 0", name="papo_judged"), ["judge's own"]),
    ],
)
def test_a_task_that_is_none_names_all_its_faults(reference: str, faults: list[str]) -> None:
    verdict = REWARD("reflexivity.", reference_answer=reference, finish_reason="stop")
    assert (verdict.accuracy, verdict.status) == (None, "unscorable")
    assert all(fault in (verdict.reason or "") for fault in faults)
    assert REWARD.check_reference(reference) == verdict.reason


def test_a_statement_is_read_without_its_full_stop() -> None:
    assert read_task(task("", " 0 = 0 .\n")).statement == "0 = 0"


def test_statuses_before_anything_runs() -> None:
    assert judged("<think>reflexivity.</think> \n").status == "no_answer"
    cut = REWARD("reflexivity.", reference_answer=task("", "0 = 0"), finish_reason="length")
    assert (cut.accuracy, cut.status) == (0.0, "truncated")


def test_without_a_checker_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(*_: Any) -> None: ...

    monkeypatch.setattr(formal_proof, "located", nowhere)
    verdict = judged("reflexivity.")
    assert (verdict.accuracy, verdict.status) == (None, "unscorable")
    assert "apt-get install coq" in (verdict.reason or "")
    assert REWARD.self_test() == verdict.reason
    assert REWARD.version.endswith("not installed")


def test_a_toolchain_that_is_not_there_is_named() -> None:
    reward = FormalProof(toolchain="/nowhere")
    assert "coqc is not installed" in (reward.self_test() or "")


@needs_coq
def test_the_version_names_the_checkers() -> None:
    assert REWARD.self_test() is None
    assert "version" in REWARD.version.rpartition("}")[2]
    assert FormalProof(axioms=("classic",)).version != FormalProof().version


@needs_coq
def test_a_busy_host_is_undecided_and_never_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    blank = Outcome(
        ending="busy", code=0, stdout=b"", stderr=b"", cpu_seconds=0.0, wall_seconds=0.0, memory_bytes=0, left=0
    )
    real, outcomes = proofbench.run, [blank, blank, blank]

    def once_busy(*arguments: Any, **named: Any) -> Outcome:
        return outcomes.pop() if outcomes else real(*arguments, **named)

    monkeypatch.setattr(proofbench, "run", once_busy)
    verdict = judged("reflexivity.", statement="2 = 2")
    assert (verdict.accuracy, verdict.status) == (None, "timeout")
    assert len(outcomes) == 1
    assert judged("reflexivity.", statement="2 = 2").correct


@needs_coq
def test_without_a_sandbox_where_that_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "fault_of", lambda _: "tried in a test")
    assert "tried in a test" in (REWARD.self_test() or "")
    reward = FormalProof(allow_unsandboxed=True)
    assert judged("reflexivity.", reward=reward).correct
    assert judged("Admitted.", reward=reward).accuracy == 0.0


@pytest.mark.parametrize("named", [{"cpu_seconds": 0.0}, {"memory_mib": -1}, {"axioms": ("",)}, {"axioms": (" a",)}])
def test_settings_that_make_no_sense(named: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"use a|give names"):
        FormalProof(**named)
