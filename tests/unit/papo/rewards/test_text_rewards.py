"""Rewards of a completion's text alone: language and repetition."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from papo.rewards import LanguageConsistency, NgramRepetition
from papo.rewards.language import Language


@pytest.mark.parametrize(
    ("text", "latin", "chinese"),
    [
        ("We add both numbers.", 1.0, 0.0),
        ("我们把两个数相加", 0.0, 1.0),
        ("We add 两个数 both", 3 / 4.5, 1.5 / 4.5),
        ("$x+y$ 12 + 30 = 42", 1.0, 1.0),
        ("", 1.0, 1.0),
        ("我们 $\\text{english inside a formula}$ 相加 \\frac", 0.0, 1.0),
        ("Ответ: ответ", 0.0, 0.0),
        ("We add $$我们相加$$ both", 3 / 5, 2 / 5),
        ("We add ```我们``` both <相加>", 3 / 5, 2 / 5),
        ("We add $\\alpha + \u0394x \u2264 \U0001d465\U0001d466$ both", 1.0, 0.0),
    ],
)
def test_the_share_of_words_in_the_language(text: str, latin: float, chinese: float) -> None:
    assert LanguageConsistency()(text) == pytest.approx(latin)
    assert LanguageConsistency(language="chinese")(text) == pytest.approx(chinese)


def test_other_scripts() -> None:
    texts: dict[Language, str] = {
        "japanese": "これは日本語です",
        "korean": "안녕하세요 여러분",
        "cyrillic": "мы складываем",
        "greek": "καλημέρα σας",
    }
    for language, text in texts.items():
        assert LanguageConsistency(language=language)(text) == 1.0
        assert LanguageConsistency()(text) == 0.0


@pytest.mark.parametrize(
    ("text", "penalty"),
    [
        ("one two three four", 0.0),
        ("a b c a b c", -0.25),
        ("no " * 100, -(1 - 1 / 98)),
        ("two words", 0.0),
        ("", 0.0),
        ("重复重复重复", -0.5),
    ],
)
def test_the_share_of_ngrams_that_were_there_before(text: str, penalty: float) -> None:
    """By hand: "a b c a b c" has the 3-grams abc bca cab abc, of which one repeats."""
    assert NgramRepetition()(text) == pytest.approx(penalty)
    assert NgramRepetition(max_penalty=-2.0)(text) == pytest.approx(2 * penalty)


@pytest.mark.parametrize("fields", [{"ngram": 0}, {"max_penalty": 0.5}, {"max_penalty": float("nan")}])
def test_settings_without_meaning_are_refused(fields: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="use"):
        NgramRepetition(**fields)  # type: ignore[arg-type]  # drawn by name


@given(st.text())
def test_any_text_has_a_reward_within_its_bounds(text: str) -> None:
    assert 0.0 <= LanguageConsistency()(text) <= 1.0
    assert -1.0 <= NgramRepetition()(text) <= 0.0
