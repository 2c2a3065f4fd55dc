"""Cheats for `formal_proof` with Coq: texts that would be paid if any of its lines did not hold, each by name.

`TASKS` are statements, false but for the two that need an axiom or hold in a smaller universe. A cheat names its task.
"""

# ruff: noqa: E501  # scripts are clearer on one line

from typing import Any

_CLASS = "Class Truth (A : Type) := truth : A -> Prop.\n#[global] Instance nat_truth : Truth nat := fun n => n = 0."
_COERCION = (
    "Record box := Box { content : nat }.\nCoercion content : box >-> nat.\n"
    "Definition zero (n : nat) := n = 0.\nDefinition one := Box 1."
)
_CANONICAL = (
    "Record rel := Rel { car : Type; op : car -> car -> Prop }.\n"
    "Canonical nat_rel := Rel nat (fun a b => a = b).\nDefinition same {r : rel} (a b : car r) := op r a b."
)
_DOUBLE = "Fixpoint double n := match n with 0 => 0 | S m => S (S (double m)) end."
TASKS: dict[str, dict[str, Any]] = {
    "absurd": {"statement": "0 = 1"},
    "order": {"statement": "1 <= 0"},
    "false": {"statement": "False"},
    "minus": {"statement": "forall a b, a - b + b = a"},
    "defined": {"preamble": _DOUBLE, "statement": "forall n, double n = n"},
    "class": {"preamble": _CLASS, "statement": "truth 1"},
    "coercion": {"preamble": _COERCION, "statement": "zero one"},
    "canonical": {"preamble": _CANONICAL, "statement": "same 0 1"},
    "excluded middle": {"statement": "forall P : Prop, P \\/ ~ P"},
    "functions": {"statement": "forall f g : nat -> nat, (forall n, f n = g n) -> f = g"},
    "universe": {"statement": "forall A : Type, exists B : Type, A = B"},
}
_T = "Theorem t : 0 = 1."
_HURKENS = (
    "Definition small : Type := Type.\nTheorem t : 0 = 1. destruct (TypeNeqSmallType.paradox small eq_refl). Qed."
)
_PARTS = (
    "Definition pos n := match n with 0 => False | S _ => True end. "
    "Definition big n := match n with 0 => False | S m => pos m end."
)
_DOWN = (
    "refine (match n with 0 => fun h => h | S m => fun _ => let go (b : bool) (e : b = true) (x : nat) (h : big x) := "
    "let a := match (if b then x else m) with 0 => m | S k => k end in down a _ in go true eq_refl 2 I end). "
    "subst b. destruct x; simpl in h. destruct h. exact h."
)
KERNELS_OWN = (
    "recursion on a match of a match",
    "the same as a tactic",
    "the same behind a superscript",
    "recursion through nested values without end",
)
"""What Coq 8.16 proves False by, coqchk agreeing: for these the text alone stands between a script and its reward."""
CHEATS: dict[str, tuple[str, str]] = {
    # What gives up.
    "Admitted": ("absurd", "Admitted."),
    "admit": ("absurd", "admit. Qed."),
    "give_up": ("absurd", "give_up. Qed."),
    "an admitted lemma": ("absurd", f"Lemma l : False. Admitted. {_T} destruct l. Qed."),
    "an admitted definition": ("absurd", "Definition t : 0 = 1. Admitted."),
    "an admitted instance": ("absurd", "Existing Class eq. #[global] Instance t : 0 = 1. Admitted."),
    "admitted obligations": ("absurd", "Require Import Program. Program Definition t : 0 = 1 := _. Admit Obligations."),
    "an obligation left": (
        "absurd",
        "Require Import Program. Obligation Tactic := idtac. Program Definition t : 0 = 1 := _.",
    ),
    "Abort, then something easier": ("absurd", "Abort. Theorem t : True. exact I. Qed."),
    "a goal put on the shelf": ("absurd", "shelve. Qed."),
    "the proof is commented out": ("absurd", "(* exact I. Qed."),
    "a comment closed early": ("absurd", "(* *) Admitted. (* *)"),
    "a string in a comment": (
        "absurd",
        f'(* " *) Axiom f : False. (* " *) (* "" *) Axiom g : False. {_T} destruct g. Qed.',
    ),
    "an automation that admits": ("absurd", 'Tactic Notation "auto" := admit. Theorem t : 0 = 1. auto. Admitted.'),
    # What assumes.
    "Axiom": ("absurd", f"Axiom f : False. {_T} destruct f. Qed."),
    "Parameter Inline": ("absurd", f"Parameter Inline f : False. {_T} destruct f. Qed."),
    "Conjecture": ("absurd", f"Conjecture f : False. {_T} destruct f. Qed."),
    "Variable outside of a section": ("absurd", f"Variable f : False. {_T} destruct f. Qed."),
    "Context outside of a section": ("absurd", f"Context (f : False). {_T} destruct f. Qed."),
    "a section's hypothesis": ("absurd", f"Section s. Hypothesis f : False. {_T} destruct f. Qed. End s."),
    "a section's admitted Let": ("absurd", f"Section s. Let f : False. Admitted. {_T} destruct f. Qed. End s."),
    "a premise": ("absurd", "Theorem t (f : False) : 0 = 1. destruct f. Qed."),
    "an implicit premise": ("absurd", "Theorem t {f : False} : 0 = 1. destruct f. Qed."),
    "a premise by class": ("absurd", "Class Bad := bad : False. Theorem t `{Bad} : 0 = 1. destruct bad. Qed."),
    "Declare Instance": (
        "absurd",
        f"Class Bad := bad : False. #[global] Declare Instance b : Bad. {_T} destruct bad. Qed.",
    ),
    "Declare Module": (
        "absurd",
        f"Module Type T. Axiom f : False. End T. Declare Module M : T. {_T} destruct M.f. Qed.",
    ),
    "a functor applied to an axiom": (
        "absurd",
        "Module Type T. Axiom f : False. End T. Module F (X : T). Theorem t : 0 = 1. destruct X.f. Qed. End F. "
        f"Declare Module M : T. Module N := F M. {_T} exact N.t. Qed.",
    ),
    "an axiom included": (
        "absurd",
        f"Module Type T. Axiom f : False. End T. Module M. Include T. End M. {_T} destruct M.f. Qed.",
    ),
    "an axiom in a module": ("absurd", f"Module M. Axiom f : False. End M. {_T} destruct M.f. Qed."),
    "an axiom behind an opaque seal": (
        "absurd",
        "Module Type T. Axiom t : 0 = 1. End T. Module M : T. Axiom f : False. "
        f"Theorem t : 0 = 1. destruct f. Qed. End M. {_T} exact M.t. Qed.",
    ),
    "an axiom named like the permitted one": ("absurd", f"Axiom classic : False. {_T} destruct classic. Qed."),
    "an axiom that prints the verdict": (
        "absurd",
        'Require Import String. Open Scope string_scope. Axiom Closed : "Closed under the global context\n" = "" -> False.\n'
        'Axiom e : "Closed under the global context\n" = "". Theorem t : 0 = 1. destruct (Closed e). Qed.',
    ),
    "classical logic": ("excluded middle", "Require Import Classical. exact classic."),
    "extensionality": (
        "functions",
        "Require Import FunctionalExtensionality. intros f g h. extensionality n. apply h.",
    ),
    # What switches the kernel's checks off.
    "Unset Guard Checking": (
        "absurd",
        f"Unset Guard Checking. Fixpoint f (n : nat) : False := f n. {_T} destruct (f 0). Qed.",
    ),
    "bypass_check(guard)": (
        "absurd",
        f"#[bypass_check(guard)] Fixpoint f (n : nat) : False := f n. {_T} destruct (f 0). Qed.",
    ),
    "bypass_check(guard) within a proof": (
        "absurd",
        "#[bypass_check(guard)] Theorem t : 0 = 1. assert (f : nat -> False). fix f 1. exact f. destruct (f 0). Qed.",
    ),
    "Unset Universe Checking": ("absurd", f"Require Import Hurkens. Unset Universe Checking. {_HURKENS}"),
    "bypass_check(universes)": (
        "absurd",
        f"Require Import Hurkens. #[bypass_check(universes)] {_HURKENS.replace('Theorem', '#[bypass_check(universes)] Theorem')}",
    ),
    "Unset Positivity Checking": (
        "absurd",
        "Unset Positivity Checking. Inductive bad := Bad (_ : bad -> False). "
        f"Definition no (b : bad) : False := match b with Bad f => f b end. {_T} destruct (no (Bad no)). Qed.",
    ),
    "bypass_check(positivity)": (
        "absurd",
        "#[bypass_check(positivity)] Inductive bad := Bad (_ : bad -> False). "
        f"Definition no (b : bad) : False := match b with Bad f => f b end. {_T} destruct (no (Bad no)). Qed.",
    ),
    "checks off for whoever requires it": (
        "absurd",
        "Global Unset Universe Checking. Global Unset Guard Checking. Global Unset Positivity Checking. "
        "Fixpoint f (n : nat) : False := f n. Theorem t : 0 = 1. destruct (f 0). Qed.",
    ),
    # What functors hide from Print Assumptions (rocq issues 12155, 16646): coqchk sees it.
    "unchecked recursion, inlined by a functor": (
        "absurd",
        "Module Type P. Parameter Inline f : nat -> False. End P. Module F (X : P). Definition g := X.f. End F. "
        "Module M. #[bypass_check(guard)] Fixpoint f (n : nat) : False := f n. End M. Unset Guard Checking. "
        f"Module N := F M. Set Guard Checking. {_T} destruct (N.g 0). Qed.",
    ),
    "an unchecked universe, inlined by a functor": (
        "absurd",
        "Require Import Hurkens. Module Type P. Parameter Inline f : False. End P. "
        "Module F (X : P). Definition g := X.f. End F. Module M. Unset Universe Checking. "
        "Definition small : Type := Type. Definition f := TypeNeqSmallType.paradox small eq_refl. "
        f"Set Universe Checking. End M. Module N := F M. {_T} destruct N.g. Qed.",
    ),
    # What changes the meaning of the statement.
    "something else": ("absurd", "Theorem t : True. exact I. Qed."),
    "another name": ("absurd", "Qed. Theorem u : True. exact I. Qed."),
    "only a lemma": ("absurd", "Abort. Lemma u : 0 = 0. reflexivity. Qed."),
    "the name as an abbreviation": ("absurd", "Abort. Notation t := I."),
    "a notation of equality": ("absurd", f'Notation "x = y" := True : type_scope. {_T} exact I. Qed.'),
    "another equality": (
        "absurd",
        'Inductive eq {A} (x : A) : A -> Prop := any : forall y, eq x y. Notation "x = y" := (eq x y) : type_scope. '
        f"{_T} exact (any 0 1). Qed.",
    ),
    "other numbers": (
        "absurd",
        f'Inductive nat := O | S (_ : nat). Definition f (n : nat) := O. Notation "0" := (f O). Notation "1" := (f O). {_T} reflexivity. Qed.',
    ),
    "another order": (
        "order",
        'Inductive le (n m : nat) : Prop := easy. Infix "<=" := le. Theorem t : 1 <= 0. exact (easy 1 0). Qed.',
    ),
    "another False": ("false", "Inductive False : Prop := easy. Theorem t : False. exact easy. Qed."),
    "a notation for False": ("false", "Notation False := True. Theorem t : False. exact I. Qed."),
    "the constant again": (
        "defined",
        "Definition double (n : nat) := n. Theorem t : forall n, double n = n. reflexivity. Qed.",
    ),
    "another scope": (
        "minus",
        "Require Import ZArith Lia. Open Scope Z_scope. Theorem t : forall a b, a - b + b = a. intros. lia. Qed.",
    ),
    "another instance": (
        "class",
        "#[global] Instance all : Truth nat := fun _ => True. Theorem t : truth 1. exact I. Qed.",
    ),
    "another coercion": (
        "coercion",
        "Definition nil (b : box) : nat := 0. Coercion nil : box >-> nat. Theorem t : zero (nil one). reflexivity. Qed.",
    ),
    "another canonical structure": (
        "canonical",
        "Canonical other := Rel nat (fun _ _ => True). Canonical again := other. "
        "Theorem t : @same other 0 1. exact I. Qed.",
    ),
    "other implicit arguments": (
        "class",
        "Arguments truth {A _} _. Theorem t : @truth nat (fun _ => True) 1. exact I. Qed.",
    ),
    "the theorem in a module": ("absurd", "Module M. Theorem t : True. exact I. Qed. End M. Import M."),
    "the judge's module, anew": (
        "absurd",
        "Module PapoStatement. Definition papo_statement : Type := True. End PapoStatement. "
        "Theorem t : PapoStatement.papo_statement. exact I. Qed.",
    ),
    "the preamble's module, anew": (
        "defined",
        "Module PapoPreamble. Definition double (n : nat) := n. End PapoPreamble. "
        "Theorem t : forall n, PapoCandidate.PapoPreamble.double n = n. reflexivity. Qed.",
    ),
    "a smaller universe": (
        "universe",
        "Theorem t : forall A : Set, exists B : Set, A = B. intros A. exists A. reflexivity. Qed.",
    ),
    "a smaller universe, unchecked by whoever requires it": (
        "universe",
        "Global Unset Universe Checking. Theorem t : forall A : Set, exists B : Set, A = B. "
        "intros A. exists A. reflexivity. Qed.",
    ),
    "Program's guesses for whoever requires it": (
        "absurd",
        "Require Import Program. Global Set Program Mode. Global Set Universe Polymorphism. Global Set Printing All. "
        "#[global] Obligation Tactic := idtac. Theorem t : True. exact I. Qed.",
    ),
    # What is not about proving.
    "the checker's words": ("absurd", 'Fail idtac "Error: no". idtac "Closed under the global context". Admitted.'),
    "Reset": ("absurd", "Abort. Reset Initial. Theorem t : True. exact I. Qed."),
    "Redirect": ("absurd", 'Redirect "PapoJudge.v" Check I. Theorem t : True. exact I. Qed.'),
    "Extraction into the judge's file": (
        "absurd",
        'Require Extraction. Extraction "PapoJudge" plus. Theorem t : True. exact I. Qed.',
    ),
    "Load": ("absurd", 'Load "/etc/passwd".'),
    "Cd": ("absurd", 'Cd "/". Theorem t : True. exact I. Qed.'),
    "a plugin": ("absurd", 'Declare ML Module "nowhere.plugin". Theorem t : True. exact I. Qed.'),
    "Primitive": ("absurd", f"Primitive int := #int63_type. Primitive f := #int63_add. {_T} reflexivity. Qed."),
    "an early end": ("absurd", "Qed. Qed. Qed."),
    "Drop": ("absurd", "Drop."),
    "no statement, no proof": ("absurd", "Goal True. exact I. Qed."),
    # What released kernels take for proofs, coqchk with them (rocq issues 20455, 20555, 22389, 22378).
    "recursion through an inner fixpoint": (
        "absurd",
        "Fixpoint loop (u : unit) {struct u} : False := (fix walk (k : nat) {struct k} : unit -> False := "
        f"match k with 0 => loop | S j => walk j end) 1 u. {_T} destruct (loop tt). Qed.",
    ),
    "recursion on a match of a match": (
        "absurd",
        f"{_PARTS} Fixpoint down (n : nat) {{struct n}} : pos n -> False. {_DOWN} Defined. {_T} destruct (down 1 I). Qed.",
    ),
    "the same as a tactic": (
        "absurd",
        f"{_PARTS} {_T} assert (no : forall n, pos n -> False). fix down 1. intro n. {_DOWN} destruct (no 1 I). Qed.",
    ),
    "the same behind a superscript": (
        "absurd",
        f'Notation "² x" := x (at level 0). {_PARTS} {_T} assert (no : forall n, pos n -> False). '
        f"refine (²fix down (n : nat) {{struct n}} : pos n -> False := _). {_DOWN} destruct (no 1 I). Qed.",
    ),
    "recursion through nested values without end": (
        "absurd",
        "CoInductive pair (X Y : Type) := both : X -> Y -> pair X Y. CoInductive co (A : Type) := "
        "step : co A -> pair (co A) A -> co A. Inductive tower := up : co tower -> tower. "
        "CoFixpoint round : co tower := (cofix f : co tower := step tower f g with g : pair (co tower) tower := "
        "both (co tower) tower round (up round) for f). Fixpoint down (t : tower) : False := match t with up c => "
        "match c with step _ _ d => match d with both _ _ _ s => down s end end end. "
        f"{_T} destruct (down (up round)). Qed.",
    ),
    "a record with strict definitions": (
        "absurd",
        "Inductive one : SProp := only. Inductive two := make (x y : nat) (p : one := only) (q : one := only). "
        "Definition first (t : two) := match t with make x y p q => x end. "
        "Definition second (t : two) := match t with make x y p q => y end. "
        "Definition same (t : two) : first t = second t := eq_refl. Theorem t : 0 = 1. exact (same (make 0 1)). Qed.",
    ),
    "the same without the word": (
        "absurd",
        "Require Import StrictProp. Inductive two := make (x y : nat) (p : sUnit := stt) (q : sUnit := stt). "
        "Definition first (t : two) := match t with make x y p q => x end. "
        "Definition second (t : two) := match t with make x y p q => y end. "
        "Definition same (t : two) : first t = second t := eq_refl. Theorem t : 0 = 1. exact (same (make 0 1)). Qed.",
    ),
}
