"""A learner's tensors whole, by parameter, whichever part of each this rank holds: what checkpoints and hashes are of.

DeepSpeed lays masters and moments out flat and cuts them by rank, with a layout of its own for each ZeRO stage. Here a
parameter's part has a place in the parameter itself, so that whole tensors are the same at any number of ranks.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

MOMENTS = ("exp_avg", "exp_avg_sq")


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """Where a rank holds elements `start`..`start + length` − 1 of a parameter: in `flat`, from `offset` on."""

    flat: Tensor
    offset: int
    start: int
    length: int


class Parts:
    """Masters and moments of the parameters that an engine trains. Every method is called on all ranks alike."""

    def __init__(self, engine: Any, *, stage: int, device: torch.device) -> None:
        self._engine = engine
        self._stage = stage
        self._device = device
        self.parameters: dict[str, Any] = {
            name: parameter for name, parameter in engine.module.named_parameters() if parameter.requires_grad
        }
        self._masters = _whole_masters(engine) if stage == 0 else {}

    def buffers(self) -> dict[str, Tensor]:
        """Those that belong to the weights; the architecture sets the others. Whole on every rank."""
        module = self._engine.module
        stored = module.state_dict().keys()
        return {name: buffer for name, buffer in module.named_buffers() if name in stored}

    def master(self, parameter: Any) -> Tensor:
        """The float32 values that steps are taken on, in the parameter's shape."""
        place = self._place(parameter)
        return self._whole(parameter, place, place and place.flat)

    def has_moments(self, parameter: Any) -> bool:
        """False before the first step, and for a parameter that no gradient has ever reached."""
        if self._stage == 0:
            return bool(self._state(self._masters[parameter]))
        # The parts of a stage have moments from the same step on, those of other ranks too.
        return any(self._state(flat) for flat in self._flats)

    def moment(self, parameter: Any, key: str) -> Tensor:
        """One of MOMENTS, in the parameter's shape. Only where `has_moments`."""
        place = self._place(parameter)
        return self._whole(parameter, place, place and self._state(place.flat)[key])

    def steps(self, parameter: Any) -> Tensor:
        """How many steps the moments have seen: float32, no axis."""
        flat = self._masters[parameter] if self._stage == 0 else self._flats[0]
        return torch.as_tensor(self._state(flat)["step"]).clone()

    @torch.no_grad()
    def set_master(self, parameter: Any, values: Tensor) -> None:
        """Put `values` in place of the master, and what follows from it in place of the parameter."""
        place = self._place(parameter)
        if place is not None:
            _write(place, place.flat, values)
        if self._stage < 3:
            parameter.data.copy_(values)
            return
        with gathered([parameter], writes=True):
            parameter.data.copy_(values)

    @torch.no_grad()
    def set_moments(self, parameter: Any, values: dict[str, Tensor], steps: Tensor) -> None:
        """Put moments in place of what is there. Where only a part is held, `begin_moments` comes before."""
        if self._stage == 0:
            master = self._masters[parameter]
            self._optimizer.state[master] = {"step": steps.clone()} | {
                key: values[key].to(master.device, torch.float32).clone() for key in MOMENTS
            }
            return
        place = self._place(parameter)
        if place is not None:
            state = self._state(place.flat)
            state["step"] = steps.clone()
            for key in MOMENTS:
                _write(place, state[key], values[key])

    def begin_moments(self, steps: int) -> None:
        """Moments of 0 after `steps` steps for every part, so that also its padding has them."""
        if self._stage:
            for flat in self._flats:
                zeros = {key: torch.zeros_like(flat, requires_grad=False) for key in MOMENTS}
                self._optimizer.state[flat] = {"step": torch.tensor(float(steps)), **zeros}

    @property
    def _optimizer(self) -> Any:
        return self._engine.basic_optimizer

    @property
    def _flats(self) -> list[Any]:
        """The flat tensors of this rank; on stage 3 DeepSpeed keeps them out of the optimizer's groups."""
        if self._stage == 3:
            return self._engine.optimizer.fp32_partitioned_groups_flat
        return [group["params"][0] for group in self._optimizer.param_groups]

    def _state(self, flat: Any) -> dict[str, Any]:
        return self._optimizer.state.get(flat, {})

    def _place(self, parameter: Any) -> Place | None:
        if self._stage == 0:
            return Place(self._masters[parameter], 0, 0, parameter.numel())
        if self._stage == 3:
            owner = self._engine.optimizer
            group, offset, length = owner.grad_position[owner.get_param_id(parameter)]
            start = length * dist.get_rank()
            # The last parts reach beyond the parameter, or lie beyond it altogether.
            length = min(length, parameter.ds_numel - start)
            return Place(self._flats[group], offset, start, length) if length > 0 else None
        held = parameter._hp_mapping
        if held is None:
            return None
        part, whole = held.hp_fragment_address, held.lp_fragment_address
        return Place(self._flats[held.param_group_index], part.start, whole.start, part.numel)

    def _whole(self, parameter: Any, place: Place | None, flat: Tensor | None) -> Tensor:
        shape = parameter.ds_shape if self._stage == 3 else parameter.shape
        if self._stage == 0 and flat is not None:
            return flat.detach().reshape(shape)
        whole = torch.zeros(shape.numel(), dtype=torch.float32, device=self._device)
        if place is not None and flat is not None:
            own = flat.detach().flatten().narrow(0, place.offset, place.length)
            whole[place.start : place.start + place.length] = own.to(self._device)
        # Each element comes from one rank. Added as integers it keeps its bits: −0.0 + 0.0 would be 0.0.
        dist.all_reduce(whole.view(torch.int32))
        return whole.reshape(shape)


def gathered(parameters: list[Any], *, writes: bool = False) -> Any:
    """A context in which the parameters are whole on every rank; `writes`: rank 0's values hold afterwards."""
    import deepspeed  # noqa: PLC0415

    return deepspeed.zero.GatheredParameters(parameters, modifier_rank=0 if writes else None)


def _whole_masters(engine: Any) -> dict[Any, Tensor]:
    """Stage 0: each parameter's own master, which in float32 is the parameter."""
    if not hasattr(engine.optimizer, "fp32_groups"):
        return {parameter: parameter for parameter in _optimized(engine.optimizer)}
    groups = zip(engine.optimizer.fp16_groups, engine.optimizer.fp32_groups, strict=True)
    return {low: high for lows, highs in groups for low, high in zip(lows, highs, strict=True)}


def _optimized(optimizer: Any) -> Iterator[Any]:
    for group in optimizer.param_groups:
        yield from group["params"]


def _write(place: Place, flat: Tensor, values: Tensor) -> None:
    own = values.flatten()[place.start : place.start + place.length]
    flat.detach().flatten().narrow(0, place.offset, place.length).copy_(own)
