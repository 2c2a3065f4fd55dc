"""The whole command with vLLM as its generator: iterations, a stop, a resume, what a run directory then says."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml

from tests.vllm.conftest import ENVIRONMENT, Bench

CONFIG: dict[str, Any] = {
    "iterations": 3,
    "prompts_per_iteration": 4,
    "data": {
        "train": {"kind": "chains", "count": 64},
        "evaluation": {"kind": "chains", "count": 8, "split": "heldout"},
    },
    "sampling": {"num_generations": 4, "max_prompt_length": 16, "max_completion_length": 24, "temperature": 0.9},
    "reward": {"outcome": {"kind": "answer_match", "extract": ["answer_tag"]}, "format_weight": 0.5},
    "scorer": {"kind": "chain_rubric"},
    "algorithm": {"advantage": {"kind": "papo"}, "rollout_correction": {"rollout_is": "token"}, "entropy_coeff": 0.01},
    "optimizer": {"learning_rate": 1e-3},
    "engine": {"shard_size": 8, "device": "cpu"},
    "evaluation": {"every": 3, "shard_size": 8},
    "stop": {"all_truncated": 100},
    "tracking": {"mlflow": "off"},
}


def papo(folder: Path, *arguments: str) -> str:
    root = Path(__file__).parents[2]
    command = [sys.executable, "-m", "flows.cli", *arguments, "--direct", "--runs", str(folder / "runs")]
    environment = os.environ | {"PYTHONPATH": str(root)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def events(run: Path, kind: str) -> list[dict[str, Any]]:
    lines = (run / "events.jsonl").read_text().splitlines()
    return [event for event in map(json.loads, lines) if event.get("event") == kind]


@pytest.fixture(scope="module")
def finished(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two iterations, an end, and a resume to the third."""
    bench.generator.close()
    folder = tmp_path_factory.mktemp("loop")
    generator = {"kind": "vllm", "environment": str(Path(ENVIRONMENT).absolute()), "sleep": "always"}
    config = CONFIG | {"model": {"path": str(bench.model)}, "generator": generator}
    (folder / "loop.yaml").write_text(yaml.safe_dump(config))
    papo(folder, "train", "loop.yaml", "--limit", "2")
    papo(folder, "resume", "loop")
    return folder / "runs" / "loop"


def test_three_iterations_are_committed_and_each_policy_was_synced(finished: Path) -> None:
    commits = [json.loads(path.read_text()) for path in sorted(finished.glob("iterations/0*/commit.json"))]
    synced = events(finished, "synced")

    assert [commit["iteration"] for commit in commits] == [0, 1, 2]
    assert all(commit["summary"]["update/optimizer_steps"] == 1 for commit in commits)
    policies = {commit["state"]["policy"]["fingerprint"]["policy_sha256"] for commit in commits}
    assert len(policies) == 3
    # The resumed process syncs the policy that it took over, before its first row (BUG-048).
    assert {event["policy_sha256"] for event in synced} >= policies
    assert max(event["probe_gap_max"] for event in synced) < 1e-4


def test_the_gap_is_in_the_figures_of_every_iteration_and_below_the_limit(finished: Path) -> None:
    for path in finished.glob("iterations/0*/commit.json"):
        summary = json.loads(path.read_text())["summary"]
        assert summary["update/sampler_logprob_gap_max"] < 1e-4
        assert summary["update/sampler_k3"] < 1e-6
        assert summary["update/sampler_effective_sample_size"] == pytest.approx(1.0, abs=1e-4)
    assert not events(finished, "sampler_gap")


def test_rollouts_are_of_the_policy_of_their_iteration(finished: Path) -> None:
    for iteration in range(3):
        folder = finished / "iterations" / f"{iteration:05d}"
        rows = pl.concat([pl.read_parquet(path) for path in folder.glob("rollouts-*.parquet")])
        assert rows.height == 16
        assert set(rows["policy_version"]) == {iteration}


def test_nothing_is_left_running(finished: Path) -> None:
    assert not list(finished.glob("logs/vllm-*.json"))
    for log in finished.glob("logs/vllm-*.log"):
        assert "sleep mode" in log.read_text(), "servers were not told to sleep during the update"
