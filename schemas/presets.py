"""A preset as the sections of a run config that it stands for: what differs from the defaults, and no more."""

import dataclasses
from typing import Any, cast

from papo.presets import Preset


def sections_of(preset: Preset) -> dict[str, Any]:
    """algorithm, sampling and reward, as plain values for YAML; the reward lacks its verifier, which is the run's."""
    reward: dict[str, Any] = {}
    scale, offset = preset.correct_reward - preset.wrong_reward, preset.wrong_reward
    if (scale, offset) != (1.0, 0.0):
        reward |= {"accuracy_scale": scale, "accuracy_offset": offset}
    if preset.format_reward_weight:
        reward["format_weight"] = preset.format_reward_weight
    if preset.overlong_buffer_len is not None:
        reward["overlong_buffer_len"] = preset.overlong_buffer_len
    sampling: dict[str, Any] = {"num_generations": preset.num_generations}
    for name in ("filter_groups", "filter_accuracy"):
        rule = getattr(preset, name)
        if rule is not None:
            sampling[name] = changed(rule)
    sections = {"algorithm": changed(preset.algorithm), "sampling": sampling}
    return sections | ({"reward": reward} if reward else {})


def changed(part: Any) -> Any:
    """The fields of a frozen value that are not at their defaults, its `kind` always among them."""
    if dataclasses.is_dataclass(part) and not isinstance(part, type):
        return {
            field.name: changed(getattr(part, field.name))
            for field in dataclasses.fields(part)
            if field.name == "kind" or getattr(part, field.name) != field.default
        }
    return list(cast("tuple[Any, ...]", part)) if isinstance(part, tuple) else part
