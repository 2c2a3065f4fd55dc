"""Other configs under the same schedules: more optimizer steps, a reference, amendments, horizons."""

from functools import cache
from random import Random
from typing import Any

import pytest

from papo.errors import ConfigError
from schemas.config import RunConfig
from tasks.store import RunStore
from tests.simulation.disk import SimDisk
from tests.simulation.schedules import Ended, check_ended, ended, run_schedule
from tests.simulation.world import CONFIG, Machine, config_with

PAPO = {"kind": "papo", "lambda_process": 0.5}
KL = {"use_kl_loss": True, "kl_loss_coef": 0.01}
VARIANTS: dict[str, dict[str, Any]] = {
    "several optimizer steps": {"algorithm": {"advantage": PAPO, "ppo_epochs": 2, "ppo_mini_batch_size": 2}},
    "reference": {"algorithm": {"advantage": PAPO, **KL}},
    "both": {"algorithm": {"advantage": PAPO, "ppo_epochs": 2, "use_kl_loss": True}},
    "reference refresh": {"algorithm": {"advantage": PAPO, **KL, "ref_update_interval": 2}},
    "adaptive kl": {"algorithm": {"advantage": PAPO, **KL, "kl_controller": {"kind": "adaptive", "horizon": 10}}},
    "kl in reward": {
        "algorithm": {
            "advantage": {"kind": "rloo"},
            "use_kl_in_reward": True,
            "kl_controller": {"kind": "adaptive", "horizon": 10},
        }
    },
    "lambda schedule": {
        "algorithm": {"advantage": {**PAPO, "lambda_process_schedule": {"start": 0.1, "iterations": 2}}, **KL}
    },
    "critic": {"algorithm": {"advantage": {"kind": "gae"}, "ppo_epochs": 2}, "critic": {"warmup_iterations": 1}},
    "prime": {"algorithm": {"advantage": {"kind": "prime"}}},
    "prime double": {
        "algorithm": {
            "advantage": {"kind": "prime"},
            "implicit_prm": {"prime_forward": "double", "prime_reference": "policy"},
        }
    },
    "prpo": {"algorithm": {"advantage": {"kind": "prpo", "segmenter": {"kind": "entropy", "min_gap": 1, "top_k": 1}}}},
    "refill rounds": {
        "algorithm": {"advantage": PAPO, **KL},
        "sampling": {"filter_groups": {"max_num_gen_batches": 3}},
    },
    "reward model": {
        "algorithm": {"advantage": PAPO, "ppo_epochs": 2},
        "reward": {"outcome": {"kind": "reward_model", "path": "somewhere"}},
    },
    "reward model and verifier": {
        "algorithm": {"advantage": PAPO, **KL},
        "reward": {"outcome": {"kind": "reward_model", "path": "somewhere"}},
        "evaluation": {"every": 2, "outcome": {"kind": "answer_match"}},
    },
    "accuracy filter": {
        "algorithm": {"advantage": {"kind": "prime"}},
        "sampling": {"filter_accuracy": {"oversample_factor": 2}, "filter_groups": {"metric": "acc"}},
    },
}
SEEDS = range(12)
OPERATIONS = 600


def config_of(variant: str) -> RunConfig:
    sections = VARIANTS[variant]
    sampling = CONFIG["sampling"] | sections.get("sampling", {})
    return config_with(**(sections | {"sampling": sampling}))


@cache
def undisturbed_variant(variant: str) -> Ended:
    disk = SimDisk(Random(0))
    Machine(config_of(variant)).run(disk)
    return ended(disk)


@pytest.mark.parametrize("variant", VARIANTS)
def test_variants_survive_the_schedules(variant: str) -> None:
    wanted = undisturbed_variant(variant)
    assert any("logprobs" in path for path in wanted.frames)
    for seed in SEEDS:
        disk = run_schedule(seed, process=Machine(config_of(variant)).run, operations=OPERATIONS)
        check_ended(disk, wanted, named=f"{variant}, seed {seed}")


