"""What a config names must be there, and be what it must be, before anything is loaded."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from schemas.config import RunConfig
from schemas.filechecks import file_faults, resolve
from schemas.sft import SftConfig


def config(**patch: Any) -> RunConfig:
    usual: dict[str, Any] = {
        "data": {"train": {"kind": "chains"}},
        "model": {"path": "model"},
        "reward": {"outcome": {"kind": "answer_match"}},
    }
    return RunConfig.model_validate(usual | patch)


NO_TENSORS = (2).to_bytes(8, "little") + b"{}"
"""A whole safetensors file."""


def model_folder(folder: Path, *names: str) -> Path:
    folder.mkdir()
    for name in names or ("config.json", "model.safetensors", "tokenizer.json"):
        (folder / name).write_bytes(NO_TENSORS if name.endswith(".safetensors") else b"{}")
    return folder


def texts(config: RunConfig | SftConfig, base: Path) -> list[str]:
    return [str(fault) for fault in file_faults(config, base)]


def test_a_path_leads_from_the_config_first_and_then_from_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside, working = tmp_path / "configs", tmp_path / "work"
    for folder in (beside, working):
        folder.mkdir()
        (folder / "both.jsonl").touch()
    (working / "here.jsonl").touch()
    monkeypatch.chdir(working)

    assert resolve("both.jsonl", beside) == beside / "both.jsonl"
    assert resolve("here.jsonl", beside).samefile(working / "here.jsonl")
    assert resolve(str(working / "here.jsonl"), beside) == working / "here.jsonl"


def test_a_whole_model_folder_has_no_fault(tmp_path: Path) -> None:
    model_folder(tmp_path / "model")

    assert texts(config(), tmp_path) == []


def test_what_a_model_folder_lacks_is_named_together(tmp_path: Path) -> None:
    model_folder(tmp_path / "model", "pytorch_model.bin")

    (fault,) = texts(config(), tmp_path)

    assert fault.startswith("model.path is model, which lacks config.json, weights in *.safetensors")
    assert "tokenizer" in fault


def test_a_missing_weight_shard_is_named(tmp_path: Path) -> None:
    folder = model_folder(tmp_path / "model", "config.json", "tokenizer.json", "a.safetensors")
    index = folder / "model.safetensors.index.json"

    index.write_text(json.dumps({"weight_map": {"x": "a.safetensors", "y": "b.safetensors"}}))
    assert "lacks b.safetensors:" in texts(config(), tmp_path)[0]

    index.write_text("{")
    assert "lacks a readable model.safetensors.index.json" in texts(config(), tmp_path)[0]


def test_missing_and_mistaken_files_are_all_named(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "rows.csv").touch()
    (tmp_path / "model").touch()

    data = {"train": {"kind": "file", "path": "folder"}, "evaluation": {"kind": "file", "path": "rows.csv"}}
    found = texts(config(data=data), tmp_path)

    assert found[0].startswith("data.train.path is folder, which is a folder")
    assert found[1].startswith("data.evaluation.path is rows.csv, but data files end in .jsonl or .parquet")
    assert found[2].startswith("model.path is model, which is a file")


def test_both_folders_that_were_looked_in_are_named(tmp_path: Path) -> None:
    (fault,) = texts(config(model={"cold_start": "sft.yaml"}), tmp_path)

    assert fault.startswith(f"model.cold_start is sft.yaml, which does not exist (looked for in {tmp_path}")
    assert str(Path.cwd()) in fault


def test_a_file_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rows.jsonl").touch()
    model_folder(tmp_path / "model")

    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(13, os.strerror(13))

    monkeypatch.setattr(Path, "open", refuse)
    rows, weights = texts(config(data={"train": {"kind": "file", "path": "rows.jsonl"}}), tmp_path)

    assert "cannot be read (Permission denied)" in rows
    assert "model.safetensors, which cannot be read (Permission denied)" in weights


def test_a_supervised_config_names_files_too(tmp_path: Path) -> None:
    sft = SftConfig.model_validate(
        {"model": {"kind": "folder", "path": "model"}, "phases": [{"data": {"kind": "file", "path": "a.jsonl"}}]}
    )

    found = texts(sft, tmp_path)

    assert found[0].startswith("phases[0].data.path is a.jsonl")
    assert found[1].startswith("model.path is model")


@pytest.mark.parametrize(("section", "kind"), [("critic", "gae"), ("implicit_prm", "prime")])
def test_models_beside_the_policy_are_looked_for_too(tmp_path: Path, section: str, kind: str) -> None:
    model_folder(tmp_path / "model")
    algorithm = {"advantage": {"kind": kind}}
    (fault,) = texts(config(algorithm=algorithm, **{section: {"path": "elsewhere"}}), tmp_path)
    assert fault.startswith(f"{section}.path is elsewhere")
    model_folder(tmp_path / "elsewhere")
    assert texts(config(algorithm=algorithm, **{section: {"path": "elsewhere"}}), tmp_path) == []
