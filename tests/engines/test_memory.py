"""The same gradient in less memory."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from papo.engines import memory, models
from papo.engines.host import EngineHost
from papo.engines.messages import Failure
from papo.engines.requests import Open
from papo.engines.settings import EngineSettings, LoraSettings, ZeroStage
from papo.errors import EngineDied, EngineError, OutOfMemory
from tests.engines import gradients, support
from tests.engines.conftest import Bench
from tests.engines.gradients import Asked, Gradient, distance

ONE = EngineSettings(device="cpu", micro_batch_size=4)


def take(bench: Bench, folder: Path, name: str, *settings: EngineSettings, **more: Any) -> list[Gradient]:
    path, advantages = folder / "rollouts.parquet", folder / "advantages.parquet"
    if not path.exists():
        bench.open()
        credit = [(7 * row % 5 - 2) / 3 for row in range(16)]
        support.write_advantages(support.sample(bench.host, bench.prompts, path), advantages, credit)
    request = support.update_request(bench.prompts, path, advantages)
    asked = Asked(model=str(bench.model), updates=(request,), settings=settings, output=str(folder / name), **more)
    return gradients.take(asked, folder / name)[0]


@pytest.mark.slow
def test_recomputed_activations_give_the_same_gradient(bench: Bench, tmp_path: Path) -> None:
    with_lora = replace(ONE, lora=LoraSettings(rank=4))
    each = (ONE, replace(ONE, zero_stage=2), replace(ONE, zero_stage=3), with_lora)
    kept = take(bench, tmp_path, "kept", *each)
    again = take(bench, tmp_path, "again", *(replace(one, activation_checkpointing=True) for one in each))
    assert [distance(other, one) for one, other in zip(kept, again, strict=True)] == [0.0] * len(each)


def test_recomputed_blocks_keep_less_for_the_backward_pass(bench: Bench) -> None:
    kept: list[int] = []
    for recomputed in (False, True):
        loaded = models.load(bench.model, dtype=torch.float32, trust_remote_code=False)
        if recomputed:
            memory.recompute_activations(loaded.module)
        tensors: list[int] = []

        def pack(tensor: torch.Tensor, tensors: list[int] = tensors) -> torch.Tensor:
            tensors.append(tensor.numel())
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            loaded.module(input_ids=torch.full((4, 32), 5), use_cache=False).logits.sum()
        kept.append(sum(tensors))
    assert kept[1] < kept[0] / 2


def test_a_model_without_blocks_is_refused() -> None:
    with pytest.raises(EngineError, match="activation_checkpointing to false"):
        memory.recompute_activations(torch.nn.Linear(2, 2))


@pytest.mark.slow
def test_a_step_that_runs_out_of_memory_is_taken_in_smaller_micro_batches(bench: Bench, tmp_path: Path) -> None:
    (straight,) = take(bench, tmp_path, "straight", replace(ONE, micro_batch_size=2))
    (shrunk,) = take(bench, tmp_path, "shrunk", ONE, out_of_memory_at=1)
    assert distance(shrunk, straight) == 0.0
    stats = [json.loads((tmp_path / name / "0-0.json").read_text()) for name in ("straight", "shrunk")]
    assert [each.pop("micro_batch_size") for each in stats] == [None, 2]
    assert stats[0] == stats[1]


def test_rows_are_halved_until_they_fit_and_no_further() -> None:
    class Counting:
        micro_batch_size = 8
        can_shrink = True

        def shrink(self) -> None:
            self.micro_batch_size //= 2
            self.can_shrink = self.micro_batch_size > 1

    def fits(limit: int, error: Exception) -> int:
        def add_up(size: int) -> int:
            if size > limit:
                raise error
            return size

        return memory.within_memory(Counting(), add_up)

    # What an allocator says, and what a library of CUDA's says that allocates by itself.
    library = RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`")
    for error in (torch.OutOfMemoryError(), library):
        assert [fits(limit, error) for limit in (8, 5, 1)] == [8, 4, 1]
        with pytest.raises(type(error)):
            fits(0, error)
    with pytest.raises(RuntimeError, match="device-side assert"):
        fits(4, RuntimeError("CUDA error: device-side assert triggered"))


def test_several_ranks_start_again_with_half_the_rows(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    host = EngineHost(EngineSettings(micro_batch_size=3), log=Path("unused"))

    class Group:
        def send(self, message: Any) -> None: ...

    spent = Failure(error="OutOfMemory", message="update failed with OutOfMemoryError: CUDA out of memory")
    monkeypatch.setattr(host, "_collect", lambda *_: spent)
    request = support.update_request(Path("p"), Path("r"), Path("a"))
    monkeypatch.setattr(host, "_group", Group())
    with pytest.raises(OutOfMemory, match="have 1 rows instead of 3") as caught:
        host.update(request)
    assert isinstance(caught.value, EngineDied)
    assert host.settings.micro_batch_size == 1
    assert host.pids == ()
    monkeypatch.setattr(host, "_group", Group())
    with pytest.raises(EngineError, match="A single row does not fit"):
        host.update(request)


@pytest.mark.slow
@pytest.mark.parametrize("stage", [pytest.param(1, marks=pytest.mark.long), 2, 3])
def test_an_optimizer_in_the_machine_s_memory_takes_the_same_steps(
    bench: Bench, tmp_path: Path, stage: ZeroStage
) -> None:
    """DeepSpeed's CPU offload, as far as a CPU can show it: gradient, skipped step, checkpoint, resume."""
    bench.open()
    path = tmp_path / "rollouts.parquet"
    frame = support.sample(bench.host, bench.prompts, path)
    advantages = support.write_advantages(frame, tmp_path / "advantages.parquet")
    request = support.update_request(bench.prompts, path, advantages)
    plain = bench.host.update(request)
    bench.host.export(str(tmp_path / "plain"))
    host = support.new_host(tmp_path / "offloaded", zero_stage=stage, offload_optimizer=True, micro_batch_size=8)
    try:
        host.open(Open(model=str(bench.model)))
        offloaded = host.update(request)
        host.export(str(tmp_path / "export"))
        host.save(str(tmp_path / "checkpoint"))
        nan = support.write_advantages(frame, tmp_path / "nan.parquet", [float("nan")] * frame.height)
        skipped = host.update(replace(request, advantages=str(nan)))
        after = host.update(request)
        host.open(Open(model=str(bench.model), checkpoint=str(tmp_path / "checkpoint")))
        again = host.update(request)
    finally:
        host.close()
    assert offloaded.stats["grad_norm"] == pytest.approx(plain.stats["grad_norm"], rel=1e-5)
    assert skipped.fingerprint == offloaded.fingerprint
    assert again == after
    ours, theirs = models.stored_in(tmp_path / "plain"), models.stored_in(tmp_path / "export")
    for name in ours:
        torch.testing.assert_close(ours[name].get_tensor(name), theirs[name].get_tensor(name), atol=2e-5, rtol=0)
