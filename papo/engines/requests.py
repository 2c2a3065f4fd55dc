"""What an engine is asked and what it answers: plain frozen values that cross the process border as JSON, no pickles.

An engine reads frames by path and writes its results to the path that it is given; the caller validates and publishes
them, so there is one writer.
"""

from dataclasses import dataclass
from typing import Literal

from papo.algorithm import Algorithm
from papo.engines.settings import OptimizerSettings, PromptFormat, TinyModel
from papo.engines.text_models import Activation, Head, ModelInput, Truncate
from papo.losses import ImplicitPrm

State = Literal["policy", "reference", "implicit_prm"]


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
class ScoreTexts:
    """What a frozen model of its own says of completions. It is loaded at the first request and kept; it is no state of
    the run and in no fingerprint."""

    model: str
    """Hugging Face folder, with the model's own tokenizer."""
    sha256: str
    """What its files hash to: with another hash it is loaded anew."""
    head: Head
    input: ModelInput
    max_length: int | None
    truncate: Truncate | None
    activation: Activation
    trust_remote_code: bool
    rows: str
    """Parquet with question (text, or chat messages as JSON) and completion."""
    output: str
    """Parquet with score (float64, null where there is none), status (ok, unscorable, error) and reason, a row each."""


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
