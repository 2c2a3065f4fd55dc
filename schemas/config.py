"""The run config: frozen, closed, with a reference entry under each field. Defaults run.

Each field has a role. *identity* (unmarked) fields decide what is computed and enter keys and `config_sha256`;
*horizon* fields decide how long; *operational* ones how and where. The latter two may change at any resume.
"""

from typing import Annotated, Any, Literal

from pydantic import Field

from papo.advantages import FilterAccuracy, FilterGroups
from papo.algorithm import PAPO, Algorithm
from papo.engines.settings import EngineSettings, LoraSettings, OptimizerSettings
from papo.rewards import FormatReward, OutcomeReward, TextReward
from papo.scorers import ProcessScorer
from papo.segmentation import Segmenter
from schemas.beside import CriticConfig, ImplicitPrmConfig
from schemas.canonical import sha256_of
from schemas.data import DataConfig
from schemas.generators import EmbeddedGenerator, VllmGenerator
from schemas.judges import SecondOpinionConfig
from schemas.section import HORIZON, LATER, OPERATIONAL, Section, identity_of


class ModelConfig(Section):
    path: Annotated[str | None, OPERATIONAL] = None
    """A local Hugging Face folder of a causal LM (safetensors)."""
    cold_start: Annotated[str | None, OPERATIONAL] = None
    """An SFT config file: its model is trained first, once, and reused by content. One of the two must be given."""
    trust_remote_code: bool = False
    """Run code that the model folder brings along. Leave it off unless you have read that code."""
    lora: Annotated[LoraSettings | None, LATER] = None
    """Train low-rank adapters on the frozen model; null: all weights."""


class SamplingConfig(Section):
    num_generations: int = Field(default=8, ge=1)
    """Rollouts per prompt: the group that advantages are relative to."""
    temperature: float = Field(default=1.0, ge=0.0)
    """Of training rollouts; log-probs of policy and reference are taken at it too."""
    max_prompt_length: int = Field(default=512, ge=1)
    """Tokens, counted after the template, when the data is prepared."""
    max_completion_length: int = Field(default=512, ge=1)
    """Tokens, the end token included; a completion that reaches it without one is truncated."""
    keep_special_tokens: tuple[str, ...] = ()
    """Special tokens that stay in the completion's text (they are otherwise left out of what rewards see)."""
    stop_strings: Annotated[tuple[Annotated[str, Field(min_length=1)], ...], LATER] = ()
    """Texts that end a completion: it is cut behind the token that completes the first of them, its text right behind
    the string. Special tokens count as they are written."""
    filter_groups: Annotated[FilterGroups | None, LATER] = None
    """Dynamic sampling (DAPO): only groups with a signal are trained on, and new ones are drawn for the others."""
    filter_accuracy: Annotated[FilterAccuracy | None, LATER] = None
    """PRIME's filter: more prompts are drawn, and those that are too easy or too hard are left out."""


class TextTerm(Section):
    """A reward of a completion's text alone, and what it weighs."""

    reward: Annotated[TextReward, Field(discriminator="kind")]
    """Which."""
    weight: float = 1.0
    """What it is multiplied by in outcome_reward."""


class RewardConfig(Section):
    outcome: OutcomeReward
    """The verifier."""
    format_weight: float = Field(default=0.0, ge=0.0)
    """Weight of the format reward in outcome_reward; correctness never depends on it."""
    format: FormatReward = FormatReward()
    """Checks the form of the whole completion."""
    accuracy_scale: float = 1.0
    """See accuracy_offset."""
    accuracy_offset: float = 0.0
    """outcome_reward = scale · accuracy + offset + format_weight · format; 2 and -1 give DAPO's ±1."""
    also: Annotated[tuple[TextTerm, ...], LATER] = ()
    """Further rewards, added to outcome_reward by their weights; correctness never depends on them."""
    overlong_buffer_len: Annotated[int | None, LATER] = Field(default=None, ge=0)
    """DAPO's soft punishment: tokens before sampling.max_completion_length over which the reward falls; null: none."""
    overlong_penalty_factor: Annotated[float, LATER] = Field(default=1.0, gt=0.0)
    """By how much it falls at most."""
    second_opinion: Annotated[SecondOpinionConfig | None, LATER] = None
    """A language model that is asked about answers which the rules rejected; null: the rules alone judge."""

    @property
    def component_names(self) -> tuple[str, ...]:
        """The parts of outcome_reward before their weights, in the order of the frame's `components`."""
        parts = ["accuracy", "format", *(term.reward.kind for term in self.also)]
        return tuple(parts if self.overlong_buffer_len is None else [*parts, "overlong"])


