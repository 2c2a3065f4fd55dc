"""Optimizer steps on stored rows, against a plain torch loop and against themselves."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch

from papo.algorithm import PAPO, Algorithm
from papo.engines.requests import Open, UpdateResult
from papo.engines.settings import OptimizerSettings
from papo.engines.update import mini_batches
from papo.errors import DataError, EngineError
from tests.engines import support
from tests.engines.conftest import Bench


@dataclass(frozen=True)
class Batch:
    """A sampled batch on the bench's fresh policy."""

    bench: Bench
    folder: Path
    frame: pl.DataFrame

    @property
    def rollouts(self) -> Path:
        return self.folder / "rollouts.parquet"

    def rewrite(self, **columns: Any) -> "Batch":
        frame = self.frame.with_columns(**columns)
        frame.write_parquet(self.rollouts)
        return replace(self, frame=frame)

    def update(
        self, credit: Sequence[float | None] | None = None, *, files: tuple[Path, ...] = (), **changes: Any
    ) -> UpdateResult:
        advantages = support.write_advantages(self.frame, self.folder / "advantages.parquet", credit)
        request = support.update_request(self.bench.prompts, self.rollouts, advantages, **changes)
        return self.bench.host.update(replace(request, rollouts=tuple(map(str, files))) if files else request)

    def old_logprobs(self) -> Path:
        path = self.folder / "old.parquet"
        support.write_logprobs(self.bench.host, self.bench.prompts, self.rollouts, path)
        return path


@pytest.fixture
def batch(bench: Bench, tmp_path: Path) -> Batch:
    bench.open()
    return Batch(bench, tmp_path, support.sample(bench.host, bench.prompts, tmp_path / "rollouts.parquet"))


CREDIT: list[float | None] = [1.0, -0.5, 0.25, 0.0] * 4


def algorithm(**changes: Any) -> Algorithm:
    return replace(PAPO, **changes)


def weights(folder: Path) -> dict[str, torch.Tensor]:
    from safetensors.torch import load_file

    return load_file(folder / "model.safetensors")


def test_one_step_equals_a_plain_torch_loop(batch: Batch) -> None:
    from transformers import AutoModelForCausalLM

    optimizer = OptimizerSettings(learning_rate=1e-3, weight_decay=0.1, max_grad_norm=0.05)
    result = batch.update(CREDIT, optimizer=optimizer)
    batch.bench.host.export(str(batch.folder / "export"))

    model = AutoModelForCausalLM.from_pretrained(batch.bench.model, dtype=torch.float32).eval()
    prompts = dict(pl.read_parquet(batch.bench.prompts).select("group_id", "prompt_ids").iter_rows())
    total = sum(batch.frame["token_ids"].list.len())
    loss = torch.zeros(())
    for (group, ids), credit in zip(batch.frame.select("group_id", "token_ids").iter_rows(), CREDIT, strict=True):
        whole = torch.tensor([[*prompts[group], *ids]])
        logits = model(whole).logits[0, len(prompts[group]) - 1 : -1]
        loss = loss - credit * logits.log_softmax(-1).gather(1, torch.tensor(ids)[:, None]).sum() / total
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.05)
    groups = [
        {"params": [p for p in model.parameters() if p.dim() >= 2], "weight_decay": 0.1},
        {"params": [p for p in model.parameters() if p.dim() < 2], "weight_decay": 0.0},
    ]
    torch.optim.AdamW(groups, lr=1e-3).step()

    assert result.stats["grad_norm"] == pytest.approx(float(norm), rel=1e-4)
    assert norm > 0.05
    ours, expected = weights(batch.folder / "export"), dict(model.named_parameters())
    for name, tensor in ours.items():
        torch.testing.assert_close(tensor, expected[name].detach(), atol=2e-5, rtol=0)


