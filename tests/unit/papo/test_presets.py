import pytest

from papo.advantages import Papo
from papo.algorithm import Algorithm
from papo.needs import Needs
from papo.presets import PRESETS, Preset


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_names_its_source_and_is_meant(name: str):
    preset = PRESETS[name]
    assert preset.source
    assert preset.algorithm.warnings == []


def test_what_the_presets_stand_for():
    """results §7 and §8: where papers and codes differ, each has its own."""
    assert PRESETS["papo_paper"].algorithm.loss_agg_mode == "seq-mean-token-mean"
    assert PRESETS["papo_authors_code"].algorithm.loss_agg_mode == "token-mean"
    assert clip_of("papo_paper") == (0.2, 0.2)
    assert clip_of("papo_authors_code") == clip_of("dapo") == (0.2, 0.28)
    assert clip_of("gspo") == (3e-4, 4e-4)
    assert (PRESETS["rlvr"].num_generations, PRESETS["rlvr"].format_reward_weight) == (16, 0.1)
    assert PRESETS["r1_zero"].format_reward_weight == 1.0
    assert PRESETS["grpo_deepseekmath"].algorithm.kl_loss_coef == 0.04
    assert PRESETS["dapo"].wrong_reward == -1.0


def clip_of(name: str) -> tuple[float, float]:
    loss = PRESETS[name].algorithm.policy_loss
    return getattr(loss, "clip_ratio_low"), getattr(loss, "clip_ratio_high")  # noqa: B009  # a union's members


def test_staged_papo_lets_the_outcome_lead():
    advantage = PRESETS["papo_staged"].algorithm.advantage
    assert isinstance(advantage, Papo)
    assert [advantage.lambda_at(iteration) for iteration in (0, 100, 200, 999)] == pytest.approx([0.1, 0.3, 0.5, 0.5])
    assert advantage.outcome_weight == 1.0


def test_presets_say_what_they_need():
    assert PRESETS["papo_paper"].algorithm.needs == Needs(process_scores=True)
    assert PRESETS["ppo"].algorithm.needs == Needs(critic=True, reference=True, kl_rewards=True)
    assert PRESETS["prime"].algorithm.needs == Needs(implicit_prm=True)
    assert PRESETS["prpo"].algorithm.needs == Needs(
        process_scores=True, step_scores=True, entropies=True, reference=True
    )
    assert PRESETS["r1_zero"].algorithm.needs == Needs(reference=True, reference_refresh=True)
    assert isinstance(PRESETS["rloo"], Preset)
    assert isinstance(PRESETS["rloo"].algorithm, Algorithm)
