"""Tokens of each prompt after the template, counted by the model folder's own tokenizer in another process."""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

from papo.engines.settings import PromptFormat
from papo.errors import DataError
from tasks.datarows import DataRow

Place = tuple[str, str]


def prompt_lengths(
    rows: Sequence[DataRow], model: Path, style: PromptFormat, *, trust_remote_code: bool = False
) -> dict[Place, int]:
    """By (split, place), of the rows without faults. Raises DataError where template or tokenizer refuse a prompt."""
    whole = [row for row in rows if not row.faults]
    if not whole:
        return {}
    frame = pl.DataFrame(
        {
            "prompt_id": [f"{row.prompt_id} ({row.split}, {row.place})" for row in whole],
            "prompt": [row.prompt for row in whole],
            "is_messages": [row.is_messages for row in whole],
        }
    )
    with TemporaryDirectory(prefix="papo-lengths-") as folder:
        given, output = Path(folder) / "rows.parquet", Path(folder) / "tokens.parquet"
        frame.write_parquet(given)
        command = [sys.executable, "-m", "papo.engines.prompt_lengths", str(model), str(given), str(output)]
        command += ["--format", json.dumps(asdict(style)), *(["--trust-remote-code"] if trust_remote_code else [])]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode:
            lines = done.stderr.strip().splitlines() or ["no reason was given"]
            raise DataError(f"The prompts cannot be put in tokens of {model}: {lines[-1]}")
        tokens = pl.read_parquet(output)["tokens"].to_list()
    return {(row.split, row.place): int(count) for row, count in zip(whole, tokens, strict=True)}
