"""papo: RL post-training of reasoning LLMs with outcome and process rewards (PAPO, arXiv:2603.26535, and its family).

This package is the method: pure functions and frozen values on arrays, usable in a notebook, unaware of Prefect,
MLflow and the run store. Importing it is cheap and brings in no torch; the modules are imported by name.

    from papo.algorithm import PAPO
    from papo.rollouts import ScoredRollouts

    scored = ScoredRollouts(group=group, outcome=outcome, correct=correct, process=process, lengths=lengths)
    advantages = PAPO.advantage(scored).total
"""
