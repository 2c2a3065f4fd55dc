"""One simulated machine: a disk, processes that open the run and advance it, and faults between them."""

from dataclasses import dataclass, field
from random import Random
from typing import Any

import polars as pl

from flows.iteration import advance
from papo.judges import Judge
from schemas.canonical import sha256_of
from schemas.config import RunConfig
from tasks.calling import direct
from tasks.opening import close_run, open_run
from tasks.run import RawData, Run
from tasks.surroundings import Surroundings
from tests.simulation.disk import Faults, SimDisk
from tests.simulation.engine import ScriptedEngine

CONFIG: dict[str, Any] = {
    "iterations": 3,
    "prompts_per_iteration": 2,
    "data": {"train": {"kind": "chains", "count": 5}, "evaluation": {"kind": "chains", "count": 2, "split": "heldout"}},
    "model": {"path": "somewhere"},
    "sampling": {"num_generations": 2, "max_prompt_length": 16, "max_completion_length": 4},
    "reward": {"outcome": {"kind": "answer_match"}},
    "scorer": {"kind": "chain_rubric"},
    "engine": {"shard_size": 2},
    "evaluation": {"every": 2},
    "checkpoint": {"every": 2},
}


class SimClock:
    def __init__(self, began: float = 0.0) -> None:
        self.time = began

    def now(self) -> float:
        self.time += 1.0
        return self.time

    elapsed = now

    def sleep(self, seconds: float) -> None:
        self.time += seconds


class SimLease:
    def __init__(self, token: int) -> None:
        self.token = token

    def raise_above(self, commits: Any) -> None:
        self.token = max([self.token, *(commit.fencing_token + 1 for commit in commits[-1:])])

    def beat(self) -> None: ...

    def release(self) -> None: ...


class Silent:
    def message(self, text: str) -> None: ...
    def stage(self, iteration: int, stage: str) -> None: ...
    def progress(self, done: int, total: int) -> None: ...
    def iteration(self, iteration: int, values: dict[str, Any]) -> None: ...


@dataclass
class Machine:
    """What outlives a process, and a count of what processes did."""

    config: RunConfig = field(default_factory=lambda: RunConfig.model_validate(CONFIG))
    starts: int = 0
    engines: list[ScriptedEngine] = field(default_factory=list)
    run_id: str = "sim"
    base: str = "."
    began: float = 0.0
    """What the clock says when the machine is first started."""
    judge: Judge | None = None
    code: dict[str, bytes] = field(default_factory=dict[str, bytes])
    """Source of custom rewards, which the run keeps."""
    beside: dict[str, dict[str, bytes]] = field(default_factory=dict[str, dict[str, bytes]])
    """Config and tokenizer of models beside the policy, by role."""

    def surroundings(
        self, disk: SimDisk, *, die_in: int | None = None, stall_in: tuple[int, ...] = (), inexact: bool = False
    ) -> Surroundings:
        self.starts += 1
        start = self.starts

        def engine(_: Any) -> ScriptedEngine:
            made = ScriptedEngine(disk, inexact=start if inexact else None)
            made.die_in = die_in
            made.stall_in = list(stall_in)
            self.engines.append(made)
            return made

        return Surroundings(
            disk=disk,
            base=self.base,
            clock=SimClock(self.began),
            lease=lambda: SimLease(start),
            engine=engine,
            sources=sources,
            model=lambda config: ("somewhere", {"tokenizer.json": b"{}", "additional_chat_templates/tools.jinja": b""}),
            reporter=Silent(),
            judge=self.judge,
            hashed=lambda folder: sha256_of("a reward model's files"),
            pinned=lambda config: (config, self.code),
            beside=lambda config: self.beside,
        )

    def run(
        self, disk: SimDisk, *, limit: int | None = None, amend: RunConfig | None = None, **faults: Any
    ) -> tuple[Run, str | None]:
        """A process from its start to its end. `amend`: the config that it changes the run to."""
        around = self.surroundings(disk, **faults)
        run, state = open_run(around, self.run_id, amend or self.config, amend=amend is not None)
        try:
            return run, advance(run, state, direct(run), limit=limit)
        finally:
            close_run(run)


def sources(config: RunConfig) -> dict[str, RawData]:
    def rows(split: str, count: int) -> RawData:
        frame = pl.DataFrame(
            {
                "prompt_id": [f"{split}-{row}" for row in range(count)],
                "source": [split] * count,
                "prompt": [f"{row}+1=" for row in range(count)],
                "is_messages": [False] * count,
                "reference_answer": [str(row % 2) for row in range(count)],
            }
        )
        return RawData(frame=frame, sha256=sha256_of(frame.to_dict(as_series=False)))

    return {"train": rows("train", 5), "evaluation": rows("evaluation", 2)}


def config_with(**changes: Any) -> RunConfig:
    """The simulation's config with other sections."""
    return RunConfig.model_validate({**CONFIG, **changes})


def undisturbed(seed: int = 0) -> tuple[SimDisk, Run]:
    """The run that every schedule must end equal to."""
    disk = SimDisk(Random(seed), Faults())
    run, _ = Machine().run(disk)
    return disk, run
