"""Coq as a judge of proofs: four files, of which the candidate writes one; docs/proofs.md says why it cannot be fooled.

    PapoPreamble    the data set's definitions                  compiled once
    PapoStatement   Definition papo_statement := statement      compiled once, before the candidate is seen
    PapoCandidate   the candidate's text                        compiled in a sandbox of its own
    PapoJudge       Definition papo_judged : papo_statement := the candidate's theorem, of which it sees the .vo alone

The verdict is coqc's on PapoJudge, what this rests on (`Print Assumptions`), and coqchk's on the last two.
"""

import re
import shlex
import unicodedata
from dataclasses import dataclass
from pathlib import Path

from papo.rewards.coqtext import declares, header, left_open, refusal, sentences, without_comments
from papo.rewards.proofbench import Bench, Compiled, said
from papo.rewards.prooftask import NoTask, ProofTask, Unproved
from papo.sandbox import Outcome

_NAME = re.compile(r"[^\W\d][\w']*")
_OPTIONS = "-q -noglob -w -all -native-compiler no"
_PREPARE = """cp "$program"/*.v . && compile PapoPreamble && compile PapoStatement || exit 3
wc -c <PapoPreamble.vo && cat PapoPreamble.vo PapoStatement.vo"""
_CANDIDATE = 'cp "$program"/Papo* . && compile PapoCandidate && cat PapoCandidate.vo'
_JUDGE = """cp "$program"/Papo* . && coqc -Q . "" PapoJudge.v >judge || exit 3
coqchk -silent -o -Q . "" -norec PapoCandidate -norec PapoJudge >kernel 2>&1 || { cat kernel >&2; exit 4; }
wc -c <judge && cat judge kernel"""
# Settings that a file makes `Global` hold in every file that requires it: they are put back before anything is stated.
_JUDGED = """Require PapoStatement.
Require PapoCandidate.
Set Guard Checking. Set Positivity Checking. Set Universe Checking.
Unset Program Mode. Unset Universe Polymorphism. Unset Printing All. Set Printing Width 100000.
Definition papo_judged : PapoStatement.papo_statement := @PapoCandidate.{name}.
Print Assumptions papo_judged.
"""
_CLOSED = "Closed under the global context"
_AXIOM = re.compile(r"([^\W\d][\w'.]*)(?: :.*)?")
_FINDLIB = Path("/etc/ocamlfind.conf")
_SECTION = re.compile(r"\* ([^:]+):(.*)")
_MINE = ("PapoCandidate.", "PapoJudge.")
_SECTIONS = {
    "Axioms": "declares an axiom",
    "Constants/Inductives relying on type-in-type": "turns the check of universes off",
    "Constants/Inductives relying on unsafe (co)fixpoints": "turns the guard check of recursion off",
    "Inductives whose positivity is assumed": "turns the check of positivity off",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Coq:
    """`papo.rewards.proofbench.Checker`."""

    recursion: bool = False
    """Whether scripts may define types and recursive functions."""

    def task_fault(self, task: ProofTask) -> str | None:
        """Why the texts are no task."""
        if not _NAME.fullmatch(task.name) or unicodedata.normalize("NFC", task.name) != task.name:
            return f"name is {task.name[:80]!r}, which is no name of a theorem"
        if task.name.startswith(("Papo", "papo_")):
            return f"name is {task.name[:80]!r}: names that begin with papo_ are the judge's own"
        try:
            header(task.preamble)
            stated = sentences(f"Theorem {task.name} : {task.statement}.")
        except ValueError as error:
            return f"the task cannot be read: {error}"
        return None if len(stated) == 1 else "statement is more than one sentence: definitions belong in the preamble"

    def refusal(self, script: str) -> str | None:
        """Why a script is none, by its text alone."""
        return refusal(script, recursion=self.recursion)

    def prepare(self, task: ProofTask, bench: Bench) -> Compiled:
        """PapoPreamble.vo and PapoStatement.vo. Raises NoTask, Undefined."""
        stated = f"{_head(task)}\nDefinition papo_statement : Type := {task.statement}.\n"
        files = {"PapoPreamble.v": f"{task.preamble}\n".encode(), "PapoStatement.v": stated.encode()}
        outcome = _run(_PREPARE, files, bench)
        if not outcome.finished:
            raise NoTask(f"the preamble or the statement does not compile: {said(outcome)}")
        first, second = _parts(outcome)
        return {"PapoPreamble.vo": first, "PapoStatement.vo": second}

    def judge(self, script: str, task: ProofTask, compiled: Compiled, bench: Bench) -> None:
        """Return if the script proves the statement. Raises Unproved, Undefined."""
        text = candidate(script, task).encode()
        outcome = _run(_CANDIDATE, {**compiled, "PapoCandidate.v": text}, bench)
        if not outcome.finished:
            raise Unproved(f"coqc does not accept it: {said(outcome)}")
        judged = _JUDGED.format(name=task.name).encode()
        files = {**compiled, "PapoCandidate.vo": outcome.stdout, "PapoJudge.v": judged}
        outcome = _run(_JUDGE, files, bench)
        if not outcome.finished:
            raise Unproved(_stopped(outcome, task.name))
        rests, kernel = _parts(outcome)
        check_kernel(kernel.decode(errors="replace"))
        check_axioms(rests.decode(errors="replace"), bench.axioms)


def _run(text: str, files: Compiled, bench: Bench) -> Outcome:
    coqc, coqchk = (shlex.quote(bench.program(name)) for name in ("coqc", "coqchk"))
    begin = f'coqc() {{ {coqc} {_OPTIONS} "$@"; }}\ncoqchk() {{ {coqchk} "$@"; }}\n'
    begin += 'compile() { coqc -Q . "" "$1.v" >/dev/null; }\n'
    if _FINDLIB.exists():
        # Debian's coqc finds its plugins by this file, which is in no folder that a sandbox reads.
        begin, files = f'{begin}export OCAMLFIND_CONF="$program/findlib"\n', {**files, "findlib": _FINDLIB.read_bytes()}
    return bench.run(begin + text, files)


def _head(task: ProofTask) -> str:
    requires, others = header(task.preamble)
    return f"{requires}\nRequire Import PapoPreamble.\n{others}\n"


def candidate(script: str, task: ProofTask) -> str:
    """The candidate's file: its own statement of the theorem, or the task's in front of it. Raises Unproved."""
    try:
        script = without_comments(script)
        found = sentences(script)
    except ValueError as error:
        raise Unproved(f"{error}") from None
    own = declares(found, task.name)
    stated = "" if own else f"Theorem {task.name} : {task.statement}.\n"
    return f"{_head(task)}{stated}{script}\n{'Qed.' if left_open(found, begun=not own) else ''}\n"


def _parts(outcome: Outcome) -> tuple[bytes, bytes]:
    """What a script printed: the length of a first part, then both."""
    size, _, rest = outcome.stdout.partition(b"\n")
    return rest[: int(size)], rest[int(size) :]


def _stopped(outcome: Outcome, name: str) -> str:
    text = said(outcome)
    if outcome.ending == "exit" and outcome.code == 3:
        missing = "was not found" in text
        return f"it proves no theorem {name}" if missing else f"its theorem is not the statement: {text}"
    return f"the kernel's check does not accept it: {text}"


def check_kernel(summary: str) -> None:
    """Raise Unproved unless coqchk's summary (`-o`) has nothing of the candidate's that goes unchecked."""
    section, seen = "", set[str]()
    for line in summary.splitlines():
        if found := _SECTION.fullmatch(line.strip()) if line.startswith("*") else None:
            section = found[1]
            seen.add(section)
        elif any(mine in line for mine in _MINE):
            raise Unproved(f"it {_SECTIONS.get(section, section)}: {line.strip()[:80]}")
    if missing := set(_SECTIONS) - seen:
        raise Unproved(f"the kernel's check says nothing of {', '.join(sorted(missing))}")


def check_axioms(rests: str, permitted: tuple[str, ...]) -> None:
    """Raise Unproved unless all that `Print Assumptions` names is permitted, by its name or the end of its full one."""
    lines = rests.rstrip("\n").split("\n")
    if lines == [_CLOSED]:
        return
    if lines[0] != "Axioms:":
        raise Unproved(f"it is not known what it rests on: {' '.join(rests.split())[:120]!r}")
    for line in lines[1:]:
        found = _AXIOM.fullmatch(line)
        if line.startswith("  ") and line.strip():
            continue
        if found is None or not any(_same(found[1], name) for name in permitted):
            raise Unproved(f"it rests on what is not permitted: {line[:120]}")


def _same(found: str, permitted: str) -> bool:
    return f".{permitted}".endswith(f".{found}") or f".{found}".endswith(f".{permitted}")
