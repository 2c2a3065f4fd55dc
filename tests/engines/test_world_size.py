"""A checkpoint knows no ranks: another number of them, on another ZeRO stage, holds the same tensors and goes on."""

from pathlib import Path

import pytest

from papo.engines.requests import Fingerprint, Open, UpdateResult
from papo.engines.settings import ZeroStage
from tests.engines import support
from tests.engines.conftest import Bench


def steps(bench: Bench, folder: Path) -> list[UpdateResult]:
    """Two updates on the same rows."""
    path = folder / "rollouts.parquet"
    advantages = folder / "advantages.parquet"
    if not path.exists():
        support.write_advantages(support.sample(bench.host, bench.prompts, path), advantages)
    return [bench.host.update(support.update_request(bench.prompts, path, advantages)) for _ in range(2)]


def go_on(bench: Bench, folder: Path, name: str, *, ranks: int, stage: ZeroStage) -> tuple[Fingerprint, UpdateResult]:
    """What ranks on a stage hold after opening the checkpoint, and after one more update; saved and exported."""
    host = support.new_host(folder / name, ranks=ranks, zero_stage=stage)
    try:
        opened = host.open(Open(model=str(bench.model), checkpoint=str(folder / "checkpoint")))
        host.save(str(folder / f"from-{name}"))
        host.export(str(folder / f"export-{name}"))
        request = support.update_request(bench.prompts, folder / "rollouts.parquet", folder / "advantages.parquet")
        return opened, host.update(request)
    finally:
        host.close()


@pytest.mark.slow
@pytest.mark.parametrize("stage", [0, pytest.param(1, marks=pytest.mark.long), 2, 3])
def test_bug_101_one_rank_s_checkpoint_goes_on_at_two_and_back(bench: Bench, tmp_path: Path, stage: ZeroStage) -> None:
    """Equal parameters and moments to the bit; the next step differs by the order of sums alone."""
    bench.open()
    before = steps(bench, tmp_path)[-1].fingerprint
    bench.host.save(str(tmp_path / "checkpoint"))
    straight, _ = steps(bench, tmp_path)
    opened, together = go_on(bench, tmp_path, "two", ranks=2, stage=stage)
    assert opened == before
    assert opened.optimizer_steps == 2
    assert together.stats["grad_norm"] == pytest.approx(straight.stats["grad_norm"], rel=1e-6)
    assert together.stats["loss"] == pytest.approx(straight.stats["loss"], abs=1e-6)
    # Its export is the same weights, and by them the same log-probs (BUG-107).
    assert bench.host.open(Open(model=str(tmp_path / "export-two"))).policy_sha256 == before.policy_sha256
    exported = support.write_logprobs(bench.host, bench.prompts, tmp_path / "rollouts.parquet", tmp_path / "e.parquet")
    assert bench.host.open(Open(model=str(bench.model), checkpoint=str(tmp_path / "from-two"))) == before
    held = support.write_logprobs(bench.host, bench.prompts, tmp_path / "rollouts.parquet", tmp_path / "h.parquet")
    assert exported.equals(held)
    assert steps(bench, tmp_path)[0] == straight
