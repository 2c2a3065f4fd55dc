"""BUG-071 under crashes: a judge that comes and goes leaves the same run as one that always answers."""

from functools import cache
from random import Random
from typing import Any

from schemas.config import RunConfig
from tests.simulation.disk import SimDisk
from tests.simulation.judge import ScriptedJudge
from tests.simulation.schedules import Ended, check_ended, ended, run_schedule
from tests.simulation.world import Machine, config_with

SEEDS = range(12)
OPERATIONS = 600


def opinionated(**changes: Any) -> RunConfig:
    opinion = {"model": "judge", "endpoint": {"urls": ["http://judge/v1"]}, **changes}
    return config_with(reward={"outcome": {"kind": "answer_match"}, "second_opinion": opinion})


@cache
def undisturbed_with_opinions() -> Ended:
    disk, judge = SimDisk(Random(0)), ScriptedJudge()
    Machine(opinionated(), judge=judge).run(disk)
    assert judge.asked
    return ended(disk)


def test_an_outage_of_the_judge_changes_nothing_whatever_else_crashes() -> None:
    wanted = undisturbed_with_opinions()
    for seed in SEEDS:
        rng = Random(seed)
        judge = ScriptedJudge(away=rng.randrange(1, 9))
        disk = run_schedule(seed, process=Machine(opinionated(), judge=judge).run, operations=OPERATIONS)
        check_ended(disk, wanted, named=f"seed {seed}")
        assert judge.away == 0, f"seed {seed}: the outage was not met"


def test_a_second_opinion_changes_only_what_rests_on_verdicts() -> None:
    with_opinions, without = SimDisk(Random(0)), SimDisk(Random(0))
    Machine(opinionated(), judge=ScriptedJudge()).run(with_opinions, limit=1)
    Machine(config_with()).run(without, limit=1)
    first, second = ended(with_opinions).frames, ended(without).frames
    same = {path.rpartition("/")[2].split("-")[0] for path in first.keys() & second.keys()}
    assert {"prompts", "rollouts", "data"} <= same
    assert not {"outcomes", "evaluations", "advantages"} & same
