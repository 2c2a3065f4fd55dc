"""Laws of the estimators that tell the tokens of a row apart, on drawn batches."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from papo.advantages import (
    Advantage,
    Gae,
    GrpoProcess,
    Prime,
    Prpo,
    ReinforcePlusPlus,
    group_normalize,
    leave_one_out,
    zero_reason,
)
from papo.advantages.tokens import training_tokens
from papo.rollouts import AdvantageTerms, Ragged, ScoredRollouts
from papo.segmentation import Newlines
from tests.properties.strategies import select, token_rollouts

ALL: list[Advantage] = [
    Gae(),
    Gae(truncation="mask", gamma=0.9),
    Gae(truncation="terminal", whiten_advantages=False, lam=0.5),
    ReinforcePlusPlus(gamma=0.9),
    GrpoProcess(),
    GrpoProcess(process_return="suffix_mean"),
    GrpoProcess(process_return="step_only"),
    GrpoProcess(process_return="min"),
    Prpo(),
    Prpo(prpo_norm="batch", prpo_outcome="center_plus_prm_mean"),
    Prpo(prpo_norm="softmax", prpo_outcome="match_mean", segmenter=Newlines()),
    Prpo(prpo_outcome="raw"),
    Prime(),
    Prime(prime_form="grpo", gamma_process=0.9),
    Prime(prime_form="reinforce"),
    Prime(prime_impl="verl", gamma_outcome=0.9),
]
estimators = st.sampled_from(ALL)
many = settings(max_examples=5 * (settings.default or settings()).max_examples // 2)
"""For laws that are drawn over all estimators at once."""
token_batches = token_rollouts()


def by_token(terms: AdvantageTerms, batch: ScoredRollouts) -> np.ndarray:
    assert terms.tokens is not None
    return np.repeat(terms.total, batch.lengths) + terms.tokens.values


def rows_of(values: np.ndarray, batch: ScoredRollouts) -> list[list[float]]:
    return [part.tolist() for part in np.split(values, np.cumsum(batch.lengths)[:-1])]


@many
@given(estimator=estimators, batch=token_batches)
def test_terms_are_finite_and_a_rows_tokens_sum_to_zero(estimator: Advantage, batch: ScoredRollouts):
    """BUG-008; so that `total` is the row's mean advantage."""
    terms = estimator(batch)
    assert terms.tokens is not None
    assert np.isfinite(by_token(terms, batch)).all()
    tokens = training_tokens(batch)
    size = 1 + np.abs(terms.tokens.values).max(initial=0.0)
    assert np.abs(tokens.sums(tokens.pick(terms.tokens))).max(initial=0.0) <= 1e-9 * size * 10
    assert not np.signbit(terms.total[terms.total == 0]).any()


@many
@given(estimator=estimators, batch=token_batches, data=st.data())
def test_the_order_of_rows_changes_no_bit(estimator: Advantage, batch: ScoredRollouts, data: st.DataObject):
    order = np.array(data.draw(st.permutations(range(len(batch.group)))))
    before, after = estimator(batch), estimator(select(batch, order))
    assert np.array_equal(after.total, before.total[order])
    plain = rows_of(by_token(before, batch), batch)
    assert rows_of(by_token(after, select(batch, order)), select(batch, order)) == [plain[row] for row in order]


@many
@given(estimator=estimators, batch=token_batches)
def test_unscorable_rows_get_zero_and_may_as_well_be_absent(estimator: Advantage, batch: ScoredRollouts):
    terms = estimator(batch)
    assert terms.silent[~batch.scorable].all()
    present = np.flatnonzero(batch.scorable)
    assert np.array_equal(estimator(select(batch, present)).total, terms.total[present])


@many
@given(estimator=estimators, batch=token_batches, poison=st.sampled_from([10.0, float("nan"), float("inf")]))
def test_what_is_masked_changes_nothing(estimator: Advantage, batch: ScoredRollouts, poison: float):
    """BUG-015: rewards and values of masked tokens, one after the other and together."""
    assert batch.token_mask is not None
    masked = batch.token_mask.values == 0
    before = by_token(estimator(batch), batch)

    def poisoned(name: str) -> Ragged:
        lists: Ragged = getattr(batch, name)
        return Ragged(values=np.where(masked, poison, lists.values), offsets=lists.offsets)

    changes = {name: poisoned(name) for name in ("token_rewards", "token_values")}
    for subset in ({"token_rewards"}, {"token_values"}, set(changes)):
        other = replace(batch, **{name: changes[name] for name in subset})
        assert np.array_equal(by_token(estimator(other), other), before)


