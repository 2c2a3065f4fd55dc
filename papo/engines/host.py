"""The owner's side of an engine: starts the ranks, sends each verb to all of them, takes rank 0's answer.

This module never imports torch: the process that composes a run stays light, and a crash of the ranks cannot take it
along.
"""

import time
import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

from papo import errors
from papo.engines.group import RankGroup
from papo.engines.messages import VERBS, Answer, Command, Failure, Tick, from_json, to_json
from papo.engines.protocol import Progress
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
from papo.engines.settings import EngineSettings
from papo.errors import EngineDied, EngineError, OutOfMemory

STRAGGLER_SECONDS = 60.0
"""How long the other ranks may take to end a verb after one of them has failed; they may wait for it for ever."""
CLOSE_SECONDS = 5.0
SILENCE_SECONDS = 600.0
"""How long a group may do nothing where nobody has set another limit."""


class EngineHost:
    """The `Engine` of `papo.engines.protocol` over a group of rank processes.

    The group lives as long as this object and this process: it ends on `close`, when the object is collected, at
    interpreter exit, and when the process is killed. Not for use by several threads at once.
    """

    def __init__(
        self, settings: EngineSettings, *, log: Path, pid_file: Path | None = None, start_seconds: float = 300.0
    ) -> None:
        """`log`: file that takes what the ranks print. `pid_file`: where the group is recorded, so that the next
        start can end it if this process dies without doing so. `start_seconds`: limit on the start."""
        self.settings = settings
        self.silence_seconds = SILENCE_SECONDS
        self._log = log
        self._pid_file = pid_file
        self._start_seconds = start_seconds
        self._group: RankGroup | None = None
        self._end: weakref.finalize[..., Any] | None = None
        self._held: Fingerprint | None = None
        self._environment: dict[str, str] = {}

    @property
    def held(self) -> Fingerprint | None:
        return self._held

    @property
    def environment(self) -> dict[str, str]:
        return dict(self._environment)

    @property
    def pids(self) -> tuple[int, ...]:
        """Processes of the running ranks; empty when the engine is not started."""
        return () if self._group is None else self._group.pids

    def start(self) -> None:
        """Start the ranks unless they run already. Raises EngineDied when they are not ready in time."""
        if self._group is not None:
            return
        self._group = RankGroup(self.settings, log=self._log, pid_file=self._pid_file)
        self._end = weakref.finalize(self, self._group.kill)
        try:
            self._environment = self._call("setup", self.settings, limit=self._start_seconds)
        except BaseException:
            self._discard()
            raise

    def create(self, request: CreateModel) -> None:
        self._call("create", request)

    def tokenize(self, request: Tokenize) -> None:
        self._call("tokenize", request)

    def tokenize_pairs(self, request: TokenizePairs) -> None:
        self._call("tokenize_pairs", request)

    def open(self, request: Open) -> Fingerprint:
        if request.state == "reference":
            return self._call("open", request)
        self._held = None
        held: Fingerprint = self._call("open", request)
        self._held = held
        return held

    def generate(self, request: Generate, progress: Progress | None = None) -> None:
        self._call("generate", request, progress=progress)

    def end_ids(self) -> tuple[int, ...]:
        return self._call("end_ids", None)

    def decode(self, request: Decode) -> None:
        self._call("decode", request)

    def logprobs(self, request: Logprobs, progress: Progress | None = None) -> None:
        self._call("logprobs", request, progress=progress)

    def values(self, request: Values, progress: Progress | None = None) -> None:
        self._call("values", request, progress=progress)

    def score_texts(self, request: ScoreTexts, progress: Progress | None = None) -> None:
        self._call("score_texts", request, progress=progress)

    def train_prm(self, request: TrainPrm, progress: Progress | None = None) -> UpdateResult:
        return self._train("train_prm", request, progress)

    def update(self, request: Update, progress: Progress | None = None) -> UpdateResult:
        return self._train("update", request, progress)

    def sft(self, request: SftSteps, progress: Progress | None = None) -> SftResult:
        self._held = None
        result: SftResult = self._call("sft", request, progress=progress)
        self._held = result.fingerprint
        return result

    def save(self, folder: str) -> None:
        self._call("save", folder)

    def export(self, folder: str) -> None:
        self._call("export", folder)

    def export_adapter(self, folder: str) -> None:
        self._call("export_adapter", folder)

    def close(self) -> None:
        """Ask the ranks to end, then end them."""
        if self._group is None:
            return
        try:
            self._group.send(Command(verb="close", request=None))
            self._group.wait(CLOSE_SECONDS)
        except EngineDied:
            pass
        finally:
            self._discard()

    def _train(self, verb: str, request: Update | TrainPrm, progress: Progress | None) -> UpdateResult:
        # Half an update is no state of the run: whatever interrupts it, what was held counts as lost.
        self._held = None
        result: UpdateResult = self._call(verb, request, progress=progress)
        self._held = result.fingerprint
        return result

    def _call(self, verb: str, request: Any, *, progress: Progress | None = None, limit: float | None = None) -> Any:
        if self._group is None:
            raise EngineDied(f"the engine is not running, so it cannot {verb}. Call start() first.")
        request_type, answer_type = VERBS[verb]
        try:
            self._group.send(Command(verb=verb, request=to_json(request_type, request)))
            outcome = self._collect(self._group, progress, limit)
        except BaseException:
            # Dead, or in the middle of a verb that nobody will hear the end of.
            self._discard()
            raise
        if isinstance(outcome, Failure):
            if outcome.error == OutOfMemory.__name__:
                raise self._shrunk(outcome.message)
            raise getattr(errors, outcome.error, EngineError)(outcome.message)
        return from_json(answer_type, outcome.value)

    def _shrunk(self, message: str) -> EngineError:
        """The ranks are in different places of a gradient, so all end; the next start has smaller micro-batches."""
        size = self.settings.micro_batch_size
        self._discard()
        if size == 1:
            return EngineError(
                f"{message}\nA single row does not fit into memory: set engine.activation_checkpointing, raise"
                " engine.zero_stage or engine.ranks, or lower sampling.max_completion_length."
            )
        self.settings = replace(self.settings, micro_batch_size=size // 2)
        return OutOfMemory(f"{message}\nFrom the next start on, micro-batches have {size // 2} rows instead of {size}.")

    def _collect(self, group: RankGroup, progress: Progress | None, limit: float | None) -> Answer | Failure:
        """Rank 0's answer once every rank has ended the verb, or the first failure on any rank."""
        deadline = None if limit is None else time.monotonic() + limit
        answer: Answer | None = None
        failed: Failure | None = None
        running = self.settings.ranks
        while running:
            try:
                rank, message = group.next_message(deadline=deadline, silence_seconds=self.silence_seconds)
            except EngineDied as death:
                if failed is None:
                    raise
                raise EngineDied(f"{failed.message}\nThe other ranks could not go on, so all were ended.") from death
            if isinstance(message, Tick):
                if progress is not None:
                    progress(message.done, message.total)
            elif isinstance(message, Answer | Failure):
                running -= 1
                if isinstance(message, Answer) and rank == 0:
                    answer = message
                elif isinstance(message, Failure) and failed is None:
                    failed, deadline = message, time.monotonic() + STRAGGLER_SECONDS
                    # All are started again then; the others may wait for this rank's part of the gradient for ever.
                    running = 0 if message.error == OutOfMemory.__name__ else running
        if failed is not None:
            return failed
        assert answer is not None  # rank 0 has ended without a failure
        return answer

    def _discard(self) -> None:
        self._held = None
        self._group = None
        if self._end is not None:
            self._end()
            self._end = None
