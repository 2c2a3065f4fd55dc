"""From verdicts to frames: unknown rewards are null with a status, and a reward that is broken stops the run."""

from pathlib import Path

import polars as pl
import pytest

from papo.errors import ConfigError, RewardFailed
from papo.rewards import CustomReward, LanguageConsistency, MathAnswer, NgramRepetition
from schemas.config import RewardConfig, TextTerm
from schemas.frames import Outcomes
from schemas.loading import load_config
from tasks.verify import Faulty, outcomes
from tests.simulation.world import config_with
from tests.unit.tasks.bench import Bench

ROLLOUTS = pl.DataFrame(
    {
        "group_id": [0, 0, 1, 1, 2, 3],
        "sample_index": [0, 1, 0, 1, 0, 0],
        "completion": [
            r"\boxed{0.5}",
            r"\boxed{2}",
            r"\boxed{7}",
            "I cannot work it out at all.",
            r"\boxed{1}",
            r"\boxed{\sum_{k=1}^{4900} k^{-1/3}}",
        ],
        "finish_reason": ["stop", "stop", "stop", "stop", "stop", "stop"],
        "token_ids": [[1] * 2, [1] * 3, [1] * 4, [1], [1], [1]],
    },
    schema={
        "group_id": pl.Int32,
        "sample_index": pl.Int32,
        "completion": pl.String,
        "finish_reason": pl.String,
        "token_ids": pl.List(pl.Int32),
    },
)
PROMPTS = pl.DataFrame(
    {"group_id": [0, 1, 2, 3], "reference_answer": ["1/2", "7", "the answer is unknowable", "\\pi"]},
    schema={"group_id": pl.Int32, "reference_answer": pl.String},
)


def judged(reward: RewardConfig, failed: Faulty | None = None) -> pl.DataFrame:
    """The simulation's run has completions of 4 tokens at most."""
    return outcomes(ROLLOUTS, PROMPTS, config_with(reward=reward), failed=failed)


def test_unknown_rewards_are_null_with_their_status() -> None:
    """BUG-056 (an unreadable reference), BUG-138 (a timeout): neither is ever 0 or 1."""
    reward = RewardConfig(outcome=MathAnswer(cpu_seconds=0.01))
    frame = Outcomes.validate(judged(reward))
    assert frame["outcome_reward"].to_list() == [1.0, 0.0, 1.0, 0.0, None, None]
    assert frame["correct"].to_list() == [True, False, True, False, None, None]
    assert frame["status"].to_list() == ["ok", "ok", "ok", "no_answer", "unscorable", "timeout"]
    assert all("math-verify=" in version for version in frame["verifier_version"])


def test_shaping_leaves_correctness_and_the_unknown_alone() -> None:
    reward = RewardConfig(
        outcome=MathAnswer(cpu_seconds=0.01), accuracy_scale=2.0, accuracy_offset=-1.0, format_weight=0.1
    )
    frame = judged(reward)
    assert frame["outcome_reward"].to_list() == [1.0, -1.0, 1.0, -1.0, None, None]
    assert frame["accuracy_reward"].to_list() == [1.0, 0.0, 1.0, 0.0, None, None]


def test_further_rewards_are_added_by_weight_and_kept_apart() -> None:
    """accuracy, format, repetition (0 for such short texts), and −1 at 4 of 4 tokens, −½ at 3 with a buffer of 2."""
    also = (TextTerm(reward=NgramRepetition(), weight=2.0), TextTerm(reward=LanguageConsistency(), weight=0.5))
    reward = RewardConfig(
        outcome=MathAnswer(cpu_seconds=0.01), also=also, overlong_buffer_len=2, overlong_penalty_factor=0.5
    )
    assert reward.component_names == ("accuracy", "format", "ngram_repetition", "language_consistency", "overlong")
    frame = Outcomes.validate(judged(reward))
    assert frame["components"].to_list()[:3] == [
        [1.0, 0.0, 0.0, 1.0, 0.0],
        [0.0, 0.0, 0.0, 1.0, -0.5],
        [1.0, 0.0, 0.0, 1.0, -1.0],
    ]
    assert frame["outcome_reward"].to_list()[:3] == [1.5, 0.25, 1.0]
    assert frame["correct"].to_list()[:3] == [True, False, True]
    assert frame["components"][4].to_list() == [None, 0.0, 0.0, 1.0, 0.0]
    assert frame["outcome_reward"][4] is None, "an unknown accuracy is not made up for by the rest"


