"""Outcome rewards: frozen values from a completion and its reference answer to a verdict; rewards of its form.

The unions are the lists of those that exist; `kind` tells them apart in a run config.
"""

from papo.rewards.answer_match import AnswerMatch
from papo.rewards.batch import Answered, judge_all
from papo.rewards.choice import MultipleChoice
from papo.rewards.code_tests import CodeTests
from papo.rewards.countdown import Countdown
from papo.rewards.custom import CustomReward
from papo.rewards.formal_proof import FormalProof
from papo.rewards.format import FormatReward
from papo.rewards.knights import KnightsKnaves
from papo.rewards.language import LanguageConsistency
from papo.rewards.math_answer import MathAnswer
from papo.rewards.overlong import overlong_penalty
from papo.rewards.reasoning_gym import ReasoningGym
from papo.rewards.repetition import NgramRepetition
from papo.rewards.reward_model import RewardModel
from papo.rewards.second_opinion import Opinion, SecondOpinion
from papo.rewards.verdict import JudgedBy, Verdict, VerdictStatus, shape_reward
from papo.rewards.zebra import ZebraGrid

Verifier = (
    AnswerMatch
    | MathAnswer
    | MultipleChoice
    | Countdown
    | KnightsKnaves
    | ZebraGrid
    | CodeTests
    | FormalProof
    | ReasoningGym
    | CustomReward
)
"""Those that are called for one completion and its reference answer, and need nothing else."""
OutcomeReward = Verifier | RewardModel
"""All of them; a reward model judges many completions at once, on the engine."""
TextReward = FormatReward | LanguageConsistency | NgramRepetition
"""Rewards of a completion's text alone."""

__all__ = [
    "AnswerMatch",
    "Answered",
    "CodeTests",
    "Countdown",
    "CustomReward",
    "FormalProof",
    "FormatReward",
    "JudgedBy",
    "KnightsKnaves",
    "LanguageConsistency",
    "MathAnswer",
    "MultipleChoice",
    "NgramRepetition",
    "Opinion",
    "OutcomeReward",
    "ReasoningGym",
    "RewardModel",
    "SecondOpinion",
    "TextReward",
    "Verdict",
    "VerdictStatus",
    "Verifier",
    "ZebraGrid",
    "judge_all",
    "overlong_penalty",
    "shape_reward",
]
