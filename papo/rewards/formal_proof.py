"""The verifiable outcome reward for formal proofs: a fixed statement, a proof script, an installed checker."""

import json
from dataclasses import asdict
from math import isfinite
from typing import Literal

from papo.rewards.codeblocks import extract_program
from papo.rewards.codejudge import Undefined
from papo.rewards.coqproof import Coq
from papo.rewards.leanproof import Lean
from papo.rewards.proofbench import Bench, Checker, checked, located, prepared, readable, version_of
from papo.rewards.prooftask import NoTask, ProofTask, Unproved, read_task, unreadable
from papo.rewards.verdict import Verdict
from papo.sandbox import Limits, SandboxError, chosen
from papo.values import value

_PROGRAMS = {"coq": ("coqc", "coqchk"), "lean4": ("lean",)}
_INSTALL = {
    "coq": "install the package coq (Debian, Ubuntu: apt-get install coq), or name the folder of an installation as "
    "toolchain",
    "lean4": "install Lean 4 (elan), and name the folder of its toolchain, the one with bin/lean in it, as toolchain",
}
_SAMPLES = {
    "coq": {"name": "sample", "statement": "forall n : nat, n = n", "proof": "intros n. reflexivity."},
    "lean4": {"name": "sample", "statement": "∀ n : Nat, n = n", "proof": "intro n\nrfl"},
}


