"""Saving, opening and exporting: to the bit, in a fresh process."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch
from safetensors.torch import save_file

from papo.chains import ChainTask
from papo.engines import models
from papo.engines.requests import Fingerprint, Open
from papo.engines.settings import OptimizerSettings, ZeroStage
from papo.errors import EngineError
from tests.engines import support
from tests.engines.conftest import Bench

WARMING = OptimizerSettings(learning_rate=2e-3, schedule="cosine", warmup_steps=3, schedule_steps=8)


def one_iteration(bench: Bench, folder: Path, number: int) -> tuple[pl.DataFrame, dict[str, Any], Fingerprint]:
    path = folder / f"rollouts-{number}.parquet"
    frame = support.sample(bench.host, bench.prompts, path, rows=support.addresses(seed=number))
    advantages = support.write_advantages(frame, folder / f"advantages-{number}.parquet")
    result = bench.host.update(support.update_request(bench.prompts, path, advantages, optimizer=WARMING))
    return frame, result.stats, result.fingerprint


def test_bug_095_and_096_three_steps_and_three_more_in_a_fresh_process_equal_six(bench: Bench, tmp_path: Path) -> None:
    bench.open()
    straight: list[tuple[pl.DataFrame, dict[str, Any], Fingerprint]] = []
    for number in range(6):
        straight.append(one_iteration(bench, tmp_path, number))
        if number == 2:
            # Saving midway changes nothing of what follows: it is the same run that goes on.
            bench.host.save(str(tmp_path / "checkpoint"))
    bench.host.close()
    bench.host.start()
    opened = bench.host.open(Open(model=str(bench.model), checkpoint=str(tmp_path / "checkpoint")))
    assert opened == straight[2][2]
    assert opened.optimizer_steps == 3
    for number in range(3, 6):
        frame, stats, fingerprint = one_iteration(bench, tmp_path, number)
        assert frame.equals(straight[number][0])
        assert stats == straight[number][1]
        assert fingerprint == straight[number][2]
    rates = [stats["learning_rate"] for _, stats, _ in straight]
    assert rates[:4] == pytest.approx([5e-4, 1e-3, 1.5e-3, 2e-3])
    assert rates[4] > rates[5] > 0


def test_a_checkpoint_can_be_opened_without_the_weights_of_its_model(bench: Bench, tmp_path: Path) -> None:
    bench.open()
    one_iteration(bench, tmp_path, 0)
    held = bench.host.held
    bench.host.save(str(tmp_path / "checkpoint"))
    bare = tmp_path / "bare"
    bare.mkdir()
    for file in bench.model.iterdir():
        if file.suffix != ".safetensors":
            (bare / file.name).write_bytes(file.read_bytes())
    assert bench.host.open(Open(model=str(bare), checkpoint=str(tmp_path / "checkpoint"))) == held
    with pytest.raises(EngineError, match="Only safetensors"):
        bench.host.open(Open(model=str(bare)))


def test_a_folder_that_is_no_checkpoint_is_refused(bench: Bench, tmp_path: Path) -> None:
    bench.open()
    with pytest.raises(EngineError, match="is no checkpoint of this engine"):
        bench.host.open(Open(model=str(bench.model), checkpoint=str(tmp_path)))
    assert bench.host.held is None


def test_weights_that_the_architecture_needs_may_not_be_missing(bench: Bench, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    for file in bench.model.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    tensors = load_file(bench.model / "model.safetensors")
    tensors.pop("model.layers.1.mlp.up_proj.weight")
    save_file(tensors, tmp_path / "model.safetensors", metadata={"format": "pt"})
    bench.open()
    with pytest.raises(EngineError, match=r"lacks weights .* model\.layers\.1\.mlp\.up_proj\.weight"):
        bench.host.open(Open(model=str(tmp_path)))


def test_fingerprints_see_one_bit_of_a_parameter_and_of_a_buffer() -> None:
    from papo.engines.learner import module_fingerprint

    module: Any = torch.nn.Linear(3, 2)
    module.register_buffer("inv_freq", torch.ones(2), persistent=False)
    seen = {module_fingerprint(module).policy_sha256}
    with torch.no_grad():
        module.weight[1, 2] = torch.nextafter(module.weight[1, 2], torch.tensor(9.0))
    seen.add(module_fingerprint(module).policy_sha256)
    module.inv_freq[0] = torch.nextafter(torch.tensor(1.0), torch.tensor(2.0))
    seen.add(module_fingerprint(module).policy_sha256)
    module.inv_freq = module.inv_freq.bfloat16()
    seen.add(module_fingerprint(module).policy_sha256)
    assert len(seen) == 4


@pytest.mark.parametrize(
    ("kind", "scaling", "length"),
    [
        ("Phi3Config", {"rope_type": "longrope", "short_factor": [1.0, 1.1], "long_factor": [2.0, 3.0]}, 30),
        ("LlamaConfig", {"rope_type": "dynamic", "factor": 2.0}, 70),
    ],
)
def test_c_07_a_fingerprint_does_not_know_how_long_the_last_pass_was(
    kind: str, scaling: dict[str, Any], length: int
) -> None:
    """A run that is resumed opens a model that has passed over nothing yet."""
    import transformers

    from papo.engines.learner import module_fingerprint

    sizes = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    limits = {"max_position_embeddings": 60, "original_max_position_embeddings": 24}
    rope = {"rope_theta": 10000.0, **scaling}
    config = getattr(transformers, kind)(**sizes, **limits, vocab_size=8, pad_token_id=0, rope_parameters=rope)
    module: Any = transformers.AutoModelForCausalLM.from_config(config)
    before, frequencies = module_fingerprint(module), module.model.rotary_emb.inv_freq.clone()
    module(torch.ones(1, length, dtype=torch.int64))
    assert not torch.equal(module.model.rotary_emb.inv_freq, frequencies)
    assert module_fingerprint(module) == before
    module.model.rotary_emb.original_inv_freq[1] *= 2
    assert module_fingerprint(module) != before


def test_bug_039_and_107_an_export_is_the_trained_model_with_the_tokenizer_it_came_with(
    bench: Bench, tmp_path: Path
) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig

    template = "{% for m in messages %}{{ m['content'] }}{% endfor %}"
    start = tmp_path / "start"
    AutoModelForCausalLM.from_pretrained(bench.model).save_pretrained(start)
    tokenizer = AutoTokenizer.from_pretrained(bench.model)
    tokenizer.chat_template = template
    tokenizer.save_pretrained(start)
    GenerationConfig(eos_token_id=[1, 7], pad_token_id=0, do_sample=True, temperature=0.6).save_pretrained(start)

    bench.host.start()
    bench.host.open(Open(model=str(start)))
    frame, _, fingerprint = one_iteration(bench, tmp_path, 0)
    bench.host.export(str(tmp_path / "export"))

    before, after = (AutoTokenizer.from_pretrained(folder) for folder in (start, tmp_path / "export"))
    assert after.chat_template == template
    assert after.special_tokens_map == before.special_tokens_map
    prompts = [problem.prompt for problem in ChainTask().problems(9, 20)]
    assert after(prompts)["input_ids"] == before(prompts)["input_ids"]
    generation = GenerationConfig.from_pretrained(tmp_path / "export")
    assert (generation.eos_token_id, generation.temperature, generation.do_sample) == ([1, 7], 0.6, True)

    # Equal weights and buffers, and by them equal log-probs: to the bit, through our engine as through a fresh load.
    path = tmp_path / "rollouts-0.parquet"
    trained = support.write_logprobs(bench.host, bench.prompts, path, tmp_path / "trained.parquet")
    reopened = bench.host.open(Open(model=str(tmp_path / "export")))
    assert reopened.policy_sha256 == fingerprint.policy_sha256
    assert reopened.optimizer_steps == 0
    assert support.write_logprobs(bench.host, bench.prompts, path, tmp_path / "reopened.parquet").equals(trained)
    assert not trained["old_logprobs"].equals(frame["sampler_logprobs"])


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("model.norm.weight", lambda tensor: torch.zeros(0)),
        ("model.norm.weight", lambda tensor: tensor[1:].clone()),
        ("model.norm.weight", None),
        # Tied to the embedding, so that either of the two could win when it is loaded.
        ("lm_head.weight", lambda tensor: torch.ones(20, 32)),
    ],
    ids=["empty", "shorter", "missing", "tied"],
)
def test_bug_107_an_export_with_a_wrong_tensor_fails_loudly(
    bench: Bench, tmp_path: Path, name: str, fault: Callable[[Any], Any] | None
) -> None:
    loaded = models.load(bench.model, dtype=torch.float32, trust_remote_code=False)
    state = dict(loaded.module.named_parameters())
    if fault is not None:
        given = state | {name: fault(state.get(name))}
        with pytest.raises(EngineError, match=rf"export of {name} failed before it was written"):
            models.write(loaded.module, loaded, tmp_path, state=given)
        return

    def forgetful(folder: Path, state_dict: dict[str, Any]) -> None:
        save_file({key: tensor for key, tensor in state_dict.items() if key != name}, folder / "model.safetensors")

    loaded.module.save_pretrained = forgetful
    with pytest.raises(EngineError, match=rf"export of {name} to .* failed: None was written"):
        models.write(loaded.module, loaded, tmp_path, state=state)


def test_bug_107_an_export_in_another_dtype_fails_loudly(bench: Bench, tmp_path: Path) -> None:
    loaded = models.load(bench.model, dtype=torch.float32, trust_remote_code=False)

    def cast(folder: Path, state_dict: dict[str, Any]) -> None:
        save_file({key: tensor.bfloat16() for key, tensor in state_dict.items()}, folder / "model.safetensors")

    loaded.module.save_pretrained = cast
    with pytest.raises(EngineError, match=r"'BF16'\) was written for a tensor of shape .* in torch.float32"):
        models.write(loaded.module, loaded, tmp_path, state=dict(loaded.module.named_parameters()))


def test_weights_are_a_function_of_the_seed(bench: Bench, tmp_path: Path) -> None:
    from papo.engines.requests import CreateModel
    from papo.engines.settings import TinyModel

    bench.host.start()
    hashes: list[str] = []
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        model = TinyModel(hidden_size=32, heads=2, kv_heads=1, seed=seed)
        bench.host.create(CreateModel(model=model, folder=str(tmp_path / name)))
        hashes.append(bench.host.open(Open(model=str(tmp_path / name))).policy_sha256)
    assert hashes[0] == hashes[1] != hashes[2]


@pytest.mark.slow
@pytest.mark.parametrize("stage", [0, *(pytest.param(stage, marks=pytest.mark.long) for stage in (1, 2)), 3])
def test_masters_of_bfloat16_weights_are_saved_and_are_part_of_the_hash(
    bench: Bench, tmp_path: Path, stage: ZeroStage
) -> None:
    """A step below the precision of bfloat16 is held by the float32 masters alone."""
    small = OptimizerSettings(learning_rate=1e-6)
    bench.open()
    path = tmp_path / "rollouts.parquet"
    advantages = support.write_advantages(
        support.sample(bench.host, bench.prompts, path), tmp_path / "advantages.parquet"
    )
    request = support.update_request(bench.prompts, path, advantages, optimizer=small)
    host = support.new_host(tmp_path / "bf16", dtype="bfloat16", zero_stage=stage)
    try:
        host.open(Open(model=str(bench.model)))
        before = host.update(request).fingerprint
        host.save(str(tmp_path / "checkpoint"))
        after = host.update(request).fingerprint
        assert host.open(Open(model=str(bench.model), checkpoint=str(tmp_path / "checkpoint"))) == before
        assert host.update(request).fingerprint == after
    finally:
        host.close()
    assert before.optimizer_sha256 != after.optimizer_sha256
