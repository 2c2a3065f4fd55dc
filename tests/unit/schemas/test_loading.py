"""Config files: defaults that run, overrides, and every fault at once with its value, reason and way out."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from papo.advantages import Grpo, Papo, max_lambda_process
from papo.errors import ConfigError
from papo.scorers import ChainRubric, EquationLines
from schemas.config import RunConfig
from schemas.data import ChainsSource, FileSource
from schemas.loading import load_config, overridden, warnings_of
from schemas.sft import SftConfig

SOURCES = ("file", "chains", "reasoning_gym", "huggingface", "mixture")
CHAINS = {"kind": "chains", "count": 50}
HELD_OUT = {"kind": "chains", "count": 20, "split": "heldout"}
CONFIG: dict[str, Any] = {
    "data": {"train": CHAINS, "evaluation": HELD_OUT},
    "model": {"cold_start": "sft.yaml"},
    "reward": {"outcome": {"kind": "answer_match"}},
    "scorer": {"kind": "chain_rubric"},
}
SFT: dict[str, Any] = {"phases": [{"share": 0.5, "data": {"kind": "chains"}}, {"data": {"kind": "chains"}}]}


def write(folder: Path, config: Any, name: str = "run.yaml") -> Path:
    (folder / "sft.yaml").write_text("phases: [{data: {kind: chains}}]\n")
    path = folder / name
    path.write_text(config if isinstance(config, str) else yaml.safe_dump(config))
    return path


def load(folder: Path, patch: dict[str, Any] | None = None, *overrides: str) -> RunConfig:
    return load_config(write(folder, CONFIG | (patch or {})), overrides)


def faults(folder: Path, patch: Any, *overrides: str, kind: Any = RunConfig) -> list[str]:
    """The lines of the error, one a fault."""
    path = write(folder, patch if isinstance(patch, str) or kind is SftConfig else CONFIG | patch)
    with pytest.raises(ConfigError) as raised:
        load_config(path, overrides, kind=kind)
    head, *lines, tail = str(raised.value).splitlines()
    assert head.startswith(f"The config has {len(lines)} fault")
    assert tail.startswith(f"in {path}")
    return [line.strip() for line in lines]


def test_the_smallest_config_has_defaults_that_run(tmp_path: Path) -> None:
    config = load(tmp_path)

    assert config == RunConfig.model_validate(CONFIG)
    assert config.algorithm.advantage == Papo()


def test_the_embedded_configs_load() -> None:
    folder = Path(__file__).parents[3] / "deployments"

    for name in ("arithmetic", "parity"):
        assert load_config(folder / "runs" / f"{name}.yaml").held_out
        assert load_config(folder / "sft" / f"{name}.yaml", kind=SftConfig).phases


def test_a_run_on_files_lacks_nothing_but_its_files() -> None:
    """The data and the model that the user brings."""
    with pytest.raises(ConfigError) as raised:
        load_config(Path(__file__).parents[3] / "deployments/runs/smollm2-svamp.yaml", ["data.train.path=no.jsonl"])

    assert all("does not exist" in line for line in str(raised.value).splitlines()[1:-1])


def test_a_section_given_in_part_keeps_its_other_defaults(tmp_path: Path) -> None:
    """Else `algorithm` would lose PAPO's clip-higher by naming λ."""
    config = load(tmp_path, {"algorithm": {"advantage": {"lambda_process": 0.5}}})

    default = RunConfig.model_validate(CONFIG).algorithm
    assert config.algorithm.advantage == Papo(lambda_process=0.5)
    assert config.algorithm.policy_loss == default.policy_loss


def test_another_kind_starts_from_its_own_defaults(tmp_path: Path) -> None:
    assert load(tmp_path, {"algorithm": {"advantage": {"kind": "grpo"}}}).algorithm.advantage == Grpo()


def test_a_config_with_four_faults_lists_all_four(tmp_path: Path) -> None:
    """Two of fields, one across fields, one of a file: one report."""
    found = faults(
        tmp_path,
        {
            "iterations": "many",
            "sampling": {"num_generations": 1, "temprature": 0.7},
            "model": {"cold_start": "nowhere.yaml"},
        },
    )

    assert len(found) == 4
    assert found[0] == "sampling.temprature is no field (its value is 0.7): did you mean temperature?"
    assert found[1] == 'iterations is "many": use a whole number (default: 60).'
    assert found[2].startswith("sampling.num_generations is 1: ")
    assert found[3].startswith("model.cold_start is nowhere.yaml, which does not exist")


