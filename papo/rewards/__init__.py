"""Outcome rewards: frozen values from a completion and its reference answer to a verdict.

The union is the list of those that exist; `kind` tells them apart in a run config.
"""

from papo.rewards.answer_match import AnswerMatch
from papo.rewards.format import FormatReward
from papo.rewards.math_answer import MathAnswer
from papo.rewards.verdict import Verdict, VerdictStatus, shape_reward

OutcomeReward = AnswerMatch | MathAnswer

__all__ = ["AnswerMatch", "FormatReward", "MathAnswer", "OutcomeReward", "Verdict", "VerdictStatus", "shape_reward"]
