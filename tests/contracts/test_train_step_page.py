"""The step of docs/algorithms/train_step.md, as it stands there, trains a policy."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch

from papo.advantages import Papo
from papo.algorithm import PAPO

PAGE = Path(__file__).parents[2] / "docs/algorithms/train_step.md"
WORDS = ("right, well worked", "right, badly worked", "wrong")


@dataclass(frozen=True)
class Rollout:
    text: str
    tokens: list[int]
    logprobs: list[float]


class Policy:
    """Says one of three things, in a first token that counts and up to two that do not."""

    def __init__(self, seed: int) -> None:
        self._rng = torch.Generator().manual_seed(seed)
        self.logits = torch.zeros(len(WORDS), requires_grad=True)
        self.optimizer = torch.optim.Adam([self.logits], lr=0.1)

    def sample(self, prompt: str) -> Rollout:
        log_p = self.logits.detach().log_softmax(0)
        choice = int(torch.multinomial(log_p.exp(), 1, generator=self._rng))
        more = int(torch.randint(3, (), generator=self._rng))
        return Rollout(WORDS[choice], [choice] + [0] * more, [float(log_p[choice])] + [0.0] * more)

    def logprobs(self, prompt: str, rollouts: Sequence[Rollout]) -> torch.Tensor:
        log_p = self.logits.log_softmax(0)
        first = torch.stack([log_p[rollout.tokens[0]] for rollout in rollouts])[:, None]
        longest = max(len(rollout.tokens) for rollout in rollouts)
        return torch.cat([first, first.new_zeros(len(rollouts), longest - 1)], dim=1)


@pytest.fixture(scope="module")
def step() -> Callable[..., float]:
    (block,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(block, str(PAGE), "exec"), names)
    return names["papo_train_step"]


def trained(step: Callable[..., float], lambda_process: float) -> list[float]:
    policy = Policy(seed=0)
    algorithm = replace(PAPO, advantage=Papo(lambda_process=lambda_process))
    for _ in range(60):
        step(
            "2+2?",
            policy,
            orm=lambda prompt, text: float(text.startswith("right")),
            prm=lambda prompt, text: 1.0 if "well" in text else 0.5,
            algorithm=algorithm,
        )
    return policy.logits.detach().softmax(0).tolist()


def test_the_step_raises_the_reward_and_prefers_the_better_working(step: Callable[..., float]) -> None:
    well, badly, wrong = trained(step, lambda_process=1.0)
    assert wrong < 0.05
    assert well > 0.9 > badly


def test_without_the_process_part_both_workings_are_alike(step: Callable[..., float]) -> None:
    well, badly, wrong = trained(step, lambda_process=0.0)
    assert wrong < 0.05
    assert min(well, badly) > 0.1


def test_the_step_is_some_twenty_lines() -> None:
    (block,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    body = block[block.index("def papo_train_step") :].strip().splitlines()
    assert len(body) <= 26
