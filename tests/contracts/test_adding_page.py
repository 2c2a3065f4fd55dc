"""The estimator that docs/algorithms/adding.md adds is one that works, by the file and the word that it shows."""

import re
import subprocess
import sys
from pathlib import Path
from shutil import copytree

ROOT = Path(__file__).parents[2]
USE = """
import numpy as np
from pydantic import TypeAdapter
from papo.algorithm import Algorithm
from papo.rollouts import ScoredRollouts

algorithm = TypeAdapter(Algorithm).validate_python({"advantage": {"kind": "opo"}})
rollouts = ScoredRollouts(
    group=np.zeros(3, dtype=np.int64), outcome=np.array([1.0, 0.0, np.nan]), correct=np.array([True, False, False]),
    process=np.full(3, np.nan), lengths=np.array([30, 10, 5]),
)
print(algorithm.advantage(rollouts).total.tolist())
"""


def test_one_file_and_one_word_are_enough(tmp_path: Path) -> None:
    (diff,) = re.findall(r"```diff\n(.*?)```", (ROOT / "docs/algorithms/adding.md").read_text(), flags=re.DOTALL)
    added = diff.split("--- a/")[0].splitlines()[3:]
    copytree(
        ROOT / "papo", tmp_path / "papo", ignore=lambda _, names: [name for name in names if name == "__pycache__"]
    )
    (tmp_path / "papo/advantages/opo.py").write_text("\n".join(line[1:] for line in added) + "\n")
    package = tmp_path / "papo/advantages/__init__.py"
    text = package.read_text().replace("    | Grpo\n", "    | Grpo\n    | Opo\n", 1)
    package.write_text(text.replace("\nAdvantage = (", "\nfrom papo.advantages.opo import Opo\n\nAdvantage = (", 1))
    done = subprocess.run(
        [sys.executable, "-c", USE], cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.stdout == "[0.25, -0.75, 0.0]\n", done.stderr
