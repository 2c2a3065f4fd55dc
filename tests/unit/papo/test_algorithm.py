import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from papo.advantages import DrGrpo, Gae, Grpo, Papo, Prime, Rloo
from papo.algorithm import GRPO, PAPO, Algorithm
from papo.losses import AdaptiveKl, Cispo, Gspo, GspoToken, RolloutCorrection, Vanilla
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
        ({"use_kl_loss": True, "use_kl_in_reward": True}, "both on"),
        ({"use_kl_in_reward": True}, "grpo takes no KL in the reward"),
        ({"kl_controller": AdaptiveKl()}, "kl_controller is set but there is no KL"),
        ({"ref_update_interval": 5}, "ref_update_interval is set but there is no KL"),
        ({"kl_band": (0.5, 0.1)}, "kl_band is"),
        ({"cliprange_value": 0.0}, "cliprange_value is 0.0"),
    ],
)
def test_contradictions_are_refused(fields: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=message):
        Algorithm(advantage=Grpo(), **fields)


def test_sequence_losses_refuse_what_tells_tokens_apart():
    """gspo has one advantage a row; gspo_token is for the others."""
    for advantage in (Gae(), Prime()):
        with pytest.raises(ValueError, match=f"but {advantage.kind} tells tokens apart"):
            Algorithm(advantage=advantage, policy_loss=Gspo())
        Algorithm(advantage=advantage, policy_loss=GspoToken())


def test_what_is_legal_but_hardly_meant():
    steps: dict[str, Any] = {"ppo_epochs": 2, "loss_agg_mode": "seq-mean-token-mean"}
    found = {
        "no warning": Algorithm(advantage=Grpo(), policy_loss=Gspo(), **steps).warnings,
        "hardly leaves": Algorithm(advantage=Grpo(), policy_loss=Gspo(clip_ratio_high=0.2), **steps).warnings,
        "leaves such a range at once": Algorithm(
            advantage=Grpo(), policy_loss=GspoToken(sequence_ratio_norm="sum"), **steps
        ).warnings,
        "one optimizer step a batch": Algorithm(advantage=Grpo(), policy_loss=Cispo()).warnings,
        "kl_loss_type is k1": Algorithm(advantage=Grpo(), use_kl_loss=True, kl_loss_type="k1").warnings,
        "χ² − KL": Algorithm(advantage=Grpo(), use_kl_loss=True, kl_loss_type="k3_reversed").warnings,
        "one half of Dr. GRPO": Algorithm(advantage=DrGrpo()).warnings,
        "long ones weigh more": Algorithm(advantage=Grpo(), policy_loss=Gspo(), ppo_epochs=2).warnings,
    }
    for text, warnings in found.items():
        assert len(warnings) == (text != "no warning")
        assert all(text in warning for warning in warnings)


def test_needs_of_the_other_parts():
    rloo = Algorithm(advantage=Rloo(), use_kl_in_reward=True, kl_controller=AdaptiveKl(), ref_update_interval=3)
    assert rloo.needs == Needs(reference=True, kl_rewards=True, kl_control=True, reference_refresh=True)
    band = Algorithm(advantage=Grpo(), kl_band=(0.0, 1.0))
    assert band.needs == Needs(reference=True, full_kl=True)
    for settings, needed in (({"rollout_is": "token"}, False), ({"rollout_rs": "seq_mean_k1"}, True)):
        correction: Any = settings
        algorithm = Algorithm(advantage=Grpo(), rollout_correction=RolloutCorrection(**correction))
        assert algorithm.needs == Needs(corrections=needed)


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
