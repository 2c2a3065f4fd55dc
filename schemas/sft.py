"""The config of supervised fine-tuning: a cold start before RL, from nothing or from a model folder."""

from typing import Annotated, Any, Literal

from pydantic import Field

from papo.chains import ChainTask, Style
from papo.engines.settings import EngineSettings, OptimizerSettings, PromptFormat, TinyModel
from schemas.config import OPERATIONAL, Section, identity_of


class PairColumns(Section):
    prompt: str = "prompt"
    """Text, or a list of chat messages {role, content}."""
    completion: str = "completion"
    """Text; the end token is added."""


class FilePairs(Section):
    """Prompt and completion pairs of a local JSONL or Parquet file."""

    kind: Literal["file"] = "file"
    path: Annotated[str, OPERATIONAL]
    """Where; what it holds enters the identity as a hash."""
    columns: PairColumns = PairColumns()
    """Which column holds what."""
    skip: int = Field(default=0, ge=0)
    """Rows left out at the start of the file."""
    take: int | None = Field(default=None, ge=1)
    """Rows used after those; null: all that follow."""


class ChainsPairs(Section):
    """Traces of digit chains, made locally in a mixture of styles (`papo.chains`)."""

    kind: Literal["chains"] = "chains"
    task: ChainTask = ChainTask()
    """Which problems."""
    count: int = Field(default=16384, ge=1)
    """How many pairs."""
    mixture: dict[Style, float] | None = None
    """Share of each style; None: the task's own mixture."""
    seed: int = 0
    """Of the problems and traces."""


PairSource = Annotated[FilePairs | ChainsPairs, Field(discriminator="kind")]


class Phase(Section):
    share: float = Field(default=1.0, gt=0.0)
    """Of the steps, relative to the other phases'."""
    data: PairSource
    """The pairs of this phase."""


class ModelFolder(Section):
    kind: Literal["folder"] = "folder"
    path: Annotated[str, OPERATIONAL]
    """A local Hugging Face folder of a causal LM."""
    trust_remote_code: bool = False
    """Run code that the model folder brings along."""


class SftEngine(Section):
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Of weights and activations."""
    threads: int = Field(default=1, ge=1)
    """Of the process, on a CPU."""
    device: Annotated[Literal["auto", "cpu", "cuda"], OPERATIONAL] = "auto"
    """auto: CUDA where there is one."""
    micro_batch_size: Annotated[int, OPERATIONAL] = Field(default=64, ge=1)
    """Rows in one forward and backward."""


class SftConfig(Section):
    """One supervised run. The same config and data give the same model, which is made once and reused."""

    name: Annotated[str, OPERATIONAL] = Field(default="sft", pattern=r"^[A-Za-z0-9._-]+$")
    """Begins the name of the model's folder."""
    seed: int = 0
    """Of the order of the pairs."""
    model: Annotated[TinyModel | ModelFolder, Field(discriminator="kind")] = TinyModel()
    """What is trained: a tiny model from nothing, or a folder."""
    prompt: PromptFormat = PromptFormat()
    """How a row becomes the model's prompt."""
    phases: tuple[Phase, ...] = Field(min_length=1)
    """One after the other (a curriculum)."""
    steps: int = Field(default=350, ge=1)
    """Optimizer steps in all."""
    batch_size: int = Field(default=64, ge=1)
    """Pairs a step."""
    optimizer: OptimizerSettings = OptimizerSettings(
        learning_rate=1e-5, schedule="cosine", warmup_steps=50, final_ratio=0.1
    )
    """AdamW and its schedule, which ends with the last step."""
    engine: SftEngine = SftEngine()
    """The process that learns."""

    @property
    def identity(self) -> dict[str, Any]:
        return identity_of(self)

    @property
    def engine_settings(self) -> EngineSettings:
        engine, model = self.engine, self.model
        return EngineSettings(
            dtype=engine.dtype,
            device=engine.device,
            threads=engine.threads,
            micro_batch_size=engine.micro_batch_size,
            trust_remote_code=isinstance(model, ModelFolder) and model.trust_remote_code,
            optimizer=self.optimizer,
        )
