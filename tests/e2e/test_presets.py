"""Every preset trains for real, in short, and the state that it adds is replayed to the bit by a fresh process."""

from collections.abc import Callable
from shutil import rmtree

import pytest

from experiments.presets import EXPERIMENT
from tests.e2e.trained import Trained

Train = Callable[..., Trained]
SMALL = ("evaluation=null", "prompts_per_iteration=4", "sampling.num_generations=4", "checkpoint.every=10")
EXTRA_STATE: dict[str, tuple[str, ...]] = {
    "critic": (
        'algorithm={"advantage": {"kind": "gae"}, "use_kl_in_reward": true, "ppo_epochs": 2, "ppo_mini_batch_size": 8,'
        ' "kl_controller": {"kind": "adaptive", "horizon": 100}}',
        'critic={"optimizer": {"learning_rate": 0.001}, "warmup_iterations": 1}',
    ),
    "prime": (
        'algorithm={"advantage": {"kind": "prime"}, "implicit_prm": {"prime_forward": "double"}}',
        'sampling.filter_accuracy={"oversample_factor": 2.0}',
    ),
    "refresh": (
        'algorithm={"advantage": {"kind": "papo", "lambda_process_schedule": {"start": 0.1, "iterations": 3}},'
        ' "use_kl_loss": true, "kl_loss_coef": 0.1, "ref_update_interval": 2, "kl_band": [0.0, 5.0],'
        ' "rollout_correction": {"rollout_rs": "seq_mean_k1", "rollout_is": "token"}}',
        'sampling.filter_groups={"metric": "advantage", "max_num_gen_batches": 3}',
    ),
    "prpo": (
        'algorithm={"advantage": {"kind": "prpo", "segmenter": {"kind": "entropy", "min_gap": 4}},'
        ' "loss_agg_mode": "seq-mean-token-mean", "ppo_epochs": 2}',
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPERIMENT.methods)
def test_every_preset_trains(train: Train, name: str) -> None:
    """One iteration: every stage that it needs, and weights that move."""
    once = ("evaluation=null", "iterations=1", *(["critic.warmup_iterations=0"] if name == "ppo" else []))
    run = train(f"preset-{name.replace('_', '-')}", *EXPERIMENT.methods[name], *once)
    before, after = (commit.state.policy.fingerprint for commit in run.commits)
    assert after.policy_sha256 != before.policy_sha256
    assert (after.critic != before.critic) == (name == "ppo")
    assert (after.implicit_prm != before.implicit_prm) == name.startswith("prime")
    assert run.summary(0)["update/skipped_steps"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", EXTRA_STATE)
def test_a_fresh_process_replays_every_kind_of_state_to_the_bit(train: Train, name: str) -> None:
    """Its newest checkpoint is lost, so the updates of the first two iterations are done again from their inputs."""
    settings = (*SMALL, *EXTRA_STATE[name])
    straight = train(f"{name}-straight", *settings, "iterations=3")
    parts = Trained(straight.home, f"{name}-parts")
    assert parts.run(*settings, "iterations=2") == 0, parts.text
    rmtree(parts.folder / "checkpoints" / "00002")
    assert parts.command("resume", parts.name, "--set", "iterations=3") == 0, parts.text
    assert "Replaying the update of iteration 1" in parts.text
    assert [commit.sha256 for commit in parts.commits] == [commit.sha256 for commit in straight.commits]
