"""Outcome rewards: frozen values from a completion and its reference answer to a verdict; rewards of its form.

The unions are the lists of those that exist; `kind` tells them apart in a run config.
"""

from papo.rewards.answer_match import AnswerMatch
from papo.rewards.batch import Answered, judge_all
from papo.rewards.custom import CustomReward
from papo.rewards.format import FormatReward
from papo.rewards.language import LanguageConsistency
from papo.rewards.math_answer import MathAnswer
from papo.rewards.overlong import overlong_penalty
from papo.rewards.repetition import NgramRepetition
from papo.rewards.verdict import Verdict, VerdictStatus, shape_reward

OutcomeReward = AnswerMatch | MathAnswer | CustomReward
TextReward = FormatReward | LanguageConsistency | NgramRepetition
"""Rewards of a completion's text alone."""

__all__ = [
    "AnswerMatch",
    "Answered",
    "CustomReward",
    "FormatReward",
    "LanguageConsistency",
    "MathAnswer",
    "NgramRepetition",
    "OutcomeReward",
    "TextReward",
    "Verdict",
    "VerdictStatus",
    "judge_all",
    "overlong_penalty",
    "shape_reward",
]
