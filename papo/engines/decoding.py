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
        self._decode = Texts(tokenizer)

    def __call__(self, ids: Sequence[int], *, beyond: int = 0) -> tuple[str, list[int]]:
        """The text, and for each id the number of its characters covered up to and including that token.

        Bytes of an unfinished character cover nothing until the token that ends it. `beyond`: characters of the last
        token that are no part of the completion, because a stop string ends before them.
        """
        visible = [index for index in ids if index not in self._hidden]
        text = self._decode(tuple(visible), remember=False)
        if beyond and ids and ids[-1] not in self._hidden:
            text = text[:-beyond]
        ends: list[int] = []
        covered, steps = 0, _Steps(self._decode)
        for index in ids:
            if index not in self._hidden:
                covered += len(steps(index))
            ends.append(min(covered, len(text)))
        _close(ends, len(text), [index not in self._hidden for index in ids])
        return text, ends


class StopStrings:
    """Where a completion ends by a text: with the token that completes the first of several strings.

    They are looked for in the text with special tokens written out. It is found from the ids alone, one after another,
    so that every generator's rows are cut by one rule, whatever made them stop.
    """

    def __init__(self, tokenizer: Any, strings: Sequence[str]) -> None:
        self._strings = tuple(strings)
        self._decode = Texts(tokenizer)

    def watch(self) -> "Watch":
        """For one row, from its first token on."""
        return Watch(self._strings, self._decode)

    def cut(self, ids: list[int], finish_reason: str) -> tuple[list[int], str, int]:
        """(ids up to where they stop, why, characters of the last one behind the string); as they are where none of the
        strings is in them, or where only the end token's own text completes one."""
        watch = self.watch()
        for position, index in enumerate(ids):
            beyond = watch(index)
            if beyond is not None and (finish_reason != "stop" or position < len(ids) - 1):
                return ids[: position + 1], "stop_string", beyond
        return ids, finish_reason, 0


class Watch:
    """Is told a row's tokens one by one and says when a stop string is complete."""

    def __init__(self, strings: tuple[str, ...], decode: "Texts") -> None:
        self._strings = strings
        self._kept = max(map(len, strings)) - 1
        self._steps = _Steps(decode)
        self._tail = ""

    def __call__(self, index: int) -> int | None:
        """Characters behind the string that this token completes; None if it completes none."""
        text = self._tail + self._steps(index)
        ends = [found + len(string) for string in self._strings if (found := text.find(string)) >= 0]
        self._tail = text[max(0, len(text) - self._kept) :]
        return len(text) - min(ends) if ends else None


class Texts:
    """The text of ids, remembered: the same few tokens come together again and again."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._known: dict[tuple[int, ...], str] = {}

    def __call__(self, ids: tuple[int, ...], *, remember: bool = True) -> str:
        if not ids:
            return ""
        text = self._known.get(ids)
        if text is None:
            text = self._tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False)
            if remember:
                self._known[ids] = text
        return text


class _Steps:
    """What each token adds to the text, one token after another."""

    def __init__(self, decode: Texts) -> None:
        self._decode = decode
        self._context: tuple[int, ...] = ()
        self._pending: tuple[int, ...] = ()

    def __call__(self, index: int) -> str:
        self._pending += (index,)
        # Some tokenizers write a word's blank only after another token: decode behind the one before.
        gained = self._decode(self._context + self._pending)[len(self._decode(self._context)) :]
        if gained.endswith(REPLACEMENT) and len(self._pending) < LONGEST_PENDING:
            return ""
        self._context, self._pending = self._pending, ()
        return gained


def _close(ends: list[int], length: int, visible: list[bool]) -> None:
    """The last visible token covers all that is left, and so do the hidden ones behind it."""
    for index in reversed(range(len(ends))):
        ends[index] = length
        if visible[index]:
            return
