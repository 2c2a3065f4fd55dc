"""The learning rate as a pure function of the number of optimizer steps taken: nothing to save, nothing to lose."""

import math

from papo.engines.settings import OptimizerSettings
from papo.errors import EngineError


def learning_rate(settings: OptimizerSettings, *, step: int) -> float:
    """The rate of the optimizer step number `step`, counted from 0.

        warm-up   η · (step + 1) / (warmup_steps + 1)                  step < warmup_steps
        decay     η · (f + (1 − f) · d(p)),  p = (step − warmup) / (schedule_steps − warmup), at most 1
                  d(p) = 1 constant, 1 − p linear, (1 + cos πp) / 2 cosine;  f = final_ratio

    Raises EngineError when a decay has no length.
    """
    peak = settings.learning_rate
    if step < settings.warmup_steps:
        return peak * (step + 1) / (settings.warmup_steps + 1)
    if settings.schedule == "constant":
        return peak
    if settings.schedule_steps is None or settings.schedule_steps <= settings.warmup_steps:
        raise EngineError(
            f"optimizer.schedule is {settings.schedule} with schedule_steps {settings.schedule_steps} and warmup_steps"
            f" {settings.warmup_steps}: set schedule_steps to the number of optimizer steps that the decay takes."
        )
    passed = min(1.0, (step - settings.warmup_steps) / (settings.schedule_steps - settings.warmup_steps))
    share = 1.0 - passed if settings.schedule == "linear" else (1.0 + math.cos(math.pi * passed)) / 2.0
    return peak * (settings.final_ratio + (1.0 - settings.final_ratio) * share)
