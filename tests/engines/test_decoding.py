"""Text, ends and lengths of completions."""

from typing import Any

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from papo.engines.decoding import CompletionDecoder, StopStrings
from papo.engines.generator import cut_at_end
from papo.engines.models import chain_tokenizer

PAD, EOS = 0, 1


def byte_level_tokenizer() -> Any:
    """Byte-level BPE with few merges, so that characters beyond ASCII are made of several tokens."""
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=["<pad>", "<eos>", "<|im_end|>", "<tool>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    backend.train_from_iterator(["the answer is four, and the rest is silence"] * 3, trainer)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<eos>", pad_token="<pad>")
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|im_end|>", "<tool>"]})
    return tokenizer


@pytest.mark.parametrize("text", ["the answer", "naïve 你好 🙂🙂 end", "🙂", "a", "", "é" * 40, "x\n\n  y "])
def test_ends_cover_the_text_character_by_character(text: str) -> None:
    tokenizer = byte_level_tokenizer()
    ids = [*tokenizer.encode(text, add_special_tokens=False), EOS]
    decoded, ends = CompletionDecoder(tokenizer, end_ids=(EOS,))(ids)
    assert decoded == text
    assert len(ends) == len(ids)
    assert ends == sorted(ends)
    assert ends[-1] == len(text)
    for index, end in enumerate(ends):
        prefix = tokenizer.decode(ids[: index + 1], skip_special_tokens=True)
        # A character counts as covered with the token that brings its last byte.
        assert text[:end] == prefix.rstrip("�"), (index, end)


def test_bytes_that_never_make_a_character_end_with_the_text() -> None:
    tokenizer = byte_level_tokenizer()
    half = tokenizer.encode("🙂", add_special_tokens=False)[:-1]
    text, ends = CompletionDecoder(tokenizer, end_ids=(EOS,))(half * 20 + tokenizer.encode("ok"))
    assert ends == sorted(ends)
    assert ends[-1] == len(text)
    assert text.endswith("ok")


def test_chain_text_is_joined_without_blanks() -> None:
    tokenizer = chain_tokenizer()
    text = "<think>7-3=4\n=4</think><answer>4</answer>"
    decoded, ends = CompletionDecoder(tokenizer, end_ids=(EOS,))(tokenizer.encode(text))
    assert decoded == text
    assert ends[:3] == [7, 8, 9]


def test_bug_020_and_035_the_length_is_up_to_the_first_end_token_and_never_asks_for_padding() -> None:
    assert cut_at_end([5, 6, PAD, PAD], (EOS,)) == ([5, 6, PAD, PAD], "length")
    assert cut_at_end([5, EOS, 9, PAD], (EOS,)) == ([5, EOS], "stop")
    assert cut_at_end([], (EOS,)) == ([], "length")
    assert cut_at_end([5, 6, 7], (EOS,)) == ([5, 6, 7], "length")


def test_bug_022_any_of_several_end_tokens_ends() -> None:
    assert cut_at_end([7, 106, 8, 1], (1, 106)) == ([7, 106], "stop")
    tokenizer = byte_level_tokenizer()
    ids = [*tokenizer.encode("four"), 2]
    assert CompletionDecoder(tokenizer, end_ids=(1, 2))(ids)[0] == "four"


def test_bug_037_end_markers_leave_the_text_and_declared_tokens_stay() -> None:
    tokenizer = byte_level_tokenizer()
    ids = [*tokenizer.encode("<tool>four<|im_end|>"), EOS]
    assert CompletionDecoder(tokenizer, end_ids=(EOS,))(ids)[0] == "four"
    kept, ends = CompletionDecoder(tokenizer, end_ids=(EOS,), keep_special_tokens=("<tool>",))(ids)
    assert kept == "<tool>four"
    assert ends[0] == len("<tool>")
    assert ends[-1] == len(kept)


def test_bug_038_text_behind_the_end_token_is_not_there() -> None:
    tokenizer = byte_level_tokenizer()
    ids, reason = cut_at_end([*tokenizer.encode("five"), EOS, *tokenizer.encode("four")], (EOS,))
    assert reason == "stop"
    assert CompletionDecoder(tokenizer, end_ids=(EOS,))(ids)[0] == "five"


