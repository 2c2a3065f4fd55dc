"""Which text of a completion is its program; at a cost that grows with its length alone."""

import io
import re

_TAGS = {
    "python": ("python", "py", "python3", "python2", "py3"),
    "c": ("c",),
    "cpp": ("cpp", "c++", "cc", "cxx"),
    "coq": ("coq", "rocq", "gallina"),
    "lean4": ("lean", "lean4"),
}
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})[ \t]*([\w+#.-]*)")


def extract_program(completion: str, language: str) -> str | None:
    """The last fenced block of the language, else the last fenced block, else all that is written; None for nothing.

    Only what follows the last `</think>` is looked at. A last block that is not closed goes to the end.
    """
    text = completion.rpartition("</think>")[2]
    blocks = _blocks(text)
    tagged = [code for tag, code in blocks if tag in _TAGS[language]]
    code = (tagged or [code for _, code in blocks] or [text])[-1]
    return code if code.strip() else None


def _blocks(text: str) -> list[tuple[str, str]]:
    """Language and content of each fenced block: from a fence to the next line that is that fence alone."""
    found: list[tuple[str, str]] = []
    opened: re.Match[str] | None = None
    inside: list[str] = []
    for line in io.StringIO(text, newline="\n"):
        fence = _FENCE.match(line)
        if opened is None:
            # Behind a fence of backticks there are no others: that is code within a line.
            opened = fence if fence and "`" not in line[fence.end(1) :] else None
        elif fence and line.strip() == opened[1]:
            found.append(_block(opened, inside))
            opened, inside = None, []
        else:
            inside.append(line)
    return [*found, _block(opened, inside)] if opened and "".join(inside).strip() else found


def _block(fence: re.Match[str], lines: list[str]) -> tuple[str, str]:
    """Without the space that the fence itself stands behind."""
    space = fence.string[: fence.start(1)]
    if all(line.startswith(space) or not line.strip() for line in lines):
        lines = [line.removeprefix(space) for line in lines]
    return fence[2].lower(), "".join(lines)
