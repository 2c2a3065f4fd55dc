"""Two processes on gloo: one gradient, however the rows are dealt."""

from pathlib import Path

import pytest

from papo.engines.protocol import Open
from tests.engines import support
from tests.engines.conftest import Bench


@pytest.mark.slow
@pytest.mark.parametrize("stage", [0, 2])
def test_two_ranks_take_the_same_step_as_one(bench: Bench, tmp_path: Path, stage: int) -> None:
    bench.open()
    path = tmp_path / "rollouts.parquet"
    frame = support.sample(bench.host, bench.prompts, path)
    advantages = support.write_advantages(frame, tmp_path / "advantages.parquet")
    request = support.update_request(bench.prompts, path, advantages)
    alone = bench.host.update(request)

    host = support.new_host(tmp_path / "two", ranks=2, zero_stage=stage, micro_batch_size=3)
    try:
        opened = host.open(Open(model=str(bench.model)))
        together = host.update(request)
        host.save(str(tmp_path / "checkpoint"))
        skipped = host.update(
            support.update_request(
                bench.prompts,
                path,
                support.write_advantages(frame, tmp_path / "nan.parquet", [float("nan")] * frame.height),
            )
        )
        after = host.update(request)
        host.open(Open(model=str(bench.model), checkpoint=str(tmp_path / "checkpoint")))
        again = host.update(request)
    finally:
        host.close()
    assert opened.policy_sha256 != together.fingerprint.policy_sha256
    assert together.stats["grad_norm"] == pytest.approx(alone.stats["grad_norm"], rel=1e-4)
    assert together.stats["loss"] == pytest.approx(alone.stats["loss"], abs=1e-6)
    assert together.stats["tokens"] == alone.stats["tokens"]
    assert skipped.fingerprint == together.fingerprint
    assert skipped.stats["skipped_steps"] == 1
    assert again.fingerprint == after.fingerprint
