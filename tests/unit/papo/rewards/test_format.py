import pytest

from papo.rewards import FormatReward, Verdict, shape_reward
from papo.rewards.format import SAMPLE

FORMAT = FormatReward()


@pytest.mark.parametrize(
    "completion",
    [
        SAMPLE,
        "<think>a\nb\n\nc</think>\n<answer>1</answer>",
        "<think>a</think>\r\n<answer>1</answer>\r\n",
        "\n<think></think><answer></answer>  ",
        "<think>a</think><answer>1</answer><|im_end|>",
    ],
)
def test_the_format_earns_one(completion: str):
    """BUG-063 (multi-line, Windows line ends, no newline at the end), BUG-064 (the sample), BUG-037 (end marker)."""
    assert FORMAT(completion) == 1.0


@pytest.mark.parametrize(
    "completion",
    [
        "",
        "<answer>1</answer>",
        "<think>a</think>",
        "<answer>1</answer><think>a</think>",
        "hello <think>a</think><answer>1</answer>",
        "<think>a</think><answer>1</answer> bye",
        "<think>a</think> so <answer>1</answer>",
        "<think>a</think><think>b</think><answer>1</answer>",
        "<think>a</think><answer>1</answer><answer>2</answer>",
        "<think><answer>1</answer></think><answer>2</answer>",
        "<think>a</think><answer>1",
        "<|im_end|><think>a</think><answer>1</answer>",
    ],
)
def test_anything_else_earns_nothing(completion: str):
    assert FORMAT(completion) == 0.0


def verdict(accuracy: float | None, form: float | None = None) -> Verdict:
    correct = None if accuracy is None else accuracy > 0.5
    return Verdict(accuracy=accuracy, correct=correct, format=form, status="unscorable" if accuracy is None else "ok")


def test_shaping_adds_the_parts():
    assert shape_reward(verdict(1.0)) == 1.0
    assert shape_reward(verdict(1.0, 1.0), format_weight=0.1) == 1.1
    assert shape_reward(verdict(0.0, 1.0), format_weight=0.1) == 0.1
    assert shape_reward(verdict(0.0), accuracy_scale=2.0, accuracy_offset=-1.0) == -1.0


def test_an_unknown_accuracy_stays_unknown():
    assert shape_reward(verdict(None, 1.0), format_weight=1.0) is None


def test_a_weight_without_a_check_is_refused():
    with pytest.raises(ValueError, match=r"format_weight is 0\.1"):
        shape_reward(verdict(1.0), format_weight=0.1)


def test_accuracy_and_correct_are_known_together():
    with pytest.raises(ValueError, match="correct is None"):
        Verdict(accuracy=1.0, correct=None, status="ok")