def test_nothing_about_a_faulty_field_is_derived_from_its_stand_in(tmp_path: Path) -> None:
    """The scorer is there, though it cannot be read; the model is missing, once."""
    patch = {"scorer": {"kind": "chain_rubrik"}, "model": None}

    found = faults(tmp_path, patch)

    assert len(found) == 2
    assert found[0] == 'scorer.kind is "chain_rubrik", which is unknown: use one of chain_rubric, equation_lines.'
    assert found[1].startswith("model is null: use a section")


@pytest.mark.parametrize(
    ("patch", "line"),
    [
        ({"seed": True}, "seed is true: use a whole number (default: 0)."),
        ({"seed": 1.0}, "seed is 1.0: use a whole number (default: 0)."),
        ({"seed": "1"}, 'seed is "1": use a whole number (default: 0).'),
        ({"seed": None}, "seed is null: use a whole number (default: 0)."),
        ({"iterations": 0}, "iterations is 0: use 1 or more (default: 60)."),
        ({"sampling": {"temperature": float("nan")}}, "sampling.temperature is NaN, which is not finite"),
        ({"sampling": 3}, "sampling is 3, which is no section"),
        ({"engine": {"dtype": "float16"}}, 'engine.dtype is "float16": use one of float32, bfloat16'),
        ({"checkpoint": {"every": 1.5}}, "checkpoint.every is 1.5: use a whole number or one of auto"),
        ({"data": {"train": {"kind": "chains", "cuont": 3}}}, "data.train.cuont is no field (its value is 3): did you"),
        (
            {"data": {"train": {"kind": "json"}}},
            f'data.train.kind is "json", which is unknown: use one of {", ".join(SOURCES)}.',
        ),
        (
            {"data": {"train": {}}},
            f"data.train.kind is missing: it says what this section is, one of {', '.join(SOURCES)}.",
        ),
        ({"data": {"train": {"kind": "file"}}}, "data.train.path is missing"),
        ({"data": {}}, f"data.train is missing: give it a section with kind: {' or '.join(SOURCES)}."),
        ({"reward": {}}, "reward.outcome is missing: give it a section with kind: answer_match or "),
        (
            {"algorithm": {"advantage": {"lambda_process": -1}}},
            "algorithm.advantage does not fit together: lambda_process",
        ),
        ({"algorithm": {"advantage": {"kind": "papo", "min_corect": 3}}}, "algorithm.advantage.min_corect is no field"),
        (
            {"algorithm": {"advantage": {"kind": "sum", "std_ddof": "one"}}},
            'algorithm.advantage.std_ddof is "one": use a',
        ),
        ({"algorithm": {"loss_norm_constant": 8}}, "algorithm does not fit together: loss_agg_mode is token-mean"),
        ({"data": {"train": {**CHAINS, "task": {"steps": 9}}}}, "data.train.task does not fit together: steps is 9"),
        (
            {"reward": {"outcome": {"kind": "answer_match", "extract": "boxed"}}},
            'reward.outcome.extract is "boxed": use a',
        ),
        ({"optimizer": {"betas": [0.9]}}, "optimizer.betas"),
        ({"stop": {"all_truncated": [1]}}, "stop.all_truncated is [1]: use a whole number (default: 3)."),
    ],
)
def test_a_fault_is_one_line_that_names_field_value_reason_and_way_out(
    tmp_path: Path, patch: dict[str, Any], line: str
) -> None:
    """BUG-129: no value is coerced. Members of a union that the value is not for say nothing."""
    (found,) = faults(tmp_path, patch)

    assert found.startswith(line)


@pytest.mark.parametrize(
    ("patch", "parts"),
    [
        pytest.param(
            {"sampling": {"num_generations": 1}}, ["sampling.num_generations is 1", "group of one"], id="BUG-008"
        ),
        pytest.param(
            {"sampling": {"temperature": 0}}, ["sampling.temperature is 0.0", "evaluation"], id="BUG-006-zero"
        ),
        pytest.param({"sampling": {"temperature": 1e-6}}, ["sampling.temperature is 1e-06"], id="BUG-006-tiny"),
        pytest.param({"scorer": None}, ["scorer is missing", "papo", "grpo"], id="scorer"),
        pytest.param(
            {"algorithm": {"ppo_mini_batch_size": 129}},
            ["algorithm.ppo_mini_batch_size is 129", "128 rollouts"],
            id="batch",
        ),
        pytest.param({"model": {}}, ["model has neither path nor cold_start"], id="no-model"),
        pytest.param({"optimizer": {"schedule": "cosine"}}, ["optimizer.schedule_steps is null"], id="schedule"),
        pytest.param({"optimizer": {"learning_rate": 0}}, ["optimizer.learning_rate is 0.0"], id="rate"),
        pytest.param(
            {"evaluation": None, "stop": {"target_accuracy": 0.9}},
            ["stop.target_accuracy is 0.9", "nothing is evaluated"],
            id="target",
        ),
        pytest.param({"stop": {"target_accuracy": 90.0}}, ["stop.target_accuracy is 90.0", "share"], id="share"),
    ],
)
def test_fields_that_contradict_each_other(tmp_path: Path, patch: dict[str, Any], parts: list[str]) -> None:
    """Refused before any data is read or any model is loaded."""
    (found,) = faults(tmp_path, patch)

    for part in parts:
        assert part in found


