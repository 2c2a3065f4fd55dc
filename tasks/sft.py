"""Supervised fine-tuning: a model folder that is a function of its config and data, made once and then reused.

Nothing is visible under the model's name until all of it is there; a run that is cut short leaves a draft, which the
next one replaces, starting again: the same config gives the same weights.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from papo.engines.protocol import Engine
from papo.engines.requests import CreateModel, Open, SftPhase, SftSteps, TokenizePairs
from papo.engines.settings import EngineSettings, TinyModel
from papo.errors import DataError
from schemas.canonical import canonical_json, sha256_of
from schemas.filechecks import resolve
from schemas.sft import ChainsPairs, FilePairs, SftConfig
from tasks.disk import LocalDisk
from tasks.publish import TEMPORARY, publish_folder, sweep, temporary
from tasks.rowfiles import named_rows
from tasks.run import Reporter

RECORD = "papo.json"
CHUNK = 25
"""Steps asked of the engine at a time: how often progress is shown."""


def sft_key(config: SftConfig, pairs: Sequence[pl.DataFrame], *, base_sha256: str | None) -> str:
    """SHA-256 of all that the model is a function of."""
    return sha256_of(
        {
            "config": config.identity,
            "pairs": [sha256_of(frame.to_dict(as_series=False)) for frame in pairs],
            "base": base_sha256,
            "version": 1,
        }
    )


def train_model(
    config: SftConfig, models: Path, *, base: Path, engine: Callable[[EngineSettings], Engine], reporter: Reporter
) -> Path:
    """The folder of the trained model below `models`; made if it is not there yet.

    `base`: the folder that relative paths in the config are relative to.
    """
    pairs = [pairs_of(phase.data, base) for phase in config.phases]
    source = None if isinstance(config.model, TinyModel) else resolve(config.model.path, base)
    key = sft_key(config, pairs, base_sha256=_folder_sha256(source) if source else None)
    models.mkdir(parents=True, exist_ok=True)
    disk, name = LocalDisk(models), f"{config.name}-{key[:12]}"
    if disk.exists(f"{name}/{RECORD}"):
        reporter.message(f"The model of {config.name} is there already: {models / name}")
        return models / name
    sweep(disk, ".")
    staged, work = temporary(disk, name), f"{TEMPORARY}{disk.writer}-work"
    for folder in (staged, work):
        disk.make_folder(folder)
    host = engine(config.engine_settings)
    host.start()
    try:
        losses = _train(config, pairs, host, disk.root / work, source, reporter)
        host.export(disk.local(staged))
        held = host.held
        record: dict[str, Any] = {
            "key": key,
            "config": config.model_dump(mode="json"),
            "policy_sha256": held.policy_sha256 if held else None,
            "first_loss": losses[0],
            "last_loss": losses[-1],
            "environment": host.environment,
        }
        disk.write(f"{staged}/{RECORD}", canonical_json(record))
        publish_folder(disk, staged, name)
    finally:
        host.close()
        disk.remove_tree(work)
    reporter.message(f"Supervised loss {losses[0]:.3f} → {losses[-1]:.3f}; the model is in {models / name}")
    return models / name


def pairs_of(source: FilePairs | ChainsPairs, base: Path) -> pl.DataFrame:
    """prompt, completion (text) and is_messages of a source."""
    if isinstance(source, ChainsPairs):
        rows = source.task.sft_rows(source.seed, source.count, source.mixture)
        frame = pl.DataFrame(rows, schema={"prompt": pl.String, "completion": pl.String}, orient="row")
        return frame.with_columns(is_messages=pl.lit(False))
    path = resolve(source.path, base)
    names = (source.columns.prompt, source.columns.completion)
    found: list[dict[str, Any]] = []
    faults: list[str] = []
    for row in named_rows(path, names, skip=source.skip, take=source.take):
        if row.fault is not None:
            faults.append(f"{row.place}: {row.fault}")
            continue
        prompt, completion = (row.values.get(name) for name in names)
        is_messages = isinstance(prompt, list)
        if not (is_messages or isinstance(prompt, str)) or not isinstance(completion, str) or not completion.strip():
            faults.append(f"{row.place}: {names[0]} and {names[1]} must be texts, the latter not blank")
            continue
        text = json.dumps(prompt, ensure_ascii=False) if is_messages else prompt
        found.append({"prompt": text, "completion": completion, "is_messages": is_messages})
    if faults or not found:
        shown = "\n  ".join(faults[:10]) or "it has no rows"
        raise DataError(f"{path} cannot be used for supervised training ({len(faults)} faults):\n  {shown}")
    return pl.DataFrame(found)


def _train(
    config: SftConfig, pairs: Sequence[pl.DataFrame], host: Engine, work: Path, source: Path | None, reporter: Reporter
) -> list[float]:
    if isinstance(config.model, TinyModel):
        (work / "model").mkdir()
        host.create(CreateModel(model=config.model, folder=str(work / "model")))
    model = str(source.resolve()) if source else str(work / "model")
    names = [f"phase-{number}" for number in range(len(pairs))]
    rows = pl.concat(
        [frame.with_columns(style=pl.lit(name)) for name, frame in zip(names, pairs, strict=True)], how="diagonal"
    )
    rows.write_parquet(work / "pairs.parquet")
    host.tokenize_pairs(
        TokenizePairs(
            model=model, rows=str(work / "pairs.parquet"), format=config.prompt, output=str(work / "tokens.parquet")
        )
    )
    host.open(Open(model=model))
    phases = tuple(
        SftPhase(share=phase.share, styles=(name,)) for phase, name in zip(config.phases, names, strict=True)
    )
    losses: list[float] = []
    for first in range(0, config.steps, CHUNK):
        count = min(CHUNK, config.steps - first)
        result = host.sft(
            SftSteps(
                rows=str(work / "tokens.parquet"),
                phases=phases,
                first=first,
                count=count,
                total=config.steps,
                batch_size=config.batch_size,
                optimizer=config.optimizer,
                seed=config.seed,
            )
        )
        losses += result.losses
        reporter.progress(first + count, config.steps)
    return losses


def _folder_sha256(folder: Path) -> str:
    disk = LocalDisk(folder)
    return sha256_of({name: disk.digest(name)[0] for name in disk.walk(".")})
