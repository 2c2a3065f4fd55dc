"""The script for a single-GPU machine, exercised in its CPU form: it runs the real loop and writes its figures."""

import json
import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from benchmarks.measure import DENSE_TFLOPS, _syncs, model_flops, peak_of
from benchmarks.random_model import SIZES, byte_tokenizer

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "benchmarks" / "gpu_check.sh"


def run(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["bash", str(SCRIPT), *arguments], capture_output=True, text=True, check=False, cwd=ROOT.parent,
        env={**os.environ, "PYTHON": sys.executable, "OMP_NUM_THREADS": "1", **environment},
    )  # fmt: skip


@pytest.mark.slow
def test_its_cpu_form_measures_a_whole_loop_and_says_that_it_is_not_a_gpu(tmp_path: Path) -> None:
    done = run("--device", "cpu", "--size", "tiny", "--iterations", "2", "--results", str(tmp_path), "--vllm", "none")

    assert done.returncode == 0, done.stdout + done.stderr
    record = json.loads((tmp_path / "cpu-tiny.json").read_text())
    assert record["ran_on_gpu"] is False
    assert list(record["skipped"]) == ["vllm"]
    figures = record["runs"]["embedded"]
    assert figures["iterations"] == 2
    assert figures["rollouts"] == 8
    assert figures["completion_tokens"] == 16.0, "sampled to the limit"
    for name in ("generate_tokens_per_second", "loop_tokens_per_second", "update_tflops", "host_gib"):
        assert figures[name] > 0
    assert {"generate", "update", "logprobs"} <= set(figures["seconds"])
    assert figures["mfu"] is None, "no peak is known of a CPU"
    page = (tmp_path / "cpu-tiny.md").read_text()
    assert "Not run on a GPU" in page
    assert "vllm: there is no vLLM environment in none" in page


def test_without_a_gpu_it_says_what_is_missing(tmp_path: Path) -> None:
    done = run("--size", "tiny", "--results", str(tmp_path), CUDA_VISIBLE_DEVICES="")

    assert done.returncode != 0
    assert "torch sees no GPU here" in done.stderr
    assert not list(tmp_path.iterdir())


def test_an_interpreter_without_packages_is_named(tmp_path: Path) -> None:
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S -E "$@"\n')
    bare.chmod(0o755)

    done = run("--device", "cpu", PYTHON=str(bare))

    assert done.returncode == 1
    assert "lacks: accelerate deepspeed" in done.stdout
    assert "INSTALL=1" in done.stdout


def test_flops_of_a_known_model(tmp_path: Path) -> None:
    """By hand: 2 layers of 4·4·(2+2)... weights and one row of 3 + 2 tokens."""
    config = {
        "hidden_size": 4, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1,
        "intermediate_size": 8, "vocab_size": 10,
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config))
    rows = pl.DataFrame({"prompt": [3], "completion": [2]})
    # q and o: 4·4 each; k and v: 4·2 each; three MLP matrices: 4·8 each; head: 10·4.
    weights = 2 * (16 + 16 + 8 + 8 + 3 * 32) + 40
    assert model_flops(tmp_path, rows) == 6 * weights * 5 + 6 * 2 * 4 * 25


def test_a_sync_belongs_to_the_iteration_that_it_came_before() -> None:
    events = [
        {"event": "making", "stage": "generate", "iteration": 0}, {"event": "synced", "seconds": 3.0},
        {"event": "making", "stage": "generate", "iteration": 1},
        {"event": "making", "stage": "verify", "iteration": 1},
        {"event": "making", "stage": "generate", "iteration": 2}, {"event": "synced", "seconds": 1.0},
    ]  # fmt: skip
    assert [(iteration, sync["seconds"]) for iteration, sync in _syncs(events)] == [(0, 3.0), (2, 1.0)]


def test_devices_are_known_by_a_part_of_their_name() -> None:
    assert peak_of("NVIDIA H200") == DENSE_TFLOPS["H200"]
    assert peak_of("NVIDIA H100 PCIe") == 756.0
    assert peak_of("NVIDIA L40S") == 362.0
    assert peak_of("Intel(R) Xeon(R)") is None


def test_every_id_of_the_random_model_has_a_text() -> None:
    vocabulary = SIZES["tiny"].vocabulary
    tokenizer = byte_tokenizer(vocabulary)
    assert len(tokenizer) == vocabulary
    assert tokenizer.decode([300, 301]) == "w42w43"
    assert len(tokenizer.encode("naïve 1", add_special_tokens=False)) == len("naïve 1".encode())
