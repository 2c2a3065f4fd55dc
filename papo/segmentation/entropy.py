"""Cuts where the policy was least sure what to say next (PRPO, arXiv:2601.07182; SchumiDing/srpocode)."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import numpy as np

from papo.rollouts import Values
from papo.steps import Span
from papo.values import value


@value
class EntropyPeaks:
    """A segment starts at each of the `top_k` tokens of highest entropy that is not too close to the cut before it."""

    kind: Literal["entropy"] = "entropy"
    top_k: int = 5
    """Highest-entropy tokens that are looked at; there are at most this many cuts."""
    min_gap: int = 10
    """Tokens between a cut and the one before it, or the start; closer ones are dropped, from the left."""

    def __post_init__(self) -> None:
        for name in ("top_k", "min_gap"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}: use 1 or more.")

    def segments(self, completion: str, token_ends: Sequence[int], *, entropies: Values | None) -> tuple[Span, ...]:
        """Half-open token ranges that cover all tokens; one segment if there are no more than top_k tokens.

        Of equal entropies the earlier token counts as higher. Raises ValueError without one entropy a token.
        """
        count = len(token_ends)
        if entropies is None or len(entropies) != count:
            found = "none" if entropies is None else str(len(entropies))
            raise ValueError(f"entropy cuts need one entropy for each of {count} tokens, but there are {found}.")
        if count <= self.top_k:
            return ((0, count),) if count else ()
        cuts = [0]
        for position in sorted(np.argsort(-entropies, kind="stable")[: self.top_k].tolist()):
            if position - cuts[-1] >= self.min_gap:
                cuts.append(position)
        return tuple(pairwise([*cuts, count]))
