"""Run by a user without rights: `python -m tests.unit.papo.sandbox.as_user FILE FOLDER ISOLATION EVERY`, JSON lines."""

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import cast

from papo.sandbox import Isolation, Limits, box, run
from papo.sandbox.isolation import python
from tests.unit.papo.sandbox.hostile import BOMBS, QUIET

LIMITS = Limits(cpu_seconds=0.5, wall_seconds=3.0, memory_bytes=200 * 2**20, disk_bytes=16 * 2**20, output_bytes=2**20)


def main() -> None:
    """Judge them one after the other."""
    file, box.FOLDER = Path(sys.argv[1]), sys.argv[2]
    marks = {"@file@": str(file), "@folder@": str(file.parent), "@port@": "1", "@pid@": str(os.getpid())}
    programs = {name: code for name, (code, _) in BOMBS.items()} | QUIET
    isolation, every = cast("Isolation", sys.argv[3]), int(sys.argv[4])
    for name, code in list(programs.items())[::every]:
        filled = code
        for mark, value in marks.items():
            filled = filled.replace(mark, value)
        files = {"main.py": filled.encode()}
        outcome = run([python(), "-I", "-B", "{program}/main.py"], files=files, limits=LIMITS, isolation=isolation)
        found = asdict(outcome) | {"name": name, "stdout": outcome.stdout[-300:].decode(errors="replace")}
        sys.stdout.write(json.dumps(found | {"stderr": outcome.stderr[-300:].decode(errors="replace")}) + "\n")


if __name__ == "__main__":
    main()