def test_bug_019_a_loss_of_zero_with_a_gradient_is_a_normal_step(batch: Batch) -> None:
    batch = batch.rewrite(
        # Equal lengths, so that centred advantages give a loss of exactly 0.
        token_ids=pl.lit([6, 7, 8, 1], dtype=pl.List(pl.Int32)),
        completion_mask=pl.lit([True] * 4),
        sampler_logprobs=pl.lit([-3.0] * 4, dtype=pl.List(pl.Float32)),
    ).rewrite(
        token_ids=pl.concat_list(pl.col("sample_index") + 6, pl.lit(7), pl.lit(8), pl.lit(1)).cast(pl.List(pl.Int32))
    )
    before = batch.bench.host.held
    result = batch.update([1.0, -1.0] * 8)
    assert abs(result.stats["loss"]) < 1e-6
    assert result.stats["grad_norm"] > 0
    assert result.stats["optimizer_steps"] == 1
    assert before is not None
    assert result.fingerprint.policy_sha256 != before.policy_sha256


def test_bug_019_equal_rewards_are_reported_as_no_signal_and_change_nothing(batch: Batch) -> None:
    before = batch.bench.host.held
    result = batch.update([0.0] * 16)
    assert result.stats["no_signal"] is True
    assert (result.stats["optimizer_steps"], result.stats["skipped_steps"]) == (0, 0)
    assert result.stats["tokens"] == sum(batch.frame["token_ids"].list.len())
    assert result.fingerprint == before == batch.bench.host.held


# The last of them has a finite loss, and a gradient whose norm is not.
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 1e37])
def test_bug_104_and_106_a_non_finite_step_changes_nothing_and_the_next_one_works(batch: Batch, bad: float) -> None:
    optimizer = OptimizerSettings(learning_rate=1e-3, warmup_steps=4)
    before = batch.bench.host.held
    skipped = batch.update([bad, -bad] * 8, optimizer=optimizer)
    assert (skipped.stats["optimizer_steps"], skipped.stats["skipped_steps"]) == (0, 1)
    assert skipped.fingerprint == before
    good = batch.update(CREDIT, optimizer=optimizer)
    assert good.stats["optimizer_steps"] == good.fingerprint.optimizer_steps == 1
    assert good.stats["learning_rate"] == pytest.approx(1e-3 / 5)
    batch.bench.open()
    assert batch.update(CREDIT, optimizer=optimizer).fingerprint == good.fingerprint


def test_bug_001_hidden_rows_leave_loss_and_divisor(batch: Batch) -> None:
    cut = (batch.frame["finish_reason"] == "length").to_list()
    assert 0 < sum(cut) < 16
    masked = batch.update(CREDIT, algorithm=algorithm(mask_truncated_completions=True))
    batch.bench.open()
    unscorable = batch.update([None if hidden else credit for hidden, credit in zip(cut, CREDIT, strict=True)])
    batch.bench.open()
    kept = batch.frame.filter(pl.col("finish_reason") == "stop")
    kept.write_parquet(batch.rollouts)
    credit = [credit for hidden, credit in zip(cut, CREDIT, strict=True) if not hidden]
    alone = replace(batch, frame=kept).update(credit)
    assert masked.fingerprint == unscorable.fingerprint == alone.fingerprint
    assert masked.stats == alone.stats
    assert masked.stats["rows"] == 16 - sum(cut)


def test_bug_001_a_batch_without_any_row_is_reported_as_empty(batch: Batch) -> None:
    result = batch.update([None] * 16)
    assert (result.stats["rows"], result.stats["tokens"], result.stats["optimizer_steps"]) == (0, 0, 0)
    assert result.stats["no_signal"] is True
    assert result.stats["loss"] == 0.0


def test_masked_tokens_leave_loss_and_divisor(batch: Batch) -> None:
    masked = batch.rewrite(completion_mask=pl.col("completion_mask").list.eval(pl.int_range(pl.len()) < 2)).update(
        CREDIT
    )
    assert masked.stats["tokens"] == int(batch.frame["token_ids"].list.len().clip(upper_bound=2).sum())


