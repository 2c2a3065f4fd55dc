"""From completion ids to text, and to how much of the text each token covers. Linear in the number of tokens."""

from collections.abc import Sequence
from typing import Any

REPLACEMENT = "�"
LONGEST_PENDING = 8
"""Tokens that may wait for the rest of a character. A character has 4 bytes, so more of them are no character."""


class CompletionDecoder:
    """Decodes the completions of one tokenizer. Special tokens leave no text, except those that are to be kept."""

    def __init__(self, tokenizer: Any, *, end_ids: Sequence[int], keep_special_tokens: Sequence[str] = ()) -> None:
        kept = {tokenizer.convert_tokens_to_ids(token) for token in keep_special_tokens}
        self._hidden = (set(tokenizer.all_special_ids) | set(end_ids)) - kept
        self._tokenizer = tokenizer
        self._texts: dict[tuple[int, ...], str] = {}

    def __call__(self, ids: Sequence[int]) -> tuple[str, list[int]]:
        """The text, and for each id the number of its characters covered up to and including that token.

        Bytes of an unfinished character cover nothing until the token that ends it.
        """
        visible = [index for index in ids if index not in self._hidden]
        text = self._decode(tuple(visible), remember=False)
        ends: list[int] = []
        covered, context, pending = 0, (), ()
        for index in ids:
            if index not in self._hidden:
                pending += (index,)
                # Some tokenizers write a word's blank only after another token: decode behind the one before.
                gained = self._decode(context + pending)[len(self._decode(context)) :]
                if not gained.endswith(REPLACEMENT) or len(pending) >= LONGEST_PENDING:
                    covered, context, pending = covered + len(gained), pending, ()
            ends.append(min(covered, len(text)))
        _close(ends, len(text), [index not in self._hidden for index in ids])
        return text, ends

    def _decode(self, ids: tuple[int, ...], *, remember: bool = True) -> str:
        if not ids:
            return ""
        text = self._texts.get(ids)
        if text is None:
            text = self._tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False)
            if remember:
                self._texts[ids] = text
        return text


def _close(ends: list[int], length: int, visible: list[bool]) -> None:
    """The last visible token covers all that is left, and so do the hidden ones behind it."""
    for index in reversed(range(len(ends))):
        ends[index] = length
        if visible[index]:
            return
