"""SmolLM2-135M-Instruct on real problems for three iterations, with each generator, measured.

    papo models smollm2 models/smollm2                # once, after make smollm2
    papo engines install-vllm                         # once, for the vLLM columns
    python -m benchmarks.smollm2 --data FOLDER        # with svamp.jsonl and gsm8k_train.jsonl in it

Writes smollm2.json and smollm2.md to docs/experiments. Started again it measures anew, but for what `papo try` said.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

from benchmarks.measure import ROOT, Figures, as_table, figures, train
from papo.engines.vllm_install import read_stamp

DOCS = ROOT / "docs" / "experiments"
DATA = {"svamp": "svamp.jsonl", "gsm8k": "gsm8k_train.jsonl"}
LIMIT_SECONDS = 2400.0
SMALL = (
    "iterations=3", "prompts_per_iteration=4", "sampling.num_generations=4", "sampling.max_completion_length=64",
    "evaluation=null", "algorithm.use_kl_loss=true", "algorithm.kl_loss_coef=0.001",
    "optimizer.weight_decay=0.1", "stop.all_truncated=100",
    "stop.no_signal=null", "checkpoint.every=1000", "tracking.mlflow=off",
)  # fmt: skip
"""The KL term makes every update a real one, also where no answer of a group differs from the others, and weight decay
then moves the weights, so that there is something to sync."""
SHOWN = ("The prompt as", "Begins", "May end", "Ends", "Lengths", "Verdicts", "Seconds", "Memory", "Warning")
VLLM = ("generator.kind=vllm", "generator.cpu_threads=2", "generator.concurrency=32")


def main() -> None:
    """Try both data sets, measure all runs, write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", type=Path, default=Path("models/smollm2"))
    parser.add_argument("--vllm", type=Path, default=Path("engines/vllm"))
    parser.add_argument("--work", type=Path, default=Path("runs/smollm2"))
    parser.add_argument("--results", type=Path, default=DOCS)
    given = parser.parse_args()
    work: Path = given.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    generators = {"embedded": ()} | ({"vllm": VLLM} if read_stamp(str(given.vllm)) else {})
    done: dict[str, Figures] = {}
    tried: dict[str, list[str]] = {}
    for name, file in DATA.items():
        config = ROOT / "deployments" / "runs" / f"smollm2-{name}.yaml"
        path = (given.data / file).resolve()
        places = [f"data.{split}.path={path}" for split in ("train", "evaluation")]
        places.append(f"model.path={given.model.resolve()}")
        tried[name] = _tried(config, places, work / f"{name}-try.txt")
        for generator, settings in generators.items():
            overrides = [*places, *SMALL, *settings]
            if generator == "vllm":
                overrides.append(f"generator.environment={given.vllm.resolve()}")
            run = f"{name}-{generator}-{time.strftime('%H%M%S')}"
            arguments = tuple(word for override in overrides for word in ("--set", override))
            watch = train(config, work, run_id=run, timeout=LIMIT_SECONDS, arguments=arguments)
            label = f"{name}, {generator}"
            done[label] = figures(work / "runs" / run, watch, model=given.model, peak_tflops=None)
            _say(f"{label}: {done[label].generate_tokens_per_second:.1f} tokens/s")
            _write(given.results, done, tried, vllm=read_stamp(str(given.vllm)))


def _tried(config: Path, places: list[str], said: Path) -> list[str]:
    """What `papo try` said, kept whole in a file; the page has its last lines, which tell of ends, time and memory."""
    if said.is_file():
        return [line for line in said.read_text().splitlines() if line.startswith(SHOWN)]
    sets = [word for override in places for word in ("--set", override)]
    command = [sys.executable, "-m", "flows.cli", "try", str(config), *sets]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    said.write_text(done.stdout)
    return [line for line in done.stdout.splitlines() if line.startswith(SHOWN)]


def _write(folder: Path, done: dict[str, Figures], tried: dict[str, list[str]], *, vllm: dict[str, str]) -> None:
    load = os.getloadavg()[2]
    record = {
        "runs": {name: asdict(each) for name, each in done.items()},
        "tried": tried, "settings": list(SMALL), "cores": os.cpu_count(), "load": load, "vllm": vllm,
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
    }  # fmt: skip
    (folder / "smollm2.json").write_text(json.dumps(record, indent=2) + "\n")
    page = [
        "# SmolLM2-135M-Instruct on real problems, with each generator",
        "",
        f"Three iterations of 4 prompts × 4 completions of at most 64 tokens, float32, GRPO with a KL term, on"
        f" {os.cpu_count()} CPU cores that other work kept busy (load {load:.1f}). By `python -m benchmarks.smollm2`;"
        " the rows are explained under `Figures` in `benchmarks/measure.py`, rates leave the first iteration out."
        " Nobody learns anything in three iterations: this is about cost, and about everything fitting together on real"
        " input.",
        "",
        as_table(done),
        "",
        "`papo try` on the same data, at the lengths of the run config (128 tokens):",
    ]
    for name, lines in tried.items():
        page += ["", f"{name}:", "", *(f"    {line}" for line in lines)]
    (folder / "smollm2.md").write_text("\n".join([*page, ""]))


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