class EvaluationConfig(Section):
    every: int = Field(default=10, ge=1)
    """Evaluate the policy after each so many iterations, and once before the first."""
    temperature: float = Field(default=1.0, ge=0.0)
    """0: greedy."""
    samples: int = Field(default=1, ge=1)
    """Completions per held-out prompt; accuracy is their mean (avg@k)."""
    shard_size: int = Field(default=256, ge=1)
    """Rows sampled in one batch."""
    sound_threshold: Annotated[float, OPERATIONAL] = 0.7
    """A right answer with a process score at or above it is reported as sound."""
    outcome: Annotated[OutcomeReward | None, LATER] = None
    """What judges the held-out rows; null: reward.outcome. Where a reward model trains, a verifier belongs here."""


class EngineConfig(Section):
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Of weights and activations; log-probs are float32 always."""
    shard_size: int = Field(default=128, ge=1)
    """Rows sampled in one batch: one shard, one artifact, one ledger row."""
    threads: int = Field(default=1, ge=1)
    """Of each rank, on a CPU: part of the identity, since sums depend on it."""
    device: Annotated[Literal["auto", "cpu", "cuda"], OPERATIONAL] = "auto"
    """auto: CUDA where there is one."""
    ranks: Annotated[int, OPERATIONAL] = Field(default=1, ge=1)
    """Processes that share the update."""
    zero_stage: Annotated[Literal[0, 1, 2, 3], OPERATIONAL] = 0
    """DeepSpeed's partitioning of optimizer state (1), gradients (2) and parameters (3)."""
    micro_batch_size: Annotated[int, OPERATIONAL] = Field(default=64, ge=1)
    """Rows in one forward and backward; halved by itself when memory runs out."""
    activation_checkpointing: Annotated[bool, OPERATIONAL] = False
    """Compute the activations of each block again in the backward pass: the same gradient in less memory, for a third
    more time."""
    offload_optimizer: Annotated[bool, OPERATIONAL] = False
    """Keep masters and moments in the machine's memory and step there; needs zero_stage 1 or more."""
    stall_seconds: Annotated[float, OPERATIONAL] = Field(default=600.0, gt=0.0)
    """How long the engine may show no progress and take no processor time before it is started again; a stage that has
    taken longer in this run may take as long as that."""

    @property
    def sums(self) -> dict[str, int]:
        """In which order gradients are added up: another order is the same step but for its last bits."""
        return {"ranks": self.ranks, "zero_stage": self.zero_stage, "micro_batch_size": self.micro_batch_size}


class CheckpointConfig(Section):
    every: int | Literal["auto"] = "auto"
    """Iterations between checkpoints. auto: the smallest number whose saving costs under 5 % of the time."""
    keep_every: int | None = None
    """Every so many versions are kept for good; the newest, the best and version 0 always are."""


class StopConfig(Section):
    """When a run ends before its horizon, with the reason in its record."""

    target_accuracy: float | None = None
    """Held-out accuracy to reach."""
    all_truncated: int = Field(default=3, ge=1)
    """Iterations in a row with every completion cut off at the limit."""
    non_finite: int = Field(default=3, ge=1)
    """Iterations in a row in which no mini-batch had a finite loss and gradient."""
    no_signal: int | None = Field(default=20, ge=1)
    """Iterations in a row in which every advantage was 0, or no rollout had a reward; null: never."""
    plateau_evaluations: int | None = Field(default=None, ge=1)
    """Evaluations in a row without a better one than before; null: never."""
    max_ppo_kl: float | None = Field(default=None, gt=0.0)
    """Largest mean log-ratio of one update, in nats a token."""
    max_kl: float | None = Field(default=None, gt=0.0)
    """Largest KL to the reference, where the algorithm has one."""
    max_length_growth: float | None = Field(default=None, gt=1.0)
    """Largest mean completion length, as a multiple of the first iteration's."""
    min_entropy: float | None = Field(default=None, gt=0.0)
    """Smallest mean entropy in nats a token; measured where algorithm.entropy_coeff is not 0."""


class TrackingConfig(Section):
    mlflow: str = "auto"
    """auto: a database beside the runs; off; or a tracking URI, without a password in it: MLflow's own variables
    MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN, are read from the environment."""
    experiment: str = "papo"
    """MLflow's name for a set of runs."""


