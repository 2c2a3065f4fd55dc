"""Parity chains: unsound working is right half of the time, so outcome reward alone is slow to tell it apart."""

import sys

from experiments.compare import Experiment, main

EXPERIMENT = Experiment(
    name="parity",
    title="Parity chains: PAPO against outcome reward alone",
    config="deployments/runs/parity.yaml",
    sft="deployments/sft/parity.yaml",
    iterations=60,
    every=15,
    methods={"grpo": ["algorithm.advantage.kind=grpo"], "papo": []},
    curves={"accuracy": "held-out accuracy", "sound_ratio": "sound and correct", "process_mean": "rubric"},
)

if __name__ == "__main__":
    main(EXPERIMENT, sys.argv[1:])
