"""What the fields of a run config say to each other: contradictions (faults) and what is legal but hardly meant."""

import json
from pathlib import Path
from typing import Any, cast

from papo.advantages import Papo, max_lambda_process
from papo.chains import ChainTask
from papo.scorers import ChainRubric
from schemas.config import ChainsSource, FileSource, RunConfig
from schemas.faults import Fault
from schemas.faults import Path as Field
from schemas.sft import FilePairs, ModelFolder, SftConfig

LOWEST_TEMPERATURE = 0.01
"""Of training rollouts: below it log-probs at the sampling temperature leave float32's range (BUG-006)."""
_SAMPLES: Field = ("sampling", "num_generations")
_LATER = {"critic": "values of a critic", "implicit_prm": "an implicit PRM", "entropies": "token entropies"}
_TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt")


def resolve(path: str, base: Path) -> Path:
    """Where a path of a config leads: from the config's folder `base` if there is such a thing there, else from the
    working folder. The path stays in the config as it was written, so that a config means the same on two machines."""
    written = Path(path).expanduser()
    beside = base / written
    return beside if beside.exists() else written


def cross_faults(config: RunConfig) -> list[Fault]:
    """What must not be combined. All of it is refused before any data is read or any model is loaded."""
    return [*_sampling_faults(config), *_algorithm_faults(config), *_schedule_faults(config), *_model_faults(config)]


def warnings_of(config: RunConfig) -> list[str]:
    """What is legal but hardly meant, one sentence each."""
    found: list[str] = []
    algorithm, group = config.algorithm, config.sampling.num_generations
    if isinstance(algorithm.advantage, Papo):
        weight, highest = (
            algorithm.advantage.lambda_process,
            max_lambda_process(group, std_ddof=algorithm.advantage.std_ddof),
        )
        if weight >= highest:
            found.append(
                f"algorithm.advantage.lambda_process is {weight}: from {highest:.3f} on, for groups of {group}, a correct "
                "rollout with a low process score can rank below a wrong one. Use a smaller weight to rule that out."
            )
    longest, constant = config.sampling.max_completion_length, algorithm.loss_norm_constant
    if constant is not None and constant != longest:
        found.append(
            f"algorithm.loss_norm_constant is {constant} but sampling.max_completion_length is {longest}: Dr. GRPO divides "
            "by the longest completion allowed, so the loss is scaled by their ratio."
        )
    for split, source in (("train", config.data.train), ("evaluation", config.data.evaluation)):
        if isinstance(source, ChainsSource):
            found += _chain_warnings(config, split, source)
    return found


def file_faults(config: RunConfig | SftConfig, base: Path) -> list[Fault]:
    """Files and folders that the config names and that are not there, or not what they must be."""
    files, folder = _named(config)
    found = [fault for path, written in files if (fault := _file_fault(path, written, base))]
    if folder is not None:
        found += _folder_faults(*folder, base)
    return found


def _sampling_faults(config: RunConfig) -> list[Fault]:
    sampling, found = config.sampling, list[Fault]()
    if sampling.num_generations == 1:
        found.append(Fault(_SAMPLES, "is 1: the rollouts of one prompt are compared with each other, so a group of one has "
                           "no signal. Use 4 or more (PAPO's reference code uses 8)."))  # fmt: skip
    if sampling.temperature < LOWEST_TEMPERATURE:
        found.append(Fault(("sampling", "temperature"), f"is {sampling.temperature}: training rollouts must differ, and "
                           f"their log-probs are divided by it. Use {LOWEST_TEMPERATURE} or more, usually 1.0; greedy "
                           "decoding is for evaluation (evaluation.temperature: 0)."))  # fmt: skip
    return found


def _algorithm_faults(config: RunConfig) -> list[Fault]:
    algorithm, found = config.algorithm, list[Fault]()
    if algorithm.needs.process_scores and config.scorer is None:
        kind = algorithm.advantage.kind
        found.append(Fault(("scorer",), f"is missing, but algorithm.advantage.kind is {kind}, which needs process scores. "
                           "Add a scorer (scorer: {kind: chain_rubric}), or use algorithm.advantage.kind: grpo.",
                           (("algorithm", "advantage"),)))  # fmt: skip
    for name, what in _LATER.items():
        if getattr(algorithm.needs, name):
            found.append(Fault(("algorithm",), f"needs {what}, which this version cannot make. Use another advantage or "
                               "loss; papo, grpo, sum and prm work."))  # fmt: skip
    size, rows = algorithm.ppo_mini_batch_size, config.rows_per_iteration
    if size is not None and size > rows:
        found.append(Fault(("algorithm", "ppo_mini_batch_size"), f"is {size} but an iteration has {rows} rollouts "
                           f"(prompts_per_iteration {config.prompts_per_iteration} · sampling.num_generations "
                           f"{config.sampling.num_generations}). Use {rows} or less, or null for all in one step.",
                           (_SAMPLES, ("prompts_per_iteration",))))  # fmt: skip
    return found