@many
@given(estimator=estimators, batch=token_batches)
def test_every_zero_has_a_reason_and_nothing_else_has(estimator: Advantage, batch: ScoredRollouts):
    terms = estimator(batch)
    assert [reason is not None for reason in zero_reason(batch, terms)] == terms.silent.tolist()


@given(batch=token_batches, gamma=st.floats(0.5, 1), lam=st.floats(0, 1))
def test_gae_follows_its_definition(batch: ScoredRollouts, gamma: float, lam: float):
    """Against the sum written out: A_t = Σ_k (γλ)^k δ_{t+k}; returns are A + V."""
    terms = Gae(gamma=gamma, lam=lam, whiten_advantages=False)(batch)
    tokens = training_tokens(batch)
    assert batch.token_values is not None
    assert batch.token_rewards is not None
    assert terms.returns is not None
    assert batch.truncated is not None
    assert batch.final_values is not None
    for row in range(len(batch.group)):
        own = tokens.row == row
        values, rewards = tokens.pick(batch.token_values)[own], tokens.pick(batch.token_rewards)[own]
        if not len(values):
            continue
        rewards[-1] += batch.outcome[row]
        after = np.append(values[1:], batch.final_values[row] if batch.truncated[row] else 0.0)
        deltas = rewards + gamma * after - values
        expected = [sum((gamma * lam) ** k * delta for k, delta in enumerate(deltas[at:])) for at in range(len(deltas))]
        found = tokens.pick(Ragged(values=by_token(terms, batch), offsets=tokens.offsets))[own]
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(tokens.pick(terms.returns)[own], expected + values, rtol=1e-9, atol=1e-9)


