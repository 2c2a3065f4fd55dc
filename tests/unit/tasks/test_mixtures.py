"""A run on several sources: whose rows it draws, that a resumed one draws the same, and what is told of each source."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from papo.errors import ConfigError, DataError
from schemas.config import RunConfig
from schemas.data import MixtureSource
from schemas.loading import load_config
from tasks.sources import read_source, read_sources
from tests.simulation.world import CONFIG, config_with
from tests.unit.tasks.bench import Bench

SIZES = {"few": 3, "many": 7}


def write(folder: Path, name: str, count: int, *, first: int = 0) -> None:
    rows = [{"prompt": f"{first + row}+{len(name)}=", "answer": row % 2} for row in range(count)]
    (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def mixture(**weights: float) -> dict[str, Any]:
    members = [
        {"name": name, "weight": weight, "source": {"kind": "file", "path": f"{name}.jsonl"}}
        for name, weight in weights.items()
    ]
    return {"kind": "mixture", "sources": members}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, count in SIZES.items():
        write(tmp_path, name, count)
    return tmp_path


def mixed(**changes: Any) -> RunConfig:
    data = {"train": mixture(few=1, many=3), "evaluation": mixture(few=1, many=1)}
    return config_with(iterations=6, prompts_per_iteration=4, evaluation={"every": 2}, data=data, **changes)


def drawn(bench: Bench) -> pl.DataFrame:
    return pl.concat([pl.read_parquet(path) for path in bench.paths("iterations/0*/prompts-*.parquet")])


def run(folder: Path, name: str, config: RunConfig, *limits: int) -> Bench:
    bench = Bench(folder / name, config)
    for limit in (*limits, None):
        bench.run(limit=limit, sources=lambda config: read_sources(config, folder))
    return bench


def test_every_iteration_has_each_source_s_share_and_rows_say_whose_they_are(folder: Path) -> None:
    bench = run(folder, "run", mixed())

    prompts = drawn(bench)
    assert prompts["source"].to_list() == ["many", "few", "many", "many"] * 6
    assert all(name.startswith(f"{source}/") for name, source in prompts.select("prompt_id", "source").iter_rows())
    few = prompts.filter(pl.col("source") == "few")["prompt_id"].to_list()
    assert set(few[:3]) == set(few[3:]) == {"few/0", "few/1", "few/2"}
    cursor = bench.commits[-1].state.cursor
    assert (cursor.epoch, cursor.offset) == (6, 0)


def test_a_resumed_run_draws_what_an_undisturbed_one_draws(folder: Path) -> None:
    undisturbed, resumed = run(folder, "whole", mixed()), run(folder, "cut", mixed(), 1, 3)

    assert resumed.hashes() == undisturbed.hashes()


def test_accuracy_is_told_by_source(folder: Path) -> None:
    bench = run(folder, "run", mixed())

    summary = bench.commits[-1].summary
    rows = pl.concat([pl.read_parquet(path) for path in bench.paths("iterations/00005/evaluations-*.parquet")])
    for name in SIZES:
        expected = rows.filter(pl.col("source") == name)["correct"].mean()
        assert summary[f"evaluation/accuracy/{name}"] == pytest.approx(expected)
        assert summary[f"accuracy/{name}"] is not None
    plain = Bench(folder / "plain", config_with())
    plain.run()
    assert not [name for name in plain.commits[-1].summary if name.startswith(("accuracy/", "evaluation/accuracy/"))]


def test_without_shuffling_sources_keep_their_own_order(folder: Path) -> None:
    bench = run(folder, "run", config_with(prompts_per_iteration=8, iterations=1, data={"train": mixture(few=1, many=1),
                "shuffle": False}))  # fmt: skip

    assert drawn(bench).filter(pl.col("source") == "few")["prompt_id"].to_list() == ["few/0", "few/1", "few/2", "few/0"]


def test_a_source_that_loses_all_its_rows_is_named(folder: Path) -> None:
    write(folder, "few", 3, first=10**9)
    sampling = {**CONFIG["sampling"], "max_prompt_length": 8}
    data = {"train": mixture(few=1, many=3), "overlong_prompts": "drop"}
    with pytest.raises(DataError, match=r"No prompt of few in data\.train"):
        run(folder, "run", config_with(sampling=sampling, data=data))


def test_faults_of_all_sources_are_in_one_report(folder: Path) -> None:
    (folder / "few.jsonl").write_text('{"prompt": " ", "answer": 1}\n')
    (folder / "many.jsonl").write_text('{"prompt": "1+1=", "answer": null}\n')

    with pytest.raises(DataError) as raised:
        read_source(MixtureSource.model_validate(mixture(few=1, many=1)), folder, split="train")

    assert "data.train.sources[0] (few)" in str(raised.value)
    assert "data.train.sources[1] (many)" in str(raised.value)


def test_one_prompt_with_two_answers_is_found_across_sources(folder: Path) -> None:
    for name, answer in (("few", 1), ("many", 2)):
        (folder / f"{name}.jsonl").write_text(json.dumps({"prompt": "1+1=", "answer": answer}) + "\n")

    with pytest.raises(DataError, match=r"another reference answer: many line 1 \(as few line 1\)"):
        read_source(MixtureSource.model_validate(mixture(few=1, many=1)), folder, split="train")


def test_names_rows_and_weights_are_identity_and_paths_are_not(folder: Path) -> None:
    base = mixed()
    moved = base.model_dump(mode="json")
    moved["data"]["train"]["sources"][0]["source"]["path"] = "elsewhere.jsonl"
    assert RunConfig.model_validate(moved).sha256 == base.sha256
    for field, value in (("name", "fewer"), ("weight", 2.0)):
        other = base.model_dump(mode="json")
        other["data"]["train"]["sources"][0][field] = value
        assert RunConfig.model_validate(other).sha256 != base.sha256
    hashes = {
        read_source(MixtureSource.model_validate(source), folder, split="train").sha256
        for source in (mixture(few=1, many=1), mixture(many=1, few=1), mixture(few=2, many=1))
    }
    assert len(hashes) == 2, "the weights are the config's, the order of rows the data's"


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ([("a", 1), ("a", 1)], "two sources have one name"),
        ([("a", 1), ("b", 0)], r"data\.train\.sources\[1\]\.weight is 0"),
        ([("a", 0.123456), ("b", 1)], "takes 8777 draws|round them"),
        ([("a b", 1)], r"data\.train\.sources\[0\]\.name"),
        ([], r"data\.train\.sources"),
    ],
)
def test_mixtures_that_cannot_be_meant_are_refused(folder: Path, members: list[Any], message: str) -> None:
    source = {"kind": "file", "path": str(folder / "few.jsonl")}
    train = {"kind": "mixture", "sources": [{"name": n, "weight": w, "source": source} for n, w in members]}
    path = folder / "run.yaml"
    path.write_text(json.dumps({**CONFIG, "data": {"train": train}}))

    with pytest.raises(ConfigError, match=message):
        load_config(path)


def test_a_missing_file_of_a_member_is_named_by_its_place(folder: Path) -> None:
    path = folder / "run.yaml"
    path.write_text(json.dumps({**CONFIG, "data": {"train": mixture(few=1, none=1)}}))

    with pytest.raises(
        ConfigError, match=r"data\.train\.sources\[1\]\.source\.path is none\.jsonl, which does not exist"
    ):
        load_config(path)
