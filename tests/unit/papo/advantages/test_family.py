"""Edge cases of the rest of the family; values are in tests/golden, laws in tests/properties."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from papo.advantages import (
    FilterAccuracy,
    FilterGroups,
    Gae,
    Grpo,
    GrpoProcess,
    MultiReward,
    Papo,
    Prime,
    Prpo,
    ReinforcePlusPlusBaseline,
    RisingLambda,
    Rloo,
    kl_rewards,
    rank_normalize,
    step_rewards,
)
from papo.rollouts import AdvantageTerms, Ragged, ScoredRollouts, ragged

NAN = float("nan")


def scored(outcome: list[float], *, lengths: list[int] | None = None, **fields: Any) -> ScoredRollouts:
    rewards = np.array(outcome, dtype=np.float64)
    columns: dict[str, Any] = {
        "group": np.zeros(len(rewards), dtype=np.int64),
        "outcome": rewards,
        "correct": rewards == 1,
        "process": np.full(len(rewards), NAN),
        "lengths": np.array(lengths or [2] * len(rewards)),
    }
    return ScoredRollouts(**(columns | fields))


def by_token(terms: AdvantageTerms) -> list[float]:
    assert terms.tokens is not None
    return (np.repeat(terms.total, terms.tokens.lengths) + terms.tokens.values).tolist()


def test_ties_share_their_average_rank():
    """Ranks 1.5, 1.5, 3 and 4."""
    ranks = np.array([1.5, 1.5, 3.0, 4.0])
    found = rank_normalize(np.array([0.0, 0.0, 5.0, 5.1]), np.zeros(4, dtype=np.int64))
    assert found.tolist() == pytest.approx(((ranks - ranks.mean()) / ranks.std(ddof=1)).tolist())


def test_a_truncated_row_is_not_silently_a_finished_one():
    """BUG-018: bootstrap adds γ·V after the last token, terminal does not, mask takes the row out."""
    values = ragged([np.array([0.5, 0.5]), np.array([0.5, 0.5])])
    both = scored([0.0, 0.0], token_values=values, truncated=np.array([True, False]), final_values=np.array([0.8, 9.0]))
    plain = {rule: Gae(lam=1.0, whiten_advantages=False, truncation=rule)(both) for rule in
             ("bootstrap", "terminal", "mask")}  # fmt: skip
    assert by_token(plain["bootstrap"]) == pytest.approx([0.3, 0.3, -0.5, -0.5])
    assert by_token(plain["terminal"]) == [-0.5] * 4
    assert by_token(plain["mask"]) == [0.0, 0.0, -0.5, -0.5]
    assert plain["mask"].excluded is not None
    assert plain["mask"].excluded.tolist() == [True, False]
    with pytest.raises(ValueError, match="1 rows were cut off and truncation is bootstrap"):
        Gae()(replace(both, final_values=None))
    with pytest.raises(ValueError, match="token_values"):
        Gae()(replace(both, token_values=None))


def test_the_kl_reward_falls_on_each_token_and_the_score_on_the_last():
    old, ref = ragged([np.array([-1.0, -2.0])]), ragged([np.array([-1.5, -1.0])])
    rewards = kl_rewards(old, ref, kl_coef=0.1)
    assert rewards.values.tolist() == pytest.approx([-0.05, 0.1])
    assert kl_rewards(old, ref, kl_coef=0.1, kl_penalty="abs").values.tolist() == pytest.approx([-0.05, -0.1])
    assert kl_rewards(old, ref, kl_coef=0.1, kl_penalty="k2").values.tolist() == pytest.approx([-0.0125, -0.05])
    k3 = kl_rewards(old, ref, kl_coef=1.0, kl_penalty="k3").values
    assert k3.tolist() == pytest.approx([-(np.exp(-0.5) + 0.5 - 1), -(np.e - 1 - 1)])
    found = Gae(lam=1.0, whiten_advantages=False)(
        scored([1.0], token_rewards=rewards, token_values=Ragged(values=np.zeros(2), offsets=old.offsets))
    )
    assert by_token(found) == pytest.approx([1.05, 1.1])


def test_rloo_normalises_over_the_batch_if_asked():
    found = Rloo(normalize_advantages=True)(scored([1, 0, 0, NAN]))
    plain = np.array([1.0, -0.5, -0.5])
    expected = plain / (plain.std(ddof=1) + 1e-4)
    assert found.total.tolist() == pytest.approx([*expected, 0.0])


def test_the_baseline_form_counts_a_row_by_its_tokens():
    found = ReinforcePlusPlusBaseline(whiten_eps=0.0)(scored([1.0, 0.0], lengths=[3, 1])).total
    flat = np.array([0.5, 0.5, 0.5, -0.5])
    expected = (flat - flat.mean()) / flat.std(ddof=1)
    assert found.tolist() == pytest.approx([expected[0], expected[3]])


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("suffix_sum", [0.0, 0.0, -1.0, 0.0]),
        ("suffix_mean", [0.0, 0.0, -1.0, 0.0]),
        ("step_only", [1.0, 1.0, -1.0, 0.0]),
        ("min", [-1.0, -1.0, -1.0, 0.0]),
    ],
)
def test_what_a_token_gets_of_the_steps(rule: Any, expected: list[float]):
    """Steps end at tokens 1 and 2; the token after the last step gets nothing. Two rows, for one has no peer."""
    batch = scored([1.0, 1.0], lengths=[4, 4], step_ends=ragged([np.array([1.0, 2.0])] * 2),
                   step_scores=ragged([np.array([1.0, 0.0])] * 2))  # fmt: skip
    terms = GrpoProcess(process_return=rule, std_ddof=0, advantage_eps=0.0)(batch)
    assert by_token(terms) == pytest.approx(expected * 2, abs=1e-12)
    assert terms.process_active.tolist() == [True, True]


def test_a_failed_step_adds_nothing_and_equal_steps_say_nothing():
    batch = scored([1.0, 0.0], lengths=[3, 1], step_ends=ragged([np.array([0.0, 1.0, 2.0]), np.array([0.0])]),
                   step_scores=ragged([np.array([1.0, NAN, 1.0]), np.array([0.0])]))  # fmt: skip
    found = by_token(GrpoProcess(process_return="suffix_mean")(batch))
    assert found[0] == found[1] == found[2] > 0
    least = by_token(GrpoProcess(process_return="min")(batch))
    assert least[0] == least[1] == least[2] > 0
    level = replace(batch, step_scores=ragged([np.array([0.3, NAN, 0.3]), np.array([0.3])]))
    assert not any(by_token(GrpoProcess()(level)))


def test_steps_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="grpo_process needs step_ends and step_scores"):
        GrpoProcess()(scored([1.0]))
    late = scored([1.0], step_ends=ragged([np.array([2.0])]), step_scores=ragged([np.array([1.0])]))
    with pytest.raises(ValueError, match="step_ends of row 0"):
        GrpoProcess()(late)
    with pytest.raises(ValueError, match="number of steps"):
        Prpo()(replace(late, step_scores=ragged([np.array([1.0, 1.0])])))


def prpo_batch() -> ScoredRollouts:
    return scored([1.0, -1.0], lengths=[3, 1], step_ends=ragged([np.array([1.0, 2.0]), np.array([0.0])]),
                  step_scores=ragged([np.array([1.0, 0.25]), np.array([0.5])]))  # fmt: skip


@pytest.mark.parametrize(
    ("outcome", "shifts"),
    [
        ("raw", [1.0, -1.0]),
        ("center", [1.0, -1.0]),
        ("zscore", [np.sqrt(0.5), -np.sqrt(0.5)]),
        ("center_plus_prm_mean", [1.125, -1.125]),
        ("match_mean", [np.sqrt(0.5), -np.sqrt(0.5)]),
    ],
)
def test_the_outcome_shifts_of_prpo(outcome: Any, shifts: list[float]):
    terms = Prpo(prpo_outcome=outcome, advantage_eps=0.0)(prpo_batch())
    assert terms.outcome.tolist() == pytest.approx(shifts)


def test_the_normalisers_of_prpo():
    batch = prpo_batch()
    prior = by_token(Prpo(prpo_prior_std=0.5, prpo_outcome="raw")(batch))
    assert prior == pytest.approx([2.0, 2.0, 0.5, -1.0])
    tokens = np.array([1.0, 1.0, 0.25, 0.5])
    found = by_token(Prpo(prpo_norm="batch", prpo_outcome="raw", advantage_eps=0.0)(batch))
    assert found == pytest.approx(((tokens - tokens.mean()) / tokens.std(ddof=1) + [1, 1, 1, -1]).tolist())
    weights = np.exp([1.0, 0.25])
    first, second = 2 * weights / weights.sum() - 1
    softmax = by_token(Prpo(prpo_norm="softmax", prpo_outcome="raw")(batch))
    assert softmax == pytest.approx([1 + first, 1 + first, 1 + second, -1.0])


def test_a_failed_segment_is_left_out_of_prpo():
    """BUG-082: its tokens get the outcome shift alone."""
    batch = prpo_batch()
    holed = replace(batch, step_scores=ragged([np.array([NAN, 0.25]), np.array([NAN])]))
    found = by_token(Prpo(prpo_prior_std=0.5, prpo_outcome="raw")(holed))
    assert found == pytest.approx([1.0, 1.0, 0.5, -1.0])
    assert Prpo()(holed).process_active.tolist() == [True, False]
    shift = Prpo(prpo_outcome="center_plus_prm_mean")(holed).outcome
    assert shift.tolist() == pytest.approx([1.125, -1.125])


def test_prime_in_its_other_forms():
    rewards = ragged([np.array([0.2, 0.4]), np.array([0.1])])
    batch = scored([1.0, 0.0], lengths=[2, 1], token_rewards=rewards)
    plain = by_token(Prime(prime_form="reinforce")(batch))
    assert plain == pytest.approx([1.6, 1.4, 0.1])
    deviation = np.std([0.3, 0.1], ddof=1)
    grpo = by_token(Prime(prime_form="grpo", advantage_eps=0.0)(batch))
    assert grpo == pytest.approx([0.2 / deviation + np.sqrt(0.5), 0.2 / deviation + np.sqrt(0.5),
                                  -0.1 / deviation - np.sqrt(0.5)])  # fmt: skip
    assert not any(by_token(Prime()(scored([1.0], token_rewards=ragged([np.array([0.2, 0.4])])))))
    with pytest.raises(ValueError, match="token_rewards"):
        Prime()(scored([1.0]))


def test_step_rewards_are_differences_of_q():
    rewards, ends = ragged([np.array([0.1, 0.2, -0.1, 0.4])]), ragged([np.array([1.0, 3.0])])
    assert step_rewards(rewards, ends).values.tolist() == pytest.approx([0.3, 0.3])
    assert step_rewards(rewards, ends, return_q=True).values.tolist() == pytest.approx([0.3, 0.6])


def test_a_lambda_that_rises():
    linear, step = RisingLambda(start=0.1, iterations=4), RisingLambda(shape="step", start=0.1, iterations=4)
    assert [linear.at(i, final=0.5) for i in (0, 2, 4, 9)] == pytest.approx([0.1, 0.3, 0.5, 0.5])
    assert [step.at(i, final=0.5) for i in (0, 3, 4)] == [0.1, 0.1, 0.5]
    batch = scored([1, 1, 0], process=np.array([1.0, 0.0, NAN]), iteration=2)
    scheduled = Papo(lambda_process=0.5, lambda_process_schedule=linear)
    assert scheduled(batch).process.tolist() == pytest.approx(Papo(lambda_process=0.3)(batch).process.tolist())
    assert scheduled.needs.iteration
    assert (
        Papo(lambda_process=0.2, lambda_process_schedule=RisingLambda(start=0.4), outcome_weight=0.5).lambda_highest
        == 0.8
    )


def test_the_guard_looks_at_the_best_wrong_row():
    """Wrong rows of different shaped rewards: the right one stays above all of them."""
    batch = scored([1.0, 1.0, 0.9, -1.0], correct=np.array([True, True, False, False]),
                   process=np.array([1.0, 0.0, NAN, NAN]))  # fmt: skip
    total = Papo(order_guard="clip", order_guard_margin=0.1)(batch).total
    assert total[1] == pytest.approx(total[2] + 0.1)
    assert total[0] > total[1]


def test_several_rewards():
    components = np.array([[1.0, NAN], [0.0, 1.0], [NAN, NAN]])
    batch = scored([0.0, 0.0, 0.0], components=components)
    found = MultiReward(reward_weights=(1.0, 3.0), scale_rewards="none")(batch)
    assert found.total.tolist() == [-1.0, 1.0, 0.0]
    with pytest.raises(ValueError, match="1 reward_weights"):
        MultiReward()(batch)


def test_filters_by_hand():
    """BUG-030's criterion: PAPO's all-right group is kept by its advantage and dropped by its accuracy."""
    batch = scored([1, 1, 1, 0], group=np.array([0, 0, 1, 1]), process=np.array([1.0, 0.0, NAN, NAN]))
    for metric, kept in (("acc", [1]), ("score", [1]), ("advantage", [0, 1])):
        rows = FilterGroups(metric=metric).keeps(batch, Papo()(batch))  # pyright: ignore[reportArgumentType]  # of the three literals
        assert sorted(set(batch.group[rows].tolist())) == kept
    shaped = replace(batch, outcome=np.array([1.0, 0.9, 0.5, 0.5]))
    assert FilterGroups(metric="score").keeps(shaped, Grpo()(shaped)).tolist() == [True, True, False, False]
    assert FilterAccuracy().keeps(batch).tolist() == [False, False, True, True]
    exactly = FilterAccuracy(accuracy_lower_bound=0.5, accuracy_upper_bound=0.5)
    assert exactly.keeps(batch).tolist() == [False, False, True, True]


def test_one_row_with_an_advantage_keeps_its_group():
    level = scored([1, 1, 1], process=np.array([1.0, 0.5, 0.0]))
    terms = Papo()(level)
    assert terms.silent.tolist() == [False, True, False]
    assert FilterGroups().keeps(level, terms).all()


@pytest.mark.parametrize(
    ("build", "names"),
    [
        (lambda: Gae(gamma=1.1), "gamma is 1.1"),
        (lambda: Gae(lam=-0.1), "lam is -0.1"),
        (lambda: Prpo(prpo_prior_std=0.0), "prpo_prior_std is 0.0"),
        (lambda: Prime(reward_gt_coef=-1.0), "reward_gt_coef is -1.0"),
        (lambda: Papo(outcome_weight=NAN), "outcome_weight is nan"),
        (lambda: Papo(order_guard_margin=0.0), "order_guard_margin is 0.0"),
        (lambda: RisingLambda(iterations=0), "iterations of the lambda_process_schedule is 0"),
        (lambda: FilterGroups(max_num_gen_batches=0), "max_num_gen_batches is 0"),
        (lambda: FilterAccuracy(accuracy_lower_bound=0.9), "keeps 0.9 to 0.8"),
        (lambda: MultiReward(reward_weights=()), "reward_weights"),
        (lambda: Rloo(advantage_eps=-1.0), "advantage_eps is -1.0"),
    ],
)
def test_settings_without_meaning_are_refused(build: Any, names: str):
    with pytest.raises(ValueError, match=names):
        build()


def test_lists_of_another_length_are_refused():
    with pytest.raises(ValueError, match="token_rewards of row 0 has 1 entries"):
        scored([1.0], token_rewards=ragged([np.array([1.0])]))
