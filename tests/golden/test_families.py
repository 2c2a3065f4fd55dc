"""Token-level and group estimators, filters' rewards and KL in the reward against verl, TRL and PRIME."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from papo.advantages import (
    Advantage,
    Gae,
    Grpo,
    MultiReward,
    Prime,
    ReinforcePlusPlus,
    ReinforcePlusPlusBaseline,
    Rloo,
    implicit_token_rewards,
    kl_rewards,
    prime_normalized,
)
from papo.advantages.tokens import whitened
from papo.losses import AdaptiveKl
from papo.rewards.overlong import overlong_penalty
from papo.rollouts import AdvantageTerms, Ragged, ScoredRollouts, ragged
from tests.golden.golden_vectors import assert_peer, cases, label, numbers

VERL_WHITENING: dict[str, Any] = {"whiten_eps": 1e-8, "whiten_count_eps": 1e-8}


def rows(table: object) -> Ragged:
    return ragged(list(numbers(table)))


def scored(outcome: object, *, group: object, mask: object, **fields: Any) -> ScoredRollouts:
    """Rows of the whole padded width, the mask as the peer's."""
    rewards = numbers(outcome)
    ids = np.unique([str(name) for name in np.asarray(group)], return_inverse=True)[1].astype(np.int64)
    width = numbers(mask).shape[1]
    return ScoredRollouts(
        group=ids,
        outcome=rewards,
        correct=rewards == 1,
        process=np.full(len(rewards), np.nan),
        lengths=np.full(len(rewards), width),
        token_mask=rows(mask),
        **fields,
    )


def by_token(terms: AdvantageTerms, width: int) -> np.ndarray:
    table = np.repeat(terms.total[:, None], width, axis=1)
    return table if terms.tokens is None else table + terms.tokens.values.reshape(table.shape)


GROUP: dict[str, Advantage] = {
    "verl_rloo_advantage": Rloo(),
    "verl_rloo_vectorized_advantage": Rloo(),
    "verl_reinforce_pp_baseline_advantage": ReinforcePlusPlusBaseline(**VERL_WHITENING),
    "verl_grpo_vectorized_advantage": Grpo(),
}


@pytest.mark.parametrize(("peer", "case"), cases(*GROUP), ids=label)
def test_group_estimators_equal_verl(peer: str, case: dict[str, Any]):
    inputs, estimator = case["inputs"], GROUP[peer]
    if isinstance(estimator, Grpo) and not inputs["norm_adv_by_std_in_grpo"]:
        estimator = Grpo(scale_rewards="none")
    mask = numbers(inputs["response_mask"])
    rewards = inputs["sequence_rewards"] or numbers(inputs["token_level_rewards"]).sum(1)
    terms = estimator(scored(rewards, group=inputs["index"], mask=mask))
    assert_peer(by_token(terms, mask.shape[1]) * mask, peer, case, "advantages")


@pytest.mark.parametrize(("peer", "case"), cases("verl_reinforce_pp_advantage"), ids=label)
def test_reinforce_plus_plus_equals_verl(peer: str, case: dict[str, Any]):
    inputs, mask = case["inputs"], numbers(case["inputs"]["response_mask"])
    rewards = numbers(inputs["token_level_rewards"])
    batch = scored(np.zeros(len(mask)), group=range(len(mask)), mask=mask, token_rewards=rows(rewards))
    terms = ReinforcePlusPlus(gamma=inputs["gamma"], **VERL_WHITENING)(batch)
    assert_peer(by_token(terms, mask.shape[1]), peer, case, "advantages", mask=mask)


def gae(inputs: dict[str, Any], mask: np.ndarray, *, whiten: bool) -> tuple[np.ndarray, np.ndarray]:
    batch = scored(
        np.zeros(len(mask)),
        group=range(len(mask)),
        mask=mask,
        token_rewards=rows(inputs["token_level_rewards"]),
        token_values=rows(inputs["values"]),
    )
    estimator = Gae(gamma=inputs["gamma"], lam=inputs["lam"], whiten_advantages=whiten, **VERL_WHITENING)
    terms = estimator(batch)
    assert terms.returns is not None
    return by_token(terms, mask.shape[1]), terms.returns.values.reshape(mask.shape)


