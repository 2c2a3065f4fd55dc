"""Proof scripts as text: what is a comment, a string, a sentence, and what has no place there. No checker runs."""

# ruff: noqa: E501  # scripts are clearer on one line

import pytest
from hypothesis import given
from hypothesis import strategies as st

from papo.rewards import coqproof, coqtext, leanproof, leantext
from papo.rewards.coqproof import Coq
from papo.rewards.leanproof import Lean
from papo.rewards.proofbench import Checker
from papo.rewards.prooftask import ProofTask


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a (* b *) c.", "a   c."),
        ("a (* b (* c *) d *) e.", "a   e."),
        ('a (* " *) " *) b.', "a   b."),
        ('"(*" b "*)".', '"(*" b "*)".'),
        ('"a""(*".', '"a""(*".'),
        ("(*) *) a.", "  a."),
        ("a *) b.", "a *) b."),
        ("(**)a.", " a."),
    ],
)
def test_comments_of_coq(text: str, code: str) -> None:
    assert coqtext.without_comments(text) == code


@pytest.mark.parametrize("text", ["(*", "(* (* *)", '"', '(* " *)', "a", "a. b", '"""'])
def test_what_has_no_end_in_coq(text: str) -> None:
    assert coqtext.refusal(text, recursion=True) is not None


def test_sentences_of_coq() -> None:
    found = coqtext.sentences(
        '- { #[global] Instance x : y. } 2: { Time Fail Check "a.\nb". }\nall: lia... Nat.add. \n}'
    )
    assert [sentence.code for sentence in found] == ["Instance x : y.", 'Check "".', "lia...", "Nat.add."]
    assert [sentence.head for sentence in found] == ["Instance", "Check", "lia", "Nat"]


@pytest.mark.parametrize(
    "script",
    [
        "- Admitted.", "{ admit. }", "1: give_up.", "exact (ltac:(admit)).", "#[local] Axiom f : False.", "Time Axiom f : False.",
        "Fail Fail Axiom f : False.", "Timeout 9 Parameter f : False.", "Local Conjecture f : False.", "Hypothesis f : False.",
        "Section s. End s. Variable f : False.", "Declare Instance f : x.", "Declare Module M : T.", "Module M.", "Include M.",
        "#[bypass_check(guard)] Lemma a : b.", "Set Definitional UIP.", "Unset Universe Checking.", "Set Universe Polymorphism.",
        "Local Unset Guard Checking.", "#[export] Unset Positivity Checking.", "Polymorphic Lemma a : b.", "Check SProp.",
        "exact (fix f (n : nat) := f n).", "cofix f.", "Program Fixpoint f (n : nat) := n.", "Let Fixpoint f n := n.",
        "Inductive a := b.", "Private Inductive a := b.", "Record a := b { c : d }.", "Class a := b : c.", "Structure a := {}.",
        'Redirect "a" Check b.', 'Print Universes "a".', 'Load "a".', "Add LoadPath a.", "Declare ML Module a.", "Drop.",
        "Extraction a.", "Reset a.", "From Ltac2 Require Import Ltac2.", "native_compute.", "change_no_check (0 = 0).", "Primitive a := b.", "Bogus a.",
        "Equations f : a.", "MetaCoq Run a.", "Elpi a.", "Set Extraction Output Directory.", "Back 2.", "Quit.",
        "exact (²fix f 1).", "préadmit.", "match x with context C [y] => let z := context C[w] in pose z end.",
    ],
)  # fmt: skip
def test_what_has_no_place_in_coq(script: str) -> None:
    assert coqtext.refusal(script, recursion=False) is not None


@pytest.mark.parametrize(
    "script",
    [
        "(* Axiom *) intros.", 'idtac "Admitted. Axiom f : False.".', "apply my_fix. exact Axiomatic.", "match goal with |- context [f ?x] => destruct x | h : context[g] |- _ => idtac end.", "Proof using Type.",
        "Section s. Variable f : False. Lemma a : b. End s.", "Set Implicit Arguments. Unset Printing All. Local Open Scope Z.",
        "Add Ring r : s. Declare Scope x. #[global] Hint Resolve a : core.", "all: lia. [x]: { lia. } 1-2, 4: lia. par: lia.",
        "Instance a : b := c. Definition d := match e with f => g end. Notation \"a\" := b.", "+ -- * lia. *** lia.",
    ],
)  # fmt: skip
def test_what_has_its_place_in_coq(script: str) -> None:
    assert coqtext.refusal(script, recursion=False) is None


def test_types_and_recursion_pass_where_they_are_allowed() -> None:
    for script in ("Inductive a := b.", "Fixpoint f n := n.", "fix f 1.", "Record a := b {}."):
        assert coqtext.refusal(script, recursion=True) is None
    assert coqtext.refusal("Module M.", recursion=True) is not None


