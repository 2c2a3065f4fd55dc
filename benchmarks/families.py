"""The table of model families in docs/learner.md, from the engine tests: `python -m benchmarks.families [XML…]`.

Runs tests/engines/test_families.py, the long ones too (minutes), and writes what held of each family
in place of the table that is there. With JUnit files of earlier runs it reads those instead.
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree

from tests.engines.families import FAMILIES

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "learner.md"
BEGIN, END = "<!-- families: begin -->\n", "<!-- families: end -->\n"
HEAD = (
    "| family | resumed = straight | export reloads, equal | KL to the start model | sampler gap | with LoRA |\n"
    "|---|---|---|---|---|---|\n"
)
Found = Mapping[str, str]
"""Properties that a test noted, as far as it came."""


def main(files: Sequence[str]) -> int:
    """Write the table; 1 where a family failed."""
    with tempfile.TemporaryDirectory() as folder:
        found = dict(pair for file in files or [_tested(Path(folder))] for pair in _read(Path(file)))
    rows = [_row(family, found.get((True, family)), found.get((False, family))) for family in FAMILIES]
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(before + BEGIN + HEAD + "".join(rows) + END + after, encoding="utf-8")
    return 0 if all("exported" in of for of in found.values()) else 1


def _tested(folder: Path) -> str:
    file = folder / "families.xml"
    chosen = ["-m", "long or not long", "tests/engines/test_families.py"]
    subprocess.run([sys.executable, "-m", "pytest", "-q", *chosen, f"--junitxml={file}"], cwd=ROOT, check=False)
    return str(file)


def _read(file: Path) -> Iterator[tuple[tuple[bool, str], Found]]:
    """Whether it was trained whole, the family, and what held of it."""
    for case in ElementTree.parse(file).iter("testcase"):
        name = str(case.get("name")).partition("[")[2].removesuffix("]")
        kind, _, family = name.removeprefix("more-").partition("-")
        yield (
            (kind == "whole", family),
            {str(each.get("name")): str(each.get("value")) for each in case.iter("property")},
        )


def _row(family: str, whole: Found | None, adapters: Found | None) -> str:
    cells = [_held(whole, name) for name in ("resumed", "exported", "reference")]
    gap = f"{float(whole['gap']):.0e}" if whole and "gap" in whole else "not measured"
    return f"| {family} | {' | '.join(cells)} | {gap} | {_held(adapters, 'exported')} |\n"


def _held(found: Found | None, name: str) -> str:
    return "not run" if found is None else "yes" if name in found else "no"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