@pytest.mark.parametrize(("peer", "case"), cases("verl_gae"), ids=label)
def test_gae_equals_verl(peer: str, case: dict[str, Any]):
    mask = numbers(case["inputs"]["response_mask"])
    whitened_ones, returns = gae(case["inputs"], mask, whiten=True)
    assert_peer(whitened_ones, peer, case, "advantages_whitened", mask=mask)
    assert_peer(returns, peer, case, "returns", mask=mask)
    assert_peer(gae(case["inputs"], mask, whiten=False)[0], peer, case, "advantages_unwhitened", mask=mask)


@pytest.mark.parametrize(("peer", "case"), cases("prime_original_core"), ids=label)
def test_gae_equals_prime_where_nothing_is_skipped(peer: str, case: dict[str, Any]):
    """PRIME's repository runs over masked tokens and whitens under the mask, without a count's eps."""
    mask = numbers(case["inputs"]["mask"])
    plain, returns = gae(case["inputs"], np.ones_like(mask), whiten=False)
    assert_peer(returns, peer, case, "returns", mask=mask)
    if mask.sum() > 1:
        table = np.zeros_like(mask)
        table[mask > 0] = whitened(plain[mask > 0], eps=1e-8)
        assert_peer(table, peer, case, "advantages", mask=mask)


@pytest.mark.parametrize(("peer", "case"), cases("verl_masked_ops"), ids=label)
def test_whitening_equals_verl(peer: str, case: dict[str, Any]):
    mask = numbers(case["inputs"]["mask"]) > 0
    table = np.zeros(mask.shape)
    table[mask] = whitened(numbers(case["inputs"]["values"])[mask], eps=1e-8, count_eps=1e-8)
    assert_peer(table, peer, case, "masked_whiten", mask=mask)


