"""Process rewards at eight rollouts a prompt: none, alone, added to the outcome, and PRPO's, with the sound rubric."""

import sys

from experiments.compare import Experiment, main

PRPO = "algorithm={advantage: {kind: prpo, segmenter: {kind: newline}}, loss_agg_mode: seq-mean-token-mean}"
EXPERIMENT = Experiment(
    name="process",
    title="GRPO, PRM alone, PRM averaged with the outcome, PRPO",
    config="deployments/runs/arithmetic.yaml",
    sft="deployments/sft/arithmetic.yaml",
    iterations=20,
    every=10,
    methods={
        "grpo": ["algorithm.advantage.kind=grpo"],
        "prm": ["algorithm.advantage.kind=prm"],
        "prm-average": ["algorithm.advantage.kind=sum"],
        "prpo": [PRPO, "reward.accuracy_scale=2", "reward.accuracy_offset=-1"],
    },
    curves={"accuracy": "held-out accuracy", "length_mean": "completion tokens", "sound_ratio": "sound and correct"},
)

if __name__ == "__main__":
    main(EXPERIMENT, sys.argv[1:])
