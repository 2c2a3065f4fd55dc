"""Clean data as files that a run can name: rows without findings, and a manifest of what was left out and why."""

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import polars as pl

from papo.errors import DataError
from schemas.data import Columns, FileSource
from tasks.datacheck import Checked
from tasks.datareport import page_of, report_of
from tasks.datarows import DataRow
from tasks.difficulty import PassRate, stratified, tier_of
from tasks.sources import read_source

Format = Literal["jsonl", "parquet"]
COLUMNS = Columns(prompt="prompt", reference_answer="answer", prompt_id="prompt_id")


def prepare_data(
    checked: Checked,
    output: Path,
    *,
    reward_version: str,
    form: Format = "jsonl",
    rates: Mapping[str, PassRate] | None = None,
    per_tier: int | None = None,
) -> dict[str, Any]:
    """Write the clean rows, `report.json`, `report.html` and `manifest.json` to a new folder, which appears when it is
    whole; returns the manifest. The same data give the same bytes.

    Raises DataError where the folder is there already, nothing is left, or a tier is too small.
    """
    if output.exists():
        raise DataError(f"{output} is there already: name a new folder.")
    kept = {split: checked.clean(split) for split in checked.rows}
    if per_tier is not None:
        kept["train"] = stratified(kept["train"], rates or {}, per_tier=per_tier)
    if empty := [split for split, rows in kept.items() if not rows]:
        raise DataError(f"No row of {' and '.join(empty)} is left: a check of the same data says why, row by row.")
    draft = output.with_name(f".tmp-{os.getpid()}-{output.name}")
    try:
        draft.mkdir(parents=True)
        manifest = _written(checked, kept, draft, form=form, rates=rates or {}, reward_version=reward_version)
        _write_json(draft / "manifest.json", manifest)
        draft.rename(output)
    except OSError as error:
        raise DataError(
            f"{output} cannot be written ({error.strerror}): check folder, permissions and space."
        ) from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return manifest


def _written(
    checked: Checked,
    kept: Mapping[str, Sequence[DataRow]],
    draft: Path,
    *,
    form: Format,
    rates: Mapping[str, PassRate],
    reward_version: str,
) -> dict[str, Any]:
    splits: dict[str, Any] = {}
    for split, rows in sorted(kept.items()):
        name = f"{split}.{form}"
        _write_rows(draft / name, [_record(row, rates if split == "train" else {}) for row in rows], form)
        # Read as a run will read it, so that this is the hash that the run records.
        found = read_source(FileSource(path=name, columns=COLUMNS), draft, split=split)
        splits[split] = {"file": name, "read": len(checked.rows[split]), "kept": len(rows), "sha256": found.sha256}
    report = report_of(checked, reward_version=reward_version)
    _write_json(draft / "report.json", report)
    (draft / "report.html").write_text(page_of(checked, title="What was left out, and why"), encoding="utf-8")
    return {
        "format": 1,
        "reward": reward_version,
        "columns": COLUMNS.model_dump(),
        "splits": splits,
        "reasons": checked.counts(),
        "report_sha256": report["sha256"],
    }


def _record(row: DataRow, rates: Mapping[str, PassRate]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "prompt_id": row.prompt_id,
        "prompt": json.loads(row.prompt) if row.is_messages else row.prompt,
        "answer": row.reference_answer,
    }
    rate = rates.get(row.prompt_id)
    return found if not rates else {**found, "tier": None if rate is None else tier_of(rate.share)}


def _write_rows(path: Path, rows: list[dict[str, Any]], form: Format) -> None:
    if form == "jsonl":
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        path.write_text(text, encoding="utf-8")
        return
    if len({isinstance(row["prompt"], str) for row in rows}) > 1:
        raise DataError("Some prompts are text and some are messages, which no Parquet column holds: use jsonl.")
    pl.DataFrame(rows, infer_schema_length=None).write_parquet(path)


def _write_json(path: Path, record: dict[str, Any]) -> None:
    path.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
