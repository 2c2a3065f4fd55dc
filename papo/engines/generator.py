"""One shard of completions, sampled by transformers on the learner's own weights."""

import math
from collections.abc import Callable
from typing import Any

import polars as pl
import torch
from transformers import GenerationConfig

from papo.engines.decoding import CompletionDecoder, StopStrings
from papo.engines.models import LoadedModel
from papo.engines.requests import Decode, Generate
from papo.engines.sampler import AddressedSampler, StopRows
from papo.errors import EngineError

SCHEMA: dict[str, Any] = {
    "group_id": pl.Int32,
    "sample_index": pl.Int32,
    "prompt_id": pl.String,
    "completion": pl.String,
    "token_ids": pl.List(pl.Int32),
    "completion_mask": pl.List(pl.Boolean),
    "sampler_logprobs": pl.List(pl.Float32),
    "token_ends": pl.List(pl.Int32),
    "finish_reason": pl.String,
    "policy_version": pl.Int32,
    "policy_sha256": pl.String,
    "row_seed": pl.Int64,
    "sampling_sha256": pl.String,
}


def generate(
    model: LoadedModel, request: Generate, *, policy_sha256: str, tick: Callable[[int, int], None]
) -> pl.DataFrame:
    """The rollouts of `request.rows`, in their order, in the columns of SCHEMA."""
    prompts = _prompts(request)
    _check_limits(model, request, prompts)
    ids, logprobs = _decode(model, request, prompts, tick)
    return _rollouts(model, request, prompts, ids, logprobs, policy_sha256=policy_sha256)


def decoded(model: LoadedModel, request: Decode, *, policy_sha256: str) -> pl.DataFrame:
    """The rollouts of a shard that was sampled elsewhere from these weights, in the columns of SCHEMA.

    Raises EngineError where a row has not one finite log-prob a token, or a token that the model has not (BUG-033):
    it is never padded or cut to fit.
    """
    prompts = _prompts(request.request)
    sampled = pl.read_parquet(request.sampled, columns=["token_ids", "sampler_logprobs"])
    if sampled.height != len(request.request.rows):
        raise EngineError(f"{request.sampled} has {sampled.height} rows for a shard of {len(request.request.rows)}.")
    vocabulary = model.module.config.vocab_size
    ids, logprobs = sampled["token_ids"].to_list(), sampled["sampler_logprobs"].to_list()
    for address, row_ids, row_logprobs in zip(request.request.rows, ids, logprobs, strict=True):
        fault = row_fault(row_ids, row_logprobs, vocabulary=vocabulary)
        if fault is not None:
            raise EngineError(
                f"the generator's row (group_id {address.group_id}, sample_index {address.sample_index}) {fault}:"
                " refused, since a row that is padded or cut to fit trains on tokens that nobody drew."
            )
    frame = _rollouts(model, request.request, prompts, ids, logprobs, policy_sha256=policy_sha256)
    limit = request.request.max_completion_length
    short = frame.filter((pl.col("finish_reason") == "length") & (pl.col("token_ids").list.len() < limit))
    if short.height:
        row = short.row(0, named=True)
        raise EngineError(
            f"the generator's row (group_id {row['group_id']}, sample_index {row['sample_index']}) ends after"
            f" {len(row['token_ids'])} of {limit} tokens without an end token or a stop string: refused."
        )
    return frame


def row_fault(ids: list[int], logprobs: list[float], *, vocabulary: int) -> str | None:
    """What is wrong with a sampled row, or None."""
    if len(ids) != len(logprobs):
        return f"has {len(ids)} token ids and {len(logprobs)} log-probs"
    if not all(math.isfinite(number) and number <= 0.0 for number in logprobs):
        return "has a log-prob that is no finite number up to 0"
    wrong = [index for index in ids if not 0 <= index < vocabulary]
    return f"has token id {wrong[0]}, beyond the vocabulary of {vocabulary}" if wrong else None


def _rollouts(
    model: LoadedModel,
    request: Generate,
    prompts: dict[int, tuple[str, list[int]]],
    ids: list[list[int]],
    logprobs: list[list[float]],
    *,
    policy_sha256: str,
) -> pl.DataFrame:
    """Rows cut at their end and decoded. Rows of a batch beyond those asked for are fillers and left out."""
    decoder = CompletionDecoder(model.tokenizer, end_ids=model.end_ids, keep_special_tokens=request.keep_special_tokens)
    stops = StopStrings(model.tokenizer, request.stop_strings) if request.stop_strings else None
    columns: dict[str, list[Any]] = {name: [] for name in SCHEMA}
    for address, row_ids, row_logprobs in zip(request.rows, ids, logprobs, strict=False):
        token_ids, finish_reason = cut_at_end(row_ids, model.end_ids)
        beyond = 0
        if stops is not None:
            token_ids, finish_reason, beyond = stops.cut(token_ids, finish_reason)
        text, token_ends = decoder(token_ids, beyond=beyond)
        row = {
            "group_id": address.group_id,
            "sample_index": address.sample_index,
            "prompt_id": prompts[address.group_id][0],
            "completion": text,
            "token_ids": token_ids,
            "completion_mask": [True] * len(token_ids),
            "sampler_logprobs": row_logprobs[: len(token_ids)],
            "token_ends": token_ends,
            "finish_reason": finish_reason,
            "policy_version": request.policy_version,
            "policy_sha256": policy_sha256,
            "row_seed": address.seed,
            "sampling_sha256": request.sampling_sha256,
        }
        for name, cell in row.items():
            columns[name].append(cell)
    return pl.DataFrame(columns, schema=SCHEMA)


