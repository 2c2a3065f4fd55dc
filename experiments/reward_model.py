"""What a policy makes of a reward model that overlooks something, beside the verifier it stands in for."""

import json
import sys
from pathlib import Path

from experiments.compare import Experiment, main
from experiments.working_judge import made

JUDGE = Path("models/working-judge")
VERIFIER = {"kind": "answer_match", "extract": ["answer_tag"]}
PREDICTOR = {"kind": "reward_model", "path": str(JUDGE.resolve()), "input": {"kind": "pair"}}
EXPERIMENT = Experiment(
    name="reward_model",
    title="A reward model that pays for any working, right or wrong",
    config="deployments/runs/arithmetic.yaml",
    sft="deployments/sft/arithmetic.yaml",
    iterations=40,
    every=10,
    methods={
        "verifier": ["algorithm.advantage.kind=grpo"],
        "reward model": [
            "algorithm.advantage.kind=grpo",
            f"reward.outcome={json.dumps(PREDICTOR)}",
            f"evaluation.outcome={json.dumps(VERIFIER)}",
        ],
    },
    curves={"accuracy": "held-out accuracy, by the verifier", "length_mean": "completion tokens"},
)

if __name__ == "__main__":
    made(JUDGE)
    main(EXPERIMENT, sys.argv[1:])
