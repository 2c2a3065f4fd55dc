"""The main job in short: it learns, twice the same, and every rollout can be made again."""

from collections.abc import Callable
from functools import partial

import polars as pl

from flows.build import open_from
from flows.proposals import Places
from flows.reporters import LogReporter
from tasks.generate import generate
from tasks.holding import using
from tasks.opening import close_run
from tasks.sampling import addresses, generate_shard, width_of
from tasks.store import encode
from tests.e2e.trained import Trained

Train = Callable[..., Trained]


def test_reward_rises_and_held_out_accuracy_with_it(learned: Trained) -> None:
    before, after = learned.accuracies
    assert 0.2 < before < 0.6
    assert after >= before + 0.15
    first, last = learned.summary(0), learned.summary(11)
    assert last["accuracy"] > first["accuracy"] + 0.15
    assert last["process_mean"] > first["process_mean"]
    assert learned.status.state == "done"
    assert f"Held-out accuracy {before:.3f} → {after:.3f} (n=200), 12 iterations." in learned.text
    assert "papo resume learned --set iterations=24" in learned.text


def test_the_same_config_and_seed_give_the_same_hashes_under_another_name(learned: Trained, train: Train) -> None:
    again = train("again", "iterations=2", "evaluation.every=12", "engine.shard_size=64")
    assert [commit.sha256 for commit in again.commits] == [commit.sha256 for commit in learned.commits[:3]]
    other = train("other", "iterations=1", "evaluation.every=12", "engine.shard_size=64",
                  "algorithm.advantage.lambda_process=0.25")  # fmt: skip
    assert other.commits[0].entries == learned.commits[0].entries
    first, second = learned.entries(0), other.entries(0)
    assert {stage for stage in first if first[stage] == second[stage]} == {"sample", "generate", "verify", "score"}


def test_a_rollout_made_again_alone_through_its_shard_is_equal_to_the_bit(learned: Trained) -> None:
    places = Places(runs=learned.home / "runs", models=learned.home / "models")
    run, _ = open_from(None, run_id="learned", reporter=LogReporter(print), places=places)
    try:
        config, state = run.configs(0), run.commits[0].state
        prompts = run.artifact("sample", 0, iteration=0)
        frame = run.store.load(prompts)
        rows = addresses(frame, samples=8, seed=config.seed, stage=generate.name, iteration=0)
        work = partial(
            generate_shard, run, config=config, prompts=prompts, width=width_of(frame), rows=rows[64:128],
            batch_rows=64, temperature=config.sampling.temperature, state=state, name="again",
        )  # fmt: skip
        made = using(run, state, work)
        stored = run.artifact("generate", 1, iteration=0)
        assert encode(made) == (learned.folder / stored.path).read_bytes()
        address = (pl.col("group_id") == made["group_id"][5]) & (pl.col("sample_index") == made["sample_index"][5])
        assert made.filter(address).equals(run.store.load(stored).filter(address))
    finally:
        close_run(run)


def test_bug_025_and_027_groups_are_whole_and_each_rollout_is_used_once(learned: Trained) -> None:
    rollouts = learned.frame("generate", range(12))
    assert set(rollouts.group_by("group_id").len()["len"].to_list()) == {8}
    assert rollouts.height == 12 * 16 * 8
    assert all(learned.summary(at)["update/rows"] == 128 for at in range(12))
    steps = [commit.state.policy.fingerprint.optimizer_steps for commit in learned.commits]
    assert steps == list(range(13))


def test_bug_031_groups_without_signal_are_counted_by_group(learned: Trained) -> None:
    advantages = learned.frame("advantage", [0])
    zero = advantages.group_by("group_id").agg((pl.col("advantage") == 0.0).all())["advantage"].mean()
    assert learned.summary(0)["zero_variance_groups"] == zero


def test_bug_026_and_027_several_passes_use_each_rollout_so_often(train: Train) -> None:
    """Two passes over 16 rows in mini-batches of 8: four steps, and ratios that move away from 1 after the first."""
    run = train(
        "passes", "iterations=2", "evaluation.every=2", "data.evaluation.count=16", "prompts_per_iteration=4",
        "sampling.num_generations=4", "algorithm.ppo_epochs=2", "algorithm.ppo_mini_batch_size=8",
    )  # fmt: skip
    steps = [commit.state.policy.fingerprint.optimizer_steps for commit in run.commits]
    assert steps == [0, 4, 8]
    assert run.summary(0)["update/first_ratio_deviation"] < 1e-3
    assert run.frame("logprobs", [0])["old_logprobs"].null_count() == 0
