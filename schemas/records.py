"""Records that cross a stage's border or are written beside the frames: references, ledger entries, commits, state."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from schemas.canonical import canonical_json, sha256_of

GENESIS = -1
"""The iteration number of what precedes iteration 0: prepared data, the first policy, the baseline evaluation."""


class Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class FrameRef(Record):
    """A published artifact: where it is, what it hashes to, which stage made it. Only these cross a task's border."""

    stage: str
    version: int
    """Declared version of the stage's code."""
    iteration: int
    shard: int
    key: str
    """SHA-256 of everything that the output is a function of."""
    path: str
    """Relative to the run directory."""
    sha256: str
    rows: int


class ModelMark(Record):
    """What a model that is trained beside the policy hashes to."""

    weights_sha256: str
    optimizer_sha256: str
    optimizer_steps: int


class Fingerprint(Record):
    """The learner's weights and optimizer moments as hashes: of the policy, and of what is trained beside it."""

    policy_sha256: str
    optimizer_sha256: str
    optimizer_steps: int
    critic: ModelMark | None = None
    implicit_prm: ModelMark | None = None


class Batch(Record):
    """An iteration's frames by stage, in the order of rounds and shards."""

    prompts: tuple[FrameRef, ...] = ()
    """One a round of drawing."""
    rollouts: tuple[FrameRef, ...] = ()
    logprobs: tuple[FrameRef, ...] = ()
    outcomes: tuple[FrameRef, ...] = ()
    scores: tuple[FrameRef, ...] = ()
    values: tuple[FrameRef, ...] = ()
    implicit: tuple[FrameRef, ...] = ()

    @property
    def inputs(self) -> tuple[FrameRef, ...]:
        """All of them."""
        parts = (
            self.prompts, self.rollouts, self.logprobs, self.outcomes, self.scores, self.values, self.implicit,
        )  # fmt: skip
        return tuple(ref for part in parts for ref in part)

    @property
    def prompted(self) -> list[tuple[FrameRef, FrameRef]]:
        """Each shard of rollouts with the prompts of its round."""
        rounds = max(len(self.prompts), 1)
        size = len(self.rollouts) // rounds
        return [(self.prompts[index // max(size, 1)], shard) for index, shard in enumerate(self.rollouts)]

    def joined(self, other: "Batch") -> "Batch":
        """This batch with the frames of a further round."""
        return Batch(**{name: (*getattr(self, name), *getattr(other, name)) for name in Batch.model_fields})


class Updated(Record):
    """A replayable stage's result: not an artifact, but what memory must hash to, and the inputs to redo it."""

    stage: Literal["update", "train_prm"] = "update"
    version: int
    iteration: int
    key: str
    before: Fingerprint
    after: Fingerprint
    inputs: tuple[FrameRef, ...]
    groups: tuple[int, ...] | None = None
    """Groups that an implicit PRM was trained on."""
    rows: int
    stats: dict[str, float | int | bool | Literal["NaN", "Infinity", "-Infinity"] | None]
    """papo.metrics.UpdateStats or PrmStats; numbers that were not finite as `papo.spelling` writes them."""

    @property
    def output_sha256(self) -> str:
        return sha256_of(self.after.model_dump())

    @property
    def figures(self) -> dict[str, float | int | bool | None]:
        """The stats that a commit can rest on: those that are not finite are null."""
        return {name: None if isinstance(number, str) else number for name, number in self.stats.items()}

    @property
    def optimizer_steps(self) -> int:
        """Of the model that was trained, so far."""
        prm = self.after.implicit_prm
        return prm.optimizer_steps if self.stage == "train_prm" and prm is not None else self.after.optimizer_steps


class LearnerState(Record):
    version: int
    """How many iterations have updated this learner."""
    fingerprint: Fingerprint


class Cursor(Record):
    """The next row of data: `offset` rows of epoch `epoch` have been drawn."""

    epoch: int = 0
    offset: int = 0


class IterationState(Record):
    """All that the next iteration is a function of, besides config and data. A checkpoint publishes it too."""

    policy: LearnerState
    """The policy, and by its fingerprint the critic and the implicit PRM that are trained beside it."""
    reference_version: int = 0
    """Version of the policy that the reference is."""
    reference_sha256: str | None = None
    """Weights that ref_logprobs are taken under; None while the algorithm needs no reference."""
    kl_coef: float | None = None
    """The KL controller's present coefficient; None while it is fixed by the config."""
    cursor: Cursor = Cursor()
    next_group: int = 0
    """Number of groups drawn so far: the next group's id."""

    @property
    def iteration(self) -> int:
        return self.policy.version


class LedgerEntry(Record):
    """One row of the ledger: a stage's shard (or update) and what it hashed to."""

    iteration: int
    stage: str
    shard: int
    version: int
    key: str
    output_sha256: str
    rows: int
    path: str | None = None
    optimizer_steps: int | None = None

    @classmethod
    def of(cls, made: "FrameRef | Updated") -> "LedgerEntry":
        if isinstance(made, Updated):
            return cls(
                iteration=made.iteration,
                stage=made.stage,
                shard=0,
                version=made.version,
                key=made.key,
                output_sha256=made.output_sha256,
                rows=made.rows,
                optimizer_steps=made.optimizer_steps,
            )
        return cls(
            iteration=made.iteration,
            stage=made.stage,
            shard=made.shard,
            version=made.version,
            key=made.key,
            output_sha256=made.sha256,
            rows=made.rows,
            path=made.path,
        )

    @property
    def frame_ref(self) -> FrameRef:
        assert self.path is not None, f"{self.stage} has no artifact"
        return FrameRef(
            stage=self.stage,
            version=self.version,
            iteration=self.iteration,
            shard=self.shard,
            key=self.key,
            path=self.path,
            sha256=self.output_sha256,
            rows=self.rows,
        )


class Commit(Record):
    """The end of an iteration, written last and once. `sha256` covers all fields but the fencing token."""

    iteration: int
    entries: tuple[LedgerEntry, ...]
    """In DAG order: stage, then shard."""
    state: IterationState
    """After the iteration."""
    summary: dict[str, float | int | bool | None]
    """papo.metrics.IterationSummary and the update's figures; deterministic, so stop conditions can be derived."""
    config_sha256: str
    previous: str | None
    """SHA-256 of the commit before; None for the genesis."""
    lineage: int = 0
    """How many times a replay was not bit-equal: 0 while the run is exact."""
    fencing_token: int
    """Of the writer's lock; outside the hash, for it depends on how often the run was started."""

    @property
    def body(self) -> dict[str, Any]:
        return self.model_dump(mode="json", exclude={"fencing_token"})

    @property
    def sha256(self) -> str:
        return sha256_of(self.body)

    def to_bytes(self) -> bytes:
        return canonical_json(self.model_dump(mode="json"))


class CheckpointManifest(Record):
    """Written into a checkpoint's folder last: the state it holds and the hash of each of its files."""

    version: int
    state: IterationState
    commit_sha256: str
    """The commit after which it was made."""
    files: dict[str, tuple[str, int]]
    """Relative path to (SHA-256, bytes)."""
    accuracy: float | None = None
    """Latest evaluation when it was made, for retention of the best."""
    lineage: int = 0
    environment: dict[str, str]
