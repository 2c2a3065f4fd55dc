"""What a rank does for each verb: the named states it holds, and who works on them."""

import math
import os
import platform
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import polars as pl
import torch
from transformers.utils.logging import disable_progress_bar

from papo.engines import adapter, checkpoint, distributed, models, requests, tokenizing
from papo.engines.critic import load_critic, value_rollouts
from papo.engines.generator import decoded, generate
from papo.engines.learner import Learner, module_fingerprint
from papo.engines.models import LoadedModel
from papo.engines.prm_update import train_prm
from papo.engines.scoring import score_rollouts
from papo.engines.settings import EngineSettings
from papo.engines.sft import train_supervised
from papo.engines.text_scores import TextScorers, score_texts
from papo.engines.update import train_policy
from papo.errors import EngineError
from papo.metrics import PrmStats, UpdateStats

RECORDED_PACKAGES = ("torch", "transformers", "tokenizers", "deepspeed", "peft", "polars", "numpy")
Role = Literal["critic", "implicit_prm"]
TICK_SECONDS = 0.2
"""Least time between two progress messages."""


class Worker:
    """One rank's models. Each method is a verb of `papo.engines.protocol.Engine` and runs on every rank."""

    def __init__(self, settings: EngineSettings, *, rank: int, tick: Callable[[int, int], None]) -> None:
        torch.set_num_threads(settings.threads)
        disable_progress_bar()
        self._settings = settings
        self._rank = rank
        self._tick = _throttled(tick)
        self._device = distributed.use_device(settings.device, local_rank=int(os.environ["LOCAL_RANK"]))
        distributed.use_determinism(self._device)
        self._learner: Learner | None = None
        self._beside: dict[Role, Learner] = {}
        """What is trained beside the policy."""
        self._fingerprint: requests.Fingerprint | None = None
        self._reference: LoadedModel | None = None
        self._base_sha256: str | None = None
        """Of the policy's frozen base, where the policy without its adapter is the reference."""
        self._tokenizers: dict[str, Any] = {}
        self._scorers = TextScorers(dtype=self._dtype, device=self._device)

    def environment(self) -> dict[str, str]:
        gpu = torch.cuda.get_device_name(self._device) if self._device.type == "cuda" else ""
        packages = {name: version(name) for name in RECORDED_PACKAGES}
        settings = {name: str(value) for name, value in asdict(self._settings).items() if name != "optimizer"}
        return (
            packages
            | settings
            | {
                "python": platform.python_version(),
                "machine": platform.machine(),
                "cpu": _cpu_model(),
                "device": f"{self._device.type} {gpu}".strip(),
                "cpu_capability": torch.backends.cpu.get_cpu_capability(),
            }
        )

    def create(self, request: requests.CreateModel) -> None:
        if self._rank == 0:
            models.create_tiny(request.model, Path(request.folder))

    def tokenize(self, request: requests.Tokenize) -> None:
        if self._rank == 0:
            tokenizing.tokenize(request, self._tokenizer(request.model)).write_parquet(request.output)

    def tokenize_pairs(self, request: requests.TokenizePairs) -> None:
        if self._rank == 0:
            tokenizing.tokenize_pairs(request, self._tokenizer(request.model)).write_parquet(request.output)

    def open(self, request: requests.Open) -> requests.Fingerprint:
        if request.state == "reference":
            return self._open_reference(request)
        # The old policy goes first: two of them might not fit.
        for held in (self._learner, *self._beside.values()):
            if held is not None:
                held.close()
        self._learner, self._beside, self._fingerprint = None, {}, None
        lora = self._settings.lora
        # A checkpoint of an adapter has the adapter alone.
        loaded = self._load(request.model, weights=request.checkpoint is None or lora is not None)
        if request.checkpoint is not None:
            models.untie(loaded.module, checkpoint.parameter_names(Path(request.checkpoint)))
        if lora is not None:
            adapter.add(loaded.module, lora)
        learner = Learner(loaded, self._settings, self._device)
        beside: dict[Role, Learner] = {}
        folders: dict[Role, str | None] = {"critic": request.critic, "implicit_prm": request.implicit_prm}
        for role, folder in folders.items():
            if folder is not None:
                beside[role] = self._open_beside(role, folder, request, learner.model)
        # Last, for it sets the random state that all were saved with.
        if request.checkpoint is not None:
            learner.load(Path(request.checkpoint))
        self._beside = beside
        return self._hold(learner)

    def generate(self, request: requests.Generate) -> None:
        learner, fingerprint = self._policy("generate")
        if self._takes_part:
            frame = generate(learner.model, request, policy_sha256=fingerprint.policy_sha256, tick=self._tick)
            self._write(frame, request.output)

    def end_ids(self, _: None) -> tuple[int, ...]:
        return self._policy("take end tokens from")[0].model.end_ids

    def decode(self, request: requests.Decode) -> None:
        learner, fingerprint = self._policy("decode for")
        if self._rank == 0:
            frame = decoded(learner.model, request, policy_sha256=fingerprint.policy_sha256)
            self._write(frame, request.request.output)

    def logprobs(self, request: requests.Logprobs) -> None:
        with self._scoring(request.state) as module:
            if self._takes_part:
                frame = score_rollouts(
                    module,
                    request,
                    micro_batch_size=self._settings.micro_batch_size,
                    tick=self._tick,
                    policy=self._policy("logprobs")[0].engine.module if request.full_kl else None,
                )
                self._write(frame, request.output)

    def values(self, request: requests.Values) -> None:
        module = self._trained("critic").engine.module
        if self._takes_part:
            size = self._settings.micro_batch_size
            self._write(value_rollouts(module, request, micro_batch_size=size, tick=self._tick), request.output)

    def score_texts(self, request: requests.ScoreTexts) -> None:
        # On one rank whatever the ZeRO stage: the model is whole there, and no other rank has it.
        if self._rank == 0:
            size = self._settings.micro_batch_size
            frame = score_texts(self._scorers.of(request), request, micro_batch_size=size, tick=self._tick)
            self._write(frame, request.output)

    def train_prm(self, request: requests.TrainPrm) -> requests.UpdateResult:
        learner, _ = self._policy("train_prm")
        prm = self._trained("implicit_prm")
        self._learner = self._fingerprint = None
        stats = train_prm(prm, request, settings=self._settings, rank=self._rank, tick=self._tick)
        return requests.UpdateResult(fingerprint=self._hold(learner), stats=_measured(stats))

    def update(self, request: requests.Update) -> requests.UpdateResult:
        learner, _ = self._policy("update")
        critic = self._trained("critic") if request.critic is not None else None
        # Until it has ended well there is no policy: a half-made update must never be generated from.
        self._learner = self._fingerprint = None
        stats = train_policy(learner, request, settings=self._settings, rank=self._rank, tick=self._tick, critic=critic)
        return requests.UpdateResult(fingerprint=self._hold(learner), stats=_measured(stats))

    def sft(self, request: requests.SftSteps) -> requests.SftResult:
        learner, _ = self._policy("sft")
        self._learner = self._fingerprint = None
        losses = train_supervised(learner, request, settings=self._settings, rank=self._rank, tick=self._tick)
        return requests.SftResult(fingerprint=self._hold(learner), losses=tuple(losses))

    def save(self, folder: str) -> None:
        self._policy("save")[0].save(Path(folder))
        for role, learner in self._beside.items():
            learner.save(Path(folder) / role)

    def export(self, folder: str) -> None:
        self._policy("export")[0].export(Path(folder))

    def export_adapter(self, folder: str) -> None:
        self._policy("export")[0].export_adapter(Path(folder))

    @property
    def _takes_part(self) -> bool:
        """Whether this rank computes what only rank 0 writes: with ZeRO 3 each layer needs every rank's part of it."""
        return self._rank == 0 or self._settings.zero_stage == 3

    def _write(self, frame: pl.DataFrame, path: str) -> None:
        if self._rank == 0:
            frame.write_parquet(path)

    def _policy(self, verb: str) -> tuple[Learner, requests.Fingerprint]:
        if self._learner is None or self._fingerprint is None:
            raise EngineError(f"no policy is open, so there is nothing to {verb}: open a model or a checkpoint first.")
        return self._learner, self._fingerprint

    def _trained(self, role: Role) -> Learner:
        if role not in self._beside:
            raise EngineError(f"no {role} is open: open the policy together with it.")
        return self._beside[role]

    def _hold(self, learner: Learner) -> requests.Fingerprint:
        """From now on `learner` is the policy, together with what is trained beside it."""
        marks = {role: _mark(held.fingerprint()) for role, held in self._beside.items()}
        self._learner, self._fingerprint = learner, replace(learner.fingerprint(), **marks)
        return self._fingerprint

    def _open_beside(self, role: Role, folder: str, request: requests.Open, policy: LoadedModel) -> Learner:
        weights = request.checkpoint is None
        trusted = self._settings.trust_remote_code
        if role == "critic":
            model = load_critic(Path(folder), policy, weights=weights, trust_remote_code=trusted)
        else:
            model = self._load(folder, weights=weights)
            if request.checkpoint is not None:
                models.untie(model.module, checkpoint.parameter_names(Path(request.checkpoint) / role))
        learner = Learner(model, self._settings, self._device)
        if request.checkpoint is not None:
            learner.load(Path(request.checkpoint) / role)
        return learner

    def _open_reference(self, request: requests.Open) -> requests.Fingerprint:
        if request.checkpoint is not None:
            raise EngineError("a reference is opened from a model folder, not from a checkpoint: export it first.")
        self._reference = self._base_sha256 = None
        if self._learner is not None and self._learner.is_on_base(Path(request.model)):
            # The start model is there already: the policy without its adapter.
            self._base_sha256 = self._learner.base_sha256
            with adapter.off(self._learner.engine.module):
                return self._learner.base_fingerprint()
        reference = self._load(request.model, weights=True)
        reference.module.to(self._device).requires_grad_(False)
        self._reference = reference
        return module_fingerprint(reference.module)

    @contextmanager
    def _scoring(self, state: requests.State) -> Generator[Any]:
        """The module that log-probs of `state` are taken under."""
        if state == "policy":
            yield self._policy("logprobs")[0].engine.module
        elif state == "implicit_prm":
            yield self._trained("implicit_prm").engine.module
        elif self._reference is not None:
            yield self._reference.module
        elif self._base_sha256 is not None and self._policy("logprobs")[0].base_sha256 == self._base_sha256:
            module = self._policy("logprobs")[0].engine.module
            with adapter.off(module):
                yield module
        else:
            raise EngineError('no reference is open: open(state="reference") first.')

    def _load(self, folder: str, *, weights: bool) -> LoadedModel:
        trusted = self._settings.trust_remote_code
        return models.load(Path(folder), dtype=self._dtype, trust_remote_code=trusted, weights=weights)

    @property
    def _dtype(self) -> torch.dtype:
        return torch.bfloat16 if self._settings.dtype == "bfloat16" else torch.float32

    def _tokenizer(self, folder: str) -> Any:
        if folder not in self._tokenizers:
            trusted = self._settings.trust_remote_code
            self._tokenizers = {folder: tokenizing.load_tokenizer(Path(folder), trust_remote_code=trusted)}
        return self._tokenizers[folder]


def _mark(fingerprint: requests.Fingerprint) -> requests.ModelMark:
    return requests.ModelMark(
        weights_sha256=fingerprint.policy_sha256,
        optimizer_sha256=fingerprint.optimizer_sha256,
        optimizer_steps=fingerprint.optimizer_steps,
    )


def _measured(stats: UpdateStats | PrmStats) -> dict[str, float | int | bool]:
    """The fields that there was something to measure for: neither None nor, when every step was skipped, NaN."""
    return {name: number for name, number in asdict(stats).items() if number is not None and math.isfinite(number)}


def _throttled(tick: Callable[[int, int], None]) -> Callable[[int, int], None]:
    last = 0.0

    def throttled(done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if done == total or now - last >= TICK_SECONDS:
            last = now
            tick(done, total)

    return throttled


def _cpu_model() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")
