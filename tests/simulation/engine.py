"""A scripted engine: deterministic, in memory, and exact, with the learner's habits (it forgets when it dies).

Weights are a hash chain, so an update that is skipped, repeated or given other rows cannot go unnoticed.
"""

import io
import json
from dataclasses import asdict
from random import Random

import polars as pl

from papo.engines.protocol import Progress
from papo.engines.requests import (
    CreateModel,
    Decode,
    Fingerprint,
    Generate,
    Logprobs,
    ModelMark,
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
from papo.errors import EngineDied, EngineStalled
from schemas.canonical import sha256_of
from tasks.disk import Disk

STATS = {
    "loss": 0.0, "policy_loss": 0.0, "kl_loss": 0.0, "grad_norm": 1.0, "clip_fraction": 0.0, "ratio_max": 1.0,
    "tokens": 1, "rows": 1, "optimizer_steps": 1, "skipped_steps": 0, "no_signal": False,
}  # fmt: skip


class ScriptedEngine:
    def __init__(self, disk: Disk, *, inexact: int | None = None) -> None:
        self.disk = disk
        self.inexact = inexact
        """Where given, updates done by this process give other weights than another process's would (a GPU)."""
        self.reference: str | None = None
        self.weights: str | None = None
        self.steps = 0
        self.beside: dict[str, tuple[str, int]] = {}
        """Weights and optimizer steps of the critic and the implicit PRM, where they are open."""
        self.die_in: int | None = None
        self.stall_in: list[int] = []
        """Calls to go until the engine stalls, one number a stall."""
        self.silence_seconds = 600.0
        self.allowed: list[float] = []
        """What a call was allowed to be silent for, at each stall."""
        self.updates: list[str] = []
        """Weights before each update that was done."""
        self.environment = {"engine": "scripted"}

    @property
    def held(self) -> Fingerprint | None:
        if self.weights is None:
            return None
        marks = {
            role: ModelMark(
                weights_sha256=weights, optimizer_sha256=sha256_of([weights, "adam"]), optimizer_steps=steps
            )
            for role, (weights, steps) in self.beside.items()
        }
        return Fingerprint(
            policy_sha256=self.weights,
            optimizer_sha256=sha256_of([self.weights, "adam"]),
            optimizer_steps=self.steps,
            **marks,
        )

    def start(self) -> None: ...

    def close(self) -> None:
        self.weights, self.beside, self.reference = None, {}, None

    def create(self, request: CreateModel) -> None:
        raise NotImplementedError

    def tokenize_pairs(self, request: TokenizePairs) -> None:
        raise NotImplementedError

    def sft(self, request: SftSteps, progress: Progress | None = None) -> SftResult:
        raise NotImplementedError

    def tokenize(self, request: Tokenize) -> None:
        rows = self._read(request.rows)
        ids = [[ord(letter) % 100 for letter in prompt] for prompt in rows["prompt"].to_list()]
        self._write(
            request.output,
            rows.select("prompt_id", pl.col("prompt").alias("prompt_text")).with_columns(
                pl.Series("prompt_ids", ids, dtype=pl.List(pl.Int32))
            ),
        )

    def open(self, request: Open) -> Fingerprint:
        self._call()
        if request.state == "reference":
            self.reference = json.loads(self.disk.read(f"{request.model}/model.json"))["weights"]
            return Fingerprint(policy_sha256="", optimizer_sha256="", optimizer_steps=0)
        if request.checkpoint is None:
            self.weights, self.steps = sha256_of("first weights"), 0
            asked = (("critic", request.critic), ("implicit_prm", request.implicit_prm))
            self.beside = {role: (sha256_of(role), 0) for role, folder in asked if folder is not None}
        else:
            saved = json.loads(self.disk.read(f"{request.checkpoint}/weights.json"))
            self.weights, self.steps = saved["weights"], saved["steps"]
            self.beside = {role: (weights, steps) for role, (weights, steps) in saved["beside"].items()}
        held = self.held
        assert held is not None
        return held

    def generate(self, request: Generate, progress: Progress | None = None) -> None:
        self._call()
        held = self.held
        assert held is not None, "generation needs a policy"
        prompts = {row["group_id"]: row for row in self._read(request.prompts).iter_rows(named=True)}
        rows = []
        for address in request.rows:
            rng = Random(sha256_of([held.policy_sha256, address.seed]))
            ids = [rng.randrange(100) for _ in range(rng.randrange(1, 4))]
            question = prompts[address.group_id]["question"]
            working, answer = rng.choice([f"{question}{total}" for total in "0123"]), rng.choice("01")
            rows.append(
                {
                    "group_id": address.group_id,
                    "sample_index": address.sample_index,
                    "prompt_id": prompts[address.group_id]["prompt_id"],
                    "completion": f"<think>{working}</think><answer>{answer}</answer>",
                    "token_ids": ids,
                    "completion_mask": [True] * len(ids),
                    "sampler_logprobs": [-rng.random() for _ in ids],
                    "token_ends": list(range(1, len(ids) + 1)),
                    "finish_reason": "stop",
                    "policy_version": request.policy_version,
                    "policy_sha256": held.policy_sha256,
                    "row_seed": address.seed,
                    "sampling_sha256": request.sampling_sha256,
                }
            )
        self._write(request.output, pl.DataFrame(rows, schema=ROLLOUTS))

    def end_ids(self) -> tuple[int, ...]:
        raise NotImplementedError

    def decode(self, request: Decode) -> None:
        raise NotImplementedError

    def logprobs(self, request: Logprobs, progress: Progress | None = None) -> None:
        self._call()
        weights = {"policy": self.weights, "reference": self.reference}.get(request.state) or self.beside[
            request.state
        ][0]
        assert weights, f"{request.state} is not loaded"
        names = [request.column, *(["entropies"] * request.entropies), *(["full_kl"] * request.full_kl)]
        self._write(request.output, self._numbers(request.rollouts, names, weights))

    def values(self, request: Values, progress: Progress | None = None) -> None:
        self._call()
        made = self._numbers(request.rollouts, ["token_values"], self.beside["critic"][0])
        final = pl.col("token_values").list.first().cast(pl.Float64).alias("final_value")
        self._write(request.output, made.with_columns(final))

    def score_texts(self, request: ScoreTexts, progress: Progress | None = None) -> None:
        """A score a text: a function of the model's hash and of the text. Some have none."""
        self._call()
        rows = self._read(request.rows)
        made: list[dict[str, object]] = []
        for question, completion in rows.select("question", "completion").iter_rows():
            score = Random(sha256_of([request.sha256, question, completion])).random()
            found: dict[str, object] = {"score": score, "status": "ok", "reason": None}
            made.append(found if score < 0.9 else {"score": None, "status": "unscorable", "reason": "too long"})
        self._write(
            request.output, pl.DataFrame(made, schema={"score": pl.Float64, "status": pl.String, "reason": pl.String})
        )

    def _numbers(self, path: str, names: list[str], weights: str) -> pl.DataFrame:
        """One number a token for each name: a function of the weights and of the rows."""
        rollouts, rng = self._read(path), Random(weights)
        made = rollouts.select("group_id", "sample_index")
        for name in names:
            lists = [[-rng.random() for _ in ids] for ids in rollouts["token_ids"].to_list()]
            made = made.with_columns(pl.Series(name, lists, dtype=pl.List(pl.Float32)))
        return made

    def train_prm(self, request: TrainPrm, progress: Progress | None = None) -> UpdateResult:
        self._call()
        paths = [*request.prompts, *request.rollouts, *request.outcomes, *request.logprobs]
        inputs = [sha256_of(self.disk.read(path).hex()) for path in paths]
        weights, steps = self.beside["implicit_prm"]
        self.updates.append(weights)
        parts = [inputs, request.groups, request.seed, asdict(request.implicit_prm), asdict(request.optimizer)]
        self.beside["implicit_prm"] = (sha256_of([weights, *parts, self.inexact]), steps + 1)
        held = self.held
        assert held is not None
        return UpdateResult(fingerprint=held, stats={"loss": 0.5, "optimizer_steps": 1})

    def update(self, request: Update, progress: Progress | None = None) -> UpdateResult:
        self._call()
        assert self.weights is not None
        self.updates.append(self.weights)
        paths = [*request.prompts, *request.rollouts, request.advantages, *request.logprobs]
        inputs = [sha256_of(self.disk.read(path).hex()) for path in paths]
        algorithm = asdict(request.algorithm)
        algorithm.pop("advantage")
        parts = [inputs, request.seed, asdict(request.optimizer), algorithm, request.off_policy, self.inexact]
        self.weights = sha256_of([self.weights, *parts])
        self.steps += request.algorithm.ppo_epochs
        if request.critic is not None:
            weights, steps = self.beside["critic"]
            seen = [sha256_of(self.disk.read(path).hex()) for path in request.critic.values]
            self.beside["critic"] = (sha256_of([weights, inputs, seen, asdict(request.critic.optimizer)]), steps + 1)
        held = self.held
        assert held is not None
        return UpdateResult(fingerprint=held, stats=dict(STATS))

    def save(self, folder: str) -> None:
        self._call()
        saved = {"weights": self.weights, "steps": self.steps, "beside": self.beside}
        self.disk.write(f"{folder}/weights.json", json.dumps(saved).encode())

    def export(self, folder: str) -> None:
        self.disk.write(f"{folder}/model.json", json.dumps({"weights": self.weights}).encode())

    def export_adapter(self, folder: str) -> None:
        self.export(folder)

    def _call(self) -> None:
        if self.die_in is not None:
            self.die_in -= 1
            if self.die_in < 0:
                self.die_in = None
                self.close()
                raise EngineDied("scripted death")
        if self.stall_in:
            self.stall_in[0] -= 1
            if self.stall_in[0] < 0:
                self.stall_in.pop(0)
                self.allowed.append(self.silence_seconds)
                self.close()
                raise EngineStalled("scripted silence")

    def _read(self, path: str) -> pl.DataFrame:
        return pl.read_parquet(io.BytesIO(self.disk.read(path)))

    def _write(self, path: str, frame: pl.DataFrame) -> None:
        buffer = io.BytesIO()
        frame.write_parquet(buffer)
        self.disk.write(path, buffer.getvalue())


ROLLOUTS = {
    "group_id": pl.Int32,
    "sample_index": pl.Int32,
    "prompt_id": pl.String,
    "completion": pl.String,
    "token_ids": pl.List(pl.Int32),
    "completion_mask": pl.List(pl.Boolean),
    "sampler_logprobs": pl.List(pl.Float32),
    "token_ends": pl.List(pl.Int32),
    "finish_reason": pl.String,
    "policy_version": pl.Int32,
    "policy_sha256": pl.String,
    "row_seed": pl.Int64,
    "sampling_sha256": pl.String,
}
