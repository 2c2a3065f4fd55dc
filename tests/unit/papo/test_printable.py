"""C-16: text that nobody vouches for is shown as what it is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from papo.printable import code_span, one_line, printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, Grüße, 数学, −1 → 2\n\tend", "plain, Grüße, 数学, −1 → 2\n\tend"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("right\rwrong", "right\\x0dwrong"),
        ("\x9b31m", "\\x9b31m"),
        ("abc\u202edef", "abc\\u202edef"),
        ("a\u2066b\u2069\u200f", "a\\u2066b\\u2069\\u200f"),
        ("1\u200b2\ufeff\u00ad", "1\\u200b2\\ufeff\\xad"),
        ("1\u200d2", "1\\u200d2"),
        ("👩\u200d🔬", "👩\u200d🔬"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("a\U000e0041", "a\\U000e0041"),
        ("a\u3164b\u2028c", "a\\u3164b\\u2028c"),
        ("\ud800", "\\ud800"),
    ],
)
def test_c_16_what_steers_or_hides_is_an_escape(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(st.text())
def test_c_16_nothing_that_a_terminal_obeys_is_left_and_doing_it_twice_changes_nothing(text: str) -> None:
    shown = printable(text)
    assert printable(shown) == shown
    assert not any(ord(char) < 32 or 127 <= ord(char) < 160 for char in shown if char not in "\n\t")
    shown.encode()
    assert "\n" not in one_line(text)


@given(st.text(alphabet="`a \n*[]()<\x1b"))
def test_c_16_markdown_cannot_be_left(text: str) -> None:
    span = code_span(text)
    fence = span[: len(span) - len(span.lstrip("`"))]
    assert fence
    assert span.endswith(fence)
    assert fence not in span[len(fence) : -len(fence)].strip(" ").replace(" ", "") or len(fence) > span.count("`") // 2
    assert "\n" not in span
