"""What a reward model's folder says against the config is said before anything is loaded, all of it at once."""

import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from papo.errors import ConfigError
from papo.rewards import AnswerMatch
from schemas.config import RunConfig
from schemas.crosschecks import cross_faults, warnings_of
from schemas.loading import load_config
from schemas.rewardmodels import reward_model_faults, verifier_in

VERIFIER = {"kind": "answer_match"}
HELD_OUT = {"train": {"kind": "chains"}, "evaluation": {"kind": "chains", "split": "heldout"}}


def folder(path: Path, **config: Any) -> Path:
    """A model folder with everything but weights that anybody could load."""
    path.mkdir()
    usual = {
        "architectures": ["BertForSequenceClassification"],
        "id2label": {"0": "bad", "1": "good"},
        "max_position_embeddings": 512,
    }
    (path / "config.json").write_text(json.dumps(usual | config))
    backend = Tokenizer(models.WordLevel({"+": 0, "-": 1, "very": 2, "good": 3}, unk_token="+"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    backend.save(str(path / "tokenizer.json"))
    (path / "model.safetensors").write_bytes((2).to_bytes(8, "little") + b"{}")
    return path


def config(judge: dict[str, Any] | None = None, **patch: Any) -> RunConfig:
    usual: dict[str, Any] = {
        "data": HELD_OUT,
        "model": {"path": "model"},
        "reward": {"outcome": {"kind": "reward_model", "path": "rm", **(judge or {})}},
        "scorer": {"kind": "chain_rubric"},
    }
    return RunConfig.model_validate(usual | patch)


def texts(judge: dict[str, Any], base: Path) -> list[str]:
    return [str(fault) for fault in reward_model_faults(config(judge), base)]


PAIR = {"input": {"kind": "pair"}}


def test_a_model_that_fits_has_no_fault(tmp_path: Path) -> None:
    folder(tmp_path / "rm")
    for label in (1, "good"):
        assert texts({**PAIR, "head": {"kind": "classifier", "label": label}, "max_length": 512}, tmp_path) == []


def test_all_that_does_not_fit_is_named_at_once(tmp_path: Path) -> None:
    folder(tmp_path / "rm", architectures=["BertForMaskedLM"])
    found = texts({"head": {"kind": "classifier", "label": "best"}, "max_length": 600}, tmp_path)
    assert [text.split(" is ")[0] for text in found] == [
        "reward.outcome.head.kind",
        "reward.outcome.head.label",
        "reward.outcome.input.kind",
        "reward.outcome.max_length",
    ]
    assert "a ...ForSequenceClassification, but the model in rm is a BertForMaskedLM" in found[0]
    assert "0 (bad), 1 (good)" in found[1]
    assert "no chat template: use pair" in found[2]
    assert "has 512 positions" in found[3]


def test_another_head_is_named_where_it_fits(tmp_path: Path) -> None:
    folder(tmp_path / "rm", architectures=["Qwen2ForTokenClassification"], id2label={"0": "LABEL_0"})
    (fault,) = texts(PAIR, tmp_path)
    assert fault.endswith("is a Qwen2ForTokenClassification: use token_classifier.")
    assert texts({**PAIR, "head": {"kind": "token_classifier"}}, tmp_path) == []


def test_several_labels_need_a_name_and_one_has_no_softmax(tmp_path: Path) -> None:
    folder(tmp_path / "rm")
    assert "head.label is null, but the model has 2 labels" in texts(PAIR, tmp_path)[0]
    folder(tmp_path / "one", id2label={"0": "LABEL_0"})
    (fault,) = texts({**PAIR, "path": "one", "activation": "softmax"}, tmp_path)
    assert "activation is softmax" in fault


def test_the_tokens_of_a_next_token_head_must_be_one_each(tmp_path: Path) -> None:
    folder(tmp_path / "rm", architectures=["Qwen2ForCausalLM"])
    head = {"kind": "next_token", "good": "very good", "bad": "-"}
    (fault,) = texts({**PAIR, "head": head}, tmp_path)
    assert "head.good is 'very good', which is 2 tokens" in fault


def test_the_judge_of_the_held_out_rows_is_looked_at_too(tmp_path: Path) -> None:
    folder(tmp_path / "rm")
    judge = {"kind": "reward_model", "path": "rm", **PAIR}
    both = config(reward={"outcome": VERIFIER}, evaluation={"outcome": judge})
    (fault,) = reward_model_faults(both, tmp_path)
    assert fault.field == ("evaluation", "outcome", "head", "label")


def test_a_folder_that_is_not_there_is_named_with_all_other_faults(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text(
        "data: {train: {kind: chains}}\nmodel: {path: nowhere}\nsampling: {num_generations: 1}\n"
        "scorer: {kind: chain_rubric}\nreward: {outcome: {kind: reward_model, path: gone, threshold: high}}\n"
    )
    with pytest.raises(ConfigError) as caught:
        load_config(file)
    for said in ("reward.outcome.path is gone", "model.path is nowhere", "num_generations", "high"):
        assert said in str(caught.value)


def faults(made: RunConfig) -> list[str]:
    return [str(fault) for fault in cross_faults(made)]


def test_predictions_are_no_accuracy_to_reach() -> None:
    (fault,) = faults(config(stop={"target_accuracy": 0.9}))
    assert "predictions are no accuracy to reach" in fault
    assert faults(config(stop={"target_accuracy": 0.9}, evaluation={"outcome": VERIFIER})) == []
    assert faults(config(stop={"plateau_evaluations": 2})) == []


def test_an_implicit_prm_needs_rewards_from_0_to_1() -> None:
    raw = {"activation": "none", "truncated": "score"}
    prime = {"algorithm": {"advantage": {"kind": "prime"}}}
    (fault,) = faults(config(raw, **prime))
    assert "reward.outcome.activation is none, but the implicit PRM" in fault
    assert faults(config(**prime)) == []


def test_a_run_that_is_measured_by_what_it_optimises_is_warned_about() -> None:
    assert any("a reward model judges the held-out rows" in text for text in warnings_of(config()))
    assert warnings_of(config(evaluation={"outcome": VERIFIER})) == []
    assert warnings_of(config(evaluation=None)) == []


def test_what_needs_a_verifier_takes_the_evaluations_and_says_where_there_is_none() -> None:
    assert verifier_in(config(evaluation={"outcome": VERIFIER}), named="run.yaml") == AnswerMatch()
    assert verifier_in(config(reward={"outcome": VERIFIER}), named="run.yaml") == AnswerMatch()
    with pytest.raises(ConfigError, match=r"run\.yaml has no verifier.*Give evaluation\.outcome one"):
        verifier_in(config(), named="run.yaml")


def test_where_a_reward_model_lies_is_no_identity() -> None:
    assert config({"path": "here"}).sha256 == config({"path": "there"}).sha256
    assert config({"threshold": 0.6}).sha256 != config().sha256
