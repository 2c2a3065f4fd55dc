import pytest

from papo.steps import line_steps, token_spans

COMPLETION = "<think>7-3=4\n4+2=6</think><answer>6</answer>"


def texts(completion: str) -> list[str]:
    return [completion[start:end] for start, end in line_steps(completion)]


@pytest.mark.parametrize(
    ("completion", "steps"),
    [
        (COMPLETION, ["7-3=4", "4+2=6"]),
        ("<think></think><answer>6</answer>", []),
        ("", []),
        ("no tags at all", ["no tags at all"]),
        ("<think>\n\n 7-3=4 \r\n\n\n4+2=6\n\n</think>", ["7-3=4", "4+2=6"]),
        ("<think>7-3=4\n4+", ["7-3=4", "4+"]),
        ("before<think>a<answer>b\nc</answer>", ["a"]),
        ("<think>a</think>b<think>c</think>", ["a"]),
        ("a\na", ["a", "a"]),
    ],
)
def test_steps_are_the_lines_of_the_working(completion: str, steps: list[str]):
    """BUG-086: no separator = one step, empty = none, separators at start, end or doubled = no empty steps."""
    assert texts(completion) == steps


def test_a_token_belongs_to_the_step_that_holds_its_first_character():
    text = "ab\ncd\nef"
    steps = line_steps(text)
    assert token_spans(steps, list(range(1, 9))) == ((0, 2), (3, 5), (6, 8))
    # tokens "ab\n", "c", "d\ne", "f": the third starts in the second step
    assert token_spans(steps, [3, 4, 7, 8]) == ((0, 1), (1, 3), (3, 4))


def test_a_step_in_which_no_token_starts_still_has_a_place():
    """The number of spans is the number of steps, whatever the tokenizer does."""
    text = "a\nb\nc"
    assert token_spans(line_steps(text), [5]) == ((0, 1), (1, 1), (1, 1))
    assert token_spans(line_steps(text), []) == ((0, 0), (0, 0), (0, 0))
    assert token_spans((), [1, 2]) == ()


def test_a_trailing_token_without_text_belongs_to_no_step():
    assert token_spans(line_steps("ab"), [1, 2, 2]) == ((0, 2),)


def test_disorder_is_refused():
    with pytest.raises(ValueError, match="token_ends must not fall"):
        token_spans(((0, 1),), [2, 1])
    with pytest.raises(ValueError, match="must not overlap"):
        token_spans(((0, 3), (2, 4)), [1, 2, 3, 4])
