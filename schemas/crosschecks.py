"""What the fields of a run config say to each other: contradictions (faults) and what is legal but hardly meant."""

from papo.advantages import Papo, max_lambda_process
from papo.masking import masked
from papo.scorers import ChainRubric
from schemas.config import RunConfig
from schemas.data import ChainsSource, MixtureSource, plain_sources
from schemas.faults import Fault, Field, dotted, shown
from schemas.generators import VllmGenerator
from schemas.rewardchecks import reward_faults
from schemas.rewardmodels import prediction_faults, prediction_warnings
from schemas.shape import plain

LOWEST_TEMPERATURE = 0.01
"""Of training rollouts: far below it, log-probs at the sampling temperature leave float32's range (BUG-006)."""
_LEAST_VALUE_CLIP = 0.1
"""Of the rewards' spread."""
_MLFLOW_WORDS = ("auto", "off", "databricks")
_MLFLOW_SCHEMES = ("http", "https", "sqlite", "file", "postgresql", "mysql", "mssql", "databricks")
_GROUP: Field = ("sampling", "num_generations")


def cross_faults(config: RunConfig) -> list[Fault]:
    """What must not be combined. All of it is refused before any data is read or any model is loaded."""
    return [
        *_sampling_faults(config),
        *_algorithm_faults(config),
        *_beside_faults(config),
        *_length_faults(config),
        *_model_faults(config),
        *_server_faults(config),
        *_tracking_faults(config),
        *_engine_faults(config),
        *reward_faults(config),
        *prediction_faults(config),
    ]


def warnings_of(config: RunConfig) -> list[str]:
    """What is legal but hardly meant, one sentence each."""
    chains = [(place, source) for place, source in plain_sources(config.data) if isinstance(source, ChainsSource)]
    return [
        *_order_warnings(config),
        *(f"algorithm.{text}" for text in config.algorithm.warnings),
        *_constant_warnings(config),
        *_value_warnings(config),
        *_mixture_warnings(config),
        *prediction_warnings(config),
        *(text for place, source in chains for text in _chain_warnings(config, place, source)),
    ]


def _sampling_faults(config: RunConfig) -> list[Fault]:
    sampling, found = config.sampling, list[Fault]()
    if sampling.num_generations == 1 and getattr(config.algorithm.advantage, "needs_groups", True):
        text = (
            "is 1: the rollouts of one prompt are compared with each other, so a group of one has no signal. "
            "Use 4 or more (PAPO's reference code uses 8), or advantage gae or reinforce_plus_plus."
        )
        found.append(Fault(_GROUP, text))
    if sampling.temperature < LOWEST_TEMPERATURE:
        text = (
            f"is {sampling.temperature}: rollouts of a group must differ, and log-probs are divided by it. Use "
            f"{LOWEST_TEMPERATURE} or more, usually 1.0; greedy decoding is for evaluation (evaluation.temperature: 0)."
        )
        found.append(Fault(("sampling", "temperature"), text))
    return found


def _engine_faults(config: RunConfig) -> list[Fault]:
    if not config.engine.offload_optimizer or config.engine.zero_stage:
        return []
    text = "is set, but engine.zero_stage is 0, which keeps the optimizer with the weights. Use zero_stage 1 or more."
    return [Fault(("engine", "offload_optimizer"), text, (("engine", "zero_stage"),))]


def _algorithm_faults(config: RunConfig) -> list[Fault]:
    algorithm, found = config.algorithm, list[Fault]()
    if algorithm.needs.process_scores and config.scorer is None:
        text = (
            f"is missing, but algorithm.advantage.kind is {algorithm.advantage.kind}, which needs process scores. "
            "Add one (scorer: {kind: chain_rubric}), or use algorithm.advantage.kind: grpo."
        )
        found.append(Fault(("scorer",), text, (("algorithm", "advantage"),)))
    weights, parts = getattr(algorithm.advantage, "reward_weights", None), config.reward.component_names
    if weights is not None and len(weights) != len(parts):
        text = f"has {len(weights)} weights, but the reward has {len(parts)} parts: {', '.join(parts)}. Give one each."
        found.append(Fault(("algorithm", "advantage", "reward_weights"), text, (("reward",),)))
    size, rows = algorithm.ppo_mini_batch_size, config.rows_per_iteration
    if size is not None and size > rows:
        text = (
            f"is {size}, but an iteration has {rows} rollouts (prompts_per_iteration {config.prompts_per_iteration} · "
            f"sampling.num_generations {config.sampling.num_generations}). Use {rows} or less, or null for one step."
        )
        found.append(Fault(("algorithm", "ppo_mini_batch_size"), text, (_GROUP, ("prompts_per_iteration",))))
    return found


