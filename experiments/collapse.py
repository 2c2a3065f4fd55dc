"""A process scorer that pays for length: what it does to summed rewards, and to PAPO."""

import sys

from experiments.compare import Experiment, main

LENGTH = ["scorer.kind=equation_lines"]
EXPERIMENT = Experiment(
    name="collapse",
    title="A scorer that pays for every line with an equals sign",
    config="deployments/runs/arithmetic.yaml",
    sft="deployments/sft/arithmetic.yaml",
    iterations=60,
    every=15,
    methods={
        "sum": [*LENGTH, "algorithm.advantage.kind=sum"],
        "prm": [*LENGTH, "algorithm.advantage.kind=prm"],
        "papo": LENGTH,
        "papo, sound rubric": [],
        "grpo": ["algorithm.advantage.kind=grpo"],
    },
    curves={"accuracy": "held-out accuracy", "length_mean": "completion tokens", "truncated_ratio": "cut off"},
)

if __name__ == "__main__":
    main(EXPERIMENT, sys.argv[1:])
