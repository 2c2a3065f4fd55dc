"""Every preset on the digit chains, each under a run config that fits this model: accuracy, memory, seconds, models."""

import json
import sys
from dataclasses import replace
from statistics import mean
from typing import Any

from experiments.compare import DOCS, Experiment, main
from flows.proposals import Places
from papo.presets import PRESETS
from schemas.presets import sections_of
from tasks.disk import LocalDisk
from tasks.journal import METRICS, read_lines

ROWS, MINI_BATCH, LONGEST = 128, 32, 64
"""Rollouts an iteration, those of an optimizer step where a paper takes several, and the tokens that one may have."""
GROUPS = {"grpo_deepseekmath": 16, "rloo": 4}
"""Where a paper's group (64, 2) does not fit 128 rollouts of these problems."""


def overrides(name: str) -> list[str]:
    """What a run of the preset sets in deployments/runs/arithmetic.yaml."""
    preset = PRESETS[name]
    group = GROUPS.get(name, preset.num_generations)
    changes: dict[str, Any] = {}
    if preset.algorithm.ppo_mini_batch_size is not None:
        changes["ppo_mini_batch_size"] = MINI_BATCH
    if preset.algorithm.loss_norm_constant is not None:
        changes["loss_norm_constant"] = LONGEST
    if preset.algorithm.ref_update_interval is not None:
        changes["ref_update_interval"] = 10
    buffer = 16 if preset.overlong_buffer_len is not None else None
    fitted = replace(
        preset, algorithm=replace(preset.algorithm, **changes), num_generations=group, overlong_buffer_len=buffer
    )
    sections = sections_of(fitted)
    settings = {"algorithm": sections["algorithm"], "prompts_per_iteration": ROWS // group}
    settings |= {f"sampling.{field}": part for field, part in sections["sampling"].items()}
    settings |= {f"reward.{field}": part for field, part in sections.get("reward", {}).items()}
    return [f"{field}={json.dumps(part)}" for field, part in (settings | EXTRA.get(name, {})).items()]


FAST = {"learning_rate": 1e-3}
PRIME_EXTRA = {
    "implicit_prm": {"optimizer": {**FAST, "max_grad_norm": 10.0}},
    "sampling.filter_accuracy": {"oversample_factor": 2.0},
}
EXTRA: dict[str, dict[str, Any]] = {
    "papo_staged": {"algorithm.advantage.lambda_process_schedule.iterations": 20},
    # With a reward of 10, a value clip of 0.2 would let the critic move by 0.2 an iteration at most.
    "ppo": {
        "algorithm.cliprange_value": None,
        "algorithm.ppo_mini_batch_size": MINI_BATCH,
        "critic": {"optimizer": FAST, "warmup_iterations": 2},
    },
    "prime": PRIME_EXTRA,
    "prime_authors_code": PRIME_EXTRA,
    "prpo": {"algorithm.advantage.segmenter": {"kind": "entropy", "top_k": 5, "min_gap": 4}},
}
"""Learning rates and lengths of this model and these problems: a completion has some 25 tokens."""

EXPERIMENT = Experiment(
    name="presets",
    title="Every preset on the digit chains",
    config="deployments/runs/arithmetic.yaml",
    sft="deployments/sft/arithmetic.yaml",
    iterations=20,
    every=10,
    methods={name: overrides(name) for name in PRESETS},
    curves={"accuracy": "held-out accuracy", "length_mean": "completion tokens"},
)


def costs(seeds: list[int]) -> str:
    """A table of what each preset took, from the runs' own metrics: means over seeds, of iterations after the first."""
    lines = [
        "",
        "| preset | models held | seconds an iteration | engine's peak memory | judge's figure |",
        "|---|---|---|---|---|",
    ]
    for name in EXPERIMENT.methods:
        runs = [_metrics(f"{name.replace('_', '-')}-{seed}") for seed in seeds]
        seconds = mean(mean(_seconds(line) for line in run[1:]) for run in runs)
        memory = mean(run[-1]["memory/engine_peak_bytes"] for run in runs) / 2**20
        judged = ", ".join(filter(None, (_judged(run) for run in runs)))
        lines.append(f"| {name} | {_models(name)} | {seconds:.2f} | {memory:.0f} MiB | {judged} |")
    return "\n".join(lines) + "\n"


def _metrics(run_id: str) -> list[dict[str, Any]]:
    disk = LocalDisk(Places(runs=DOCS.parents[1] / "runs" / EXPERIMENT.name).run(run_id))
    return [line["values"] for line in read_lines(disk.read(METRICS)) if line["iteration"] >= 0]


def _judged(run: list[dict[str, Any]]) -> str:
    """How good the models beside the policy are: the critic at its best, the implicit PRM on average."""
    variances = [values["update/explained_variance"] for values in run if "update/explained_variance" in values]
    if variances:
        return f"explained variance up to {max(variances):.2f}"
    pairs = [values["prm_dpo_accuracy"] for values in run[1:] if "prm_dpo_accuracy" in values]
    return f"dpo_acc {mean(pairs):.2f}" if pairs else ""


def _seconds(values: dict[str, Any]) -> float:
    return sum(spent for name, spent in values.items() if name.startswith("seconds/"))


def _models(name: str) -> str:
    algorithm = PRESETS[name].algorithm
    needs = algorithm.needs
    held = ["policy"]
    if needs.reference or algorithm.prm_reference:
        held.append("reference")
    held += [
        label for field, label in (("critic", "critic"), ("implicit_prm", "implicit PRM")) if getattr(needs, field)
    ]
    return ", ".join(held)


if __name__ == "__main__":
    main(EXPERIMENT, sys.argv[1:])
    table = costs([int(seed) for seed in sys.argv[1:]] or [0, 1, 2])
    with (DOCS / f"{EXPERIMENT.name}.md").open("a") as page:
        page.write(table)
    sys.stdout.write(table)