def stopped(
    text: str, strings: list[str], *, ends: bool = True, kept: tuple[str, ...] = ()
) -> tuple[str, str, int, list[int]]:
    """The completion's text, why it ended, how many tokens are left and what they cover."""
    tokenizer = byte_level_tokenizer()
    ids, reason = cut_at_end([*tokenizer.encode(text), *([EOS] if ends else [])], (EOS,))
    ids, reason, beyond = StopStrings(tokenizer, strings).cut(ids, reason)
    decoded, covered = CompletionDecoder(tokenizer, end_ids=(EOS,), keep_special_tokens=kept)(ids, beyond=beyond)
    return decoded, reason, len(ids), covered


@pytest.mark.parametrize(
    ("text", "strings", "left"),
    [
        ("the answer is four, and the rest", ["four"], "the answer is four"),
        ("the answer is four, and the rest", ["rest", "four", "silence"], "the answer is four"),
        ("the answer is four", [" is", "answer is"], "the answer is"),
        ("naïve 🙂 end", ["🙂"], "naïve 🙂"),
        ("xx</a></a>", ["</a>"], "xx</a>"),
        ("ab", ["a"], "a"),
        ("the rest is silence", ["\n"], "the rest is silence"),
    ],
)
def test_a_completion_ends_at_the_first_of_its_stop_strings(text: str, strings: list[str], left: str) -> None:
    decoded, reason, count, ends = stopped(text, strings)

    assert decoded == left
    assert reason == ("stop_string" if decoded != text else reason)
    assert len(ends) == count
    assert ends[-1] == len(decoded), "no token covers what is behind the string"
    assert ends == sorted(ends)


def test_a_token_that_completes_a_stop_string_stays_whole_and_its_rest_leaves_the_text() -> None:
    tokenizer = byte_level_tokenizer()
    token = next(token for token in tokenizer.get_vocab() if token.isascii() and token.isalpha() and len(token) > 3)
    index = tokenizer.convert_tokens_to_ids(token)

    ids, reason, beyond = StopStrings(tokenizer, [token[:2]]).cut([index, index], "length")

    assert (ids, reason, beyond) == ([index], "stop_string", len(token) - 2)
    assert CompletionDecoder(tokenizer, end_ids=(EOS,))(ids, beyond=beyond) == (token[:2], [2])


def test_special_tokens_count_as_they_are_written_and_stay_out_of_the_text() -> None:
    assert stopped("four<tool>five", ["<tool>"])[:3] == ("four", "stop_string", stopped("four<tool>", [" "])[2] - 1)
    assert stopped("four<tool>five", ["r<tool>f"])[0] == "fourf"
    assert stopped("four<tool>five", ["four<to"])[0] == "four", "a hidden token's rest is no text that could be cut"
    assert stopped("four<tool>five", ["<tool>"], kept=("<tool>",))[0] == "four<tool>"


def test_the_end_token_s_own_text_is_the_end_token() -> None:
    assert stopped("four", ["<eos>"])[:2] == ("four", "stop")
    assert stopped("four", ["r<eos>"])[1] == "stop"
    assert stopped("four", ["five"], ends=False)[1] == "length"


def test_where_a_row_stops_is_a_function_of_its_ids_alone() -> None:
    """Told token by token, as while it is sampled, it is the same place as in the whole row."""
    tokenizer = byte_level_tokenizer()
    for text in ("the answer is four and the rest is silence", "🙂🙂 is four", "éé é the"):
        ids = tokenizer.encode(text)
        for string in ("four", "🙂 ", "é t", "is"):
            stops = StopStrings(tokenizer, [string])
            watch = stops.watch()
            at = next((place for place, index in enumerate(ids) if watch(index) is not None), None)
            cut, reason, _ = stops.cut(ids, "length")
            assert len(cut) == (len(ids) if at is None else at + 1)
            assert (reason == "stop_string") == (string in text)
