"""The learner and its generator on a GPU. Skipped where there is none, unless PAPO_GPU_TESTS_ON names a device.

What is exact on a CPU is compared here within what a GPU's sums leave.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from papo.engines.group import has_gpu
from papo.engines.host import EngineHost
from papo.engines.requests import CreateModel, Open
from papo.engines.settings import EngineSettings, TinyModel
from papo.seeding import gumbel_noise
from tests.engines import support

DEVICE: Any = os.environ.get("PAPO_GPU_TESTS_ON", "cuda")
pytestmark = pytest.mark.skipif("PAPO_GPU_TESTS_ON" not in os.environ and not has_gpu(), reason="there is no GPU here")
GAP = {"float32": 2e-4, "bfloat16": 0.25}
"""Largest |log-prob of the sampler − of the trainer| of a token, on equal weights."""


@dataclass
class Bench:
    host: EngineHost
    model: Path
    prompts: Path
    dtype: str


@pytest.fixture(scope="module", params=["float32", "bfloat16"])
def bench(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    folder = tmp_path_factory.mktemp("cuda")
    settings = EngineSettings(device=DEVICE, dtype=request.param, micro_batch_size=4)
    host = EngineHost(settings, log=folder / "ranks.log", pid_file=folder / "pids.json")
    host.start()
    model = folder / "model"
    host.create(CreateModel(model=TinyModel(hidden_size=64, heads=2, kv_heads=1), folder=str(model)))
    prompts = support.write_prompts(host, model, folder)
    yield Bench(host, model, prompts, request.param)
    host.close()


def test_the_engine_is_on_the_device_that_was_asked_for(bench: Bench) -> None:
    assert bench.host.environment["device"].startswith(DEVICE)


def test_noise_is_that_of_the_cpu() -> None:
    import torch

    from papo.engines.sampler import GumbelNoise

    seeds = [0, 1, 2**62 + 12345]
    ours = GumbelNoise(torch.tensor(seeds, device=DEVICE), vocabulary=2000)
    for position in (0, 7, 4000):
        expected = gumbel_noise(np.array(seeds, dtype=np.int64), position=position, vocabulary=2000)
        np.testing.assert_allclose(ours.at(position).cpu().numpy(), expected, rtol=1e-9, atol=1e-9)


def test_sampler_and_trainer_agree_and_a_shard_is_made_again_equal(bench: Bench, tmp_path: Path) -> None:
    bench.host.open(Open(model=str(bench.model)))
    path = tmp_path / "rollouts.parquet"
    frame = support.sample(bench.host, bench.prompts, path)
    scores = support.write_logprobs(bench.host, bench.prompts, path, tmp_path / "scores.parquet")

    gap = np.abs(
        frame["sampler_logprobs"].explode().to_numpy() - scores["old_logprobs"].explode().to_numpy()
    )  # fmt: skip

    assert gap.max() < GAP[bench.dtype]
    again = support.sample(bench.host, bench.prompts, tmp_path / "again.parquet")
    assert again["token_ids"].equals(frame["token_ids"])


def test_an_update_moves_the_policy_and_starts_at_ratio_one(bench: Bench, tmp_path: Path) -> None:
    before = bench.host.open(Open(model=str(bench.model)))
    path, credit = tmp_path / "rollouts.parquet", tmp_path / "credit.parquet"
    support.write_advantages(support.sample(bench.host, bench.prompts, path), credit)

    result = bench.host.update(support.update_request(bench.prompts, path, credit))

    assert result.fingerprint.policy_sha256 != before.policy_sha256
    assert result.stats["skipped_steps"] == 0
    assert result.stats["grad_norm"] > 0
    assert result.stats["first_ratio_deviation"] < 1e-6
    assert result.stats["sampler_logprob_gap_max"] < GAP[bench.dtype]


def test_a_checkpoint_and_an_export_hold_the_policy_to_the_bit(bench: Bench, tmp_path: Path) -> None:
    bench.host.open(Open(model=str(bench.model)))
    path, credit = tmp_path / "rollouts.parquet", tmp_path / "credit.parquet"
    support.write_advantages(support.sample(bench.host, bench.prompts, path), credit)
    after = bench.host.update(support.update_request(bench.prompts, path, credit)).fingerprint
    for name in ("checkpoint", "export"):
        (tmp_path / name).mkdir()
    bench.host.save(str(tmp_path / "checkpoint"))
    bench.host.export(str(tmp_path / "export"))

    bench.host.close()
    bench.host.start()

    assert bench.host.open(Open(model=str(bench.model), checkpoint=str(tmp_path / "checkpoint"))) == after
    exported = bench.host.open(Open(model=str(tmp_path / "export")))
    assert exported.policy_sha256 == after.policy_sha256
    rows = pl.read_parquet(path)
    assert support.sample(bench.host, bench.prompts, tmp_path / "new.parquet").columns == rows.columns
