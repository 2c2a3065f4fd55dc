"""What a model folder's files say about a config, before anything is loaded."""

import json
from pathlib import Path
from typing import Any

import pytest

from papo.errors import ConfigError
from schemas.config import RunConfig
from schemas.loading import load_config, model_warnings
from tests.simulation.world import CONFIG

VLLM = {"kind": "vllm"}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"max_position_embeddings": 100}))
    (folder / "tokenizer_config.json").write_text(json.dumps({"bos_token": None}))
    (folder / "model.safetensors").write_bytes((2).to_bytes(8, "little") + b"{}")
    (folder / "tokenizer.json").touch()
    return folder


def load(model: Path, *, prompt: dict[str, Any] | None = None, **changes: Any) -> RunConfig:
    path = model.parent / "run.yaml"
    data = {**CONFIG["data"], "prompt": prompt or {}}
    path.write_text(json.dumps({**CONFIG, "model": {"path": "model"}, "data": data, **changes}))
    return load_config(path)


def faults(model: Path, **changes: Any) -> str:
    with pytest.raises(ConfigError) as raised:
        load(model, **changes)
    return str(raised.value)


def warnings(model: Path, **changes: Any) -> list[str]:
    return model_warnings(load(model, **changes), model.parent)


def lengths(prompt: int, completion: int) -> dict[str, Any]:
    return {**CONFIG["sampling"], "max_prompt_length": prompt, "max_completion_length": completion}


def test_a_template_that_is_not_there_cannot_be_used_always(model: Path) -> None:
    assert "data.prompt.chat is always, but the tokenizer in model has no chat template" in faults(
        model, prompt={"chat": "always"}
    )
    (model / "chat_template.jinja").write_text("{{ messages }}")
    assert load(model, prompt={"chat": "always"})


def test_a_begin_token_that_is_not_there_cannot_be_asked_for(model: Path) -> None:
    assert "data.prompt.bos is always, but the tokenizer in model has no begin token" in faults(
        model, prompt={"bos": "always"}
    )


@pytest.mark.parametrize("declared", ["jinja", "config", "list"])
def test_switches_that_the_template_never_reads_are_told(model: Path, declared: str) -> None:
    template = "{% if enable_thinking %}{% endif %}"
    if declared == "jinja":
        (model / "chat_template.jinja").write_text(template)
    else:
        held: Any = template if declared == "config" else [{"name": "default", "template": template}]
        (model / "tokenizer_config.json").write_text(json.dumps({"chat_template": held}))

    assert warnings(model, prompt={"enable_thinking": False}) == []
    (found,) = warnings(model, prompt={"enable_thinking": False, "template_kwargs": {"thinking": True}})
    assert found.startswith("data.prompt sets thinking, which the chat template in model never reads")


def test_switches_without_a_template_are_told(model: Path) -> None:
    (found,) = warnings(model, prompt={"enable_thinking": True})
    assert "no chat template is used" in found


def test_switches_may_not_name_what_papo_sets(model: Path) -> None:
    assert "enable_thinking, which papo sets itself" in faults(
        model, prompt={"template_kwargs": {"enable_thinking": True}}
    )


def test_lengths_beyond_the_model_s_positions_are_told(model: Path) -> None:
    assert warnings(model, sampling=lengths(60, 40)) == []
    (found,) = warnings(model, sampling=lengths(61, 40))
    assert "together are 101 tokens, but the model in model has 100 positions" in found
    assert "more than 60 tokens" in found


def test_a_server_that_vllm_would_refuse_to_start_is_refused_first(model: Path) -> None:
    assert load(model, generator=VLLM, sampling=lengths(60, 40))
    found = faults(model, generator=VLLM, sampling=lengths(61, 40))
    assert "generator.max_model_len is null, so that a server would have to take 101 tokens" in found
    assert "max_model_len is 200, so that" in faults(model, generator={**VLLM, "max_model_len": 200})
    remote = {**VLLM, "servers": ["http://127.0.0.1:8000"]}
    assert load(model, generator=remote, sampling=lengths(61, 40)), "that server says so itself"


def test_a_server_too_short_for_the_run_is_refused_before_it_starts(model: Path) -> None:
    """Also without a model folder: the config alone says it."""
    generator = {**VLLM, "max_model_len": 63}
    found = faults(model, generator=generator, sampling=lengths(32, 32))
    assert "generator.max_model_len is 63" in found
    assert "need 64 tokens" in found
    assert load(model, generator={**VLLM, "max_model_len": 64}, sampling=lengths(32, 32))


def test_c_15_a_completion_that_leaves_no_position_for_a_prompt_is_refused(model: Path) -> None:
    assert load(model, sampling=lengths(60, 99))
    assert "sampling.max_completion_length is 100, but the model in model has 100 positions" in faults(
        model, sampling=lengths(60, 100)
    )
    (model / "config.json").write_text(json.dumps({"n_positions": 60}))
    assert "has 60 positions" in faults(model, sampling=lengths(60, 60))


@pytest.mark.parametrize("place", ["rope_scaling", "rope_parameters"])
def test_c_23_rows_that_pass_longrope_s_switch_are_refused(model: Path, place: str) -> None:
    """Behind it all positions are computed by other factors: what was sampled before it no longer has its log-probs."""
    scaling = {"type": "longrope", "short_factor": [1.0, 1.1], "long_factor": [2.0, 3.0]}
    said = {"max_position_embeddings": 100, "original_max_position_embeddings": 60}
    (model / "config.json").write_text(json.dumps({**said, place: scaling}))
    assert load(model, sampling=lengths(30, 30))
    assert warnings(model, sampling=lengths(30, 30)) == []
    found = faults(model, sampling=lengths(30, 60))
    assert "60 positions before LongRoPE's long_factor takes over" in found
    assert "give config.json the same numbers for both" in found
    (warned,) = warnings(model, sampling=lengths(31, 30))
    assert "a prompt of more than 30 tokens will be refused" in warned
    # The same factors at every length, as the message proposes.
    (model / "config.json").write_text(json.dumps({**said, place: {**scaling, "short_factor": [2.0, 3.0]}}))
    assert warnings(model, sampling=lengths(31, 60)) == []


def test_stop_strings_are_not_empty(model: Path) -> None:
    assert "sampling.stop_strings" in faults(model, sampling={**CONFIG["sampling"], "stop_strings": [""]})
    plain = load(model)
    assert "stop_strings" not in plain.identity["sampling"], "runs that never heard of them keep their hashes"
    assert load(model, sampling={**CONFIG["sampling"], "stop_strings": ["x"]}).sha256 != plain.sha256


def test_prompt_fields_that_came_later_are_identity_only_where_they_are_used(model: Path) -> None:
    plain = load(model)
    assert set(plain.identity["data"]["prompt"]) == {"chat", "system", "prefix", "suffix"}
    for style in ({"enable_thinking": False}, {"bos": "never"}, {"template_kwargs": {"x": 1}}):
        assert load(model, prompt=style).sha256 != plain.sha256