def test_the_order_of_rows_and_files_changes_no_bit(batch: Batch) -> None:
    credit = [credit * (1 + index / 100) for index, credit in enumerate(CREDIT) if credit is not None]
    straight = batch.update(credit)
    batch.bench.open()
    parts = [batch.folder / "a.parquet", batch.folder / "b.parquet"]
    batch.frame[9:].reverse().write_parquet(parts[0])
    batch.frame[:9].write_parquet(parts[1])
    shuffled = batch.update(credit, files=tuple(parts))
    assert shuffled == straight
    batch.bench.open()
    # All rows are in one step, so the order that the seed gives them is none of its business.
    assert batch.update(credit, seed=99) == straight


def test_token_advantages_take_the_place_of_the_row_s(batch: Batch) -> None:
    whole = batch.update(CREDIT)
    batch.bench.open()
    by_token = [[credit] * length for credit, length in zip(CREDIT, batch.frame["token_ids"].list.len(), strict=True)]
    path = batch.folder / "by_token.parquet"
    frame = pl.read_parquet(support.write_advantages(batch.frame, path, [9.0] * 16))
    frame.with_columns(token_advantages=pl.Series(by_token, dtype=pl.List(pl.Float64))).write_parquet(path)
    request = support.update_request(batch.bench.prompts, batch.rollouts, path)
    assert batch.bench.host.update(request).fingerprint == whole.fingerprint


def test_bug_033_a_list_that_is_not_one_entry_a_token_is_refused(batch: Batch) -> None:
    short = batch.rewrite(sampler_logprobs=pl.col("sampler_logprobs").list.head(2))
    with pytest.raises(DataError, match=r"sampler_logprobs of rollout .* has not one entry a token"):
        short.update(CREDIT)


def test_a_rollout_that_is_there_twice_is_refused(batch: Batch) -> None:
    with pytest.raises(DataError, match="there twice"):
        batch.update(CREDIT, files=(batch.rollouts, batch.rollouts))


def test_every_row_is_used_exactly_ppo_epochs_times() -> None:
    request = support.update_request(
        Path("p"), Path("r"), Path("a"), algorithm=algorithm(ppo_epochs=3, ppo_mini_batch_size=4)
    )
    steps = list(mini_batches(request, 10))
    assert [len(step) for step in steps] == [4, 4, 2] * 3
    for epoch in range(3):
        assert sorted(row for step in steps[3 * epoch : 3 * epoch + 3] for row in step) == list(range(10))
    assert steps[:3] != steps[3:6]
    assert steps == list(mini_batches(request, 10))
    assert steps != list(mini_batches(replace(request, seed=6), 10))


def test_several_steps_need_old_logprobs_of_the_policy(batch: Batch) -> None:
    several = algorithm(ppo_epochs=2, ppo_mini_batch_size=8)
    old = batch.old_logprobs()
    result = batch.update(CREDIT, algorithm=several, logprobs=(old,))
    assert result.stats["optimizer_steps"] == result.fingerprint.optimizer_steps == 4
    assert result.stats["first_ratio_deviation"] == 0.0
    assert result.stats["ratio_max"] > 1.0
    with pytest.raises(EngineError, match="no frame brings old_logprobs"):
        batch.update(CREDIT, algorithm=several)
    assert batch.bench.host.held is None


def test_stored_old_logprobs_of_unchanged_weights_give_a_ratio_of_one(batch: Batch) -> None:
    free = batch.update(CREDIT)
    batch.bench.open()
    stored = batch.update(CREDIT, logprobs=(batch.old_logprobs(),))
    assert stored.stats["first_ratio_deviation"] == 0.0
    assert stored.fingerprint == free.fingerprint


def test_bug_024_old_logprobs_of_other_weights_are_noticed_before_any_step(batch: Batch) -> None:
    old = batch.old_logprobs()
    moved = pl.read_parquet(old).with_columns(pl.col("old_logprobs").list.eval(pl.element().shift(1, fill_value=-1.0)))
    moved.write_parquet(old)
    with pytest.raises(EngineError, match=r"importance ratio is off 1 by .* nothing was trained"):
        batch.update(CREDIT, logprobs=(old,))
    batch.bench.open()
    hot = batch.folder / "hot.parquet"
    support.write_logprobs(batch.bench.host, batch.bench.prompts, batch.rollouts, hot, temperature=1.1)
    with pytest.raises(EngineError, match="importance ratio"):
        batch.update(CREDIT, logprobs=(hot,))