AMENDED = config_with(algorithm={"advantage": {**PAPO, "lambda_process": 0.25}})
BEFORE = config_with(algorithm={"advantage": PAPO})


def started(rng: Random) -> SimDisk:
    """A run that has done one iteration and is now to be amended."""
    disk = SimDisk(rng)
    Machine(BEFORE).run(disk, limit=1)
    return disk


@cache
def undisturbed_amended() -> Ended:
    disk = started(Random(0))
    Machine(BEFORE).run(disk, amend=AMENDED)
    return ended(disk)


def test_an_amendment_holds_from_the_next_iteration_whatever_crashes() -> None:
    wanted = undisturbed_amended()
    for seed in range(25):
        machine = Machine(BEFORE)
        disk = run_schedule(
            seed,
            process=lambda disk, machine=machine, **faults: machine.run(disk, amend=AMENDED, **faults),
            disk=started(Random(seed)),
            operations=300,
        )
        check_ended(disk, wanted, named=f"seed {seed}")
        hashes = [commit.config_sha256 for commit in RunStore(disk).commits()]
        assert hashes == [BEFORE.sha256] * 2 + [AMENDED.sha256] * 2


def test_without_amend_another_config_is_refused_by_name() -> None:
    disk = started(Random(0))
    before = {path: disk.read(path) for path in disk.walk(".")}
    with pytest.raises(ConfigError, match=r"lambda_process: 0.5 in the run, 0.25 now") as caught:
        Machine(AMENDED).run(disk)
    assert [way.command for way in caught.value.ways_out] == ["resume"]
    assert caught.value.ways_out[0].options == (("--amend", "algorithm.advantage.lambda_process=0.25"),)
    assert {path: disk.read(path) for path in disk.walk(".")} == before


def test_three_iterations_and_then_five_are_five() -> None:
    straight, extended = SimDisk(Random(0)), SimDisk(Random(1))
    Machine(config_with(iterations=5)).run(straight)
    Machine(config_with(iterations=3)).run(extended)
    assert len(RunStore(extended).commits()) == 4
    Machine(config_with(iterations=5)).run(extended)
    check_ended(extended, ended(straight), named="extended")


def entries_of(disk: SimDisk, iteration: int) -> dict[str, list[tuple[str, str]]]:
    commit = RunStore(disk).commits()[iteration + 1]
    stages = sorted({entry.stage for entry in commit.entries})
    return {
        stage: [(entry.key, entry.output_sha256) for entry in commit.entries if entry.stage == stage]
        for stage in stages
    }


def test_another_lambda_changes_nothing_before_the_advantages() -> None:
    """One changed λ: iteration 0 has the same keys and hashes up to there, and other ones from there on."""
    ends: list[SimDisk] = []
    for weight in (0.5, 0.25):
        algorithm = {"advantage": {**PAPO, "lambda_process": weight}}
        sampling = {**CONFIG["sampling"], "num_generations": 6}
        ends.append(SimDisk(Random(0)))
        Machine(config_with(algorithm=algorithm, sampling=sampling, prompts_per_iteration=4)).run(ends[-1])
    first, second = (entries_of(disk, 0) for disk in ends)
    same = {stage for stage in first if first[stage] == second[stage]}
    assert same == {"sample", "generate", "verify", "score"}
    assert {output for _, output in first["advantage"]}.isdisjoint({output for _, output in second["advantage"]})
    later_first, later_second = (entries_of(disk, 1) for disk in ends)
    assert later_first["sample"] == later_second["sample"], "which prompts come next does not depend on the weights"
    assert later_first["generate"] != later_second["generate"]


def test_frames_and_hashes_hold_no_run_id_time_or_place() -> None:
    one, other = SimDisk(Random(0), writer="one"), SimDisk(Random(1), writer="other")
    Machine(run_id="one", base="/here").run(one)
    Machine(run_id="other", base="/elsewhere", began=1e9).run(other)
    assert ended(one) == ended(other)
    assert one.read("run.yaml") != other.read("run.yaml")
    assert one.read("events.jsonl") != other.read("events.jsonl")
