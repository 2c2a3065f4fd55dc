"""C-15: a model folder is held against itself before it is loaded."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from schemas.weightfiles import id_faults, weight_faults

NAME = "model.safetensors"


def whole(rows: int = 20, name: str = "model.embed_tokens.weight") -> bytes:
    header = json.dumps({name: {"dtype": "F32", "shape": [rows, 2], "data_offsets": [0, rows * 8]}}).encode()
    return struct.pack("<Q", len(header)) + header + bytes(rows * 8)


def written(folder: Path, **files: Any) -> Path:
    (folder / NAME).write_bytes(whole())
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda data: data[:-1], "cut short"),
        (lambda data: data + b"x", "damaged"),
        (lambda data: data[:20], "fewer than its header"),
        (lambda data: data[:5], "has 5 bytes"),
        (lambda data: b"", "has 0 bytes"),
        (lambda data: data[:8] + b"#" + data[9:], "damaged header"),
    ],
    ids=["short", "long", "in the header", "in its length", "empty", "header"],
)
def test_c_15_a_file_of_weights_that_is_not_whole_is_named(tmp_path: Path, damage: Any, said: str) -> None:
    (tmp_path / NAME).write_bytes(whole())
    assert weight_faults(tmp_path) == []
    (tmp_path / NAME).write_bytes(damage(whole()))
    (fault,) = weight_faults(tmp_path)
    assert fault.startswith(NAME)
    assert said in fault


def test_c_15_a_shard_without_a_tensor_of_the_index_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.safetensors").write_bytes(whole(name="x"))
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"x": "a.safetensors", "y": "a.safetensors"}}))
    (fault,) = weight_faults(tmp_path)
    assert fault.startswith("a.safetensors, which lacks y")


@pytest.mark.parametrize(
    "files",
    [
        {"tokenizer": {"model": {"vocab": {"a": 0, "late": 20}}}},
        {"tokenizer": {"model": {"vocab": [["x", 0.0]] * 20 + [["late", 0.0]]}}},
        {"tokenizer": {"model": {"vocab": {"a": 0}}, "added_tokens": [{"id": 20, "content": "late"}]}},
        {"vocab": {"a": 0, "late": 20}},
        {"added_tokens": {"late": 20}},
        {"tokenizer_config": {"added_tokens_decoder": {"20": {"content": "late"}}}},
    ],
)
def test_c_15_a_token_without_a_row_is_named_with_its_table(tmp_path: Path, files: dict[str, Any]) -> None:
    (fault,) = id_faults(written(tmp_path, **files), generates=True)
    assert "'late' of id 20" in fault
    assert "model.embed_tokens.weight has only 20 rows" in fault
    (tmp_path / NAME).write_bytes(whole(21))
    assert id_faults(tmp_path, generates=True) == []


def test_c_15_an_end_token_without_a_row_is_named_with_its_file(tmp_path: Path) -> None:
    written(tmp_path, generation_config={"eos_token_id": [2, 20]})
    (fault,) = id_faults(tmp_path, generates=True)
    assert fault.startswith("eos_token_id 20 in generation_config.json")
    assert id_faults(tmp_path, generates=False) == []


def test_c_15_an_unusual_embedding_goes_by_the_config(tmp_path: Path) -> None:
    written(tmp_path, config={"text_config": {"vocab_size": 3}}, vocab={"late": 3})
    (tmp_path / NAME).write_bytes(whole(name="strange"))
    assert "vocab_size in config.json) has only 3 rows" in id_faults(tmp_path, generates=True)[0]