def test_both_a_model_folder_and_a_cold_start(tmp_path: Path) -> None:
    found = faults(tmp_path, {"model": {"path": "m", "cold_start": "sft.yaml"}})

    assert any(line.startswith("model has both path and cold_start") for line in found)


def test_greedy_evaluation_and_no_evaluation_are_fine(tmp_path: Path) -> None:
    """BUG-006: temperature 0 stays allowed for evaluation."""
    assert load(tmp_path, {"evaluation": {"temperature": 0}}).evaluation
    assert load(tmp_path, {"data": {"train": CHAINS}}).held_out is None
    assert load(tmp_path, {"algorithm": {"advantage": {"kind": "grpo"}}, "scorer": None}).scorer is None
    assert load(tmp_path, {"algorithm": {"ppo_mini_batch_size": 128}}).rows_per_iteration == 128
    assert load(tmp_path, {"sampling": {"temperature": 0.01}}).sampling.temperature == 0.01


def test_files_that_are_no_configs(tmp_path: Path) -> None:
    for text, said in (("", "empty"), ("- 1", "must be fields"), ("a: [", "line 1"), ("a:\n\tb: 1", "tab")):
        with pytest.raises(ConfigError, match=said):
            load_config(write(tmp_path, text))
    with pytest.raises(ConfigError, match=r"none\.yaml cannot be read"):
        load_config(tmp_path / "none.yaml")
    (tmp_path / "latin.yaml").write_bytes(b"seed: \xe9")
    with pytest.raises(ConfigError, match=r"latin\.yaml cannot be read"):
        load_config(tmp_path / "latin.yaml")


def test_a_key_that_stands_twice_is_one_fault_among_others(tmp_path: Path) -> None:
    text = yaml.safe_dump(CONFIG) + "seed: 1\nseed: 2\nsede: 3\n"

    found = faults(tmp_path, text)

    assert len(found) == 2
    assert "seed stands twice, in lines" in found[0]
    assert found[1].startswith("sede is no field")


def test_overrides_are_put_over_the_file(tmp_path: Path) -> None:
    overrides = [
        "seed=7",
        "algorithm.advantage.lambda_process=0.5",
        "optimizer.learning_rate=1e-4",
        "checkpoint.every=3",
        "tracking.mlflow=off",
        "stop.target_accuracy=null",
        "sampling.keep_special_tokens=[<a>, <b>]",
        "evaluation.every=5",
    ]

    config = load(tmp_path, {"seed": 3, "evaluation": {"every": 2}}, *overrides)

    assert (config.seed, config.checkpoint.every, config.tracking.mlflow) == (7, 3, "off")
    assert config.algorithm == load(tmp_path, {"algorithm": {"advantage": {"lambda_process": 0.5}}}).algorithm
    assert config.optimizer.learning_rate == 1e-4
    assert config.sampling.keep_special_tokens == ("<a>", "<b>")
    assert config.evaluation
    assert config.evaluation.every == 5


def test_overrides_reach_into_unions_and_missing_sections(tmp_path: Path) -> None:
    parity = {"scorer": {"kind": "chain_rubric", "task": "parity"}}

    assert load(tmp_path, parity, "scorer.kind=equation_lines").scorer == EquationLines()
    assert load(tmp_path, {"scorer": None}, "scorer.kind=chain_rubric", "scorer.task=parity").scorer == ChainRubric(
        task="parity"
    )
    assert load(tmp_path, {"scorer": None}, "scorer.task=parity", "scorer.kind=chain_rubric").scorer == ChainRubric(
        task="parity"
    )
    assert load(tmp_path, {}, "scorer=null", "algorithm.advantage.kind=grpo").scorer is None
    config = load(tmp_path, {"data": {"train": CHAINS}}, "data.evaluation.kind=chains", "data.evaluation.count=3")
    assert config.data.evaluation == ChainsSource(count=3)


