"""Scores of texts under frozen models of their own: loaded whole or refused, kept between calls, asked in batches."""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, AutoModelForTokenClassification

from papo.engines.batching import MicroBatch, plan, position_limits
from papo.engines.forward import takes_logits_to_keep
from papo.engines.requests import ScoreTexts
from papo.engines.text_inputs import Given, NotGiven, TextEncoder
from papo.engines.text_models import Classifier, NextToken, TokenClassifier, label_index, label_names, positions_in
from papo.engines.tokenizing import load_tokenizer
from papo.errors import EngineError

LOADERS: dict[type, Any] = {
    Classifier: AutoModelForSequenceClassification,
    TokenClassifier: AutoModelForTokenClassification,
    NextToken: AutoModelForCausalLM,
}
KEPT = 2
"""Models in memory; the one that was asked longest ago goes first."""
_SCHEMA = {"score": pl.Float64, "status": pl.String, "reason": pl.String}


@dataclass(frozen=True, slots=True, kw_only=True)
class TextScorer:
    module: Any
    encoder: TextEncoder
    columns: tuple[int, ...]
    """Of the score among the labels; the ids of the good and the bad token."""
    pad_id: int | None
    """None: rows are computed one by one, as the model could not tell where a padded one ends."""


class TextScorers:
    """The scoring models of one process."""

    def __init__(self, *, dtype: torch.dtype, device: torch.device) -> None:
        self._dtype, self._device = dtype, device
        self._held: dict[ScoreTexts, TextScorer] = {}

    def of(self, request: ScoreTexts) -> TextScorer:
        """The model that `request` names, from memory if it is there. Raises EngineError where it is not whole."""
        key = replace(request, rows="", output="")
        found = self._held.pop(key, None)
        if found is None:
            # Room first: two old ones and a new one might not fit.
            while len(self._held) >= KEPT:
                self._held.pop(next(iter(self._held)))
            found = load_scorer(request, dtype=self._dtype, device=self._device)
        self._held[key] = found
        return found


def load_scorer(request: ScoreTexts, *, dtype: torch.dtype, device: torch.device) -> TextScorer:
    """A folder's model with its head, from safetensors only. Raises EngineError where a weight is missing: a head that
    transformers would make up gives scores that mean nothing."""
    folder, trusted = Path(request.model), request.trust_remote_code
    tokenizer = load_tokenizer(folder, trust_remote_code=trusted)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    positions = positions_in(config)
    limits = [limit for limit in (request.max_length, positions) if limit is not None]
    encoder = TextEncoder(
        tokenizer, input=request.input, max_length=min(limits, default=None), truncate=request.truncate
    )
    columns = _columns(request, config, tokenizer)
    loaded: Any = LOADERS[type(request.head)].from_pretrained(
        folder,
        dtype=dtype,
        use_safetensors=True,
        local_files_only=True,
        trust_remote_code=trusted,
        output_loading_info=True,
    )
    module, report = loaded
    wrong = sorted(report["missing_keys"]) + sorted(str(key) for key in report["mismatched_keys"])
    if wrong:
        raise EngineError(
            f"{folder} lacks weights that a {request.head.kind} has: {', '.join(wrong[:5])} ({len(wrong)}). Name the"
            " folder of a model that was trained with this head, or another head.kind."
        )
    pad = module.config.get_text_config().pad_token_id
    if pad is None and isinstance(request.head, Classifier):
        # A decoder's classifier finds a row's end by it.
        pad = module.config.get_text_config().pad_token_id = tokenizer.pad_token_id
    elif pad is None:
        pad = tokenizer.pad_token_id or 0
    module.eval()
    module.to(device).requires_grad_(False)
    return TextScorer(module=module, encoder=encoder, columns=columns, pad_id=pad)


def _columns(request: ScoreTexts, config: dict[str, Any], tokenizer: Any) -> tuple[int, ...]:
    head = request.head
    if not isinstance(head, NextToken):
        try:
            return (label_index(head.label, label_names(config)),)
        except ValueError as error:
            raise EngineError(f"head.label {error}") from error
    found = [tokenizer.encode(text, add_special_tokens=False) for text in (head.good, head.bad)]
    for text, ids in zip((head.good, head.bad), found, strict=True):
        if len(ids) != 1:
            raise EngineError(f"head names {text!r} as one token, but it is {len(ids)} tokens of {request.model}.")
    return tuple(ids[0] for ids in found)


