"""Learning rates as a function of the step count."""

import pytest

from papo.engines.schedule import learning_rate
from papo.engines.settings import OptimizerSettings
from papo.errors import EngineError


def rates(steps: int, **settings: object) -> list[float]:
    chosen = OptimizerSettings(learning_rate=1.0, **settings)  # type: ignore[arg-type]
    return [learning_rate(chosen, step=step) for step in range(steps)]


def test_constant() -> None:
    assert rates(3) == [1.0, 1.0, 1.0]


def test_warm_up_rises_to_the_peak_and_never_starts_at_zero() -> None:
    assert rates(5, warmup_steps=3) == [0.25, 0.5, 0.75, 1.0, 1.0]


def test_linear_falls_to_its_final_ratio_and_stays() -> None:
    assert rates(6, schedule="linear", schedule_steps=4, final_ratio=0.2) == pytest.approx([1, 0.8, 0.6, 0.4, 0.2, 0.2])


def test_cosine_after_warm_up() -> None:
    expected = [0.5, 1.0, 0.853553, 0.5, 0.146447, 0.0, 0.0]
    assert rates(7, schedule="cosine", warmup_steps=1, schedule_steps=5) == pytest.approx(expected, abs=1e-6)


def test_a_decay_without_length_is_refused() -> None:
    with pytest.raises(EngineError, match="set schedule_steps"):
        rates(1, schedule="cosine")
