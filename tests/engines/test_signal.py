"""What is no optimizer step: a mini-batch without a training token, or without anything to learn from (C-20).

Each test moves the weights first, so that old momentum would move them again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from papo.algorithm import PAPO, Algorithm
from papo.engines.requests import Fingerprint, Open, UpdateResult
from papo.engines.settings import OptimizerSettings
from papo.engines.update import mini_batches
from papo.losses import RolloutCorrection
from tests.engines import support
from tests.engines.conftest import Bench
from tests.engines.test_beside import both, ppo_update, prm_request

__all__ = ["both"]

OPTIMIZER = OptimizerSettings(learning_rate=1e-3, weight_decay=0.1, warmup_steps=8)
ROWS = support.GROUPS * support.SAMPLES
CREDIT = [1.0, -0.5, 0.25, -1.0] * 4
Credit = Sequence[float | None]


@dataclass(frozen=True)
class Moved:
    """A sampled batch on a policy that has taken a step."""

    bench: Bench
    folder: Path
    frame: pl.DataFrame

    @property
    def held(self) -> Fingerprint:
        assert self.bench.host.held is not None
        return self.bench.host.held

    def restart(self) -> Fingerprint:
        self.bench.open()
        self.update(CREDIT)
        return self.held

    def update(self, credit: Credit, *, masked: Sequence[int] = (), **changes: Any) -> UpdateResult:
        frame = self.frame.with_columns(
            completion_mask=pl.when(pl.int_range(ROWS).is_in(list(masked)))
            .then(pl.col("completion_mask").list.eval(pl.lit(False).repeat_by(pl.len()).explode()))
            .otherwise(pl.col("completion_mask"))
        )
        frame.write_parquet(self.folder / "rollouts.parquet")
        advantages = support.write_advantages(frame, self.folder / "advantages.parquet", credit)
        settings: dict[str, Any] = {"optimizer": OPTIMIZER} | changes
        request = support.update_request(self.bench.prompts, self.folder / "rollouts.parquet", advantages, **settings)
        return self.bench.host.update(request)

    def logprobs(self) -> tuple[Path, Path]:
        """Old ones, and those of a reference that is the first policy."""
        host, rollouts = self.bench.host, self.folder / "rollouts.parquet"
        old, ref = self.folder / "old.parquet", self.folder / "ref.parquet"
        support.write_logprobs(host, self.bench.prompts, rollouts, old)
        host.open(Open(state="reference", model=str(self.bench.model)))
        support.write_logprobs(
            host, self.bench.prompts, rollouts, ref, state="reference", column="ref_logprobs", full_kl=True
        )
        return old, ref


@pytest.fixture
def moved(bench: Bench, tmp_path: Path) -> Moved:
    bench.open()
    frame = support.sample(bench.host, bench.prompts, tmp_path / "rollouts.parquet")
    moved = Moved(bench, tmp_path, frame)
    moved.restart()
    return moved


def algorithm(**changes: Any) -> Algorithm:
    return replace(PAPO, **changes)


def halves(chosen: Algorithm) -> list[list[int]]:
    return list(mini_batches(support.update_request(Path("p"), Path("r"), Path("a"), algorithm=chosen), ROWS))


TERMS = {"plain": {}, "kl": {"use_kl_loss": True, "kl_loss_coef": 0.5}, "entropy": {"entropy_coeff": 0.1}}


@pytest.mark.parametrize("silent", [0, 1])
@pytest.mark.parametrize(("terms", "how"), [("plain", "zero"), ("plain", "masked"), ("kl", "masked"),
                                            ("entropy", "masked")])  # fmt: skip
def test_c_20_a_mini_batch_without_signal_is_no_step(moved: Moved, terms: str, how: str, silent: int) -> None:
    """Wherever it stands: what the update gives is what the other mini-batch gives alone."""
    chosen = algorithm(ppo_mini_batch_size=ROWS // 2, **TERMS[terms])
    out = halves(chosen)[silent]
    logprobs = moved.logprobs()
    credit = [0.0 if how == "zero" and row in out else CREDIT[row] for row in range(ROWS)]
    result = moved.update(credit, algorithm=chosen, logprobs=logprobs, masked=out if how == "masked" else ())
    assert (result.stats["optimizer_steps"], result.stats["steps_without_signal"]) == (1, 1)
    assert (result.stats["skipped_steps"], result.stats["no_signal"]) == (0, False)
    moved.restart()
    only: Credit = [None if row in out else CREDIT[row] for row in range(ROWS)]
    alone = moved.update(only, algorithm=replace(chosen, ppo_mini_batch_size=None), logprobs=logprobs)
    assert result.fingerprint == alone.fingerprint
    for figure in ("loss", "grad_norm", "learning_rate"):
        assert result.stats[figure] == alone.stats[figure]


def test_c_20_the_rule_is_the_same_in_every_epoch(moved: Moved) -> None:
    chosen = algorithm(ppo_mini_batch_size=ROWS // 4, ppo_epochs=2)
    batches = halves(chosen)
    with_credit = set(batches[1])
    credit = [CREDIT[row] if row in with_credit else 0.0 for row in range(ROWS)]
    result = moved.update(credit, algorithm=chosen, logprobs=moved.logprobs()[:1])
    expected = sum(bool(with_credit & set(batch)) for batch in batches)
    assert expected < len(batches)
    assert result.stats["optimizer_steps"] == expected
    assert result.stats["steps_without_signal"] == len(batches) - expected
    assert result.fingerprint.optimizer_steps == 1 + expected


FAR = RolloutCorrection(rollout_is="token", rollout_is_mode="mask", rollout_is_threshold_low=0.9)
NOTHING_LEFT = {
    "masked": {},
    "masked, with a KL loss": TERMS["kl"],
    "masked, with an entropy bonus": TERMS["entropy"],
    "rejected by rollout_rs": {"rollout_correction": RolloutCorrection(rollout_rs="seq_mean_k1"), **TERMS["kl"]},
    "outside the kl_band": {"kl_band": (5.0, 9.0), **TERMS["entropy"]},
    "weighed at 0": {"rollout_correction": FAR},
    "weighed at 0 in the batch": {"rollout_correction": replace(FAR, rollout_is_batch_normalize=True)},
    "no KL on rows without advantage": {"kl_on_zero_advantage": False, **TERMS["kl"]},
}


@pytest.mark.parametrize("name", NOTHING_LEFT)
def test_c_20_a_batch_of_which_nothing_is_left_is_no_step(moved: Moved, name: str) -> None:
    logprobs, before = moved.logprobs(), moved.held
    credit: Credit = [0.0] * ROWS if name.startswith("no KL") else CREDIT
    frame = moved.frame
    if "weighed" in name or "rollout_rs" in name:
        frame = frame.with_columns(sampler_logprobs=pl.col("sampler_logprobs").list.eval(pl.element() + 3.0))
    masked = range(ROWS) if name.startswith("masked") else ()
    result = replace(moved, frame=frame).update(
        credit, algorithm=algorithm(**NOTHING_LEFT[name]), logprobs=logprobs, masked=masked
    )
    assert result.fingerprint == before == moved.held
    assert (result.stats["optimizer_steps"], result.stats["steps_without_signal"]) == (0, 1)
    assert (result.stats["skipped_steps"], result.stats["no_signal"]) == (0, True)
    after = moved.update(CREDIT).fingerprint
    moved.restart()
    assert moved.update(CREDIT).fingerprint == after, "and nothing of it is left for the next step"


@pytest.mark.parametrize("terms", ["kl", "entropy"])
def test_a_term_that_acts_on_rows_of_zero_advantage_is_a_step(moved: Moved, terms: str) -> None:
    logprobs, before = moved.logprobs(), moved.held
    result = moved.update([0.0] * ROWS, algorithm=algorithm(**TERMS[terms]), logprobs=logprobs)
    assert result.stats["optimizer_steps"] == 1
    assert result.fingerprint.policy_sha256 != before.policy_sha256


def test_c_20_a_non_finite_advantage_is_no_lack_of_signal(moved: Moved) -> None:
    result = moved.update([float("nan")] + [0.0] * (ROWS - 1))
    assert (result.stats["skipped_steps"], result.stats["steps_without_signal"]) == (1, 0)


def mask(folder: Path, *, rows: Sequence[int] = range(ROWS)) -> None:
    """Mask all tokens of some stored rollouts."""
    frame = pl.read_parquet(folder / "rollouts.parquet")
    masks = [[row not in rows] * len(ids) for row, ids in enumerate(frame["token_ids"])]
    frame.with_columns(completion_mask=pl.Series(masks, dtype=pl.List(pl.Boolean))).write_parquet(
        folder / "rollouts.parquet"
    )


def test_c_20_a_critic_without_a_target_takes_no_step(both: Bench, tmp_path: Path) -> None:
    ppo_update(both, tmp_path)
    before = both.host.held
    mask(tmp_path)
    result = ppo_update(both, tmp_path)
    assert result.fingerprint == before
    assert (result.stats["optimizer_steps"], result.stats["steps_without_signal"]) == (0, 1)
    assert "value_loss" not in result.stats


def test_a_critic_learns_where_the_policy_has_no_signal(both: Bench, tmp_path: Path) -> None:
    ppo_update(both, tmp_path)
    before = both.host.held
    assert before is not None
    frame = pl.read_parquet(tmp_path / "rollouts.parquet")
    returns = [[1.0] * len(ids) for ids in frame["token_ids"]]
    path = support.write_advantages(frame, tmp_path / "zero.parquet", [0.0] * ROWS, returns=returns)
    after = ppo_update(both, tmp_path, advantages=str(path)).fingerprint
    assert (after.policy_sha256, after.optimizer_sha256) == (before.policy_sha256, before.optimizer_sha256)
    assert after.critic != before.critic


def test_c_20_an_implicit_prm_takes_no_step_on_rows_without_tokens(both: Bench, tmp_path: Path) -> None:
    """Nor do they count in the mean over the rows of a step."""
    both.host.train_prm(prm_request(both, tmp_path))
    before = both.host.held
    mask(tmp_path)
    result = both.host.train_prm(prm_request(both, tmp_path))
    assert result.fingerprint == before
    assert (result.stats["optimizer_steps"], result.stats["steps_without_signal"]) == (0, 1)
    support.sample(both.host, both.prompts, tmp_path / "rollouts.parquet")
    mask(tmp_path, rows=range(4))
    some = both.host.train_prm(prm_request(both, tmp_path)).stats
    assert (some["optimizer_steps"], some["rows"]) == (1, ROWS)


def test_c_20_masked_rows_leave_the_mean_of_the_implicit_prm(both: Bench, tmp_path: Path) -> None:
    mask(tmp_path, rows=range(support.SAMPLES))
    masked = both.host.train_prm(prm_request(both, tmp_path))
    model = str(both.model)
    both.host.open(Open(model=model, critic=model, implicit_prm=model))
    both.host.open(Open(state="reference", model=model))
    without = both.host.train_prm(prm_request(both, tmp_path, groups=tuple(range(1, support.GROUPS))))
    assert masked.stats["loss"] == without.stats["loss"]
    assert masked.stats["grad_norm"] == pytest.approx(without.stats["grad_norm"], rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("stage", [0, 1, 2, 3])
def test_c_20_every_rank_decides_alike(bench: Bench, tmp_path: Path, stage: Any) -> None:
    """On two ranks, of which one has no row with credit; and a gradient that was gathered in vain leaves nothing."""
    bench.open()
    frame = support.sample(bench.host, bench.prompts, tmp_path / "rollouts.parquet")
    far = frame.with_columns(sampler_logprobs=pl.col("sampler_logprobs").list.eval(pl.element() + 3.0))
    host = support.new_host(tmp_path / "two", ranks=2, zero_stage=stage, micro_batch_size=4)
    two = Moved(Bench(host, bench.model, bench.prompts), tmp_path, frame)
    try:
        before = two.restart()
        far_off = replace(two, frame=far)
        nothings = (
            lambda: two.update([0.0] * ROWS),
            lambda: two.update(CREDIT, masked=range(ROWS)),
            lambda: far_off.update(CREDIT, algorithm=algorithm(rollout_correction=FAR)),
        )
        for nothing in nothings:
            assert nothing().fingerprint == before
        one_row = [1.0] + [0.0] * (ROWS - 1)
        after = two.update(one_row)
        assert after.stats["optimizer_steps"] == 1
        two.restart()
        assert two.update(one_row).fingerprint == after.fingerprint
    finally:
        host.close()