class RunConfig(Section):
    """One training run."""

    seed: int = 0
    """Of data order, sampling and mini-batches: every draw is a function of it and of the draw's address."""
    iterations: Annotated[int, HORIZON] = Field(default=60, ge=1)
    """How many the run is to have; more may be asked for later."""
    prompts_per_iteration: int = Field(default=16, ge=1)
    """Groups drawn an iteration; times sampling.num_generations, the rollouts of a batch."""
    data: DataConfig
    """What is trained and evaluated on."""
    model: ModelConfig
    """The first policy."""
    sampling: SamplingConfig = SamplingConfig()
    """How rollouts are drawn."""
    reward: RewardConfig
    """The outcome reward."""
    scorer: Annotated[ProcessScorer, Field(discriminator="kind")] | None = None
    """Makes process scores; needed by algorithms that use them."""
    algorithm: Algorithm = PAPO
    """Credit, loss and aggregation."""
    optimizer: OptimizerSettings = OptimizerSettings()
    """AdamW and its schedule."""
    critic: Annotated[CriticConfig | None, LATER] = None
    """The critic; null: the defaults where the algorithm needs one."""
    implicit_prm: Annotated[ImplicitPrmConfig | None, LATER] = None
    """The implicit PRM; null: the defaults where the algorithm needs one."""
    engine: EngineConfig = EngineConfig()
    """The process group that samples and learns."""
    generator: Annotated[EmbeddedGenerator | VllmGenerator, Field(discriminator="kind"), LATER] = EmbeddedGenerator()
    """Who samples rollouts."""
    gap_alarm: Annotated[float | None, OPERATIONAL] = 0.1
    """Mean |log-prob by the trainer − by the sampler| over an iteration's training tokens, in nats, above which there
    is an alarm (an event and a message); null: never."""
    evaluation: EvaluationConfig | None = EvaluationConfig()
    """When and how the held-out prompts are sampled; null or no data.evaluation: never."""
    checkpoint: Annotated[CheckpointConfig, OPERATIONAL] = CheckpointConfig()
    """How often the whole state is saved, and what is kept."""
    stop: Annotated[StopConfig, HORIZON] = StopConfig()
    """When the run ends before its horizon."""
    tracking: Annotated[TrackingConfig, OPERATIONAL] = TrackingConfig()
    """Where MLflow is."""
    on_inexact_replay: Annotated[Literal["correct", "stop"], OPERATIONAL] = "correct"
    """When a replayed update does not give the recorded weights (a GPU, another machine): go on in a new recorded
    lineage with the stored rollouts as off-policy data, or stop."""

    @property
    def critic_settings(self) -> CriticConfig | None:
        """The critic that is trained, or None."""
        return (self.critic or CriticConfig()) if self.algorithm.needs.critic else None

    @property
    def prm_settings(self) -> ImplicitPrmConfig | None:
        """The implicit PRM that is trained, or None."""
        return (self.implicit_prm or ImplicitPrmConfig()) if self.algorithm.needs.implicit_prm else None

    @property
    def segmenter(self) -> Segmenter | None:
        """What cuts completions in place of the scorer's own steps (PRPO); None elsewhere."""
        return getattr(self.algorithm.advantage, "segmenter", None)

    @property
    def segmenter_identity(self) -> Any:
        """Its settings, for keys."""
        return self.identity["algorithm"]["advantage"].get("segmenter")

    @property
    def needs_reference(self) -> bool:
        """Whether a frozen policy is scored beside the one that is trained."""
        return self.algorithm.needs.reference or self.algorithm.prm_reference

    @property
    def rows_per_iteration(self) -> int:
        return self.prompts_per_iteration * self.sampling.num_generations

    @property
    def held_out(self) -> EvaluationConfig | None:
        """How to evaluate, or None where there is nothing to evaluate on."""
        return self.evaluation if self.data.evaluation is not None else None

    @property
    def held_out_outcome(self) -> OutcomeReward:
        """What judges the held-out rows."""
        return self.reward.outcome if self.evaluation is None else self.evaluation.outcome or self.reward.outcome

    @property
    def engine_settings(self) -> EngineSettings:
        engine = self.engine
        return EngineSettings(
            dtype=engine.dtype,
            device=engine.device,
            ranks=engine.ranks,
            threads=engine.threads,
            zero_stage=engine.zero_stage,
            micro_batch_size=engine.micro_batch_size,
            activation_checkpointing=engine.activation_checkpointing,
            offload_optimizer=engine.offload_optimizer,
            trust_remote_code=self.model.trust_remote_code,
            lora=self.model.lora,
            optimizer=self.optimizer,
        )

    @property
    def identity(self) -> dict[str, Any]:
        return identity_of(self)

    @property
    def sha256(self) -> str:
        return sha256_of(self.identity)
