"""From a model's score to a verdict: soft, predicted, null where there is none."""

import json
from dataclasses import asdict

import pytest

from papo.engines.text_models import NextToken, TextInput, label_index, label_names, positions_in
from papo.rewards import RewardModel, shape_reward


def test_the_score_is_kept_and_correct_is_a_prediction_by_threshold() -> None:
    model = RewardModel(path="rm", threshold=0.7)
    found = [model.verdict(score, status="ok", reason=None, finish_reason="stop") for score in (0.69, 0.7)]
    assert [verdict.accuracy for verdict in found] == [0.69, 0.7]
    assert [verdict.correct for verdict in found] == [False, True]
    assert {verdict.judged_by for verdict in found} == {"reward_model"}
    assert shape_reward(found[0], accuracy_scale=2.0, accuracy_offset=-1.0) == pytest.approx(0.38)


def test_a_row_without_a_score_has_no_reward() -> None:
    verdict = RewardModel(path="rm").verdict(None, status="unscorable", reason="too long", finish_reason="stop")
    assert (verdict.accuracy, verdict.correct, verdict.status) == (None, None, "unscorable")
    assert verdict.judged_by == "reward_model"


def test_a_completion_that_was_cut_off_earns_nothing_unless_it_is_to_be_scored() -> None:
    """An answer that was never finished is not paid for how it began."""
    cut = RewardModel(path="rm").verdict(0.9, status="ok", reason=None, finish_reason="length")
    assert (cut.accuracy, cut.correct, cut.status, cut.judged_by) == (0.0, False, "truncated", "reward_model")
    scored = RewardModel(path="rm", truncated="score").verdict(0.9, status="ok", reason=None, finish_reason="length")
    assert (scored.accuracy, scored.status) == (0.9, "ok")


def test_raw_scores_have_their_own_threshold_and_no_zero_for_the_truncated() -> None:
    raw = RewardModel(path="rm", activation="none", truncated="score")
    assert raw.verdict(-3.5, status="ok", reason=None, finish_reason="stop").correct is False
    assert raw.verdict(0.1, status="ok", reason=None, finish_reason="stop").correct is True
    with pytest.raises(ValueError, match="0 may be better than what a bad completion earns"):
        RewardModel(path="rm", activation="none")


def test_the_version_has_every_setting_but_path_and_files() -> None:
    one, other = RewardModel(path="a"), RewardModel(path="b")
    assert one.version == other.version
    assert RewardModel(path="a", max_length=9).version != one.version
    assert set(json.loads(one.version.removeprefix("reward_model/1 "))) == set(asdict(one)) - {"path", "files"}


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: RewardModel(path="rm", max_length=0), "max_length is 0"),
        (lambda: RewardModel(path="rm", threshold=float("nan")), "threshold is nan"),
        (lambda: NextToken(good="+", bad="+"), "name two tokens"),
        (lambda: TextInput(template="{question}"), "must hold {completion} once"),
    ],
)
def test_settings_that_mean_nothing_are_refused(make: object, said: str) -> None:
    assert callable(make)
    with pytest.raises(ValueError, match=said):
        make()


def test_labels_are_found_by_index_and_by_name() -> None:
    names = label_names({"id2label": {"1": "good", "0": "bad"}})
    assert names == ["bad", "good"]
    assert (label_index("good", names), label_index(0, names), label_index(None, ["LABEL_0"])) == (1, 0, 0)
    for label, said in ((None, "is null"), ("worse", "is 'worse'"), (2, "is 2"), (-1, "-1")):
        with pytest.raises(ValueError, match=f"{said}.*0 \\(bad\\), 1 \\(good\\)"):
            label_index(label, names)
    assert label_names({}) == ["LABEL_0", "LABEL_1"], "what transformers takes then"


def test_positions_are_counted_from_behind_the_padding_where_the_model_does_so() -> None:
    assert positions_in({"max_position_embeddings": 512, "model_type": "bert"}) == 512
    assert positions_in({"max_position_embeddings": 514, "model_type": "roberta", "pad_token_id": 1}) == 512
    assert positions_in({"text_config": {"max_position_embeddings": 64}}) == 64
    assert positions_in({}) is None
