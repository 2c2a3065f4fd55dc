import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from papo.advantages import Grpo, Papo
from papo.algorithm import GRPO, PAPO, Algorithm
from papo.losses import Vanilla
from papo.needs import Needs


def test_needs_are_the_union_of_the_parts():
    assert GRPO.needs == Needs()
    assert PAPO.needs == Needs(process_scores=True)
    assert replace(PAPO, use_kl_loss=True).needs == Needs(process_scores=True, reference=True)


def test_presets_differ_in_the_estimator_alone():
    assert replace(PAPO, advantage=Grpo()) == GRPO
    assert Papo(lambda_process=1.0) == PAPO.advantage


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"loss_agg_mode": "seq-mean-token-sum-norm"}, "loss_norm_constant is None"),
        ({"loss_norm_constant": 64}, "loss_agg_mode is token-mean"),
        ({"loss_agg_mode": "seq-mean-token-sum-norm", "loss_norm_constant": 0}, "loss_norm_constant is 0"),
        ({"ppo_epochs": 0}, "ppo_epochs is 0"),
        ({"ppo_mini_batch_size": 0}, "ppo_mini_batch_size is 0"),
        ({"log_ratio_clamp": 0.0}, "log_ratio_clamp is 0.0"),
        ({"kl_clamp": float("nan")}, "kl_clamp is nan"),
        ({"use_kl_loss": True, "kl_loss_coef": 0.0}, "kl_loss_coef is 0.0"),
    ],
)
def test_contradictions_are_refused(fields: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=message):
        Algorithm(advantage=Grpo(), **fields)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"clip_ratio_low": 1.5}, "clip_ratio_low is 1.5"),
        ({"clip_ratio_high": -0.1}, "clip_ratio_high is -0.1"),
        ({"clip_ratio_high": float("nan")}, "clip_ratio_high is nan"),
        ({"clip_ratio_c": 1.0}, "clip_ratio_c is 1.0"),
    ],
)
def test_clip_bounds_without_meaning_are_refused(fields: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=message):
        Vanilla(**fields)


def test_the_method_imports_without_torch():
    script = (
        "import sys, papo.algorithm, papo.chains, papo.metrics, papo.rewards, papo.scorers, papo.seeding, papo.steps;"
        "sys.exit('torch' in sys.modules or 'pydantic' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
