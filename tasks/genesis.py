"""What precedes iteration 0: prepared data, the held-out prompts, the first policy."""

import hashlib
import json
from functools import partial
from pathlib import PurePosixPath

import polars as pl

from papo.engines.requests import Tokenize
from papo.engines.text_models import room_in
from papo.errors import DataError
from schemas.canonical import sha256_of
from schemas.config import RunConfig
from schemas.frames import DataRows
from schemas.records import GENESIS, FrameRef, IterationState, LearnerState
from tasks.disk import Disk
from tasks.holding import export_reference, held, opened
from tasks.publish import ensure_folder, parent, publish_folder, temporary
from tasks.run import MODEL, SCRATCH, Run
from tasks.stage import stage
from tasks.store import encode

TRAIN, EVALUATION = "train", "evaluation"


@stage(version=2)
def prepare(run: Run) -> list[FrameRef]:
    """DataRows: each split with its prompts tokenised, once for the whole run. Shard 0 trains, shard 1 evaluates."""
    config = run.configs(0)
    splits = [TRAIN, EVALUATION] if config.held_out else [TRAIN]
    return [
        run.made(
            stage=prepare.name,
            version=prepare.version,
            iteration=GENESIS,
            shard=shard,
            key_parts={
                "source": run.sources(split).sha256,
                "tokenizer": _tokenizer_sha256(run),
                "format": config.identity["data"]["prompt"],
                "max_prompt_length": config.sampling.max_prompt_length,
                "overlong_prompts": config.data.overlong_prompts,
            },
            make=partial(_tokenized, run, split, config),
        )
        for shard, split in enumerate(splits)
    ]


@stage(version=2)
def held_out(run: Run, prepared: list[FrameRef]) -> list[FrameRef]:
    """Prompts of every evaluation: each held-out row is one group, in the source's order."""
    return [
        run.made(
            stage="sample",
            version=held_out.version,
            iteration=GENESIS,
            shard=0,
            key_parts={"data": ref.sha256},
            make=partial(_all_rows, run, ref),
        )
        for ref in prepared[1:]
    ]


@stage(version=1)
def first_state(run: Run) -> IterationState:
    """The policy as its folder has it, before any update, and what is trained beside it."""
    opened(run, model=run.model)
    fingerprint, config = held(run.engine), run.configs(0)
    assert fingerprint is not None, "an engine that has opened a model holds it"
    algorithm = config.algorithm
    state = IterationState(
        policy=LearnerState(version=0, fingerprint=fingerprint),
        reference_sha256=fingerprint.policy_sha256 if config.needs_reference else None,
        kl_coef=algorithm.first_kl_coef if algorithm.needs.kl_control else None,
    )
    if config.needs_reference:
        export_reference(run, state)
    return state


def keep_model(disk: Disk, files: dict[str, bytes]) -> dict[str, str]:
    """Copy all that the model's folder has but the weights into the run, so that it can be resumed without it; returns
    what each file hashes to."""
    return keep_files(disk, MODEL, files)


def keep_files(disk: Disk, folder: str, files: dict[str, bytes]) -> dict[str, str]:
    """The folder with these files, whole or not at all, whatever was there; returns what each file hashes to."""
    hashes = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    if parent(folder) != ".":
        ensure_folder(disk, parent(folder))
    if disk.exists(folder):
        if {name: disk.digest(f"{folder}/{name}")[0] for name in disk.walk(folder)} == hashes:
            # Its creator may have died before its name was synced.
            disk.sync_folder(parent(folder))
            return hashes
        # From a start that came to nothing, with the folder as it was then.
        disk.remove_tree(folder)
    staged = temporary(disk, folder)
    if disk.exists(staged):
        disk.remove_tree(staged)
    disk.make_folder(staged)
    folders = {f"{staged}/{inner}" for name in files for inner in PurePosixPath(name).parents if inner.name}
    for above in sorted(folders):
        disk.make_folder(above)
    for name, data in files.items():
        disk.write(f"{staged}/{name}", data)
    publish_folder(disk, staged, folder)
    return hashes