@pytest.mark.parametrize(("peer", "case"), cases("trl_multi_reward_advantage"), ids=label)
def test_several_rewards_equal_trl(peer: str, case: dict[str, Any]):
    inputs = case["inputs"]
    rewards = numbers(inputs["rewards"])
    group = np.repeat(np.arange(len(rewards) // inputs["num_generations"]), inputs["num_generations"])
    batch = scored(np.zeros(len(rewards)), group=group, mask=np.ones((len(rewards), 1)), components=rewards)
    estimator = MultiReward(
        reward_weights=tuple(inputs["reward_weights"]),
        multi_objective_aggregation=inputs["multi_objective_aggregation"],
        scale_rewards=inputs["scale_rewards"],
        advantage_eps=1e-4,
    )
    assert_peer(estimator(batch).total, peer, case, "advantages")


@pytest.mark.parametrize(("peer", "case"), cases("trl_rloo_advantage"), ids=label)
def test_rloo_equals_trl(peer: str, case: dict[str, Any]):
    """BUG-091: the KL is summed into the row's reward first, and the baseline is of rewards with it."""
    inputs = case["inputs"]
    rewards = numbers(inputs["rewards"])
    group = np.repeat(np.arange(len(rewards) // inputs["num_generations"]), inputs["num_generations"])
    mask = np.ones((len(rewards), 1))
    batch = scored(rewards, group=group, mask=mask)
    if "lengths" in inputs:
        old, ref = rows(inputs["old_per_token_logps"]), rows(inputs["ref_per_token_logps"])
        mask = np.arange(numbers(inputs["old_per_token_logps"]).shape[1]) < np.array(inputs["lengths"])[:, None]
        batch = scored(rewards, group=group, mask=mask, token_rewards=kl_rewards(old, ref, kl_coef=inputs["beta"]))
    terms = Rloo(normalize_advantages=inputs["normalize_advantages"])(batch)
    assert_peer(terms.total, peer, case, "advantages")


@pytest.mark.parametrize(("peer", "case"), cases("verl_kl_in_reward"), ids=label)
def test_kl_in_reward_and_its_controller_equal_verl(peer: str, case: dict[str, Any]):
    inputs = case["inputs"]
    if "init" in inputs:
        controller = AdaptiveKl(target_kl=inputs["target"], horizon=inputs["horizon"])
        found = controller.next_coef(inputs["init"], kl=inputs["current_kl"], steps=inputs["n_steps"])
        assert_peer(found, peer, case, "value")
        return
    old, ref, scores = (numbers(inputs[name]) for name in ("old_log_prob", "ref_log_prob", "token_level_scores"))
    penalty = kl_rewards(rows(old), rows(ref), kl_coef=inputs["kl_ratio"]).values.reshape(old.shape)
    assert_peer(scores + penalty, peer, case, "rewards")


@pytest.mark.parametrize(("peer", "case"), cases("prime_rloo_advantage", "prime_original_rloo_returns"), ids=label)
def test_prime_equals_its_code(peer: str, case: dict[str, Any]):
    inputs, mask = case["inputs"], numbers(case["inputs"]["response_mask"])
    original = "gt_scores" in inputs
    outcome = numbers(inputs["gt_scores"]).sum(1) if original else numbers(inputs["acc"])
    group = np.arange(len(mask)) // inputs["n_samples"]
    process = np.zeros_like(mask) if inputs["rm_scores"] is None else inputs["rm_scores"]
    batch = scored(outcome, group=group, mask=mask, token_rewards=rows(process))
    estimator = Prime(
        prime_impl="verl",
        gamma_process=inputs.get("reward_model_gamma", 1.0),
        gamma_outcome=inputs.get("verifier_gamma", 1.0),
        reward_dpo_coef=inputs.get("reward_dpo_coef", 1.0),
        reward_gt_coef=inputs.get("reward_gt_coef", 1.0),
        whiten_count_eps=0.0 if original else 1e-8,
    )
    assert_peer(by_token(estimator(batch), mask.shape[1]), peer, case, "advantages", mask=mask)


@pytest.mark.parametrize(("peer", "case"), cases("prime_token_rewards"), ids=label)
def test_implicit_token_rewards_equal_prime(peer: str, case: dict[str, Any]):
    inputs, lengths = case["inputs"], case["inputs"]["lengths"]
    prm, ref = (
        ragged([row[:length] for row, length in zip(numbers(inputs[name]), lengths, strict=True)])
        for name in ("rm_logprobs", "ref_logprobs")
    )
    width = numbers(inputs["rm_logprobs"]).shape[1]

    def table(rewards: Ragged) -> np.ndarray:
        return np.stack([np.pad(rewards.row(row), (0, width - lengths[row])) for row in range(rewards.rows)])

    assert_peer(table(implicit_token_rewards(prm, ref, beta=1.0)), peer, case, "original_token")
    whole = implicit_token_rewards(prm, ref, beta=1.0, granularity="whole")
    assert_peer(table(whole), peer, case, "original_whole")
    recipe = implicit_token_rewards(
        prm,
        ref,
        beta=inputs["beta_train"],
        last_token="zero",
        reward_lambda=inputs["lambda"],
        ground_truth=numbers(inputs["acc"]) if inputs["prime_use_gt"] else None,
    )
    assert_peer(table(recipe), peer, case, "recipe_token")
    assert_peer(table(prime_normalized(recipe, prime_norm="batch_norm")), peer, case, "recipe_token_batch_norm")


@pytest.mark.parametrize(("peer", "case"), cases("trl_dapo_overlong", "verl_dapo_overlong"), ids=label)
def test_overlong_penalty_equals_its_peers(peer: str, case: dict[str, Any]):
    """verl's reward is with the base score, and not bounded above the limit, which a completion cannot pass."""
    inputs = case["inputs"]
    found = overlong_penalty(
        inputs.get("length", inputs.get("response_length")),
        max_completion_length=inputs.get("max_completion_len", inputs.get("max_resp_len")),
        overlong_buffer_len=inputs.get("soft_punish_cache", inputs.get("overlong_buffer_len")),
        overlong_penalty_factor=inputs.get("penalty_factor", 1.0),
    )
    assert_peer(found + inputs.get("base_score", 0.0), peer, case, "reward")


def test_unscorable_rows_leave_the_whitening():
    """As if they were absent."""
    mask = np.ones((3, 2))
    batch = scored([1.0, np.nan, 0.0], group=[0, 0, 0], mask=mask)
    alone = scored([1.0, 0.0], group=[0, 0], mask=mask[:2])
    total = ReinforcePlusPlus()(batch).total
    assert total[[0, 2]].tolist() == ReinforcePlusPlus()(alone).total.tolist()
    assert total[1] == 0.0
    assert replace(batch, truncated=None).truncated is None
