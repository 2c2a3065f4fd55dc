"""A learner on disk: masters, moments, random states and the step count, in a form that knows no ranks.

    learner.json                 what the parts are of, and what is no tensor
    learner-00000.safetensors    parameter/NAME, exp_avg/NAME, exp_avg_sq/NAME, step/NAME, buffer/NAME

Cut at PART_BYTES. Whole tensors by parameter, so any number of ranks on any ZeRO stage goes on from it, and no pickle.
Parameters that are not trained (the base under an adapter) are kept by their hash alone.
"""

import json
import random
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
import torch.distributed as dist
from safetensors.torch import save_file
from torch import Tensor

from papo.engines import distributed, models
from papo.engines.model_folder import follow_umask
from papo.engines.parts import MOMENTS, Parts
from papo.errors import EngineError

CARD, PATTERN = "learner.json", "learner-*.safetensors"
PARAMETER = "parameter/"
FORMAT = 2
"""Of the folder; 1 was DeepSpeed's own, bound to the number of ranks."""
PART_BYTES = 2 << 30


def save(parts: Parts, folder: Path, *, card: dict[str, Any]) -> None:
    """Write what `parts` hold. `card`: what is saved with it. Raises on every rank where rank 0 cannot write."""
    writer = _Writer(folder)
    for name, parameter in parts.parameters.items():
        writer.add(f"{PARAMETER}{name}", parts.master(parameter))
        if parts.has_moments(parameter):
            for key in MOMENTS:
                writer.add(f"{key}/{name}", parts.moment(parameter, key))
            writer.add(f"step/{name}", parts.steps(parameter))
    for name, buffer in parts.buffers().items():
        writer.add(f"buffer/{name}", buffer)
    writer.end({"format": FORMAT, **card, "random": _random_states()})


def read_card(folder: Path) -> dict[str, Any]:
    """What `save` wrote beside the tensors. Raises EngineError when the folder holds no checkpoint."""
    path = folder / CARD
    if not path.is_file():
        raise EngineError(f"{folder} is no checkpoint of this engine: it has no {CARD}.")
    card = json.loads(path.read_text())
    if card["format"] != FORMAT:
        raise EngineError(
            f"{folder} is a checkpoint of format {card['format']}; this is format {FORMAT}. Go on with the papo that"
            " wrote it, or from an export, whose optimizer starts anew."
        )
    return card


def parameter_names(folder: Path) -> set[str]:
    """Of the parameters that a checkpoint holds."""
    found = models.stored_in(folder, PATTERN)
    return {name.removeprefix(PARAMETER) for name in found if name.startswith(PARAMETER)}


def load(parts: Parts, folder: Path, card: dict[str, Any]) -> None:
    """Take over what `save` wrote under `card`. Raises EngineError where it is of other parameters."""
    found = models.stored_in(folder, PATTERN)
    names = parameter_names(folder)
    other = sorted(names ^ parts.parameters.keys())
    if other:
        raise EngineError(
            f"{folder} is a checkpoint of another model: {other[0]} and {len(other) - 1} more parameters are trained in"
            " one of the two only. Open it with the model and the adapter settings that it was made with."
        )
    # Checkpoints from before they were kept have none: the architecture sets them.
    for name, buffer in parts.buffers().items():
        if f"buffer/{name}" in found:
            buffer.copy_(_read(found, f"buffer/{name}"))
    if card["optimizer_steps"]:
        parts.begin_moments(card["optimizer_steps"])
    for name, parameter in parts.parameters.items():
        parts.set_master(parameter, _read(found, f"{PARAMETER}{name}"))
        if f"step/{name}" in found:
            moments = {key: _read(found, f"{key}/{name}") for key in MOMENTS}
            parts.set_moments(parameter, moments, _read(found, f"step/{name}"))
    _set_random_states(card["random"])


class _Writer:
    """Rank 0's files. A failure is kept until the end, as the other ranks go on sending their parts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._writes = dist.get_rank() == 0
        self._held: dict[str, Tensor] = {}
        self._bytes = 0
        self._files = 0
        self._failure: Exception | None = None

    def add(self, name: str, tensor: Tensor) -> None:
        if not self._writes or self._failure is not None:
            return
        self._held[name] = tensor.detach().cpu().contiguous()
        self._bytes += tensor.numel() * tensor.element_size()
        if self._bytes >= PART_BYTES:
            self._flush()

    def end(self, card: dict[str, Any]) -> None:
        if self._writes and self._failure is None:
            self._flush()
        if self._writes and self._failure is None:
            try:
                (self._folder / CARD).write_text(json.dumps(card))
                follow_umask(self._folder, like=CARD)
            except OSError as error:
                self._failure = error
        distributed.agree(self._failure)

    def _flush(self) -> None:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            save_file(self._held, self._folder / f"learner-{self._files:05d}.safetensors")
        except Exception as error:  # whatever it is, the other ranks wait to be told
            self._failure = error
        self._held, self._bytes = {}, 0
        self._files += 1


def _read(found: dict[str, Any], name: str) -> Tensor:
    return found[name].get_tensor(name)


def _random_states() -> dict[str, Any]:
    version, numbers, normal = random.getstate()
    kind, keys, position, has_normal, cached = cast("tuple[Any, ...]", np.random.get_state())
    return {
        "python": [version, list(numbers), normal],
        "numpy": [kind, keys.tolist(), position, has_normal, cached],
        "torch": torch.get_rng_state().numpy().tobytes().hex(),
    }


def _set_random_states(states: dict[str, Any]) -> None:
    version, numbers, normal = states["python"]
    random.setstate((version, tuple(numbers), normal))
    kind, keys, position, has_normal, cached = states["numpy"]
    np.random.set_state((kind, np.array(keys, dtype=np.uint32), position, has_normal, cached))
    torch.set_rng_state(torch.frombuffer(bytearray.fromhex(states["torch"]), dtype=torch.uint8))
