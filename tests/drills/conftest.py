import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from papo.chains import ChainTask
from tests.drills.runs import Scripted
from tests.simulation.world import CONFIG


@pytest.fixture
def scripted(tmp_path: Path) -> Callable[[str], Scripted]:
    """Makes runs of the scripted engine that share a config, its data and its model folder."""
    model = tmp_path / "model"
    model.mkdir()
    for name in ("config.json", "tokenizer.json"):
        (model / name).write_text("{}")
    (model / "model.safetensors").write_bytes((2).to_bytes(8, "little") + b"{}")
    for name, count in (("train", 5), ("evaluation", 2)):
        problems = ChainTask().problems(len(name), count)
        rows = [{"prompt": problem.prompt, "answer": problem.reference_answer} for problem in problems]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = CONFIG | {
        "data": {name: {"kind": "file", "path": f"{name}.jsonl"} for name in ("train", "evaluation")},
        "model": {"path": "model"},
        "tracking": {"mlflow": "off"},
    }
    (tmp_path / "drill.yaml").write_text(yaml.safe_dump(config))
    return lambda name: Scripted(config=tmp_path / "drill.yaml", runs=tmp_path / "runs", name=name)
