"""Coq as text: sentences without their comments; what has no place in a proof script.

Most of what is refused here is refused for a clear reason and early, and would fall before the judge as well
(`papo.rewards.coqproof`). It carries weight in one respect: the parts of the language where released kernels have
holes, coqchk's with them, are not for scripts (docs/proofs.md). So what is compiled is the text as it was read here:
without comments, which leaves no two ways to read it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

_COMMENT = re.compile(r'\(\*|\*\)|"')
_END = re.compile(r'"|\.(?=\s|\Z)')
_PREFIX = re.compile(r"""\s*(?:[-+*]+|[{}]|\#\[[^]]*\]|(?:all|par|!|[\d,\s-]*\d|\[\s*[\w']+\s*\])\s*:(?!=)"""
                     r"""|(?:Time|Succeed|Fail|Timeout\s+\d+|Local|Global|Program|Private)\b)""")  # fmt: skip
_WORD = re.compile(r"[^\W\d][\w']*")
WORDS = re.compile(r"[A-Za-z_][A-Za-z0-9_']*")
"""Whatever stands beside them: which of the other letters part two words is the checker's to say."""
THEOREMS = ("Theorem", "Lemma", "Fact", "Remark", "Corollary", "Proposition", "Property")
DEFINITIONS = ("Definition", "Example", "Instance", "Let", "Goal")
_RECURSIVE = ("Fixpoint", "CoFixpoint", "Function")
_TYPES = ("Inductive", "CoInductive", "Variant", "Record", "Structure", "Class")
_CLOSERS = ("Qed", "Defined", "Save", "Admitted", "Abort")
_ALLOWED = frozenset((
    *THEOREMS, *DEFINITIONS, "Qed", "Defined", "Save", "Abort", "Proof", "Existing", "Section", "End", "Variable",
    "Variables", "Hypothesis", "Hypotheses", "Context", "Ltac", "Tactic", "Notation", "Infix", "Reserved", "Require",
    "Import", "Export", "From", "Open", "Close", "Delimit", "Undelimit", "Bind", "Declare", "Arguments", "Implicit",
    "Generalizable", "Hint", "Create", "Remove", "Scheme", "Combined", "Next", "Obligation", "Obligations", "Solve",
    "Final", "Check", "Print", "Compute", "Eval", "Search", "SearchPattern", "SearchRewrite", "About", "Locate", "Show",
    "Set", "Unset", "Opaque", "Transparent", "Strategy", "Add", "Coercion", "Canonical", "Unshelve", "Focus", "Unfocus",
    "Guarded", "Identity", "Test", "Inspect",
))  # fmt: skip
_RECURSES = "recurses on its own, where kernels have accepted what does not end: use induction (or recursion: allow)"
_ALLOWABLE = {
    **dict.fromkeys(("fix", "cofix", *_RECURSIVE), _RECURSES),
    **dict.fromkeys(_TYPES, "defines a type, which belongs in the preamble (or recursion: allow)"),
}
"""What `recursion: allow` lets pass."""
_WORDS = {
    "Admitted": "gives the proof up (Admitted)",
    "admit": "gives a goal up (admit)",
    "give_up": "gives a goal up (give_up)",
    "bypass_check": "turns a check of the kernel off (bypass_check)",
    "native_compute": "compiles machine code (native_compute); vm_compute and lazy do the same without",
    **dict.fromkeys(
        ("change_no_check", "exact_no_check", "vm_cast_no_check", "native_cast_no_check"),
        "leaves a term without a type, on which the virtual machine is not safe",
    ),
    "Ltac2": "runs Ltac2, which can build any term",
    **dict.fromkeys(("SProp", "StrictProp"), "uses strict propositions, where kernels have accepted a proof of False"),
    **dict.fromkeys(
        ("universes", "polymorphic", "Polymorphic", "Cumulative", "cumulative"),
        "uses universe polymorphism, where kernels have accepted a proof of False",
    ),
}
"""Anywhere in a script."""
_HEADS = {
    **dict.fromkeys(("Axiom", "Axioms", "Parameter", "Parameters", "Conjecture", "Conjectures"), "assumes an axiom"),
    "Admit": "gives obligations up",
    **dict.fromkeys(("Module", "Include"), "opens or includes a module, where kernels have accepted a proof of False"),
    **dict.fromkeys(("Load", "Cd", "Redirect", "Extraction", "Separate", "Recursive"), "reads or writes files"),
    **dict.fromkeys(("Reset", "Back", "BackTo", "Undo", "Restart"), "takes back what was said before"),
    **dict.fromkeys(("Primitive", "Register"), "binds names to primitives of the kernel"),
}
"""As the first word of a sentence."""
_DECLARES = re.compile(r"Declare\s+(?:Scope|Custom|Reduction|Equivalent|Left|Right|Morphism)\b")
_ADDS = re.compile(r"Add\s+(?:Parametric\s+)?(?:Ring|Field|Morphism|Relation|Setoid|Zify|Search|Printing)\b")
_OPTION = re.compile(
    r"(?:Set|Unset)\s+(?:\w+\s+Checking|Definitional|Allow|Universe|Polymorphic|Extraction|Native|Debug|Dump)", re.I
)
_CONTEXT = re.compile(r"\bcontext\s+[^\s\[]+\s*\[")
"""A named context, by which Ltac puts other parts into a function of the library; patterns without a name are fine."""
_ASSUMING = ("Variable", "Variables", "Hypothesis", "Hypotheses", "Context")
_REPEATED = ("Import", "Export", "Open", "Close", "Set", "Unset", "Generalizable", "Implicit")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """One sentence, ended by a full stop, without its comments."""

    marks: str
    """Bullets, attributes and modifiers in front of its first word."""
    code: str
    """The rest; each string is `""`."""

    @property
    def head(self) -> str:
        """Its first word; empty where it begins with something else."""
        found = _WORD.match(self.code)
        return found[0] if found else ""


