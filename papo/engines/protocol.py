"""What an engine is: verbs over references, so that one process group serves every stage.

An engine holds *named states*: the policy, and where an algorithm needs them a reference, a critic, an implicit PRM.
"""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from papo.engines.requests import (
    CreateModel,
    Decode,
    Fingerprint,
    Generate,
    Logprobs,
    Open,
    ScoreTexts,
    SftResult,
    SftSteps,
    Tokenize,
    TokenizePairs,
    TrainPrm,
    Update,
    UpdateResult,
    Values,
)

Progress = Callable[[int, int], None]
"""Called with (done, total) in units of the verb: decoded tokens, micro-batches or SFT steps."""


@runtime_checkable
class Engine(Protocol):
    """A learner that can also generate on its own weights. Every call may raise `papo.errors.EngineDied`, after which
    `start` gives an empty engine again."""

    silence_seconds: float
    """How long a call may go on without a sign of progress and without work; then it raises EngineStalled."""

    @property
    def held(self) -> Fingerprint | None:
        """The policy that is in memory now, with what is trained beside it, or None."""
        ...

    @property
    def environment(self) -> dict[str, str]:
        """Versions, device, ranks, threads: recorded, not identity."""
        ...

    def start(self) -> None: ...
    def create(self, request: CreateModel) -> None: ...
    def tokenize(self, request: Tokenize) -> None: ...
    def tokenize_pairs(self, request: TokenizePairs) -> None: ...
    def open(self, request: Open) -> Fingerprint: ...
    def generate(self, request: Generate, progress: Progress | None = None) -> None: ...
    def end_ids(self) -> tuple[int, ...]:
        """Every id that ends a completion of the open policy."""
        ...

    def decode(self, request: Decode) -> None: ...
    def logprobs(self, request: Logprobs, progress: Progress | None = None) -> None: ...
    def values(self, request: Values, progress: Progress | None = None) -> None: ...
    def score_texts(self, request: ScoreTexts, progress: Progress | None = None) -> None: ...
    def train_prm(self, request: TrainPrm, progress: Progress | None = None) -> UpdateResult: ...
    def update(self, request: Update, progress: Progress | None = None) -> UpdateResult: ...
    def sft(self, request: SftSteps, progress: Progress | None = None) -> SftResult: ...
    def save(self, folder: str) -> None:
        """Write all that is held, with optimizers and random states, as a checkpoint into the empty `folder`."""
        ...

    def export(self, folder: str) -> None:
        """Write the policy as a Hugging Face folder (safetensors, config, tokenizer) into the empty `folder`."""
        ...

    def export_adapter(self, folder: str) -> None:
        """Write the policy's adapter alone, as peft loads it. Raises EngineError where it has none."""
        ...

    def close(self) -> None: ...