def _beside_faults(config: RunConfig) -> list[Fault]:
    """What is trained beside the policy, and what has to wait for it."""
    algorithm, found = config.algorithm, list[Fault]()
    kind = algorithm.advantage.kind
    for name, needed in (("critic", algorithm.needs.critic), ("implicit_prm", algorithm.needs.implicit_prm)):
        if getattr(config, name) is not None and not needed:
            text = f"is given, but algorithm.advantage.kind is {kind}, which trains none: leave it out."
            found.append(Fault((name,), text, (("algorithm", "advantage"),)))
    rule = config.sampling.filter_groups
    if rule is not None and rule.metric == "advantage" and (algorithm.needs.critic or algorithm.needs.implicit_prm):
        text = f"is advantage, but with {kind} advantages are known only when all rollouts are drawn: use acc or score."
        found.append(Fault(("sampling", "filter_groups", "metric"), text, (("algorithm", "advantage"),)))
    if algorithm.needs.full_kl and config.model.lora is not None:
        text = "is set, but with model.lora the reference is the policy without its adapter: leave one of the two out."
        found.append(Fault(("algorithm", "kl_band"), text, (("model", "lora"),)))
    if algorithm.prm_reference and algorithm.needs.reference_refresh:
        text = (
            "is set, but the implicit PRM is measured against the first policy: leave it out, or set "
            "algorithm.implicit_prm.prime_reference: policy."
        )
        found.append(Fault(("algorithm", "ref_update_interval"), text))
    return found


def _length_faults(config: RunConfig) -> list[Fault]:
    optimizer, found = config.optimizer, list[Fault]()
    steps, warmup = optimizer.schedule_steps, optimizer.warmup_steps
    if optimizer.schedule != "constant" and (steps is None or steps <= warmup):
        text = (
            f"is {'null' if steps is None else steps} with warmup_steps {warmup}: a {optimizer.schedule} schedule "
            "needs its own length in optimizer steps, above the warm-up; it does not follow `iterations`."
        )
        others: tuple[Field, ...] = (("optimizer", "schedule"), ("optimizer", "warmup_steps"))
        found.append(Fault(("optimizer", "schedule_steps"), text, others))
    found += _optimizer_faults(config)
    target = config.stop.target_accuracy
    if target is not None and not 0 < target <= 1:
        text = f"is {target}, but accuracy is a share: use a number above 0, up to 1."
        found.append(Fault(("stop", "target_accuracy"), text))
    if target is not None and config.held_out is None:
        lacking = "data.evaluation" if config.data.evaluation is None else "evaluation"
        text = f"is {target}, but nothing is evaluated: give {lacking}, or leave the target out."
        found.append(Fault(("stop", "target_accuracy"), text, (("data", "evaluation"), ("evaluation",))))
    return found


def _optimizer_faults(config: RunConfig) -> list[Fault]:
    """Settings that AdamW refuses when the engine starts, or under which no step is any use."""
    optimizer = config.optimizer
    limit = optimizer.max_grad_norm
    checks = (
        ("learning_rate", 0 < optimizer.learning_rate < 1, "use a rate above 0 and below 1, usually 1e-6"),
        ("betas", all(0 <= beta < 1 for beta in optimizer.betas), "use two numbers from 0 on, below 1"),
        ("eps", optimizer.eps > 0, "use a small positive number, usually 1e-8"),
        ("weight_decay", optimizer.weight_decay >= 0, "use 0 or more"),
        ("max_grad_norm", limit is None or limit > 0, "use a positive norm, or null for no clipping"),
        ("warmup_steps", optimizer.warmup_steps >= 0, "use 0 or more"),
        ("final_ratio", 0 <= optimizer.final_ratio <= 1, "it is a share of learning_rate, from 0 to 1"),
    )
    return [
        Fault(("optimizer", name), f"is {shown(plain(getattr(optimizer, name)))}: {way_out}.")
        for name, is_right, way_out in checks
        if not is_right
    ]