def _schedule_faults(config: RunConfig) -> list[Fault]:
    optimizer, found = config.optimizer, list[Fault]()
    steps, warmup = optimizer.schedule_steps, optimizer.warmup_steps
    if optimizer.schedule != "constant" and (steps is None or steps <= warmup):
        found.append(Fault(("optimizer", "schedule_steps"), f"is {'null' if steps is None else steps} with warmup_steps "
                           f"{warmup}: a {optimizer.schedule} schedule needs its own length in optimizer steps, above the "
                           "warm-up. (It does not follow `iterations`, which may change at any resume.)",
                           (("optimizer", "schedule"), ("optimizer", "warmup_steps"))))  # fmt: skip
    if not optimizer.learning_rate > 0:
        found.append(Fault(("optimizer", "learning_rate"), f"is {optimizer.learning_rate}: use a positive rate."))
    target = config.stop.target_accuracy
    if target is not None and config.held_out is None:
        lacking = "data.evaluation" if config.data.evaluation is None else "evaluation"
        found.append(Fault(("stop", "target_accuracy"), f"is {target} but nothing is evaluated: give {lacking}, or leave "
                           "the target out.", (("data", "evaluation"), ("evaluation",))))  # fmt: skip
    if target is not None and not 0 < target <= 1:
        found.append(
            Fault(("stop", "target_accuracy"), f"is {target}: accuracy is a share, use a number above 0 and up to 1.")
        )
    return found


def _model_faults(config: RunConfig) -> list[Fault]:
    model = config.model
    if (model.path is None) != (model.cold_start is None):
        return []
    both = "has both path and cold_start" if model.path else "has neither path nor cold_start"
    return [Fault(("model",), f"{both}: give exactly one, path: a Hugging Face folder, or cold_start: an SFT config file "
                  "that makes one first.", (("model", "path"), ("model", "cold_start")))]  # fmt: skip


def _chain_warnings(config: RunConfig, split: str, source: ChainsSource) -> list[str]:
    found: list[str] = []
    usual = "train" if split == "train" else "heldout"
    if source.split != usual:
        found.append(f"data.{split}.split is {source.split}: held-out chains are there to be evaluated on, training chains "
                     f"to train on, so that accuracy is not of problems seen before. Use split: {usual}.")  # fmt: skip
    task: ChainTask = source.task
    if isinstance(config.scorer, ChainRubric) and config.scorer.task != task.task:
        found.append(f"scorer.task is {config.scorer.task} but data.{split}.task.task is {task.task}: right working would "
                     "be scored as wrong. Make them the same.")  # fmt: skip
    return found


def _named(config: RunConfig | SftConfig) -> tuple[list[tuple[Field, str]], tuple[Field, str] | None]:
    """The files and the model folder that a config names."""
    files: list[tuple[Field, str]] = []
    folder: tuple[Field, str] | None = None
    if isinstance(config, SftConfig):
        for index, phase in enumerate(config.phases):
            if isinstance(phase.data, FilePairs):
                files.append((("phases", index, "data", "path"), phase.data.path))
        if isinstance(config.model, ModelFolder):
            folder = (("model", "path"), config.model.path)
        return files, folder
    for split, source in (("train", config.data.train), ("evaluation", config.data.evaluation)):
        if isinstance(source, FileSource):
            files.append((("data", split, "path"), source.path))
    if config.model.cold_start is not None:
        files.append((("model", "cold_start"), config.model.cold_start))
    if config.model.path is not None:
        folder = (("model", "path"), config.model.path)
    return files, folder


def _file_fault(field: Field, written: str, base: Path) -> Fault | None:
    path = resolve(written, base)
    if path.is_dir():
        return Fault(field, f"is {written}, which is a folder: name the file.")
    if not path.is_file():
        return _not_found(field, written, base)
    if field[0] != "model" and path.suffix not in (".jsonl", ".parquet"):
        return Fault(field, f"is {written}: data files end in .jsonl or .parquet. Convert it to one of them.")
    try:
        with path.open("rb") as file:
            file.read(1)
    except OSError as error:
        return Fault(field, f"is {written}, which cannot be read ({error.strerror}): check its permissions.")
    return None


def _folder_faults(field: Field, written: str, base: Path) -> list[Fault]:
    folder = resolve(written, base)
    if not folder.is_dir():
        if folder.exists():
            return [Fault(field, f"is {written}, which is a file: name the folder that holds config.json.")]
        return [_not_found(field, written, base)]
    lacking: list[str] = []
    if not (folder / "config.json").is_file():
        lacking.append("config.json")
    if not any(folder.glob("*.safetensors")):
        lacking.append("weights (*.safetensors; other formats must be converted first)")
    lacking += _missing_shards(folder)
    if not any((folder / name).is_file() for name in _TOKENIZERS):
        lacking.append("a tokenizer (tokenizer.json)")
    if not lacking:
        return []
    return [Fault(field, f"is {written}, which lacks {', '.join(lacking)}: name the folder of a whole causal LM.")]


def _missing_shards(folder: Path) -> list[str]:
    index = folder / "model.safetensors.index.json"
    if not index.is_file():
        return []
    try:
        shards = cast("dict[str, Any]", json.loads(index.read_text(encoding="utf-8")))["weight_map"].values()
    except (ValueError, KeyError, AttributeError):
        return [f"a readable {index.name}"]
    return sorted({str(shard) for shard in shards if not (folder / str(shard)).is_file()})


def _not_found(field: Field, written: str, base: Path) -> Fault:
    looked = "" if Path(written).is_absolute() else f" (looked for in {base.resolve()} and {Path.cwd()})"
    return Fault(field, f"is {written}, which does not exist{looked}: check the path.")
