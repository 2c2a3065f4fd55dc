"""What an engine is asked and what it answers: verbs over references, so that one process group serves every stage.

An engine holds *named states*: the policy, and where an algorithm needs them a reference, a critic, an implicit PRM.
It reads frames by path and writes its results to the path that it is given; the caller validates and publishes them,
so there is one writer.
Requests and answers are plain frozen values which cross the process border as JSON, never as pickles.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from papo.algorithm import Algorithm
from papo.losses import ImplicitPrm
from papo.values import LATER, value

State = Literal["policy", "reference", "implicit_prm"]
ZeroStage = Literal[0, 1, 2, 3]
Progress = Callable[[int, int], None]
"""Called with (done, total) in units of the verb: decoded tokens, micro-batches or SFT steps."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelMark:
    """What a model that is trained beside the policy hashes to."""

    weights_sha256: str
    optimizer_sha256: str
    optimizer_steps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """What a learner's state hashes to: tensors by name (dtype, shape, bytes), buffers included, moments apart."""

    policy_sha256: str
    optimizer_sha256: str
    optimizer_steps: int
    critic: ModelMark | None = None
    implicit_prm: ModelMark | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateModel:
    """Write a fresh Hugging Face folder (weights, config, tokenizer) for `model` to `folder`."""

    model: TinyModel
    folder: str


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokenize:
    """Turn rows into prompt ids. `rows`: Parquet with prompt_id, prompt (text, or JSON of chat messages where
    `is_messages` is true). Writes prompt_id, prompt_text (after the template), prompt_ids to `output`."""

    model: str
    rows: str
    format: PromptFormat
    output: str
    preview: bool = False
    """Also write prompt_shown: the ids as text again, special tokens written out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """Load a named state from a model folder (fresh optimizer) or from one of our checkpoints.

    The policy comes with all that is trained beside it: one checkpoint, one fingerprint.
    """

    state: Literal["policy", "reference"] = "policy"
    model: str
    """Hugging Face folder: architecture and tokenizer, and the weights too unless `checkpoint` is given."""
    checkpoint: str | None = None
    critic: str | None = None
    """Model folder whose backbone the critic starts from; with `checkpoint`, whose architecture it has. None: none."""
    implicit_prm: str | None = None
    """The same of the implicit PRM."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowAddress:
    group_id: int
    sample_index: int
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Generate:
    """Sample one shard. The batch always has `batch_rows` rows and prompts are left-padded to `width`, whatever the
    shard holds, so that a row is a function of its own ids, seed, position and these constants."""

    prompts: str
    """Parquet with group_id, prompt_id, prompt_ids."""
    rows: tuple[RowAddress, ...]
    batch_rows: int
    width: int
    max_completion_length: int
    temperature: float
    """0 is greedy (evaluation only)."""
    keep_special_tokens: tuple[str, ...] = ()
    stop_strings: tuple[str, ...] = ()
    """A row ends with the token that completes the first of these; they are looked for in the completion's text with
    special tokens written out."""
    policy_version: int
    sampling_sha256: str
    output: str
    """Parquet in the columns of schemas.frames.Rollouts, rows in the order of `rows`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decode:
    """Make rollouts of a shard that another generator sampled from the open policy's weights: cut each row after its
    first end token and decode it, by the same code as `generate`."""

    request: Generate
    """What was asked for; its `output` takes the rollouts."""
    sampled: str
    """Parquet with token_ids and sampler_logprobs, rows in the order of `request.rows`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Logprobs:
    """Log-probs of stored completions under a state, at the sampling temperature, plus what else is asked for."""

    state: State
    column: Literal["old_logprobs", "ref_logprobs", "prm_logprobs"]
    prompts: str
    rollouts: str
    temperature: float
    output: str
    """Parquet with group_id, sample_index, `column`, and if asked entropies and full_kl: a float32 a token each."""
    entropies: bool = False
    """Entropy at each token, in nats."""
    full_kl: bool = False
    """KL(policy, reference) over the whole vocabulary at each token; for the state reference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """The critic's value before each token of stored completions, and after the last one."""

    prompts: str
    rollouts: str
    output: str
    """Parquet with group_id, sample_index, token_values (one float32 a completion token) and final_value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CriticUpdate:
    """How the critic is trained on the rows of an update."""

    optimizer: OptimizerSettings
    values: tuple[str, ...]
    """Frames with its values before the update: token_values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """One iteration's optimizer steps on stored rows: `ppo_epochs` passes in mini-batches of
    `ppo_mini_batch_size` rows, in an order addressed by `seed`."""

    prompts: tuple[str, ...]
    rollouts: tuple[str, ...]
    advantages: str
    logprobs: tuple[str, ...]
    """Frames with old_logprobs and/or ref_logprobs; empty when one optimizer step a batch makes them needless."""
    algorithm: Algorithm
    optimizer: OptimizerSettings
    temperature: float
    seed: int
    off_policy: bool = False
    """True when the rows come from weights that were lost: ratios are taken from the stored sampler_logprobs."""
    critic: CriticUpdate | None = None
    """None: there is no critic."""
    train_policy: bool = True
    """False while a critic warms up: the policy is measured and stays as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateResult:
    fingerprint: Fingerprint
    stats: dict[str, float | int | bool]
    """papo.metrics.UpdateStats (or PrmStats) as a dict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainPrm:
    """Train the implicit PRM on stored rows by cross-entropy with their outcomes, once over them, in mini-batches."""

    prompts: tuple[str, ...]
    rollouts: tuple[str, ...]
    outcomes: tuple[str, ...]
    """Frames with accuracy_reward, the label from 0 to 1; rows without one take no part."""
    logprobs: tuple[str, ...]
    """Frames with `reference`."""
    reference: Literal["ref_logprobs", "old_logprobs"]
    groups: tuple[int, ...]
    """Groups that are trained on."""
    implicit_prm: ImplicitPrm
    mini_batch_size: int | None
    optimizer: OptimizerSettings
    temperature: float
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SftPhase:
    """A share of the supervised steps drawn from the rows whose `style` is among `styles` (empty: all rows)."""

    share: float
    styles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SftSteps:
    """Supervised steps `first`..`first+count`-1 of `total` on prompt/completion rows; the batch of a step is addressed
    by (seed, step), so a run cut into calls of any size is the same run."""

    rows: str
    """Parquet with prompt_ids, completion_ids (ending in EOS), style."""
    phases: tuple[SftPhase, ...]
    first: int
    count: int
    total: int
    batch_size: int
    optimizer: OptimizerSettings
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizePairs:
    """prompt and completion texts to prompt_ids and completion_ids (+EOS) for supervised training."""

    model: str
    rows: str
    format: PromptFormat
    output: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SftResult:
    fingerprint: Fingerprint
    losses: tuple[float, ...]


@runtime_checkable
class Engine(Protocol):
    """A learner that can also generate on its own weights. Every call may raise `papo.errors.EngineDied`, after which
    `start` gives an empty engine again."""

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