def _model_faults(config: RunConfig) -> list[Fault]:
    model = config.model
    if (model.path is None) != (model.cold_start is None):
        return []
    text = (
        f"has {'neither path nor' if model.path is None else 'both path and'} cold_start: give exactly one of path, a "
        "Hugging Face folder, and cold_start, an SFT config file that makes one first."
    )
    return [Fault(("model",), text)]


def _server_faults(config: RunConfig) -> list[Fault]:
    generator, sampling = config.generator, config.sampling
    if not isinstance(generator, VllmGenerator) or generator.max_model_len is None:
        return []
    needed = sampling.max_prompt_length + sampling.max_completion_length
    if generator.max_model_len >= needed:
        return []
    text = (
        f"is {generator.max_model_len}, but sampling.max_prompt_length {sampling.max_prompt_length} and"
        f" max_completion_length {sampling.max_completion_length} need {needed} tokens: raise it, or leave it out."
    )
    others: tuple[Field, ...] = (("sampling", "max_prompt_length"), ("sampling", "max_completion_length"))
    return [Fault(("generator", "max_model_len"), text, others)]


def _tracking_faults(config: RunConfig) -> list[Fault]:
    """What MLflow would refuse only once the run is under way, and in another process."""
    tracking, found = config.tracking, list[Fault]()
    if not tracking.experiment.strip():
        text = f"is {tracking.experiment!r}: an MLflow experiment needs a name, usually papo."
        found.append(Fault(("tracking", "experiment"), text))
    uri = tracking.mlflow
    scheme, separator, rest = uri.partition("://")
    known = scheme.split("+")[0] in _MLFLOW_SCHEMES and bool(rest) if separator else "/" in uri or uri in _MLFLOW_WORDS
    if not known:
        schemes = ", ".join(_MLFLOW_SCHEMES)
        text = f"is {masked(uri)!r}: use auto, off, the path of a folder with a / in it, or a URI ({schemes})."
        found.append(Fault(("tracking", "mlflow"), text))
    return found


def _order_warnings(config: RunConfig) -> list[str]:
    advantage, group = config.algorithm.advantage, config.sampling.num_generations
    if not isinstance(advantage, Papo) or advantage.order_guard == "clip":
        return []
    highest = max_lambda_process(group, std_ddof=advantage.std_ddof)
    if advantage.lambda_highest < highest:
        return []
    return [
        f"algorithm.advantage.lambda_process is {advantage.lambda_process}: from {highest:.3f} on, in groups of "
        f"{group}, a correct rollout with a low process score can rank below a wrong one. Use a smaller weight, or "
        "order_guard: clip."
    ]


def _constant_warnings(config: RunConfig) -> list[str]:
    constant, longest = config.algorithm.loss_norm_constant, config.sampling.max_completion_length
    if constant is None or constant == longest:
        return []
    return [
        f"algorithm.loss_norm_constant is {constant}, but sampling.max_completion_length is {longest}: Dr. GRPO "
        "divides by the longest completion allowed, so the loss is off by their ratio."
    ]


def _mixture_warnings(config: RunConfig) -> list[str]:
    held_out = config.data.evaluation
    if not isinstance(held_out, MixtureSource) or len({member.weight for member in held_out.sources}) == 1:
        return []
    return ["data.evaluation gives its sources weights, which have no effect: every held-out row is used once."]


def _value_warnings(config: RunConfig) -> list[str]:
    clip, spread = config.algorithm.cliprange_value, abs(config.reward.accuracy_scale)
    if not config.algorithm.needs.critic or clip is None or clip >= _LEAST_VALUE_CLIP * spread:
        return []
    return [
        f"algorithm.cliprange_value is {clip}, but rewards are {spread} apart (reward.accuracy_scale): the critic's "
        f"values move by {clip} an iteration at most, so that it hardly learns. Use null, or about {spread}."
    ]


def _chain_warnings(config: RunConfig, place: Field, source: ChainsSource) -> list[str]:
    found: list[str] = []
    name = dotted(place)
    usual = "train" if place[1] == "train" else "heldout"
    if source.split != usual:
        found.append(
            f"{name}.split is {source.split}: held-out chains are for evaluation and the others for training, so "
            f"that accuracy is of problems never trained on. Use split: {usual}."
        )
    if isinstance(config.scorer, ChainRubric) and config.scorer.task != source.task.task:
        found.append(
            f"scorer.task is {config.scorer.task}, but {name}.task.task is {source.task.task}: right working "
            "would be scored as wrong. Make them the same."
        )
    return found