def test_a_new_kind_keeps_the_fields_that_it_shares(tmp_path: Path) -> None:
    given = {"algorithm": {"advantage": {"kind": "papo", "lambda_process": 0.5, "std_ddof": 0}}}

    assert load(tmp_path, given, "algorithm.advantage.kind=grpo").algorithm.advantage == Grpo(std_ddof=0)


@pytest.mark.parametrize(
    ("override", "line"),
    [
        ("seed", "--set seed is not of the form a.b=c"),
        ("=3", "--set =3 is not of the form a.b=c"),
        ("a..b=3", "--set a..b=3 is not of the form a.b=c"),
        ("samplng.temperature=1", "--set samplng.temperature=1: samplng is no field: did you mean sampling?"),
        ("sampling.temprature=1", "--set sampling.temprature=1: temprature is no field of sampling: did you mean"),
        (
            "algorithm.advantage.lambda=1",
            "--set algorithm.advantage.lambda=1: lambda is no field of algorithm.advantage",
        ),
        ("seed.x=1", "--set seed.x=1: seed is"),
        ("seed=[1", "--set seed=[1: line 1"),
        ("seed=x", 'seed is "x": use a whole number'),
        ("scorer.kind=none", 'scorer.kind is "none", which is unknown'),
        ("sampling.num_generations=1", "sampling.num_generations is 1"),
    ],
)
def test_a_wrong_override_is_a_fault_like_any_other(tmp_path: Path, override: str, line: str) -> None:
    found = faults(tmp_path, {"iterations": 0}, override)

    assert any(text.startswith("iterations is 0") for text in found)
    assert any(text.startswith(line) for text in found)


def test_a_config_of_a_run_is_overridden_under_the_same_checks(tmp_path: Path) -> None:
    config = load(tmp_path)

    assert overridden(config, ["iterations=9"], named="run x") == config.model_copy(update={"iterations": 9})
    with pytest.raises(ConfigError, match=r"(?s)num_generations is 1.*in run x --set sampling"):
        overridden(config, ["sampling.num_generations=1"], named="run x")


def test_supervised_configs_are_checked_alike(tmp_path: Path) -> None:
    assert load_config(write(tmp_path, SFT), kind=SftConfig) == SftConfig.model_validate(SFT)

    found = faults(
        tmp_path,
        {
            "phases": [
                {"shair": 1, "data": {"kind": "chains"}},
                {"share": 0.0, "data": {"kind": "file", "path": "x.jsonl"}},
            ]
        },
        kind=SftConfig,
    )

    assert found[0].startswith("phases[0].shair is no field")
    assert found[1].startswith("phases[1].share is 0.0: use a number above 0")
    assert found[2].startswith("phases[1].data.path is x.jsonl, which does not exist")
    assert len(found) == 3


def test_a_list_of_sections_that_is_none(tmp_path: Path) -> None:
    assert faults(tmp_path, {"phases": 3}, kind=SftConfig)[0].startswith("phases is 3")
    assert faults(tmp_path, {"phases": [3]}, kind=SftConfig)[0].startswith("phases[0] is 3, which is no section")
    assert faults(tmp_path, {}, kind=SftConfig)[0].startswith("phases is missing")


def test_paths_stay_as_they_are_written(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text("{}")

    config = load(tmp_path, {"data": {"train": {"kind": "file", "path": "rows.jsonl"}}})

    assert isinstance(config.data.train, FileSource)
    assert config.data.train.path == "rows.jsonl"


def test_warnings_say_what_is_legal_but_hardly_meant(tmp_path: Path) -> None:
    highest = max_lambda_process(8)
    assert warnings_of(load(tmp_path, {}, f"algorithm.advantage.lambda_process={highest * 0.99}")) == []

    (order,) = warnings_of(load(tmp_path, {}, f"algorithm.advantage.lambda_process={highest}"))
    (constant,) = warnings_of(
        load(
            tmp_path,
            {},
            "algorithm.advantage.lambda_process=0.1",
            "algorithm.loss_agg_mode=seq-mean-token-sum-norm",
            "algorithm.loss_norm_constant=8",
        )
    )
    chains = warnings_of(
        load(
            tmp_path,
            {"scorer": {"kind": "chain_rubric", "task": "parity"}},
            "algorithm.advantage.lambda_process=0.1",
            "data.evaluation.split=train",
        )
    )

    assert "lambda_process" in order
    assert "groups of 8" in order
    assert "loss_norm_constant is 8" in constant
    assert len(chains) == 3