@value
class FormalProof:
    """1 if the completion is a proof of the statement, else 0.

    The reference answer is JSON: `{"name", "statement"}`, with `preamble` (imports and definitions) and `proof` (one
    that is known) where there are any (docs/proofs.md). The completion is a proof script, which may restate the theorem
    and prove lemmas before it. What it proves is compared with the statement by the checker's kernel, in a step that
    runs none of its text. A checker that is not installed gives no reward: null with status `unscorable`.
    """

    kind: Literal["formal_proof"] = "formal_proof"
    checker: Literal["coq", "lean4"] = "coq"
    """What judges; it has to be installed."""
    axioms: tuple[str, ...] = ()
    """Axioms that a proof may rest on, by name (`classic`, `Coq.Logic.Classical_Prop.classic`). Lean's own three
    (`propext`, `Quot.sound`, `Classical.choice`) count like any other."""
    recursion: Literal["refuse", "allow"] = "refuse"
    """Coq: whether a script may define types and recursive functions of its own. Released kernels have accepted proofs
    of False made of such (docs/proofs.md); induction and what the preamble defines are always there."""
    toolchain: str | None = None
    """Folder of the checker's installation, the one with `bin` in it, where it is not on PATH or not in a system
    folder. Programs in the sandbox may read it."""
    libraries: tuple[str, ...] = ()
    """Lean: folders of compiled packages (`.lake/packages/mathlib/.lake/build/lib/lean`). May be read likewise."""
    truncated: Literal["zero", "score"] = "zero"
    """Completions cut off at the token limit earn 0, or are scored like any other."""
    cpu_seconds: float = 60.0
    """CPU time of each of the steps: compiling the proof, and judging it. A busy host takes none of it away."""
    wall_seconds: float = 240.0
    """Time of one step by the clock."""
    memory_mib: int = 4096
    """Of one step. Lean maps its libraries: give it more than they are large."""
    allow_unsandboxed: bool = False
    """Where the host cannot isolate programs: run the checker all the same, with limits but with all that this user
    may do."""

    def __post_init__(self) -> None:
        for name in ("cpu_seconds", "wall_seconds", "memory_mib"):
            if not (isfinite(getattr(self, name)) and getattr(self, name) > 0):
                raise ValueError(f"{name} is {getattr(self, name)}: use a positive number.")
        if blank := [name for name in self.axioms if not name.strip() or name != name.strip()]:
            raise ValueError(f"axioms has {blank[0]!r}: give names of axioms, without blanks around them.")

    @property
    def version(self) -> str:
        """Declared version of the rules, their settings and the checker's: part of the record and the stage's key."""
        paths = [located(name, self.toolchain) for name in _PROGRAMS[self.checker]]
        checker = f"{version_of(paths[0])}" if paths[0] is not None else "not installed"
        return f"formal_proof/1 {json.dumps(asdict(self), sort_keys=True)} {checker}"

    def __call__(self, completion: str, *, reference_answer: str, finish_reason: str) -> Verdict:
        """Judge one completion, from any thread. Raises SandboxError where programs cannot be isolated."""
        try:
            task = self._task(reference_answer)
        except ValueError as error:
            return Verdict(accuracy=None, correct=None, status="unscorable", reason=f"{error}")
        if finish_reason == "length" and self.truncated == "zero":
            return Verdict(accuracy=0.0, correct=False, status="truncated", reason="cut off at the token limit")
        script = extract_program(completion, self.checker)
        if script is None:
            return Verdict(accuracy=0.0, correct=False, status="no_answer", reason="no proof")
        fault = self._missing()
        if fault is not None:
            return Verdict(accuracy=None, correct=None, status="unscorable", extracted=script, reason=fault)
        return self._judged(script, task)

    def check_reference(self, reference_answer: str) -> str | None:
        """Why nothing can be proved against this reference, or why its own proof fails; None if neither.

        Raises SandboxError where programs cannot be isolated.
        """
        try:
            task = self._task(reference_answer)
        except ValueError as error:
            return f"{error}"
        if (fault := self._missing()) is not None:
            return fault
        try:
            prepared(self._checker(), task, self._bench())
        except (NoTask, Undefined) as error:
            return f"{error.args[-1]}"
        if task.proof is None:
            return None
        verdict = self._judged(task.proof, task)
        return None if verdict.correct else f"its own proof fails: {verdict.reason}"

    def self_test(self) -> str | None:
        """Why no proof can be checked here; None if one can. A run asks before it starts."""
        try:
            return self.check_reference(json.dumps(_SAMPLES[self.checker]))
        except (SandboxError, OSError) as error:
            return f"{error}"

    def _judged(self, script: str, task: ProofTask) -> Verdict:
        checker = self._checker()
        refused = unreadable(script)
        reason = f"the script {refused}" if refused else checker.refusal(script)
        try:
            if reason is None:
                checked(checker, script, task, self._bench())
        except Unproved as error:
            reason = f"{error}"
        except NoTask as error:
            return Verdict(accuracy=None, correct=None, status="unscorable", extracted=script, reason=f"{error}")
        except Undefined as error:
            busy, why = error.args
            status = "timeout" if busy else "unscorable"
            return Verdict(accuracy=None, correct=None, status=status, extracted=script, reason=why)
        correct = reason is None
        return Verdict(accuracy=float(correct), correct=correct, status="ok", extracted=script, reason=reason)

    def _task(self, reference_answer: str) -> ProofTask:
        task = read_task(reference_answer)
        if fault := self._checker().task_fault(task):
            raise ValueError(fault)
        return task

    def _checker(self) -> Checker:
        return Coq(recursion=self.recursion == "allow") if self.checker == "coq" else Lean()

    def _missing(self) -> str | None:
        """Why the checker cannot be run."""
        for name in _PROGRAMS[self.checker]:
            path = located(name, self.toolchain)
            if path is None:
                return f"{name} is not installed: {_INSTALL[self.checker]}"
            if self.toolchain is None and not readable(path):
                return f"{path} cannot be read in a sandbox: name the folder of its installation as toolchain"
        return None

    def _bench(self) -> Bench:
        return Bench(
            limits=Limits(
                cpu_seconds=self.cpu_seconds,
                wall_seconds=self.wall_seconds,
                memory_bytes=self.memory_mib * 2**20,
                output_bytes=64 * 2**20,
                disk_bytes=256 * 2**20,
            ),
            isolation=chosen(allow_unsandboxed=self.allow_unsandboxed),
            axioms=self.axioms,
            toolchain=self.toolchain,
            libraries=self.libraries,
        )
