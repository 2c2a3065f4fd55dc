"""Hugging Face datasets as a source: folders as they are, the hub only by name, and every failure in plain words."""

import builtins
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from papo.errors import ConfigError, DataError
from schemas import filechecks
from schemas.data import FileSource, HuggingFaceSource
from schemas.loading import load_config
from tasks.run import RawData
from tasks.sources import read_source
from tests.simulation.world import CONFIG

datasets = pytest.importorskip("datasets")

ROWS: list[dict[str, Any]] = [
    {"question": "1+1=", "gold": "2", "id": "a"},
    {"question": "2+2=", "gold": "4", "id": "b"},
    {"question": "3+3=", "gold": "6", "id": "c"},
]
COLUMNS = {"prompt": "question", "reference_answer": "gold", "prompt_id": "id"}


def saved(folder: Path, rows: list[dict[str, Any]] = ROWS, *, splits: tuple[str, ...] = ()) -> Path:
    """A folder as save_to_disk writes it, of one dataset or of several splits."""
    made = datasets.Dataset.from_list(rows)
    datasets.disable_progress_bars()
    held = datasets.DatasetDict(dict.fromkeys(splits, made)) if splits else made
    held.save_to_disk(str(folder / "saved"))
    return folder / "saved"


def read(folder: Path, path: str = "saved", **source: Any) -> RawData:
    fields = {"path": path, "columns": COLUMNS, **source}
    return read_source(HuggingFaceSource.model_validate(fields), folder, split="train")


def test_a_saved_dataset_gives_what_a_file_of_its_rows_gives(tmp_path: Path) -> None:
    saved(tmp_path)
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))

    found = read(tmp_path)

    of_file = read_source(
        FileSource.model_validate({"path": "rows.jsonl", "columns": COLUMNS}), tmp_path, split="train"
    )
    assert found.frame.equals(of_file.frame)
    assert found.sha256 == of_file.sha256, "content counts, not how it is stored"


def test_skip_take_and_split_choose_rows(tmp_path: Path) -> None:
    saved(tmp_path, splits=("train", "test"))

    assert read(tmp_path, split="test", skip=1, take=1).frame["prompt_id"].to_list() == ["b"]
    assert read(tmp_path, skip=2, take=9).frame["prompt_id"].to_list() == ["c"]
    with pytest.raises(DataError, match="has no rows after the 5"):
        read(tmp_path, skip=5)


def test_a_split_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    saved(tmp_path, splits=("train", "test"))

    with pytest.raises(DataError, match="has no split 'tset': its splits are train, test"):
        read(tmp_path, split="tset")


def test_many_rows_come_in_order_and_whole(tmp_path: Path) -> None:
    rows = [{"question": f"{number}+0=", "gold": str(number), "id": str(number)} for number in range(2500)]
    saved(tmp_path, rows)

    frame = read(tmp_path, skip=7).frame

    assert frame["prompt_id"].to_list() == [str(number) for number in range(7, 2500)]
    assert (frame["prompt"] == frame["reference_answer"] + "+0=").all()


def test_values_are_not_converted_and_faults_are_in_one_report(tmp_path: Path) -> None:
    """BUG-129 and BUG-130"""
    rows = [{"question": " ", "gold": 7.0, "id": "a"}, {"question": "1+1=", "gold": None, "id": "b"}]
    saved(tmp_path, rows)

    with pytest.raises(DataError) as raised:
        read(tmp_path)

    assert "prompt is blank: row 0" in str(raised.value)
    assert "reference_answer is null: use text or a number: row 1" in str(raised.value)
    saved(tmp_path / "numbers", [{"question": "1+1=", "gold": 7.0, "id": "a"}])
    assert read(tmp_path / "numbers").frame["reference_answer"].to_list() == ["7.0"]
    saved(tmp_path / "other", [{"question": "1+1=", "id": "a"}])
    with pytest.raises(DataError, match="no column 'gold'"):
        read(tmp_path / "other")


def test_messages_are_kept(tmp_path: Path) -> None:
    saved(tmp_path, [{"question": [{"role": "user", "content": "1+1="}], "gold": "2", "id": "a"}])

    frame = read(tmp_path).frame

    assert frame["is_messages"].to_list() == [True]
    assert json.loads(frame["prompt"][0]) == [{"role": "user", "content": "1+1="}]


def test_a_folder_of_data_files_is_read_anew_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """BUG-134: the library's cache never answers for an edited file."""
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    (tmp_path / "files").mkdir()
    pl.DataFrame(ROWS).write_parquet(tmp_path / "files" / "train.parquet")
    before = read(tmp_path, "files")

    pl.DataFrame([ROWS[0] | {"gold": "3"}, *ROWS[1:]]).write_parquet(tmp_path / "files" / "train.parquet")

    assert before.frame["reference_answer"].to_list() == ["2", "4", "6"]
    assert read(tmp_path, "files").frame["reference_answer"].to_list() == ["3", "4", "6"]


def test_a_folder_without_data_says_so(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()

    with pytest.raises(DataError, match=r"\(a local folder\) cannot be read(.|\n)*save_to_disk"):
        read(tmp_path, "empty")


def test_a_hub_name_without_a_network_says_what_can_be_done(tmp_path: Path) -> None:
    """The tests run with HF_HUB_OFFLINE=1 (tests/conftest.py)."""
    with pytest.raises(
        DataError, match=r"owner/none \(looked for on the hub\)(.|\n)*HF_HUB_OFFLINE(.|\n)*save_to_disk"
    ):
        read(tmp_path, "owner/none")


def config_faults(folder: Path, **source: Any) -> str:
    path = folder / "run.yaml"
    path.write_text(json.dumps({**CONFIG, "data": {"train": {"kind": "huggingface", **source}}}))
    with pytest.raises(ConfigError) as raised:
        load_config(path)
    return str(raised.value)


@pytest.mark.parametrize("path", ["./none", "/none/there", "a/b/c", "../x"])
def test_a_path_that_is_neither_folder_nor_hub_name_is_found_before_the_start(tmp_path: Path, path: str) -> None:
    assert f"data.train.path is {path}, which does not exist" in config_faults(tmp_path, path=path)


def test_a_file_is_not_a_dataset(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text("{}\n")
    assert "use kind: file" in config_faults(tmp_path, path="rows.jsonl")


def test_a_missing_library_is_found_before_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved(tmp_path)
    monkeypatch.setattr(filechecks, "find_spec", lambda name: None)
    assert "needs the package datasets" in config_faults(tmp_path, path="saved")

    plain = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "datasets":
            raise ImportError(name)
        return plain(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(DataError, match="needs the package datasets"):
        read(tmp_path)


def test_the_library_brings_no_torch_into_the_process_that_orchestrates(tmp_path: Path) -> None:
    saved(tmp_path)
    code = (
        "import sys; from pathlib import Path; from schemas.data import *; from tasks.sources import read_source\n"
        "assert 'datasets' not in sys.modules\n"
        f"source = HuggingFaceSource(path='saved', columns=Columns(**{COLUMNS!r}))\n"
        f"assert read_source(source, Path({str(tmp_path)!r}), split='train').frame.height == 3\n"
        "assert 'datasets' in sys.modules and 'torch' not in sys.modules and 'transformers' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
