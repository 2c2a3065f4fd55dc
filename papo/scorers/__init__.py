"""Process scorers: frozen values from a prompt and a completion to one score a step and one for the whole.

The union is the list of those that exist; `kind` tells them apart in a run config.
"""

from papo.scorers.chain_rubric import ChainRubric
from papo.scorers.equation_lines import EquationLines
from papo.scorers.step_scores import ScoreStatus, StepScores

ProcessScorer = ChainRubric | EquationLines

__all__ = ["ChainRubric", "EquationLines", "ProcessScorer", "ScoreStatus", "StepScores"]