def test_whether_a_script_states_its_theorem() -> None:
    for script, stated in {
        "#[local] Theorem t : x.": True, "Program Definition t : x := y.": True, "Lemma t' : x.": False, "exact t.": False,
        "(* Theorem t : x. *) auto.": False, 'idtac "Theorem t : x.".': False, "Save t.": True,
    }.items():  # fmt: skip
        assert coqtext.declares(coqtext.sentences(script), "t") is stated


def test_whether_a_proof_is_left_open() -> None:
    for script, begun, left in [
        ("auto.", True, True), ("auto. Qed.", True, False), ("Proof x.", True, False), ("Proof. auto.", True, True),
        ("Proof with auto. x.", True, True), ("Definition t : a := b.", False, False), ("Definition t : a. auto.", False, True),
        ("Lemma l : let x := 1 in x = 1. auto.", False, True), ("Lemma l : a. Qed. Theorem t : a. b. Defined.", False, False),
    ]:  # fmt: skip
        assert coqtext.left_open(coqtext.sentences(script), begun=begun) is left


def test_what_later_files_repeat_of_a_preamble() -> None:
    preamble = (
        "From A Require Import B. (* Require Import C. *) Require D.\nImport E. Local Open Scope f.\n"
        "Section s. Open Scope g. End s. Module M := N. Set Implicit Arguments. Definition h := 1."
    )
    requires, others = coqtext.header(preamble)
    assert requires == "From A Require Import B.\nRequire D."
    assert others == "Import E.\nOpen Scope f.\nSet Implicit Arguments."


def test_what_is_compiled_is_what_was_read() -> None:
    """Without comments there are no two ways to read it."""
    task = ProofTask(name="t", statement="True")
    assert coqproof.candidate("(* fix *) exact (* Axiom *) I.", task).endswith(
        "Theorem t : True.\n  exact   I.\nQed.\n"
    )
    assert leanproof.candidate("/- sorry -/ trivial -- axiom", task).endswith("theorem t : True := by\n    trivial  \n")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("simp -- sorry\nrfl", "simp  \nrfl"),
        ("/- /- a -/ b -/ rfl", "  rfl"),
        ('"--" a', '"--" a'),
        ('"\\"--" a -- b', '"\\"--" a  '),
        ("'\"' -- a", "'\"'  "),
        ('r#"a"--"# b', 'r#"a"--"# b'),
    ],
)
def test_comments_of_lean(text: str, code: str) -> None:
    assert leantext.without_comments(text) == code


@pytest.mark.parametrize(
    "script",
    [
        "sorry", "by admit", "exact ₂sorry", "exact sorryAx _", "axiom f : False", "opaque f : False", "native_decide", "decide\n#eval 1",
        "unsafe def f := 1", "partial def f := f", "@[implemented_by f] def g := 1", "@[extern \"f\"] def g := 1", "@[simp, csimp] x",
        "macro \"a\" : term => `(1)", "macro_rules | `(a) => `(b)", "syntax \"a\" : term", "elab \"a\" : tactic => pure ()",
        "local notation \"a\" => b", "infixl:65 \" + \" => f", "run_cmd x", "by run_tac x", "initialize x", "import Mathlib",
        "open Lean Elab", "set_option debug.skipKernelTC true", "set_option trustCompiler true in x", "@[init] def a := b",
        "attribute [local command_elab] x", "#print axioms x", "s!\"{by sorry}\"", "#exit", "include_str \"a\"", "/- a", "\"a",
    ],
)  # fmt: skip
def test_what_has_no_place_in_lean(script: str) -> None:
    assert leantext.refusal(script) is not None


@pytest.mark.parametrize(
    "script",
    [
        "by\n  induction n with\n  | zero => rfl\n  | succ n ih => simp [ih]", "-- sorry\nrfl", "@[simp] lemma a : b := c",
        "set_option maxHeartbeats 400000 in\ntheorem t : a := b", "open Real\nnoncomputable def f := 1", "exact h.axioms_hold",
        "attribute [local simp] a", "inductive A | b", "structure A where\n  b : c", "simp_all [← a]",
    ],
)  # fmt: skip
def test_what_has_its_place_in_lean(script: str) -> None:
    assert leantext.refusal(script) is None


@pytest.mark.parametrize("checker", [Coq(), Lean()])
@given(text=st.text(alphabet="(*)\".-/'r#{}[]: \nQedAxiomsorry\\", max_size=60))
def test_any_text_is_read(checker: Checker, text: str) -> None:
    assert checker.refusal(text) is None or checker.refusal(text)
