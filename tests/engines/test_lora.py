"""Adapters on a frozen base: trained, switched off for the reference, saved alone, merged or alone in an export."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch

from papo.algorithm import PAPO
from papo.engines import adapter, models
from papo.engines.requests import Open, UpdateResult
from papo.engines.settings import LoraSettings, ZeroStage
from papo.errors import EngineError
from tests.engines import support
from tests.engines.conftest import Bench

LORA = LoraSettings(rank=4, alpha=8.0)


@pytest.fixture(scope="module")
def adapted(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """The bench's model with an adapter, in an engine of its own."""
    bench.host.start()
    host = support.new_host(tmp_path_factory.mktemp("adapted"), lora=LORA)
    yield replace(bench, host=host)
    host.close()


def step(bench: Bench, folder: Path, number: int = 0, **changes: Any) -> UpdateResult:
    path = folder / f"rollouts-{number}.parquet"
    frame = support.sample(bench.host, bench.prompts, path, rows=support.addresses(seed=number))
    advantages = support.write_advantages(frame, folder / f"advantages-{number}.parquet")
    return bench.host.update(support.update_request(bench.prompts, path, advantages, **changes))


def logprobs(bench: Bench, folder: Path, name: str, state: str = "policy") -> pl.Series:
    column = "ref_logprobs" if state == "reference" else "old_logprobs"
    path = folder / f"{name}.parquet"
    frame = support.write_logprobs(
        bench.host, bench.prompts, folder / "rollouts-0.parquet", path, state=state, column=column
    )
    return frame[column].explode()


def apart(left: pl.Series, right: pl.Series) -> float:
    """Largest difference."""
    return max(abs(one - other) for one, other in zip(left, right, strict=True))


def test_only_the_adapter_learns_and_the_start_is_the_base(adapted: Bench, bench: Bench, tmp_path: Path) -> None:
    bench.open()
    adapted.open()
    ours, base = (
        support.sample(each.host, bench.prompts, tmp_path / f"{index}.parquet")
        for index, each in enumerate((adapted, bench))
    )
    assert ours["token_ids"].equals(base["token_ids"])
    assert apart(ours["sampler_logprobs"].explode(), base["sampler_logprobs"].explode()) < 1e-5
    result = step(adapted, tmp_path)
    assert result.stats["grad_norm"] > 0
    adapted.host.save(str(tmp_path / "checkpoint"))
    names = models.stored_in(tmp_path / "checkpoint", "learner-*.safetensors").keys()
    assert names
    assert all(".lora_A." in name or ".lora_B." in name for name in names)


def test_an_adapter_resumes_to_the_bit_and_on_its_own_base_only(adapted: Bench, tmp_path: Path) -> None:
    adapted.open()
    first = step(adapted, tmp_path)
    adapted.host.save(str(tmp_path / "checkpoint"))
    straight = [step(adapted, tmp_path, number) for number in (1, 2)]
    adapted.host.close()
    adapted.host.start()
    opened = adapted.host.open(Open(model=str(adapted.model), checkpoint=str(tmp_path / "checkpoint")))
    assert opened == first.fingerprint
    assert [step(adapted, tmp_path, number) for number in (1, 2)] == straight

    other = models.load(adapted.model, dtype=torch.float32, trust_remote_code=False)
    with torch.no_grad():
        other.module.model.norm.weight[0] += 1.0
    models.write(other.module, other, tmp_path / "other")
    with pytest.raises(EngineError, match="adapter on weights that hash to"):
        adapted.host.open(Open(model=str(tmp_path / "other"), checkpoint=str(tmp_path / "checkpoint")))


def test_the_reference_is_the_policy_without_its_adapter(adapted: Bench, bench: Bench, tmp_path: Path) -> None:
    adapted.open()
    step(adapted, tmp_path)
    reference = adapted.host.open(Open(state="reference", model=str(adapted.model)))
    off = logprobs(adapted, tmp_path, "off", "reference")
    on = logprobs(adapted, tmp_path, "on")
    bench.open()
    assert bench.host.held is not None
    assert reference.policy_sha256 == bench.host.held.policy_sha256
    assert apart(off, logprobs(bench, tmp_path, "base")) < 1e-5
    assert apart(off, on) > 1e-3
    kl = replace(PAPO, use_kl_loss=True, kl_loss_coef=0.5)
    rollouts, advantages = tmp_path / "rollouts-0.parquet", tmp_path / "advantages-0.parquet"
    request = support.update_request(bench.prompts, rollouts, advantages, algorithm=kl)
    moved = adapted.host.update(replace(request, logprobs=(str(tmp_path / "off.parquet"),)))
    assert moved.stats["kl_loss"] > 0
    assert logprobs(adapted, tmp_path, "off-again", "reference").equals(off)


