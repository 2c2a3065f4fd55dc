"""Lean 4 as text: comments apart; what has no place in a proof script.

Refused here for a clear reason and early: what gives up, what assumes, what extends the language, what runs programs
while it is elaborated. The judge (`papo.rewards.leanproof`) neither runs nor elaborates what a script left behind.
"""

import re

from papo.rewards.coqtext import WORDS

_OPENS = re.compile(r"""--|/-|'\\?"'|r#*"|\"""")
_NESTED = re.compile(r"/-|-/")
_STRING = re.compile(r'(?:[^"\\]|\\.)*"', re.DOTALL)
_WORD = re.compile(r"[^\W\d][\w'!?]*")
_COMMAND = re.compile(r"#[a-z]\w*")
_OPTION = re.compile(r"\bset_option\s+([\w.]+)")
_ATTRIBUTES = re.compile(r"@\[([^\]]*)\]|\battribute\s*\[([^\]]*)\]")
_SCOPE = re.compile(r"\b(?:local|scoped)\b")
_DECLARED = r"(?:theorem|lemma|def|abbrev|instance|example)\s+(?:_root_\.)?"
_OPTIONS = ("maxHeartbeats", "maxRecDepth", "autoImplicit", "relaxedAutoImplicit", "linter.", "pp.", "synthInstance.")
_HARMLESS = {
    "simp", "ext", "norm_num", "norm_cast", "push_cast", "aesop", "gcongr", "mono", "reducible",
    "irreducible", "semireducible", "inline", "elab_as_elim", "instance", "refl", "symm", "trans", "simps",
    "to_additive", "nolint", "unbox", "specialize", "default_instance", "congr", "elementwise", "reassoc",
    "measurability", "continuity", "fun_prop", "positivity", "bound", "grind",
}  # fmt: skip
_BARRED = {
    **dict.fromkeys(("sorry", "admit", "sorryAx"), "gives the proof up"),
    **dict.fromkeys(("axiom", "constant", "opaque"), "assumes what it does not prove"),
    **dict.fromkeys(("native_decide", "ofReduceBool", "ofReduceNat", "trustCompiler"), "trusts compiled code"),
    **dict.fromkeys(("unsafe", "partial", "implemented_by", "extern", "csimp"), "leaves what the kernel checks"),
    **dict.fromkeys(
        ("macro", "macro_rules", "syntax", "elab", "elab_rules", "declare_syntax_cat", "notation", "notation3", "infix",
         "infixl", "infixr", "prefix", "postfix", "simproc", "register_simp_attr", "binder_predicate"),
        "changes the language",
    ),
    **dict.fromkeys(
        ("run_cmd", "run_tac", "run_elab", "run_meta", "by_elab", "initialize", "builtin_initialize", "include_str",
         "IO", "Lean", "Elab", "eval_suggest_tactic"),
        "runs a program while it is checked",
    ),
    **dict.fromkeys(("import", "prelude", "module"), "loads other files: imports belong in the preamble"),
}  # fmt: skip


def without_comments(text: str) -> str:
    """The text with a blank for each comment. Raises ValueError for a comment or a string without end."""
    kept: list[str] = []
    at = 0
    while found := _OPENS.search(text, at):
        mark, start = found[0], found.start()
        kept.append(text[at:start])
        if mark in ("--", "/-"):
            at = (text + "\n").index("\n", start) if mark == "--" else _comment_end(text, found.end())
            kept.append(" ")
        else:
            at = found.end() if mark.startswith("'") else _string_end(text, found.end(), mark)
            kept.append(text[start:at])
    return "".join(kept) + text[at:]


def _comment_end(text: str, at: int) -> int:
    depth = 1
    for found in _NESTED.finditer(text, at):
        depth += 1 if found[0] == "/-" else -1
        if not depth:
            return found.end()
    raise ValueError("a comment has no end")


def _string_end(text: str, at: int, mark: str) -> int:
    if mark == '"':
        found = _STRING.match(text, at)
        end = found.end() if found else 0
    else:
        closing = '"' + "#" * mark.count("#")
        end = text.find(closing, at) + len(closing) if text.find(closing, at) >= 0 else 0
    if not end:
        raise ValueError("a string has no end")
    return end


def refusal(script: str) -> str | None:
    """Why a script is none, by its text alone; None if nothing is wrong with that. Strings are looked at like code."""
    try:
        code = without_comments(script)
    except ValueError as error:
        return f"{error}"
    if found := next((word for word in WORDS.findall(code) if word in _BARRED), None):
        return f"{found!r} {_BARRED[found]}"
    if command := _COMMAND.search(code):
        return f"{command[0][:80]!r} has no place in a proof"
    if option := next((name for name in _OPTION.findall(code) if not name.startswith(_OPTIONS)), None):
        return f"the option {option[:80]!r} has no place in a proof"
    listed = [one for found in _ATTRIBUTES.finditer(code) for one in "".join(found.groups("")).split(",")]
    given = [_WORD.findall(_SCOPE.sub("", one))[:1] for one in listed]
    if foreign := next((words[0] for words in given if words and words[0] not in _HARMLESS), None):
        return f"the attribute {foreign[:80]!r} has no place in a proof"
    return None


def declares(script: str, name: str) -> bool:
    """Whether a script, without comments, states the theorem itself."""
    return re.search(rf"(?<![\w.]){_DECLARED}{re.escape(name)}(?![\w.'!?])", script) is not None