def test_off_policy_rows_take_their_ratio_from_the_sampler(batch: Batch) -> None:
    drifted = batch.rewrite(sampler_logprobs=pl.col("sampler_logprobs").list.eval(pl.element() - math.log(1.1)))
    result = drifted.update(CREDIT, off_policy=True)
    assert result.stats["first_ratio_deviation"] == pytest.approx(0.1, abs=1e-4)
    assert result.stats["optimizer_steps"] == 1


def test_a_kl_loss_reads_the_reference(batch: Batch) -> None:
    host, kl = batch.bench.host, algorithm(use_kl_loss=True, kl_loss_coef=0.5)
    with pytest.raises(EngineError, match="run the reference stage"):
        batch.update(CREDIT, algorithm=kl)
    batch.bench.open()
    reference = batch.folder / "ref.parquet"
    fingerprint = host.open(Open(state="reference", model=str(batch.bench.model)))
    assert host.held is not None
    assert fingerprint.policy_sha256 == host.held.policy_sha256
    support.write_logprobs(
        host, batch.bench.prompts, batch.rollouts, reference, state="reference", column="ref_logprobs"
    )
    first = batch.update(CREDIT, algorithm=kl, logprobs=(reference,))
    assert first.stats["kl_loss"] == 0.0
    again = support.write_logprobs(
        host, batch.bench.prompts, batch.rollouts, batch.folder / "r2.parquet", state="reference", column="ref_logprobs"
    )
    assert again.equals(pl.read_parquet(reference))
    second = batch.update(CREDIT, algorithm=kl, logprobs=(reference,))
    assert second.stats["kl_loss"] > 0.0


def test_a_reference_that_no_one_opened_is_missed(batch: Batch) -> None:
    """On an engine of its own: what other tests opened on the shared one stays open."""
    bench = replace(batch.bench, host=support.new_host(batch.folder))
    try:
        bench.open()
        with pytest.raises(EngineError, match="no reference is open"):
            support.write_logprobs(
                bench.host,
                bench.prompts,
                batch.rollouts,
                batch.folder / "r.parquet",
                state="reference",
                column="ref_logprobs",
            )
    finally:
        bench.host.close()


def test_the_gap_between_sampler_and_trainer_is_measured(batch: Batch) -> None:
    assert batch.update(CREDIT).stats["sampler_gap_max"] < 1e-5
    batch.bench.open()
    drifted = batch.rewrite(sampler_logprobs=pl.col("sampler_logprobs").list.eval(pl.element() - 0.5))
    assert drifted.update(CREDIT).stats["sampler_gap_mean"] > 0.01


def test_an_entropy_bonus_is_part_of_the_loss(batch: Batch) -> None:
    plain = batch.update(CREDIT)
    batch.bench.open()
    bonus = batch.update(CREDIT, algorithm=algorithm(entropy_coeff=0.1))
    assert "entropy" not in plain.stats
    assert 1.0 < bonus.stats["entropy"] < math.log(20)
    assert bonus.stats["loss"] == pytest.approx(plain.stats["loss"] - 0.1 * bonus.stats["entropy"], abs=1e-5)


def test_micro_batches_do_not_change_the_gradient(batch: Batch, tmp_path: Path) -> None:
    norm = batch.update(CREDIT).stats["grad_norm"]
    host = support.new_host(tmp_path / "small", micro_batch_size=3)
    try:
        host.open(Open(model=str(batch.bench.model)))
        small = replace(batch, bench=replace(batch.bench, host=host)).update(CREDIT)
    finally:
        host.close()
    assert small.stats["grad_norm"] == pytest.approx(norm, rel=1e-5)
