"""Do servers hold the learner's weights? Seen in two ways after each sync: by fingerprint, and by log-probs.

The fingerprint compares bits, the probe compares what comes out: each sees faults that the other cannot.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from papo.engines.protocol import Engine
from papo.engines.requests import Logprobs
from papo.engines.vllm_client import Ask, Sampled, VllmLink
from papo.engines.weight_transport import Export, total
from papo.errors import EngineError

PROMPTS = 4
PROMPT_TOKENS = 272
"""The probe's prompts are repeated to this length, so that they fill whole blocks of the prefix cache (128 tokens on
a CPU, 16 on a GPU): a cache that was not reset answers with older weights only where it has a whole block."""
COMPLETION_TOKENS = 12


@dataclass(frozen=True, slots=True)
class Tolerance:
    mean: float
    largest: float


TOLERANCES = {"float32": Tolerance(5e-5, 2e-4), "bfloat16": Tolerance(0.05, 1.0)}
"""Of |log-prob of the server − of the learner| in nats. Measured: 3e-6 in float32, 3e-2 in bfloat16."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    mean: float
    largest: float


def check_fingerprint(link: VllmLink, export: Export, buffers: dict[str, str]) -> None:
    """Raises EngineError unless the server holds the export, bit for bit, and the buffers that it started with.

    On a CPU vLLM packs the matrices away, so that only embeddings and norms are seen here; the probe covers the rest.
    `buffers`: hash by URL, kept over the life of a server; the first one seen is taken down. A server of several ranks
    holds parts, whose sums do not add up to the export's (norms are on each): only its buffers are compared.
    """
    ranks = link.fingerprint()
    seen = " ".join(rank["buffers"] for rank in ranks)
    if buffers.setdefault(link.url, seen) != seen:
        raise EngineError(
            f"{link.url} fails the fingerprint: its buffers (rotary tables) are not those that it started with."
            " Restart it."
        )
    if len(ranks) > 1:
        return
    served = {name: (int(first), int(second)) for name, (first, second) in ranks[0]["sums"].items()}
    wrong = [name for name, sums in served.items() if export.sums.get(name, sums) != sums]
    # Where all matrices are there, fused ones too, their total must be the export's; a padded vocabulary adds zeros.
    if not wrong and ranks[0]["elements"] >= export.elements and total(served.values()) != total(export.sums.values()):
        wrong = ["the sum of all parameters"]
    if wrong or not served.keys() & export.sums.keys():
        raise EngineError(
            f"{link.url} fails the fingerprint: after it has loaded policy {export.policy_sha256[:16]}… it differs in"
            f" {', '.join(wrong[:3]) or 'the names of all parameters'} ({len(wrong)} of {len(served)}), which it holds"
            f" in {ranks[0]['dtype']}. It serves other weights: stale, cast on the way, or of another dtype than"
            " generator.dtype says."
        )


class Probe:
    """A few fixed prompts, sampled by each server and scored by the learner."""

    def __init__(self, prompts: Sequence[Sequence[int]], *, longest: int, folder: Path) -> None:
        """`longest`: tokens that a server takes, prompt and completion together. `folder`: for scratch files."""
        room = min(PROMPT_TOKENS, longest - COMPLETION_TOKENS)
        self._prompts = [_repeated(prompt, room) for prompt in prompts[:PROMPTS]]
        self._folder = folder

    def gap(self, link: VllmLink, engine: Engine, *, temperature: float, dtype: str) -> Gap:
        """How far the server's log-probs are from the learner's. Raises EngineError when beyond the tolerance."""
        sampled = [link.sample(ask) for ask in self._asks(temperature)]
        ours = self._scored(engine, sampled, temperature=temperature)
        theirs = np.concatenate([np.asarray(row.logprobs) for row in sampled])
        differences = np.abs(ours - theirs)
        gap = Gap(mean=float(differences.mean()), largest=float(differences.max()))
        limit = TOLERANCES[dtype]
        if not (gap.mean <= limit.mean and gap.largest <= limit.largest):
            raise EngineError(
                f"{link.url} fails the log-prob probe: it differs from the learner by {gap.mean:.2g} mean and"
                f" {gap.largest:.2g} at most, where {dtype} allows {limit.mean:g} and {limit.largest:g}. It computes"
                " with other weights, with prefixes that older weights left in its cache, or reports raw log-probs"
                " (start it with --logprobs-mode processed_logprobs)."
            )
        return gap

    def _asks(self, temperature: float) -> list[Ask]:
        return [
            Ask(
                prompt_ids=prompt,
                seed=number,
                temperature=temperature,
                max_tokens=COMPLETION_TOKENS,
                end_ids=(),
                name=f"probe {number}",
            )
            for number, prompt in enumerate(self._prompts)
        ]

    def _scored(
        self, engine: Engine, sampled: Sequence[Sampled], *, temperature: float
    ) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        prompts, rollouts, output = (
            str(self._folder / f"probe-{name}.parquet") for name in ("prompts", "rollouts", "scores")
        )
        groups = pl.Series("group_id", range(len(sampled)), dtype=pl.Int32)
        ids = [list(prompt) for prompt in self._prompts]
        pl.DataFrame([groups, pl.Series("prompt_ids", ids, dtype=pl.List(pl.Int32))]).write_parquet(prompts)
        tokens = pl.Series("token_ids", [row.token_ids for row in sampled], dtype=pl.List(pl.Int32))
        index = pl.Series("sample_index", [0] * len(sampled), dtype=pl.Int32)
        pl.DataFrame([groups, index, tokens]).write_parquet(rollouts)
        engine.logprobs(
            Logprobs(
                state="policy",
                column="old_logprobs",
                prompts=prompts,
                rollouts=rollouts,
                temperature=temperature,
                output=output,
            )
        )
        return pl.read_parquet(output)["old_logprobs"].explode().to_numpy().astype(np.float64)


def _repeated(prompt: Sequence[int], length: int) -> tuple[int, ...]:
    """The prompt over and over, up to `length` tokens; a longer one keeps its end."""
    times = -(-length // len(prompt))
    return tuple((list(prompt) * times)[:length]) if len(prompt) < length else tuple(prompt[-length:])
