"""Dropout of the model's own config never acts: not in sampling, not in log-probs, not in the loss."""

import json
from pathlib import Path

import polars as pl
import pytest

from papo.algorithm import PAPO
from papo.engines.requests import Open
from tests.engines import support
from tests.engines.conftest import Bench


@pytest.fixture
def dropping(bench: Bench, tmp_path: Path) -> Path:
    """The bench's model with dropout 0.5 declared."""
    bench.host.start()
    folder = tmp_path / "dropping"
    folder.mkdir()
    for file in bench.model.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"attention_dropout": 0.5}))
    return folder


def test_bug_049_the_first_ratio_is_one_under_declared_dropout(bench: Bench, dropping: Path, tmp_path: Path) -> None:
    bench.host.open(Open(model=str(dropping)))
    path, old = tmp_path / "rollouts.parquet", tmp_path / "old.parquet"
    frame = support.sample(bench.host, bench.prompts, path)
    advantages = support.write_advantages(frame, tmp_path / "advantages.parquet")
    support.write_logprobs(bench.host, bench.prompts, path, old)
    request = support.update_request(bench.prompts, path, advantages, algorithm=PAPO, logprobs=(old,))
    first = bench.host.update(request)
    assert first.stats["first_ratio_deviation"] == 0.0
    assert first.stats["sampler_gap_max"] < 1e-5
    # After sampling again the mode is what it was.
    support.sample(bench.host, bench.prompts, path)
    again = support.write_logprobs(bench.host, bench.prompts, path, old)
    assert again.equals(pl.read_parquet(old))
    twice = support.write_logprobs(bench.host, bench.prompts, path, tmp_path / "twice.parquet")
    assert twice.equals(again)


def test_bug_049_dropout_in_the_config_changes_no_step(bench: Bench, dropping: Path, tmp_path: Path) -> None:
    results: list[str] = []
    for model in (bench.model, dropping):
        bench.host.open(Open(model=str(model)))
        path = tmp_path / "rollouts.parquet"
        frame = support.sample(bench.host, bench.prompts, path)
        advantages = support.write_advantages(frame, tmp_path / "advantages.parquet")
        request = support.update_request(bench.prompts, path, advantages)
        results.append(bench.host.update(request).fingerprint.policy_sha256)
    assert results[0] == results[1]
