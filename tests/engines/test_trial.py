"""`papo try` for real, on a tiny model: what it shows of prompts and ends, and that it leaves nothing behind."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from flows.proposals import Places, Proposals
from flows.reporters import LogReporter
from flows.trial import trial
from tasks.trial import token_names
from tests.engines.conftest import Bench

CONFIG: dict[str, Any] = {
    "prompts_per_iteration": 4,
    "data": {"train": {"kind": "chains", "count": 8}, "evaluation": {"kind": "chains", "count": 4, "split": "heldout"}},
    "sampling": {"num_generations": 4, "max_prompt_length": 16, "max_completion_length": 12},
    "reward": {"outcome": {"kind": "answer_match", "extract": ["answer_tag"]}},
    "algorithm": {"advantage": {"kind": "grpo"}},
    "engine": {"shard_size": 16, "micro_batch_size": 4, "device": "cpu"},
}


def tried(bench: Bench, folder: Path, **changes: Any) -> list[str]:
    model = folder / "model"
    shutil.copytree(bench.model, model)
    config = folder / "run.yaml"
    config.write_text(json.dumps({**CONFIG, "model": {"path": str(model)}, **changes}))
    places = Places(runs=folder / "runs", models=folder / "models")
    return list(trial(str(config), overrides=[], reporter=LogReporter(lambda line: None), by=Proposals(places=places)))


def test_it_shows_the_prompt_the_ends_and_the_memory(bench: Bench, tmp_path: Path) -> None:
    lines = tried(bench, tmp_path)

    said = "\n".join(lines)
    at = lines.index(next(line for line in lines if line.startswith("The prompt as the policy sees it")))
    tokens = int(lines[at].split("(")[1].split()[0])
    assert len(lines[at + 1].removeprefix("  | ")) == tokens, "the chain tokenizer has a token a character"
    assert "May end     with <eos> (1)" in said
    assert "ended by themselves" in said
    assert " rows of 12 tokens" in said
    assert not (tmp_path / "runs").exists(), "nothing is left behind"


def test_it_shows_what_stop_strings_do(bench: Bench, tmp_path: Path) -> None:
    sampling = {**CONFIG["sampling"], "stop_strings": ["=", "\n"]}
    prompt = {"prefix": "<think>", "suffix": "</think>"}
    lines = tried(bench, tmp_path, sampling=sampling, data={**CONFIG["data"], "prompt": prompt})

    said = "\n".join(lines)
    assert "May end     with <eos> (1), or with the text '=' or '\\n'" in said
    assert "with a stop string)" in said
    assert "  | <think>" in said


@pytest.mark.parametrize("content", [None, "{}", "no json"])
def test_tokens_without_a_declared_name_are_shown_by_id(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "tokenizer.json").write_text(content)
    assert token_names(tmp_path, [7]) == ["id 7"]
