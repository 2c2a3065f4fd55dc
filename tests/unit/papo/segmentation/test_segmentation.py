"""BUG-088: segments cover every token once, cuts keep their distance, and no segment is too few for a score."""

from math import isnan, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from papo.segmentation import CueWords, EntropyPeaks, Newlines, Pattern, Segmenter, aggregate_steps

TEXT = "First add.\n\nSo 3 + 4 = 7.\nTherefore 7."
TOKENS = [6, 10, 12, 15, 25, 26, 36, 39]
ALL: list[Segmenter] = [EntropyPeaks(top_k=3, min_gap=2), Newlines(), CueWords(), Pattern()]


def test_entropy_cuts_by_hand():
    """The five highest are at 1, 4, 12, 13 and 29: 1 is too close to the start, 13 to the cut at 12."""
    entropies = np.zeros(40)
    entropies[[1, 4, 12, 13, 29]] = [5.0, 1.0, 2.0, 3.0, 4.0]
    found = EntropyPeaks().segments("", [0] * 40, entropies=entropies)
    assert found == ((0, 12), (12, 29), (29, 40))
    assert EntropyPeaks(min_gap=4).segments("", [0] * 40, entropies=entropies) == ((0, 4), (4, 12), (12, 29), (29, 40))


def test_a_short_completion_is_one_segment():
    assert EntropyPeaks(min_gap=1).segments("", [1, 2, 3, 4, 5], entropies=np.arange(5.0)) == ((0, 5),)
    assert len(EntropyPeaks(min_gap=1).segments("", [1, 2, 3, 4, 5, 6], entropies=np.arange(6.0))) == 6
    assert EntropyPeaks().segments("", [], entropies=np.empty(0)) == ()


def test_text_cuts():
    """A token belongs where its first character is."""
    assert Newlines().segments(TEXT, TOKENS, entropies=None) == ((0, 3), (3, 6), (6, 8))
    assert CueWords().segments(TEXT, TOKENS, entropies=None) == ((0, 3), (3, 6), (6, 8))
    assert CueWords(words=("add",)).segments(TEXT, TOKENS, entropies=None) == ((0, 1), (1, 8))
    assert Pattern().segments(TEXT, TOKENS, entropies=None) == ((0, 3), (3, 8))
    assert Pattern(pattern="7", cut="before").segments(TEXT, TOKENS, entropies=None) == ((0, 5), (5, 7), (7, 8))


@given(
    segmenter=st.sampled_from(ALL),
    words=st.lists(st.sampled_from(["so ", "add", "\n", "\n\n", " ", "Then", "x"]), max_size=30),
)
def test_segments_cover_every_token_once(segmenter: Segmenter, words: list[str]):
    ends = np.cumsum([len(word) for word in words]).tolist()
    entropies = np.random.default_rng(len(words)).random(len(words))
    found = segmenter.segments("".join(words), ends, entropies=entropies)
    assert [token for start, end in found for token in range(start, end)] == list(range(len(words)))
    assert all(start < end for start, end in found)
    if isinstance(segmenter, EntropyPeaks):
        assert len(found) <= segmenter.top_k + 1
        assert all(start >= segmenter.min_gap for start, _ in found[1:])


def test_settings_without_meaning_are_refused():
    with pytest.raises(ValueError, match="top_k is 0"):
        EntropyPeaks(top_k=0)
    with pytest.raises(ValueError, match="words"):
        CueWords(words=())
    with pytest.raises(ValueError, match="no regular expression"):
        Pattern(pattern="(")
    with pytest.raises(ValueError, match="one entropy for each of 2 tokens"):
        EntropyPeaks().segments("", [1, 2], entropies=None)


def test_one_score_of_many():
    scores = np.array([0.5, 0.8, 0.9])
    found = {how: aggregate_steps(scores, how=how) for how in ("prod", "min", "last", "mean", "sum_logit")}
    assert found == pytest.approx(
        {"prod": 0.36, "min": 0.5, "last": 0.9, "mean": 2.2 / 3, "sum_logit": log(4) + log(9)}
    )
    assert isnan(aggregate_steps(np.empty(0), how="prod"))
    assert isnan(aggregate_steps(np.array([0.5, np.nan]), how="min"))
    assert aggregate_steps(np.array([np.nan, 0.5]), how="last") == 0.5
    assert aggregate_steps(np.array([1.0, 0.0]), how="sum_logit") == pytest.approx(0.0, abs=1e-9)
