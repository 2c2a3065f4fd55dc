"""The neural outcome reward: what a model of its own predicts of a completion, kept as a soft score."""

import json
from dataclasses import asdict, field
from math import isfinite
from typing import Literal

from papo.engines.text_models import Activation, ChatInput, Classifier, Head, ModelInput, Truncate
from papo.rewards.verdict import Verdict, VerdictStatus
from papo.values import LATER, OPERATIONAL, value


@value
class RewardModel:
    """A model's score of question and completion. It is a prediction: its rows are `judged_by` reward_model, and what
    is measured of them is never called accuracy. The engine asks the model; the reference answer is not shown to it.
    """

    kind: Literal["reward_model"] = "reward_model"
    path: str = field(metadata=OPERATIONAL)
    """Its Hugging Face folder (safetensors, tokenizer), relative to the config file. What its files hash to is part of
    every row's key; where they are is not."""
    head: Head = Classifier()
    """Where the score stands."""
    input: ModelInput = ChatInput()
    """What the model is given."""
    max_length: int | None = None
    """Tokens that it is given at most, null: as many as it has positions. A longer row has no reward (`unscorable`)."""
    truncate: Truncate | None = None
    """Cut longer rows instead, at their beginning (left) or in their middle; null: never."""
    activation: Activation = "auto"
    """From logits to the score. auto: the sigmoid of a single one, the softmax over several. none: the logit itself (of
    a good token, less that of the bad one), which is not held to 0 to 1."""
    threshold: float | None = None
    """Scores from here on count as (predicted) correct; null: 0.5, and 0 without activation."""
    truncated: Literal["zero", "score"] = "zero"
    """Completions cut off at the token limit earn 0, or are scored like any other."""
    trust_remote_code: bool = False
    """Run code that the model folder brings along. Leave it off unless you have read that code."""
    files: str | None = field(default=None, metadata=LATER)
    """SHA-256 of the folder's files, which papo writes here when a run begins: with other files it is another model."""

    def __post_init__(self) -> None:
        if self.max_length is not None and self.max_length < 1:
            raise ValueError(f"max_length is {self.max_length}: use 1 or more tokens, or null.")
        if self.threshold is not None and not isfinite(self.threshold):
            raise ValueError(f"threshold is {self.threshold}: use a finite number.")
        if self.activation == "none" and self.truncated == "zero":
            raise ValueError(
                "truncated is zero, but without activation 0 may be better than what a bad completion earns: use score."
            )

    @property
    def version(self) -> str:
        """The settings; what the model's files hash to is added by who reads them."""
        settings = {name: part for name, part in asdict(self).items() if name not in ("path", "files")}
        return f"reward_model/1 {json.dumps(settings, sort_keys=True)}"

    @property
    def correct_from(self) -> float:
        """The threshold in use."""
        usual = 0.0 if self.activation == "none" else 0.5
        return usual if self.threshold is None else self.threshold

    def verdict(self, score: float | None, *, status: VerdictStatus, reason: str | None, finish_reason: str) -> Verdict:
        """What a row's score comes to; None, with `status` and `reason`, where the model has none."""
        if finish_reason == "length" and self.truncated == "zero":
            return Verdict(accuracy=0.0, correct=False, status="truncated", judged_by="reward_model")
        correct = None if score is None else score >= self.correct_from
        return Verdict(accuracy=score, correct=correct, status=status, reason=reason, judged_by="reward_model")
