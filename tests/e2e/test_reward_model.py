"""A small classifier, trained here, as the outcome reward of a real run: it is learned from, and nothing calls it true.

What it was trained to see is whether a completion shows any working, so it pays right and wrong answers alike: the held
out rows are judged by a verifier beside it.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch
from transformers import AutoModelForSequenceClassification, PreTrainedTokenizerFast

from papo.chains import ChainTask
from papo.engines.text_inputs import TextEncoder
from papo.engines.text_models import ChatInput, ModelInput, PairInput
from tests.e2e.trained import ROOT, Trained
from tests.engines import scoring_models

Train = Callable[..., Trained]
MADE: dict[str, tuple[Callable[..., Path], ModelInput]] = {
    "bert": (scoring_models.encoder, PairInput()),
    "decoder": (scoring_models.decoder, ChatInput()),
}
POSITIONS = 256
SMALL = ("prompts_per_iteration=4", "sampling.num_generations=4", "evaluation.every=10", "checkpoint.every=10")
SECONDS = 200


def shows_working(completion: str) -> bool:
    return "=" in completion


def trained(name: str, folder: Path, *, steps: int = 80, rows: int = 32) -> Path:
    """A classifier of whether a completion shows working, trained on the digit chains' own texts."""
    make, given = MADE[name]
    make(folder, max_position_embeddings=POSITIONS, initializer_range=0.05)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    module: Any = AutoModelForSequenceClassification.from_pretrained(folder)
    encode = TextEncoder(tokenizer, input=given, max_length=POSITIONS, truncate=None)
    texts = ChainTask().sft_rows(1, steps * rows)
    optimizer = torch.optim.AdamW(module.parameters(), lr=5e-3)
    for step in range(steps):
        part = texts[step * rows : (step + 1) * rows]
        inputs = [encode(*row) for row in part]
        width = max(len(row.ids) for row in inputs)
        ids = torch.tensor([row.ids + [0] * (width - len(row.ids)) for row in inputs])
        mask = torch.tensor([[1] * len(row.ids) + [0] * (width - len(row.ids)) for row in inputs])
        labels = torch.tensor([float(shows_working(completion)) for _, completion in part])
        logits = module(input_ids=ids, attention_mask=mask).logits.squeeze(-1)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    module.save_pretrained(folder)
    return folder


def settings(home: Path, name: str) -> tuple[str, ...]:
    """The run's, for a model that is made once for all tests."""
    folder = home / f"judge-{name}"
    if not folder.exists():
        torch.manual_seed(0)
        trained(name, folder)
    outcome = {"kind": "reward_model", "path": str(folder), "input": {"kind": MADE[name][1].kind}}
    verifier = {"kind": "answer_match", "extract": ["answer_tag"]}
    return (f"reward.outcome={json.dumps(outcome)}", f"evaluation.outcome={json.dumps(verifier)}")


@pytest.mark.slow
def test_a_policy_learns_what_the_model_pays_and_only_the_verifier_speaks_of_accuracy(home: Path, train: Train) -> None:
    short = ("iterations=8", "evaluation.every=8", "engine.shard_size=64", "prompts_per_iteration=8")
    run = train("on-bert", *settings(home, "bert"), *short)
    first, last = run.summary(0), run.summary(7)
    assert last["predicted_accuracy"] > first["predicted_accuracy"] + 0.1
    assert not {"accuracy", "all_correct_ratio"} & first.keys()
    assert run.summary(7)["evaluation/accuracy"] is not None, "by the verifier"
    assert "evaluation/predicted_accuracy" not in last
    rows = run.frame("verify", range(8)).join(
        run.frame("generate", range(8)), on=["group_id", "sample_index"], maintain_order="left"
    )
    decided = rows.filter(pl.col("status") == "ok")
    agrees = decided["correct"] == decided["completion"].str.contains("=")
    assert agrees.to_numpy().mean() > 0.95, "it judges what it was trained to see"
    assert rows.filter(pl.col("status") == "truncated")["correct"].sum() == 0
    assert "predicted accuracy" in run.text


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bert", pytest.param("decoder", marks=pytest.mark.long)])
def test_killed_while_it_is_asked_the_run_ends_as_if_it_had_not_been(home: Path, train: Train, name: str) -> None:
    """A real SIGKILL once the second iteration's rollouts are there, and an engine that begins without the model."""
    own = (*settings(home, name), *SMALL, "iterations=3")
    straight = train(f"{name}-unkilled", *own)
    killed = Trained(straight.home, f"{name}-killed")
    _kill_in_the_second_iteration(killed, own)
    assert killed.status.state == "crashed"
    assert len(killed.commits) < len(straight.commits)
    assert killed.run(*own) == 0, killed.text
    assert killed.status.ledger_head == straight.status.ledger_head
    assert [commit.sha256 for commit in killed.commits] == [commit.sha256 for commit in straight.commits]


def _kill_in_the_second_iteration(run: Trained, own: tuple[str, ...]) -> None:
    given = [word for setting in ("tracking.mlflow=off", *own) for word in ("--set", setting)]
    command = [Path(sys.executable).with_name("papo"), "train", str(ROOT / "deployments/runs/arithmetic.yaml")]
    places = ["--run-id", run.name, "--direct", "--runs", "runs", "--models", "models"]
    with (run.home / f"{run.name}.log").open("wb") as output:
        process = subprocess.Popen([*command, *places, *given], cwd=run.home, stdout=output, stderr=output)
    deadline = time.monotonic() + SECONDS
    while not list(run.folder.glob("iterations/00001/rollouts-*.parquet")):
        assert process.poll() is None, (run.home / f"{run.name}.log").read_text()
        assert time.monotonic() < deadline, "it never came so far"
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
