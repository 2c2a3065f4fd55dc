"""Shards of completions: what they hold, and that a row is a function of its own address."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from papo.engines.requests import Decode, Generate, Open
from papo.errors import EngineError
from tests.engines import support
from tests.engines.conftest import Bench

EOS = 1


@pytest.fixture
def opened(bench: Bench) -> Bench:
    bench.open()
    return bench


def test_a_shard_made_again_is_equal_to_the_byte(opened: Bench, tmp_path: Path) -> None:
    first, second = tmp_path / "first.parquet", tmp_path / "second.parquet"
    support.sample(opened.host, opened.prompts, first)
    opened.host.close()
    opened.open()
    support.sample(opened.host, opened.prompts, second)
    assert first.read_bytes() == second.read_bytes()


def test_the_columns_are_those_of_the_rollouts_frame(opened: Bench, tmp_path: Path) -> None:
    frame = support.sample(opened.host, opened.prompts, tmp_path / "r.parquet")
    assert frame.schema == {
        "group_id": pl.Int32,
        "sample_index": pl.Int32,
        "prompt_id": pl.String,
        "completion": pl.String,
        "token_ids": pl.List(pl.Int32),
        "completion_mask": pl.List(pl.Boolean),
        "sampler_logprobs": pl.List(pl.Float32),
        "token_ends": pl.List(pl.Int32),
        "finish_reason": pl.String,
        "policy_version": pl.Int32,
        "policy_sha256": pl.String,
        "row_seed": pl.Int64,
        "sampling_sha256": pl.String,
    }
    assert opened.host.held is not None
    assert set(frame["policy_sha256"]) == {opened.host.held.policy_sha256}
    assert frame["row_seed"].to_list() == [row.seed for row in support.addresses()]
    lengths = [frame[name].list.len().to_list() for name in ("token_ids", "sampler_logprobs", "token_ends")]
    assert lengths[0] == lengths[1] == lengths[2]


def test_bug_020_and_035_rows_end_in_one_end_token_or_at_the_limit(opened: Bench, tmp_path: Path) -> None:
    frame = support.sample(opened.host, opened.prompts, tmp_path / "r.parquet")
    assert set(frame["finish_reason"]) == {"stop", "length"}
    for ids, reason in frame.select("token_ids", "finish_reason").iter_rows():
        assert ids.count(EOS) == (reason == "stop")
        assert (ids[-1] == EOS) == (reason == "stop")
        assert reason == "stop" or len(ids) == support.LONGEST


def test_a_row_does_not_depend_on_the_others_of_its_shard(opened: Bench, tmp_path: Path) -> None:
    whole = support.sample(opened.host, opened.prompts, tmp_path / "whole.parquet")
    rows = support.addresses()
    # At another place in the batch, with other neighbours, and fillers behind it.
    chosen = (rows[7], rows[2], rows[13])
    part = support.sample(opened.host, opened.prompts, tmp_path / "part.parquet", rows=chosen)
    expected = pl.concat([whole[7], whole[2], whole[13]])
    assert part.equals(expected)


def test_another_seed_gives_another_row(opened: Bench, tmp_path: Path) -> None:
    one = support.addresses()[0]
    rows = (one, replace(one, sample_index=1, seed=one.seed + 1))
    frame = support.sample(opened.host, opened.prompts, tmp_path / "r.parquet", rows=rows)
    assert frame["token_ids"][0].to_list() != frame["token_ids"][1].to_list()


def test_sampler_and_trainer_agree_on_log_probs(opened: Bench, tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    frame = support.sample(opened.host, opened.prompts, path, temperature=0.6)
    scores = support.write_logprobs(opened.host, opened.prompts, path, tmp_path / "s.parquet", temperature=0.6)
    assert scores.select("group_id", "sample_index").equals(frame.select("group_id", "sample_index"))
    for ours, theirs in zip(frame["sampler_logprobs"], scores["old_logprobs"], strict=True):
        assert ours.to_list() == pytest.approx(theirs.to_list(), abs=2e-5)


def test_greedy_rows_of_a_group_are_equal(opened: Bench, tmp_path: Path) -> None:
    frame = support.sample(opened.host, opened.prompts, tmp_path / "r.parquet", temperature=0.0)
    assert frame.group_by("group_id").agg(pl.col("completion").n_unique())["completion"].to_list() == [1, 1, 1, 1]


def with_settings(bench: Bench, folder: Path, **generation: Any) -> Path:
    model = folder / "model"
    shutil.copytree(bench.model, model)
    path = model / "generation_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | generation))
    return model


def test_sampling_defaults_of_the_model_folder_do_not_leak(opened: Bench, tmp_path: Path) -> None:
    plain = support.sample(opened.host, opened.prompts, tmp_path / "plain.parquet")
    model = with_settings(
        opened,
        tmp_path,
        do_sample=True,
        temperature=0.2,
        top_k=1,
        top_p=0.1,
        repetition_penalty=3.0,
        max_length=5,
        min_new_tokens=15,
        suppress_tokens=[6, 7, 8],
    )
    opened.host.open(Open(model=str(model)))
    assert support.sample(opened.host, opened.prompts, tmp_path / "other.parquet").equals(plain)


def test_bug_022_every_end_token_that_the_model_declares_ends_a_row(opened: Bench, tmp_path: Path) -> None:
    also = 7
    plain = support.sample(opened.host, opened.prompts, tmp_path / "plain.parquet")
    opened.host.open(Open(model=str(with_settings(opened, tmp_path, eos_token_id=[EOS, also]))))
    frame = support.sample(opened.host, opened.prompts, tmp_path / "r.parquet")
    assert also in frame["token_ids"].explode().to_list()
    for ids, reason, text, before in zip(
        frame["token_ids"], frame["finish_reason"], frame["completion"], plain["token_ids"], strict=True
    ):
        assert reason == ("stop" if ids[-1] in (EOS, also) else "length")
        assert not {EOS, also} & set(ids[:-1])
        assert ids.to_list() == before.to_list()[: len(ids)]
        assert len(text) >= len(ids) - 1


def test_limits_are_checked_before_anything_is_decoded(opened: Bench, tmp_path: Path) -> None:
    for changes, message in (
        ({"width": 9}, "more than the width of 9"),
        ({"batch_rows": 3}, "does not fit into batch_rows=3"),
        ({"max_completion_length": 5000}, "longer than the model's"),
        ({"rows": (replace(support.addresses()[0], group_id=99),)}, "no group_id 99"),
    ):
        with pytest.raises(EngineError, match=message):
            support.sample(opened.host, opened.prompts, tmp_path / "r.parquet", **changes)
    assert opened.host.held is not None


STOP = "="


def test_rows_end_at_stop_strings_and_are_else_what_they_were(opened: Bench, tmp_path: Path) -> None:
    plain = support.sample(opened.host, opened.prompts, tmp_path / "plain.parquet")
    frame = support.sample(opened.host, opened.prompts, tmp_path / "r.parquet", stop_strings=(STOP, "<answer>"))

    assert "stop_string" in set(frame["finish_reason"])
    for row, before in zip(frame.iter_rows(named=True), plain.iter_rows(named=True), strict=True):
        count = len(row["token_ids"])
        assert row["token_ids"] == before["token_ids"][:count]
        assert row["sampler_logprobs"] == before["sampler_logprobs"][:count], "aligned, to the bit"
        assert len(row["token_ends"]) == len(row["completion_mask"]) == count
        if row["finish_reason"] == "stop_string":
            assert row["completion"].endswith((STOP, "<answer>"))
            assert row["completion"].count(STOP) + row["completion"].count("<answer>") == 1
        else:
            assert row["token_ids"] == before["token_ids"]
            assert STOP not in row["completion"]


def test_a_shard_is_no_longer_decoded_than_its_rows_go_on(opened: Bench, tmp_path: Path) -> None:
    """Every character is a stop string, so that each row ends with its first token."""
    seen: list[int] = []
    digits = tuple("0123456789+-=/\n<>")
    frame = support.sample(
        opened.host, opened.prompts, tmp_path / "r.parquet", stop_strings=digits, max_completion_length=200,
        progress=lambda done, total: seen.append(done),
    )  # fmt: skip
    assert max(frame["token_ids"].list.len().to_list()) < 200
    assert max(seen) < 200 * support.GROUPS * support.SAMPLES


def test_another_generator_s_rows_are_cut_by_the_same_rule(opened: Bench, tmp_path: Path) -> None:
    """As a server does, which may have gone on behind the string, or stopped for a reason that is none of ours."""
    plain = support.sample(opened.host, opened.prompts, tmp_path / "plain.parquet")
    ours = support.sample(opened.host, opened.prompts, tmp_path / "ours.parquet", stop_strings=(STOP,))
    sampled = tmp_path / "sampled.parquet"
    plain.select("token_ids", "sampler_logprobs").write_parquet(sampled)
    request = Generate(
        prompts=str(opened.prompts), rows=support.addresses(), batch_rows=support.GROUPS * support.SAMPLES,
        width=support.WIDTH, max_completion_length=support.LONGEST, temperature=1.0, policy_version=0,
        sampling_sha256="settings", output=str(tmp_path / "theirs.parquet"), stop_strings=(STOP,),
    )  # fmt: skip
    opened.host.decode(Decode(request=request, sampled=str(sampled)))
    assert pl.read_parquet(request.output).equals(ours)

    plain.select(pl.col("token_ids").list.head(1), pl.col("sampler_logprobs").list.head(1)).write_parquet(sampled)
    with pytest.raises(EngineError, match="without an end token or a stop string: refused"):
        opened.host.decode(Decode(request=replace(request, stop_strings=("nowhere",)), sampled=str(sampled)))