def _tokenizer_sha256(run: Run) -> str:
    return sha256_of({name: run.disk.digest(f"{MODEL}/{name}")[0] for name in run.disk.walk(MODEL)})


def _tokenized(run: Run, split: str, config: RunConfig) -> pl.DataFrame:
    raw = run.sources(split).frame
    rows_path = f"{SCRATCH}/{split}-rows.parquet"
    run.disk.write(rows_path, encode(raw))
    tokens = run.staged(
        f"{split}-tokens",
        lambda output: run.engine.tokenize(
            Tokenize(
                model=run.disk.local(MODEL), rows=run.disk.local(rows_path), format=config.data.prompt, output=output
            )
        ),
    )
    run.disk.remove(rows_path)
    joined = raw.join(tokens, on="prompt_id", how="left", maintain_order="left", validate="1:1").select(
        "prompt_id",
        "source",
        pl.col("prompt_text").alias("prompt"),
        pl.col("prompt").alias("question"),
        "reference_answer",
        "prompt_ids",
    )
    kept = _within_limit(run, joined, split, config)
    _check_positions(run, kept, split, config)
    return kept


def _check_positions(run: Run, rows: pl.DataFrame, split: str, config: RunConfig) -> None:
    """Raises DataError where a prompt leaves the model no room for the longest completion (C-15)."""
    path = f"{MODEL}/config.json"
    room = room_in(json.loads(run.disk.read(path))) if run.disk.exists(path) else None
    completion = config.sampling.max_completion_length
    if room is None:
        return
    over = rows.filter(pl.col("prompt_ids").list.len() + completion > room.tokens)
    if over.height:
        name, ids = over.select("prompt_id", "prompt_ids").row(0)
        raise DataError(
            f"Prompt {name} of data.{split} has {len(ids)} tokens, and with sampling.max_completion_length = "
            f"{completion} that is more than the model has: {room.limit} ({over.height} such prompts). Lower "
            f"max_completion_length, or sampling.max_prompt_length to {room.tokens - completion} with "
            f"data.overlong_prompts: drop{room.way_out}."
        )


def _within_limit(run: Run, rows: pl.DataFrame, split: str, config: RunConfig) -> pl.DataFrame:
    limit = config.sampling.max_prompt_length
    fits = pl.col("prompt_ids").list.len() <= limit
    over = rows.filter(~fits)["prompt_id"].to_list()
    if not over:
        return rows
    named = ", ".join(over[:10]) + (" …" if len(over) > 10 else "")
    if config.data.overlong_prompts == "fail":
        raise DataError(
            f"{len(over)} of {rows.height} prompts of data.{split} have more than sampling.max_prompt_length = {limit} "
            f"tokens after the template: {named}. Raise the limit, or set data.overlong_prompts: drop."
        )
    run.journal.event("prompts_dropped", split=split, limit=limit, prompt_ids=over)
    run.reporter.message(f"{len(over)} prompts of data.{split} are over {limit} tokens and are dropped: {named}")
    kept = rows.filter(fits)
    if kept.height == 0:
        raise DataError(f"No prompt of data.{split} has {limit} tokens or fewer. Raise sampling.max_prompt_length.")
    lost = sorted(set(rows["source"]) - set(kept["source"]))
    if lost:
        raise DataError(
            f"No prompt of {', '.join(lost)} in data.{split} has {limit} tokens or fewer, so its share of the draws"
            " cannot be kept. Raise sampling.max_prompt_length, or leave the source out."
        )
    return kept


def _all_rows(run: Run, ref: FrameRef) -> pl.DataFrame:
    rows = run.store.load(ref)
    groups = pl.Series("group_id", range(rows.height), dtype=pl.Int32)
    return rows.select(groups, *DataRows.to_schema().columns)