def score_texts(
    scorer: TextScorer, request: ScoreTexts, *, micro_batch_size: int, tick: Callable[[int, int], None]
) -> pl.DataFrame:
    """score, status and reason of each row, in the order of the rows."""
    rows = pl.read_parquet(request.rows, columns=["question", "completion"])
    made: list[dict[str, Any]] = [{} for _ in range(rows.height)]
    given: list[tuple[int, Given]] = []
    for number, (question, completion) in enumerate(rows.iter_rows()):
        try:
            given.append((number, scorer.encoder(question, completion)))
        except NotGiven as reason:
            made[number] = {"score": None, "status": reason.status, "reason": str(reason)}
    size = 1 if scorer.pad_id is None else micro_batch_size
    lengths = [len(each.ids) for _, each in given]
    limits = position_limits(scorer.module)
    (batches,) = plan(lengths, micro_batch_size=size, ranks=1, limits=limits) if lengths else ([],)
    for done, batch in enumerate(batches):
        scores = _scores(scorer, [given[row][1] for row in batch.rows], _width(scorer, batch, lengths), request)
        for row, score in zip(batch.rows, scores, strict=True):
            finite = math.isfinite(score)
            made[given[row][0]] = {
                "score": score if finite else None,
                "status": "ok" if finite else "error",
                "reason": None if finite else f"the model's score is {score}",
            }
        tick(done + 1, len(batches))
    return pl.DataFrame(made, schema=_SCHEMA)


def _width(scorer: TextScorer, batch: MicroBatch, lengths: list[int]) -> int:
    """What the rows are padded to: never beyond the model's positions, and not at all where it knows no padding."""
    longest = max(lengths[row] for row in batch.rows)
    if scorer.pad_id is None:
        return longest
    limit = scorer.encoder.max_length
    return batch.width if limit is None else max(longest, min(batch.width, limit))


def _scores(scorer: TextScorer, rows: list[Given], width: int, request: ScoreTexts) -> list[float]:
    """The rows' scores. Padded on the right: a decoder does not look there, and an encoder is told by the mask."""
    device = next(scorer.module.parameters()).device
    shape = (len(rows), width)
    ids = torch.full(shape, scorer.pad_id or 0, dtype=torch.int64)
    types, mask = torch.zeros(shape, dtype=torch.int64), torch.zeros(shape, dtype=torch.int64)
    for index, row in enumerate(rows):
        length = len(row.ids)
        ids[index, :length], types[index, :length] = torch.tensor(row.ids), torch.tensor(row.types)
        mask[index, :length] = 1
    inputs = {"input_ids": ids.to(device), "attention_mask": mask.to(device)}
    if "token_type_ids" in scorer.encoder.tokenizer.model_input_names:
        inputs["token_type_ids"] = types.to(device)
    last = torch.tensor([row.last for row in rows], device=device)
    with torch.inference_mode():
        logits = _logits(scorer.module, inputs, last, request)
    return _activated(logits, scorer.columns, request).double().tolist()


def _logits(module: Any, inputs: dict[str, Tensor], last: Tensor, request: ScoreTexts) -> Tensor:
    """(rows, labels) or (rows, vocabulary) float32, read where the head's score stands."""
    rows = torch.arange(len(last), device=last.device)
    match request.head:
        case Classifier():
            return module(**inputs).logits.float()
        case TokenClassifier():
            return module(**inputs).logits[rows, last].float()
        case NextToken():
            if not takes_logits_to_keep(module):
                return module(**inputs).logits[rows, last].float()
            # Of all positions, the vocabulary's logits would be the larger part of the memory.
            positions, index = last.unique(return_inverse=True)
            return module(**inputs, logits_to_keep=positions).logits[rows, index].float()


def _activated(logits: Tensor, columns: tuple[int, ...], request: ScoreTexts) -> Tensor:
    """(rows,): the score of each row."""
    if isinstance(request.head, NextToken):
        # The probability of the good token against the bad one is the sigmoid of the difference of their logits.
        difference = logits[:, columns[0]] - logits[:, columns[1]]
        return difference if request.activation == "none" else difference.sigmoid()
    if request.activation == "softmax" or (request.activation == "auto" and logits.shape[1] > 1):
        return logits.softmax(dim=1)[:, columns[0]]
    score = logits[:, columns[0]]
    return score if request.activation == "none" else score.sigmoid()
