"""What only a GPU can show of the learner; skipped where there is none. `papo/engines` is otherwise tested on a CPU."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from papo.engines.group import has_gpu
from papo.engines.host import EngineHost
from papo.engines.requests import Open, UpdateResult
from papo.engines.settings import EngineSettings
from tests.engines import support
from tests.engines.conftest import Bench

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not has_gpu(), reason="needs an NVIDIA GPU")]


def cuda_host(folder: Path, **settings: Any) -> EngineHost:
    host = EngineHost(EngineSettings(device="cuda", **settings), log=folder / "ranks.log")
    host.start()
    return host


def updated(bench: Bench, host: EngineHost, folder: Path) -> UpdateResult:
    path = folder / "rollouts.parquet"
    frame = support.sample(host, bench.prompts, path)
    advantages = support.write_advantages(frame, folder / "advantages.parquet")
    return host.update(support.update_request(bench.prompts, path, advantages))


@pytest.mark.parametrize("settings", [
    {"dtype": "float32"},
    {"dtype": "bfloat16"},
    {"dtype": "bfloat16", "zero_stage": 2, "offload_optimizer": True},
    {"dtype": "bfloat16", "zero_stage": 3, "offload_optimizer": True, "activation_checkpointing": True},
], ids=["float32", "bfloat16", "offloaded-2", "offloaded-3"])  # fmt: skip
def test_a_checkpoint_holds_what_was_saved(bench: Bench, tmp_path: Path, settings: dict[str, Any]) -> None:
    bench.host.start()
    host = cuda_host(tmp_path, **settings)
    try:
        host.open(Open(model=str(bench.model)))
        after = updated(bench, host, tmp_path)
        host.save(str(tmp_path / "checkpoint"))
        host.export(str(tmp_path / "export"))
        opened = host.open(Open(model=str(bench.model), checkpoint=str(tmp_path / "checkpoint")))
        exported = host.open(Open(model=str(tmp_path / "export")))
    finally:
        host.close()
    assert opened == after.fingerprint
    assert exported.policy_sha256 == opened.policy_sha256
    assert after.stats["optimizer_steps"] == 1


def test_a_cpu_s_checkpoint_is_opened_on_a_gpu(bench: Bench, tmp_path: Path) -> None:
    bench.open()
    before = updated(bench, bench.host, tmp_path).fingerprint
    bench.host.save(str(tmp_path / "checkpoint"))
    host = cuda_host(tmp_path)
    try:
        opened = host.open(Open(model=str(bench.model), checkpoint=str(tmp_path / "checkpoint")))
    finally:
        host.close()
    # The rotary tables, which the policy's hash covers, are computed where the model is.
    assert replace(opened, policy_sha256=before.policy_sha256) == before