def cut_at_end(ids: list[int], end_ids: tuple[int, ...]) -> tuple[list[int], str]:
    """(ids up to and including the first end token, "stop"), or (all ids, "length") where there is none.

    Padding is never looked at: a pad id may be an end id, or a token that the model can say.
    """
    for position, index in enumerate(ids):
        if index in end_ids:
            return ids[: position + 1], "stop"
    return ids, "length"


def _prompts(request: Generate) -> dict[int, tuple[str, list[int]]]:
    frame = pl.read_parquet(request.prompts, columns=["group_id", "prompt_id", "prompt_ids"])
    prompts = {group: (name, ids) for group, name, ids in frame.iter_rows()}
    missing = sorted({row.group_id for row in request.rows} - prompts.keys())
    if missing:
        raise EngineError(f"{request.prompts} has no group_id {missing[0]}, which the shard asks for.")
    return prompts


def _check_limits(model: LoadedModel, request: Generate, prompts: dict[int, tuple[str, list[int]]]) -> None:
    if not 0 < len(request.rows) <= request.batch_rows:
        raise EngineError(f"a shard of {len(request.rows)} rows does not fit into batch_rows={request.batch_rows}.")
    longest = max(len(prompts[row.group_id][1]) for row in request.rows)
    if longest > request.width:
        raise EngineError(f"a prompt has {longest} tokens, more than the width of {request.width} it is padded to.")
    limit = getattr(model.module.config.get_text_config(), "max_position_embeddings", None)
    if limit is not None and request.width + request.max_completion_length > limit:
        raise EngineError(
            f"prompts of {request.width} tokens and max_completion_length {request.max_completion_length} together"
            f" are longer than the model's {limit} positions. Lower max_completion_length or drop long prompts."
        )


def _decode(
    model: LoadedModel, request: Generate, prompts: dict[int, tuple[str, list[int]]], tick: Callable[[int, int], None]
) -> tuple[list[list[int]], list[list[float]]]:
    """Ids and log-probs of every row of the batch, up to where decoding stopped."""
    device = model.module.device
    # The batch has one shape whatever the shard holds: the rest of it repeats the first row.
    rows = [*request.rows, *[request.rows[0]] * (request.batch_rows - len(request.rows))]
    padded = torch.full((len(rows), request.width), model.pad_id, dtype=torch.int64)
    attention = torch.zeros_like(padded)
    for index, row in enumerate(rows):
        ids = prompts[row.group_id][1]
        padded[index, request.width - len(ids) :] = torch.tensor(ids)
        attention[index, request.width - len(ids) :] = 1
    seeds = torch.tensor([row.seed for row in rows], dtype=torch.int64, device=device)
    total = request.max_completion_length * request.batch_rows
    sampler = AddressedSampler(
        seeds,
        width=request.width,
        temperature=request.temperature,
        tick=lambda positions: tick(positions * request.batch_rows, total),
    )
    stops = StopStrings(model.tokenizer, request.stop_strings) if request.stop_strings else None
    # Not inference_mode: ZeRO 3 gathers the weights inside, and a later backward pass could not use those tensors.
    with torch.no_grad():
        # Position ids are counted by `generate` from the attention mask: padding has none.
        sequences = model.module.generate(
            padded.to(device),
            attention_mask=attention.to(device),
            generation_config=decoding_config(model, max_new_tokens=request.max_completion_length),
            logits_processor=[sampler],
            stopping_criteria=None if stops is None else [StopRows([stops.watch() for _ in rows])],
        )
        logprobs = torch.stack(sampler.chosen_logprobs, dim=1)
    return sequences[:, request.width :].tolist(), logprobs.tolist()


def decoding_config(model: LoadedModel, *, max_new_tokens: int) -> GenerationConfig:
    """All that changes logits or ends a row, spelled out and neutral; the sampler alone chooses.

    Without do_sample no temperature, top_k or top_p is applied, whatever the folder says.
    """
    return GenerationConfig(
        max_new_tokens=max_new_tokens,
        do_sample=False,
        num_beams=1,
        num_return_sequences=1,
        repetition_penalty=1.0,
        no_repeat_ngram_size=0,
        bad_words_ids=None,
        suppress_tokens=None,
        begin_suppress_tokens=None,
        forced_bos_token_id=None,
        forced_eos_token_id=None,
        eos_token_id=list(model.end_ids),
        pad_token_id=model.pad_id,
        use_cache=True,
    )