def test_bug_067_a_failing_reward_gives_the_row_no_reward_and_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "reward.py"
    file.write_text(
        "def f(completion, **_):\n    return 1 if completion.startswith('I cannot') else [][len(completion)]\n"
    )
    failed: Faulty = []
    frame = judged(RewardConfig(outcome=CustomReward(target=f"{file}:f")), failed)
    assert frame["status"].to_list() == ["error", "error", "error", "ok", "error", "error"]
    assert frame["outcome_reward"].to_list() == [None, None, None, 1.0, None, None]
    assert failed[0] == (0, 0, "IndexError: list index out of range")


def test_a_frame_says_whose_word_each_verdict_is(tmp_path: Path) -> None:
    """Of a function of one's own as well: it may ask a model."""
    file = tmp_path / "reward.py"
    file.write_text(
        "from papo.rewards import Verdict\n\n\ndef f(completion, **_):\n"
        "    asked = 'llm' if completion.startswith('I cannot') else 'verifier'\n"
        "    return Verdict(accuracy=1.0, correct=True, status='ok', judged_by=asked)\n"
    )
    frame = Outcomes.validate(judged(RewardConfig(outcome=CustomReward(target=f"{file}:f"))))
    assert frame["judged_by"].to_list() == ["verifier"] * 3 + ["llm"] + ["verifier"] * 2


def test_bug_067_above_five_percent_of_errors_the_run_stops_with_the_reason(tmp_path: Path) -> None:
    file = tmp_path / "reward.py"
    file.write_text("def f(completion, **_):\n    if completion:\n        raise KeyError('gone')\n")
    bench = Bench(
        tmp_path / "run", config_with(evaluation=None, reward={"outcome": {"kind": "custom", "target": f"{file}:f"}})
    )
    with pytest.raises(RewardFailed, match=r"failed on \d+ of \d+ rollouts of iteration 0(.|\n)*KeyError: 'gone'"):
        bench.run()
    (event,) = bench.events("reward_errors")
    assert event["errors"] > 0
    assert event["shown"][0]["reason"] == "KeyError: 'gone'"


def test_a_reward_that_fails_on_held_out_rows_stops_the_run_too(tmp_path: Path) -> None:
    """The rows that are left had an accuracy of 1.000, and nothing was said of the others."""
    file = tmp_path / "reward.py"
    file.write_text("def f(completion, **_):\n    if completion:\n        raise KeyError('gone')\n")
    bench = Bench(tmp_path / "run", config_with(reward={"outcome": {"kind": "custom", "target": f"{file}:f"}}))
    with pytest.raises(
        RewardFailed, match=r"failed on \d+ of \d+ held-out rollouts of version 0(.|\n)*KeyError: 'gone'"
    ):
        bench.run()
    assert not bench.commits


def test_bug_068_a_reward_that_fails_its_sample_is_a_fault_of_the_config(tmp_path: Path) -> None:
    config = tmp_path / "run.yaml"
    config.write_text(
        "data: {train: {kind: chains}}\nmodel: {path: .}\nreward: {outcome: {kind: custom, target: 'nowhere.py:f'}}\n"
    )
    with pytest.raises(ConfigError, match=r"reward\.outcome (.|\n)*nowhere\.py does not exist"):
        load_config(config, [])


def test_bug_064_a_format_that_its_own_sample_does_not_earn_is_a_fault(tmp_path: Path) -> None:
    config = tmp_path / "run.yaml"
    config.write_text(
        "data: {train: {kind: chains}}\nmodel: {path: .}\n"
        "reward: {outcome: {kind: math_answer}, format_weight: 0.1, format: {end_markers: ['</answer>']}}\n"
    )
    with pytest.raises(ConfigError, match=r"reward\.format (.|\n)*gives its own sample"):
        load_config(config, [])
