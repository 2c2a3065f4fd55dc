"""Train a run config by several methods over several seeds, two runs at a time, and draw how they fare.

    python -m experiments.collapse          python -m experiments.parity

Each seed has its own cold start (data order and first weights) and its own RL run. Runs are resumable like any other:
started again, the command goes on where it was.
"""

import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot

from flows.build import train_sft
from flows.proposals import Places
from flows.reporters import LogReporter
from tasks.disk import LocalDisk
from tasks.evaluate import EVALUATED
from tasks.journal import EVENTS, read_lines
from tasks.store import RunStore

DOCS = Path("docs/experiments")
Figures = dict[int, dict[str, float]]
"""By number of iterations done: the evaluation's figures."""


@dataclass(frozen=True)
class Experiment:
    name: str
    title: str
    config: str
    sft: str
    iterations: int
    every: int
    methods: Mapping[str, Sequence[str]]
    """Label to config overrides."""
    curves: Mapping[str, str]
    """Evaluation figure to the label of its axis."""


def main(experiment: Experiment, arguments: Sequence[str]) -> None:
    """Run `experiment` over the seeds in `arguments` (default 0 1 2) and write its figures, curves and table."""
    seeds = [int(argument) for argument in arguments] or [0, 1, 2]
    places = Places(runs=Path("runs") / experiment.name)
    models = {seed: _cold_start(experiment, seed, places) for seed in seeds}
    jobs = [(label, seed) for label in experiment.methods for seed in seeds]

    def trained(job: tuple[str, int]) -> Figures:
        label, seed = job
        return _train(experiment, label, seed, models[seed], places)

    with ThreadPoolExecutor(max_workers=2) as pool:
        found = dict(zip(jobs, pool.map(trained, jobs), strict=True))
    DOCS.mkdir(parents=True, exist_ok=True)
    record = [{"method": label, "seed": seed, "figures": figures} for (label, seed), figures in found.items()]
    (DOCS / f"{experiment.name}.json").write_text(json.dumps(record, indent=1) + "\n")
    _draw(experiment, found, seeds)
    table = _table(experiment, found, seeds)
    (DOCS / f"{experiment.name}.md").write_text(table)
    sys.stdout.write(table)


def _cold_start(experiment: Experiment, seed: int, places: Places) -> Path:
    overrides = [f"seed={seed}", f"model.seed={seed}"]
    return train_sft(experiment.sft, overrides=overrides, reporter=LogReporter(print), places=places)


def _train(experiment: Experiment, label: str, seed: int, model: Path, places: Places) -> Figures:
    run_id = f"{re.sub('[^a-z0-9]+', '-', label)}-{seed}"
    settings = [
        f"seed={seed}",
        f"iterations={experiment.iterations}",
        f"evaluation.every={experiment.every}",
        "model.cold_start=null",
        f"model.path={model}",
        "tracking.mlflow=off",
        *experiment.methods[label],
    ]
    command = [sys.executable, "-m", "flows.cli", "train", experiment.config, "--direct", "--run-id", run_id]
    command += ["--runs", str(places.runs), *(part for setting in settings for part in ("--set", setting))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{run_id} ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    sys.stdout.write(f"{run_id} is done\n")
    return figures_of(places.run(run_id))


def figures_of(folder: Path) -> Figures:
    """Every evaluation of a run, by the number of iterations the policy had had."""
    disk = LocalDisk(folder)
    events = [event for event in read_lines(disk.read(EVENTS)) if event["event"] == EVALUATED]
    found = {event["version"]: _measured(event) for event in events}
    for commit in RunStore(disk).commits():
        if "evaluation/accuracy" in commit.summary:
            found[commit.iteration + 1] = _measured(commit.summary)
    return dict(sorted(found.items()))


def _measured(summary: Mapping[str, Any]) -> dict[str, float]:
    prefix = "evaluation/"
    return {
        name.removeprefix(prefix): float(value or 0.0) for name, value in summary.items() if name.startswith(prefix)
    }


def _draw(experiment: Experiment, found: Mapping[tuple[str, int], Figures], seeds: Sequence[int]) -> None:
    mpl.rcParams["svg.hashsalt"] = "papo"
    figure, axes = pyplot.subplots(1, len(experiment.curves), figsize=(5 * len(experiment.curves), 3.6), squeeze=False)
    for axis, (name, label) in zip(axes[0], experiment.curves.items(), strict=True):
        for number, method in enumerate(experiment.methods):
            runs = [found[method, seed] for seed in seeds]
            steps = _shared_steps(runs)
            values = [[run[step][name] for step in steps] for run in runs]
            axis.plot(steps, [mean(column) for column in zip(*values, strict=True)], color=f"C{number}", label=method)
            for run in values:
                axis.plot(steps, run, color=f"C{number}", alpha=0.25, linewidth=0.8)
        axis.set_xlabel("iteration")
        axis.set_ylabel(label)
    axes[0][0].legend(frameon=False)
    figure.suptitle(experiment.title)
    figure.tight_layout()
    figure.savefig(DOCS / f"{experiment.name}.svg", metadata={"Date": None})


def _table(experiment: Experiment, found: Mapping[tuple[str, int], Figures], seeds: Sequence[int]) -> str:
    steps = _shared_steps(list(found.values()))
    lines = [
        f"# {experiment.title}",
        "",
        f"`python -m experiments.{experiment.name} {' '.join(map(str, seeds))}` · {experiment.config} · seeds "
        f"{', '.join(map(str, seeds))} · mean ± standard deviation over seeds, held-out prompts at temperature 1.",
        "",
        f"![curves]({experiment.name}.svg)",
    ]
    for name, label in experiment.curves.items():
        lines += ["", f"| {label} | {' | '.join(map(str, steps))} |", f"|---|{'---|' * len(steps)}"]
        for method in experiment.methods:
            cells = [_cell([found[method, seed][step][name] for seed in seeds]) for step in steps]
            lines.append(f"| {method} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _shared_steps(runs: Sequence[Figures]) -> list[int]:
    return sorted(step for step in runs[0] if all(step in run for run in runs))


def _cell(values: Sequence[float]) -> str:
    spread = f" ± {stdev(values):.3f}" if len(values) > 1 else ""
    return f"{mean(values):.3f}{spread}"
