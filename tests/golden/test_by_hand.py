"""The vectors worked out by hand for the whole family: G3 to G7, G9, G10, G12 and G13 of the specification."""

from typing import Any

import numpy as np
import pytest
import torch

from papo.advantages import Advantage, DrGrpo, Gae, GrpoProcess, Mult, PapoFullnorm, Prime, Prpo, Rloo
from papo.losses.implicit_prm import ce_losses, dpo_losses, nca_losses
from papo.losses.ratio import policy_log_ratio
from papo.rewards.overlong import overlong_penalty
from papo.rollouts import AdvantageTerms, ScoredRollouts, ragged
from tests.golden.golden_vectors import assert_golden, load, matches, numbers

BY_HAND = load("by_hand")
ATOL = BY_HAND["atol"]
WHOLE: dict[str, Advantage] = {
    "papo_fullnorm": PapoFullnorm(advantage_eps=0.0),
    "mult": Mult(advantage_eps=0.0),
    "rloo": Rloo(),
    "dr_grpo": DrGrpo(),
}


def scored(outcome: object, *, lengths: list[int], **fields: Any) -> ScoredRollouts:
    rewards = numbers(outcome)
    columns: dict[str, Any] = {
        "group": np.zeros(len(rewards), dtype=np.int64),
        "outcome": rewards,
        "correct": rewards == 1,
        "process": np.full(len(rewards), np.nan),
        "lengths": np.array(lengths),
    }
    return ScoredRollouts(**(columns | fields))


def flat(terms: AdvantageTerms, lengths: list[int]) -> np.ndarray:
    assert terms.tokens is not None
    return np.repeat(terms.total, lengths) + terms.tokens.values


def joined(rows: list[list[float]]) -> list[float]:
    return [number for row in rows for number in row]


@pytest.mark.parametrize("case", BY_HAND["whole"], ids=lambda case: case["name"])
def test_one_advantage_a_row(case: dict[str, Any]):
    rollouts = scored(case["outcome"], lengths=[1] * len(case["outcome"]), process=numbers(case["process"]))
    found = getattr(WHOLE[case["kind"]](rollouts), case["part"])
    assert_golden(found, case["advantage"], case["wrong"], rtol=0, atol=ATOL)


@pytest.mark.parametrize("case", BY_HAND["process_steps"], ids=lambda case: case["name"])
def test_process_supervision(case: dict[str, Any]):
    lengths = [8, 7]
    rollouts = scored(
        [1, 0],
        lengths=lengths,
        step_ends=ragged([np.array([2.0, 5.0, 7.0]), np.array([3.0, 6.0])]),
        step_scores=ragged([np.array([0.9, 0.8, 0.9]), np.array([0.6, 0.2])]),
    )
    terms = GrpoProcess(std_ddof=case["ddof"], advantage_eps=0.0)(rollouts)
    wrong = {"name": case["wrong"]["name"], "value": joined(case["wrong"]["value"])}
    assert_golden(flat(terms, lengths), joined(case["advantage"]), wrong, rtol=0, atol=ATOL)


@pytest.mark.parametrize("case", BY_HAND["prime"], ids=lambda case: case["name"])
def test_prime(case: dict[str, Any]):
    """BUG-089: the outcome is not discounted with the process part."""
    lengths = [3, 2, 4]
    rewards = ragged([np.array([0.1, 0.2, -0.1]), np.array([-0.2, 0.0]), np.array([0.05, 0.05, 0.1, -0.2])])
    rollouts = scored(case["outcome"], lengths=lengths, token_rewards=rewards)
    found = flat(Prime(**case["settings"])(rollouts), lengths)
    if case.get("scaled_code"):
        # the code whitens what it returns; undone by the scale and shift that whitening took
        whitened = flat(Prime(prime_impl="verl", **case["settings"])(rollouts), lengths)
        expected = np.array(joined(case["advantage"]))
        found = whitened * expected.std(ddof=1) + expected.mean()
    wrong = {"name": case["wrong"]["name"], "value": joined(case["wrong"]["value"])}
    assert_golden(found, joined(case["advantage"]), wrong, rtol=0, atol=ATOL)


@pytest.mark.parametrize("norm", ["mean", "sum"])
def test_the_ratio_of_a_sequence(norm: Any):
    case = BY_HAND["gspo"]
    logprobs, old = torch.tensor([case["logprobs"]]), torch.tensor([case["old_logprobs"]])
    mask = torch.ones_like(logprobs, dtype=torch.bool)
    found = policy_log_ratio(logprobs, old, mask, level="sequence", norm=norm).exp()[0, 0].item()
    assert found == pytest.approx(case[norm], abs=ATOL)
    assert not matches(case["sum" if norm == "mean" else "mean"], case[norm], rtol=0, atol=ATOL)
    tokens = policy_log_ratio(logprobs, old, mask, level="token").exp()[0]
    assert tokens.tolist() == pytest.approx(case["tokens"], abs=ATOL)


@pytest.mark.parametrize(("length", "penalty"), BY_HAND["overlong"])
def test_overlong_penalty(length: int, penalty: float):
    found = overlong_penalty(length, max_completion_length=20480, overlong_buffer_len=4096)
    assert found == pytest.approx(penalty, abs=ATOL)


def test_generalised_advantages():
    case = BY_HAND["gae"]
    rollouts = scored([1.0], lengths=[3], token_values=ragged([numbers(case["values"])]))
    terms = Gae(gamma=case["gamma"], lam=case["lam"], whiten_advantages=False)(rollouts)
    assert_golden(flat(terms, [3]), case["advantage"], case["wrong"], rtol=0, atol=ATOL)
    assert terms.returns is not None
    assert terms.returns.values.tolist() == pytest.approx(case["returns"], abs=ATOL)


def test_implicit_prm_losses():
    case = BY_HAND["implicit_prm"]
    for log_ratio, label, expected in case["ce"]:
        rewards, labels = torch.tensor([case["beta"] * log_ratio]), torch.tensor([float(label)])
        assert ce_losses(rewards, labels).item() == pytest.approx(expected, abs=ATOL)
        assert ce_losses(rewards, 1 - labels).item() != pytest.approx(expected, abs=ATOL)
    chosen, rejected = (torch.tensor([case["beta"] * number]) for number in case["pair"])
    assert dpo_losses(chosen, rejected).item() == pytest.approx(case["dpo"], abs=ATOL)
    assert dpo_losses(rejected, chosen).item() != pytest.approx(case["dpo"], abs=ATOL)
    assert nca_losses(chosen, rejected).item() == pytest.approx(case["nca"], abs=ATOL)


def test_prpo_against_its_prior():
    case = BY_HAND["prpo"]
    rollouts = scored(
        [1.0], lengths=[4], step_ends=ragged([np.array([1.0, 3.0])]), step_scores=ragged([np.array([0.9, 0.4])])
    )
    terms = Prpo()(rollouts)
    assert_golden(flat(terms, [4]), case["advantage"], case["wrong"], rtol=0, atol=ATOL)
