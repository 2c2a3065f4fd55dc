"""Whether reference programs pass and broken ones fail: `python -m benchmarks.code_rewards FILE.jsonl… [--sample N]`.

Each file holds HumanEval rows (prompt, test, entry_point, answer) or MBPP rows (tests, test_imports or test_setup,
answer). Every reference is judged as it is, then with one planted bug: its first function returns another value.
"""

import argparse
import json
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from papo.rewards import Answered, CodeTests, judge_all

PLANTED = """
def _planted(function):
    def wrong(*arguments, **named):
        found = function(*arguments, **named)
        if isinstance(found, bool):
            return not found
        if isinstance(found, (int, float)):
            return -found - 1
        return found + type(found)("x") if isinstance(found, str) else None if found is not None else 0
    return wrong


{name} = _planted({name})
"""


def rows(path: Path, sample: int | None) -> list[dict[str, Any]]:
    """The file's rows, or so many of them drawn."""
    found = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return found if sample is None else random.Random(0).sample(found, min(sample, len(found)))


def reference(row: dict[str, Any]) -> str:
    """The tests of a row, as a reference answer."""
    if "entry_point" in row:
        return json.dumps({name: row[name] for name in ("prompt", "test", "entry_point")})
    setup = row.get("test_setup", "")
    return json.dumps(
        {"test_list": row["tests"], "test_imports": row.get("test_imports", []), "test_setup_code": setup}
    )


def tested_name(row: dict[str, Any]) -> str:
    """The function that the tests call: of those that the answer defines, the first that they name."""
    if "entry_point" in row:
        return row["entry_point"]
    words = [line.split("(")[0][4:].strip() for line in row["answer"].splitlines() if line.startswith("def ")]
    return next(word for word in words if any(f"{word}(" in test for test in row["tests"]))


def answers(found: list[dict[str, Any]], *, planted: bool) -> Iterator[Answered]:
    """The references, whole or broken."""
    for row in found:
        code = (row["prompt"] if "entry_point" in row else "") + row["answer"]
        bug = PLANTED.format(name=tested_name(row)) if planted else ""
        yield Answered(completion=f"```python\n{code}\n{bug}\n```", reference_answer=reference(row))


def main() -> int:
    """Print figures as JSON lines. The exit code is 1 where a verdict is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--sample", type=int)
    parser.add_argument("--threads", type=int)
    options = parser.parse_args()
    faults = 0
    for path in options.files:
        found = rows(path, options.sample)
        for planted in (False, True):
            began = time.perf_counter()
            verdicts = list(judge_all(CodeTests(), answers(found, planted=planted), threads=options.threads))
            seconds = time.perf_counter() - began
            wrong = {
                str(row["id"]): f"{verdict.status} {verdict.reason}"
                for row, verdict in zip(found, verdicts, strict=True)
                if verdict.correct is not (not planted)
            }
            faults += len(wrong)
            figures = {"file": path.name, "planted": planted, "rows": len(found), "not_as_expected": wrong}
            sys.stdout.write(json.dumps({**figures, "seconds": round(seconds, 1)}) + "\n")
            sys.stdout.flush()
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