@given(batch=token_rollouts(holes=False), truncation=st.sampled_from(["terminal", "bootstrap"]))
def test_gae_is_return_minus_value_or_one_step_difference(batch: ScoredRollouts, truncation: str):
    """λ = 1 and λ = 0, at γ = 1 and with nothing cut off."""
    ended = replace(batch, truncated=None)
    tokens = training_tokens(ended)
    assert ended.token_values is not None
    assert ended.token_rewards is not None
    values, rewards = tokens.pick(ended.token_values), tokens.pick(ended.token_rewards)
    rewards[tokens.last] += ended.outcome[tokens.counts > 0]
    whole = Gae(lam=1.0, whiten_advantages=False)(ended)
    found = by_token(whole, ended)[tokens.mask]
    np.testing.assert_allclose(found, tokens.suffix_sums(rewards, discount=1.0) - values, rtol=1e-9, atol=1e-9)
    following = np.append(values[1:], 0.0)[: len(values)]
    following[tokens.last] = 0.0
    step = by_token(Gae(lam=0.0, whiten_advantages=False)(ended), ended)[tokens.mask]
    np.testing.assert_allclose(step, rewards + following - values, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("estimator", [Gae(), ReinforcePlusPlus(), Prime(prime_impl="verl")])
@given(batch=token_batches)
def test_whitened_advantages_have_mean_zero_and_variance_one(estimator: Advantage, batch: ScoredRollouts):
    """Over the tokens that take part: for PRIME those of rows that have a baseline."""
    tokens = estimator.trained(batch) if isinstance(estimator, Prime) else training_tokens(batch)
    values = by_token(estimator(batch), batch)[tokens.mask]
    if len(values) > 1 and np.ptp(values) > 0:
        assert values.mean() == pytest.approx(0.0, abs=1e-8)
        assert values.std(ddof=1) == pytest.approx(1.0, rel=1e-3)


@given(batch=token_batches)
def test_returns_do_not_depend_on_whitening(batch: ScoredRollouts):
    plain, white = (Gae(whiten_advantages=whiten)(batch).returns for whiten in (False, True))
    assert plain is not None
    assert white is not None
    assert np.array_equal(plain.values, white.values)


@given(batch=token_rollouts(full_mask=True), factor=st.floats(0.1, 10), shift=st.floats(-5, 5))
def test_step_rewards_are_only_compared(batch: ScoredRollouts, factor: float, shift: float):
    """Process supervision of a·r + b is that of r, for a > 0."""
    assert batch.step_scores is not None
    scores = batch.step_scores
    other = replace(batch, step_scores=Ragged(values=scores.values * factor + shift, offsets=scores.offsets))
    estimator = GrpoProcess(advantage_eps=0.0)
    np.testing.assert_allclose(
        by_token(estimator(other), batch), by_token(estimator(batch), batch), rtol=1e-6, atol=1e-6
    )


@given(batch=token_rollouts(holes=False, full_mask=True))
def test_a_token_of_the_last_step_gets_its_own_reward_by_every_rule(batch: ScoredRollouts):
    assert batch.step_ends is not None
    ends = batch.step_ends
    rules = ("suffix_sum", "suffix_mean", "step_only", "min")
    tables = [rows_of(by_token(GrpoProcess(process_return=rule)(batch), batch), batch) for rule in rules]
    for row in np.flatnonzero(batch.lengths).tolist():
        assert len({round(table[row][int(ends.row(row)[-1])], 9) for table in tables}) == 1


@given(batch=token_batches)
def test_prpo_with_match_mean_keeps_the_outcome_as_each_rows_mean(batch: ScoredRollouts):
    """BUG-088: process scores move credit within a row and never change what the row gets."""
    terms = Prpo(prpo_outcome="match_mean")(batch)
    np.testing.assert_allclose(terms.process, 0.0, atol=1e-9)
    has_tokens = training_tokens(batch).counts > 0
    expected = group_normalize(batch.outcome, batch.group)
    np.testing.assert_allclose(terms.total[has_tokens], expected[has_tokens], rtol=1e-9, atol=1e-9)


@given(batch=token_batches, score=st.floats(0, 1))
def test_prpo_with_equal_scores_is_a_constant_shift(batch: ScoredRollouts, score: float):
    """BUG-088: with match_mean nothing at all is left of them."""
    assert batch.step_scores is not None
    level = replace(batch, step_scores=Ragged(values=np.full(len(batch.step_scores.values), score),
                                              offsets=batch.step_scores.offsets))  # fmt: skip
    prior, matched = Prpo()(level), Prpo(prpo_outcome="match_mean")(level)
    scored = training_tokens(level).counts > 0
    np.testing.assert_allclose(prior.process[scored], (score - 0.5) / np.sqrt(1 / 24), rtol=1e-9, atol=1e-9)
    assert not matched.process.any()
    assert matched.tokens is not None
    assert not matched.tokens.values.any()


@given(batch=token_rollouts(full_mask=True))
def test_prime_without_process_weight_is_rloo(batch: ScoredRollouts):
    terms = Prime(reward_dpo_coef=0.0)(batch)
    has_tokens = training_tokens(batch).counts > 0
    expected = np.where(has_tokens, leave_one_out(batch.outcome, batch.group), 0.0)
    np.testing.assert_allclose(terms.total, expected, rtol=1e-9, atol=1e-9)
    assert terms.tokens is not None
    assert not terms.tokens.values.any()


@given(batch=token_batches, gamma=st.floats(0.5, 1))
def test_prime_discounts_its_two_sources_apart(batch: ScoredRollouts, gamma: float):
    """BUG-089."""
    outcome_of = Prime(gamma_process=gamma)(batch).outcome
    assert np.array_equal(outcome_of, Prime()(batch).outcome)
    assert np.array_equal(Prime(gamma_outcome=gamma)(batch).process, Prime()(batch).process)


@given(batch=token_rollouts(full_mask=True), row=st.integers(0, 100), shift=st.floats(-2, 2))
def test_primes_baseline_does_not_see_its_own_row(batch: ScoredRollouts, row: int, shift: float):
    """The paper's form: raising all token rewards of a row raises its own process return by the same sums."""
    assert batch.token_rewards is not None
    at = row % len(batch.group)
    own = np.repeat(np.arange(len(batch.group)), batch.lengths) == at
    rewards = batch.token_rewards
    other = replace(batch, token_rewards=Ragged(values=rewards.values + shift * own, offsets=rewards.offsets))
    tokens = training_tokens(batch)
    peers = (batch.group == batch.group[at]) & (tokens.counts > 0)
    if not tokens.counts[at] or peers.sum() < 2:
        return
    moved = by_token(Prime()(other), batch)[own] - by_token(Prime()(batch), batch)[own]
    np.testing.assert_allclose(moved, shift * np.arange(own.sum(), 0, -1), rtol=1e-7, atol=1e-7)