def test_another_reference_is_a_model_of_its_own(adapted: Bench, tmp_path: Path) -> None:
    adapted.open()
    step(adapted, tmp_path)
    adapted.host.export(str(tmp_path / "trained"))
    adapted.host.open(Open(state="reference", model=str(tmp_path / "trained")))
    trained = logprobs(adapted, tmp_path, "trained-scores", "reference")
    ours = logprobs(adapted, tmp_path, "ours")
    assert apart(trained, ours) < 1e-5


def test_a_merged_export_and_the_adapter_alone_say_the_same(adapted: Bench, tmp_path: Path) -> None:
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    adapted.open()
    for number in range(3):
        step(adapted, tmp_path, number)
    adapted.host.export(str(tmp_path / "merged"))
    adapted.host.export_adapter(str(tmp_path / "adapter"))
    ids = torch.tensor([[3, 5, 7, 9, 11]])
    base: Any = AutoModelForCausalLM.from_pretrained(adapted.model)
    start = base(ids).logits
    merged: Any = AutoModelForCausalLM.from_pretrained(tmp_path / "merged")
    alone: Any = PeftModel.from_pretrained(base, tmp_path / "adapter")
    torch.testing.assert_close(merged(ids).logits, alone(ids).logits, atol=1e-5, rtol=0)
    assert (merged(ids).logits - start).abs().max() > 1e-3
    assert not (tmp_path / "adapter" / "model.safetensors").exists()
    assert models.stored_in(tmp_path / "merged").keys() == models.stored_in(adapted.model).keys()


def test_c_31_weights_may_be_read_by_whom_the_files_beside_them_may(adapted: Bench, tmp_path: Path) -> None:
    """Checkpoints, exports and adapters alone: their library makes safetensors for their owner only."""
    adapted.open()
    adapted.host.save(str(tmp_path / "checkpoint"))
    adapted.host.export(str(tmp_path / "merged"))
    adapted.host.export_adapter(str(tmp_path / "adapter"))
    for folder in tmp_path.iterdir():
        modes = {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir() if path.is_file()}
        assert any(name.endswith(".safetensors") for name in modes)
        assert len(set(modes.values())) == 1, modes


def test_a_policy_without_an_adapter_has_none_to_export(bench: Bench, tmp_path: Path) -> None:
    bench.open()
    with pytest.raises(EngineError, match="trained whole"):
        bench.host.export_adapter(str(tmp_path))


@pytest.mark.parametrize(
    ("targets", "said"), [(("no_such_proj",), "fit no layer"), (("embed_tokens",), "which is no linear layer")]
)
def test_targets_that_cannot_be_adapted_are_refused(bench: Bench, targets: tuple[str, ...], said: str) -> None:
    loaded = models.load(bench.model, dtype=torch.float32, trust_remote_code=False)
    with pytest.raises(EngineError, match=said):
        adapter.add(loaded.module, LoraSettings(target_modules=targets))


@pytest.mark.slow
@pytest.mark.parametrize("stage", [2, 3])
def test_two_ranks_train_the_adapter_as_one(adapted: Bench, tmp_path: Path, stage: ZeroStage) -> None:
    adapted.open()
    start = adapted.host.held
    alone = step(adapted, tmp_path)
    adapted.host.export(str(tmp_path / "alone"))
    request = support.update_request(
        adapted.prompts, tmp_path / "rollouts-0.parquet", tmp_path / "advantages-0.parquet"
    )
    host = support.new_host(tmp_path / "two", ranks=2, zero_stage=stage, lora=LORA)
    try:
        two = replace(adapted, host=host)
        assert host.open(Open(model=str(adapted.model))) == start
        support.sample(host, adapted.prompts, tmp_path / "sampled.parquet")
        together = host.update(request)
        host.save(str(tmp_path / "checkpoint"))
        host.export(str(tmp_path / "export"))
        reference = host.open(Open(state="reference", model=str(adapted.model)))
        logprobs(two, tmp_path, "off", "reference")
        after = host.update(request)
        host.open(Open(model=str(adapted.model), checkpoint=str(tmp_path / "checkpoint")))
        assert host.update(request) == after
    finally:
        host.close()
    assert together.stats["grad_norm"] == pytest.approx(alone.stats["grad_norm"], rel=1e-5)
    assert reference.policy_sha256 == adapted.host.open(Open(state="reference", model=str(adapted.model))).policy_sha256
    ours, theirs = models.stored_in(tmp_path / "alone"), models.stored_in(tmp_path / "export")
    for name in ours:
        torch.testing.assert_close(ours[name].get_tensor(name), theirs[name].get_tensor(name), atol=2e-5, rtol=0)