def without_comments(text: str) -> str:
    """The text with a blank for each comment. Raises ValueError for a comment or a string without end."""
    kept: list[str] = []
    at = depth = 0
    while found := _COMMENT.search(text, at):
        end = _string_end(text, found.end()) if found[0] == '"' else found.end()
        opens = found[0] == "(*"
        kept.append("" if depth else text[at : found.start() if opens else end])
        # A string ends no comment, as in Coq; outside of one, *) is two symbols.
        depth += 1 if opens else -1 if depth and found[0] == "*)" else 0
        at = end
        if not depth and found[0] == "*)" and kept[-1] == "":
            kept.append(" ")
    if depth:
        raise ValueError("a comment has no end")
    return "".join(kept) + text[at:]


def _string_end(text: str, at: int) -> int:
    while True:
        end = text.find('"', at)
        if end < 0:
            raise ValueError("a string has no end")
        if text[end : end + 2] != '""':
            return end + 1
        at = end + 2


def sentences(text: str) -> list[Sentence]:
    """The sentences of a text. Raises ValueError for a comment, a string or a sentence without end."""
    text = without_comments(text)
    found: list[Sentence] = []
    code: list[str] = []
    at = 0
    while mark := _END.search(text, at):
        code.append(text[at : mark.start()])
        if mark[0] == '"':
            code.append('""')
            at = _string_end(text, mark.end())
        else:
            found.append(_sentence("".join(code) + "."))
            code, at = [], mark.end()
    if ("".join(code) + text[at:]).strip(" \t\r\n{}-+*"):
        raise ValueError("the last sentence has no full stop")
    return found


def _sentence(code: str) -> Sentence:
    at = 0
    while prefix := _PREFIX.match(code, at):
        at = prefix.end()
    return Sentence(marks=code[:at], code=code[at:].strip())


def refusal(script: str, *, recursion: bool) -> str | None:
    """Why a script is none, by its text alone; None if nothing is wrong with that."""
    try:
        found = sentences(script)
    except ValueError as error:
        return f"{error}"
    depth = 0
    for sentence in found:
        fault = _fault(sentence, depth, recursion)
        if fault is not None:
            return f"{' '.join(sentence.code.split())[:80]!r} {fault}"
        depth += {"Section": 1, "End": -1}.get(sentence.head, 0)
    return None


def _fault(sentence: Sentence, depth: int, recursion: bool) -> str | None:
    code, head = sentence.code, sentence.head
    words = WORDS.findall(sentence.marks + code)
    barred = _WORDS if recursion else {**_WORDS, **{word: _ALLOWABLE[word] for word in ("fix", "cofix", *_RECURSIVE)}}
    fault = next((barred[word] for word in words if word in barred), _HEADS.get(head))
    if fault is None and head in _ALLOWABLE:
        return None if recursion else _ALLOWABLE[head]
    if fault is None and not recursion and _CONTEXT.search(code):
        return "names a context, which can change a recursive function of the library: leave the name out"
    if fault is None and head in _ASSUMING and depth <= 0:
        return "assumes an axiom, as it stands in no section"
    if fault is None and (
        _OPTION.match(code)
        or (head == "Declare" and not _DECLARES.match(code))
        or (head == "Add" and not _ADDS.match(code))
        or (head == "Print" and '""' in code)
        or (head[:1].isupper() and head not in _ALLOWED)
    ):
        return "has no place in a proof"
    return fault


def declares(found: Sequence[Sentence], name: str) -> bool:
    """Whether a script states the theorem itself."""
    stated = re.compile(rf"(?:{'|'.join((*THEOREMS, *DEFINITIONS, *_RECURSIVE, 'Save'))})\s+{re.escape(name)}(?![\w'])")
    return any(stated.match(sentence.code) for sentence in found)


def left_open(found: Sequence[Sentence], *, begun: bool) -> bool:
    """Whether a proof is still open at the end; `begun`: one is at the start."""
    for sentence in found:
        head, code = sentence.head, sentence.code
        if head in THEOREMS or (head in (*DEFINITIONS, *_RECURSIVE) and ":=" not in code):
            begun = True
        elif head in _CLOSERS or (head == "Proof" and not re.match(r"Proof(?:\s+(?:with|using)\b.*)?\.", code, re.S)):
            begun = False
    return begun


def header(preamble: str) -> tuple[str, str]:
    """What files after a preamble repeat of it: its Require lines; its imports, scopes and settings, in order.

    Neither is passed on by importing the preamble itself. Raises ValueError where it cannot be read.
    """
    requires: list[str] = []
    others: list[str] = []
    depth = 0
    for sentence in sentences(preamble):
        head = sentence.head
        if head in ("Section", "Module") and ":=" not in sentence.code:
            depth += 1
        depth -= head == "End"
        if head in ("Require", "From"):
            requires.append(sentence.code)
        elif head in _REPEATED and not depth and '"' not in sentence.code:
            others.append(sentence.code)
    return "\n".join(requires), "\n".join(others)
