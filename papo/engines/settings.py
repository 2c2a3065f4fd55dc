"""What an engine, its models and its optimizer are set to: plain frozen values, most of them fields of a run config."""

from dataclasses import dataclass, field
from typing import Literal

from papo.values import LATER, value

ZeroStage = Literal[0, 1, 2, 3]


@value
class OptimizerSettings:
    """AdamW and its learning rate, a pure function of the optimizer-step count: no scheduler object can be lost."""

    learning_rate: float = 1e-6
    """At the top of the schedule."""
    betas: tuple[float, float] = (0.9, 0.999)
    """Decay of the first and second moment."""
    eps: float = 1e-8
    """Added to the root of the second moment."""
    weight_decay: float = 0.0
    """Decoupled, as in AdamW."""
    max_grad_norm: float | None = 1.0
    """Global L2 norm that gradients are clipped to; None: not clipped, still measured."""
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    """Shape of the decay after the warm-up."""
    warmup_steps: int = 0
    """Optimizer steps over which the rate rises linearly from 0."""
    schedule_steps: int | None = None
    """Optimizer steps over which linear and cosine decay; the schedule's own length, apart from `iterations`."""
    final_ratio: float = 0.0
    """Learning rate at the end of the decay, as a share of `learning_rate`."""


@value
class TinyModel:
    """A Qwen2-style policy made from nothing, with the digit chains' vocabulary as its tokenizer."""

    kind: Literal["tiny_qwen2"] = "tiny_qwen2"
    hidden_size: int = 64
    """Width."""
    layers: int = 2
    """Transformer blocks."""
    heads: int = 4
    """Attention heads."""
    kv_heads: int = 2
    """Key and value heads, which groups of attention heads share."""
    intermediate_size: int = 176
    """Width inside the MLP."""
    initializer_range: float = 0.08
    """Standard deviation of the first weights; the usual 0.02 learns far more slowly at this size."""
    seed: int = 0
    """Of the first weights."""


@value
class LoraSettings:
    """Low-rank adapters (Hu et al. 2021, arXiv:2106.09685): W + alpha / rank · B A, of which A and B are trained.

    There is no dropout: with it, equal weights would not have ratio 1.
    """

    rank: int = 16
    """Rows of A."""
    alpha: float = 32.0
    """What B A is multiplied by, times the rank."""
    target_modules: tuple[str, ...] | Literal["all-linear"] = "all-linear"
    """What the names of adapted linear layers end with (q_proj); all-linear: all but the head."""
    seed: int = 0
    """Of A; B begins at 0."""

    def __post_init__(self) -> None:
        if self.rank < 1 or self.alpha <= 0:
            raise ValueError(f"rank {self.rank} and alpha {self.alpha} must be positive.")


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    """How the process group is started and what it loads; everything here is in the recorded environment."""

    dtype: Literal["float32", "bfloat16"] = "float32"
    device: Literal["auto", "cpu", "cuda"] = "auto"
    ranks: int = 1
    threads: int = 1
    zero_stage: ZeroStage = 0
    micro_batch_size: int = 64
    activation_checkpointing: bool = False
    offload_optimizer: bool = False
    trust_remote_code: bool = False
    lora: LoraSettings | None = None
    optimizer: OptimizerSettings = field(default_factory=OptimizerSettings)


_RESERVED = {
    "messages", "conversation", "tokenize", "add_generation_prompt", "continue_final_message", "return_tensors",
    "return_dict", "chat_template", "padding", "truncation", "max_length", "enable_thinking",
}  # fmt: skip


def _no_kwargs() -> dict[str, bool | int | float | str | None]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptFormat:
    """How a row's prompt becomes token ids, once: template, system prompt, begin token."""

    chat: Literal["auto", "always", "never"] = "auto"
    """auto: the tokenizer's chat template where it has one and the row is messages, or the model is a chat model."""
    system: str | None = None
    """System message put before the chat; null: the template's own."""
    prefix: str = ""
    """See suffix."""
    suffix: str = ""
    """Text put before and after each plain prompt (instructions such as "put the answer in \\boxed{}")."""
    enable_thinking: bool | None = field(default=None, metadata=LATER)
    """The switch that templates of thinking models read; null: the template's own default."""
    template_kwargs: dict[str, bool | int | float | str | None] = field(default_factory=_no_kwargs, metadata=LATER)
    """Further variables for the chat template, by name."""
    bos: Literal["auto", "always", "never"] = field(default="auto", metadata=LATER)
    """The begin token, of which a prompt never has two. auto: what the chat template writes; before a plain prompt,
    what the tokenizer puts there. always: one. never: none, though the template write one."""

    def __post_init__(self) -> None:
        taken = sorted(_RESERVED & self.template_kwargs.keys())
        if taken:
            raise ValueError(f"template_kwargs has {', '.join(taken)}, which papo sets itself: leave it out.")
