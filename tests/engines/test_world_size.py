from pathlib import Path

import pytest

from papo.engines.learner import TAG, Learner
from papo.errors import EngineError


def test_bug_101_a_checkpoint_of_another_number_of_ranks_is_refused_with_both_numbers(tmp_path: Path) -> None:
    """Partitioned moments cannot be cut anew; the refusal comes before DeepSpeed touches a file."""
    (tmp_path / TAG).mkdir()
    (tmp_path / TAG / "zero_pp_rank_0_mp_rank_00_optim_states.pt").write_bytes(b"")
    learner = object.__new__(Learner)
    learner._stage, learner._ranks = 1, 2
    with pytest.raises(EngineError, match=r"saved by 1 ranks and cannot be loaded by 2(.|\n)*export"):
        learner.load(tmp_path)
