"""Lean 4 as a judge of proofs: two compiled files, compared by a program that runs nothing of theirs (docs/proofs.md).

    PapoTarget      preamble and `theorem name : statement := sorry`   compiled once
    PapoCandidate   preamble and the candidate's text                  compiled in a sandbox of its own
    PapoJudge       reads both, replays the candidate's declarations through the kernel on top of what the preamble
                    imports, compares what the target declares with them, and lists the axioms under the theorem

Importing the candidate instead would let its syntax, macros and initialisers act in the judge's file.
"""

import re
import shlex
from dataclasses import dataclass
from textwrap import indent

from papo.rewards.leantext import declares, refusal, without_comments
from papo.rewards.proofbench import Bench, Compiled, said
from papo.rewards.prooftask import NoTask, ProofTask, Unproved
from papo.sandbox import Outcome

_NAME = re.compile(r"[^\W\d][\w'!?]*(?:\.[^\W\d][\w'!?]*)*")
_COMPILE = 'cp "$program"/{0}.lean . && lean -j1 -o {0}.olean {0}.lean >&2 && cat {0}.olean'
_JUDGE = 'cp "$program"/Papo* . && lean -j1 --run PapoJudge.lean PapoTarget.olean PapoCandidate.olean {0}'
_JUDGE_FILE = """\
import Lean
import Lean.Replay
import Lean.Util.CollectAxioms

open Lean

structure Loaded where
  data : ModuleData
  env : Environment

def load (path : System.FilePath) : IO Loaded := do
  let (data, _) ← readModuleData path
  let before ← importModules data.imports {} 0
  let mut declared := {}
  for name in data.constNames, info in data.constants do
    if (before.find? name).isSome then
      throw <| IO.userError s!"{name} is declared a second time"
    declared := declared.insert name info
  return { data, env := ← before.replay declared }

def same : ConstantInfo → ConstantInfo → Bool
  | .thmInfo _, .thmInfo _ => true
  | .axiomInfo a, .axiomInfo b => a.isUnsafe == b.isUnsafe
  | .defnInfo a, .defnInfo b => a.value == b.value && a.safety == b.safety
  | .opaqueInfo a, .opaqueInfo b => a.value == b.value && a.isUnsafe == b.isUnsafe
  | .inductInfo a, .inductInfo b => a.ctors == b.ctors && a.all == b.all && a.numParams == b.numParams
  | .ctorInfo a, .ctorInfo b => a.induct == b.induct && a.cidx == b.cidx
  | .recInfo _, .recInfo _ => true
  | .quotInfo _, .quotInfo _ => true
  | _, _ => false

def main (args : List String) : IO UInt32 := do
  let [target, candidate, spelled] := args | throw <| IO.userError "three arguments"
  initSearchPath (← findSysroot)
  let name := spelled.toName
  let ours ← load target
  let theirs ← load candidate
  unless ours.data.imports.map (·.module) == theirs.data.imports.map (·.module) do
    throw <| IO.userError "it imports other modules"
  let some (.thmInfo _) := ours.env.find? name | throw <| IO.userError s!"{name} is no theorem of the task"
  for known in ours.data.constNames, info in ours.data.constants do
    if info.isUnsafe || info.isPartial then
      continue
    let some found := theirs.env.find? known | throw <| IO.userError s!"it does not declare {known}"
    unless info.levelParams == found.levelParams && info.type == found.type && same info found do
      throw <| IO.userError s!"its {known} is not the task's"
  let (_, state) := ((CollectAxioms.collect name).run theirs.env).run {}
  for used in state.axioms do
    IO.println s!"axiom {used}"
  IO.println "proved"
  return 0
"""
_ERRORS = ("error:", "uncaught exception:")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lean:
    """`papo.rewards.proofbench.Checker`."""

    def task_fault(self, task: ProofTask) -> str | None:
        """Why the texts are no task."""
        if not _NAME.fullmatch(task.name):
            return f"name is {task.name[:80]!r}, which is no name of a theorem"
        try:
            without_comments(task.preamble)
            without_comments(task.statement)
        except ValueError as error:
            return f"the task cannot be read: {error}"
        return None

    def refusal(self, script: str) -> str | None:
        """Why a script is none, by its text alone."""
        return refusal(script)

    def prepare(self, task: ProofTask, bench: Bench) -> Compiled:
        """PapoTarget.olean. Raises NoTask, Undefined."""
        text = f"{task.preamble}\n\ntheorem {task.name} : {task.statement} := sorry\n"
        outcome = _run(_COMPILE.format("PapoTarget"), {"PapoTarget.lean": text.encode()}, bench)
        if not outcome.finished:
            raise NoTask(f"the preamble or the statement does not compile: {said(outcome, _ERRORS)}")
        return {"PapoTarget.olean": outcome.stdout}

    def judge(self, script: str, task: ProofTask, compiled: Compiled, bench: Bench) -> None:
        """Return if the script proves the statement. Raises Unproved, Undefined."""
        text = candidate(script, task)
        outcome = _run(_COMPILE.format("PapoCandidate"), {"PapoCandidate.lean": text.encode()}, bench)
        if not outcome.finished:
            raise Unproved(f"lean does not accept it: {said(outcome, _ERRORS)}")
        files = {**compiled, "PapoCandidate.olean": outcome.stdout, "PapoJudge.lean": _JUDGE_FILE.encode()}
        outcome = _run(_JUDGE.format(shlex.quote(task.name)), files, bench)
        if not outcome.finished:
            raise Unproved(f"the judge does not accept it: {said(outcome, _ERRORS)}")
        check_axioms(outcome.stdout.decode(errors="replace"), bench.axioms)


def _run(script: str, files: Compiled, bench: Bench) -> Outcome:
    libraries = shlex.quote(":".join(bench.libraries))
    begin = f'export LEAN_PATH={libraries}\nlean() {{ {shlex.quote(bench.program("lean"))} "$@"; }}\n'
    return bench.run(begin + script, files)


def candidate(script: str, task: ProofTask) -> str:
    """The candidate's file: its own statement of the theorem, or the task's in front of it. Raises Unproved."""
    try:
        script = without_comments(script)
    except ValueError as error:
        raise Unproved(f"{error}") from None
    if declares(script, task.name):
        return f"{task.preamble}\n\n{script}\n"
    begin = f"{task.preamble}\n\ntheorem {task.name} : {task.statement} :="
    bare = script.strip()
    if bare.startswith(":="):
        return f"{begin}{bare.removeprefix(':=')}\n"
    if re.match(r"by\b", bare):
        return f"{begin} {bare}\n"
    return f"{begin} by\n{indent(script, '  ')}\n"


def check_axioms(printed: str, permitted: tuple[str, ...]) -> None:
    """Raise Unproved unless the judge says `proved`, after nothing but axioms that are permitted."""
    lines = printed.rstrip("\n").split("\n")
    if lines[-1] != "proved":
        raise Unproved(f"it is not known what it rests on: {' '.join(printed.split())[:120]!r}")
    foreign = [line for line in lines[:-1] if line not in {f"axiom {name}" for name in permitted}]
    if foreign:
        raise Unproved(f"it rests on what is not permitted: {foreign[0][:120]}")
