"""What the engine's fields say to each other."""

import pytest

from schemas.crosschecks import cross_faults
from schemas.faults import dotted
from tests.simulation.world import config_with


@pytest.mark.parametrize(("stage", "faulty"), [(0, True), (1, False), (3, False)])
def test_an_optimizer_is_offloaded_from_a_zero_stage_only(stage: int, faulty: bool) -> None:
    config = config_with(engine={"offload_optimizer": True, "zero_stage": stage})
    named = [dotted(fault.field) for fault in cross_faults(config)]
    assert ("engine.offload_optimizer" in named) is faulty
