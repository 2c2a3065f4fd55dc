"""Low-rank adapters on a frozen base: added in place, switched off to get the base back, merged for an export.

The layers are replaced inside the model, so that it keeps its class, its signature and its way to generate.
"""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor
from transformers.pytorch_utils import Conv1D

from papo.engines.model_folder import follow_umask
from papo.engines.settings import LoraSettings
from papo.errors import EngineError

NAME = "default"
BASE, LOW_RANK = ".base_layer.", ".lora_"


@dataclass(frozen=True, slots=True)
class Tensors:
    """What one tensor of the merged model is made of: itself alone, or with the two matrices of its adapter."""

    base: Any
    down: Any = None
    up: Any = None
    scaling: float = 0.0
    is_transposed: bool = False
    """Whether the base has its inputs along the first axis, as in GPT-2."""

    @property
    def parameters(self) -> list[Any]:
        return [tensor for tensor in (self.base, self.down, self.up) if tensor is not None]

    def merged(self) -> Tensor:
        """base + scaling · up · down, added in float32 and rounded once."""
        if self.down is None:
            return self.base.detach()
        added = self.scaling * (self.up.detach().float() @ self.down.detach().float())
        added = added.T if self.is_transposed else added
        return (self.base.detach().float() + added).to(self.base.dtype)


def add(module: Any, settings: LoraSettings) -> None:
    """Freeze `module` and put adapters into its linear layers; they change nothing until the first step (B is 0).

    Raises EngineError where `target_modules` name no linear layer of the model.
    """
    from peft import inject_adapter_in_model  # noqa: PLC0415  # takes seconds

    targets = _linear_layers(module) if settings.target_modules == "all-linear" else list(settings.target_modules)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        try:
            inject_adapter_in_model(_config(settings, targets), module, NAME)
        except ValueError as error:
            raise EngineError(
                f"model.lora.target_modules {settings.target_modules!r} fit no layer of the model ({error}). Give names"
                " that its linear layers end with, such as q_proj, or all-linear."
            ) from None
    for name, layer in _layers(module).items():
        if not isinstance(layer.get_base_layer(), torch.nn.Linear | Conv1D):
            raise EngineError(
                f"model.lora.target_modules {settings.target_modules!r} name {name}, which is no linear layer: only"
                " those can be merged for an export here. Leave it out."
            )
    # New layers are in training mode.
    module.eval()


def is_on(module: Any) -> bool:
    """Whether the model has adapters."""
    return any(LOW_RANK in name for name, _ in module.named_parameters())


@contextmanager
def off(module: Any) -> Generator[None]:
    """The base as it was before `add`."""
    layers = list(_layers(module).values())
    for layer in layers:
        # Its own switch also sets requires_grad, on which the optimizer's hooks rely.
        layer._disable_adapters = True
    try:
        yield
    finally:
        for layer in layers:
            layer._disable_adapters = False


def plain(module: Any) -> dict[str, Tensors]:
    """The tensors of the model without adapter layers, by the names that they have there."""
    layers = _layers(module)
    found: dict[str, Tensors] = {}
    for name, parameter in module.named_parameters():
        owner, is_base, _ = name.partition(BASE)
        if LOW_RANK in name:
            continue
        if not is_base or not name.endswith(".weight"):
            found[name.replace(BASE, ".")] = Tensors(parameter)
            continue
        layer = layers[owner]
        down, up = layer.lora_A[NAME].weight, layer.lora_B[NAME].weight
        is_transposed = isinstance(layer.get_base_layer(), Conv1D)
        found[name.replace(BASE, ".")] = Tensors(parameter, down, up, layer.scaling[NAME], is_transposed)
    return found


def write(state: dict[str, Tensor], settings: LoraSettings, folder: Path, *, base: str) -> None:
    """Save the adapter alone, as peft loads it. `state`: its tensors by their names in the model."""
    adapted = {name.partition(LOW_RANK)[0].rpartition(".")[2] for name in state}
    config = _config(settings, sorted(adapted))
    config.base_model_name_or_path = base
    config.inference_mode = True
    config.save_pretrained(folder)
    named = {f"base_model.model.{name.replace(f'.{NAME}.', '.')}": tensor for name, tensor in state.items()}
    save_file(named, folder / "adapter_model.safetensors", metadata={"format": "pt"})
    follow_umask(folder, like="adapter_config.json")


def _layers(module: Any) -> dict[str, Any]:
    from peft.tuners.lora import LoraLayer  # noqa: PLC0415

    return {name: layer for name, layer in module.named_modules() if isinstance(layer, LoraLayer)}


def _linear_layers(module: Any) -> list[str]:
    """What the names of its linear layers end with, the head's left out. peft's own all-linear adapts routers too."""
    head = module.get_output_embeddings()
    layers = {name: layer for name, layer in module.named_modules() if layer is not head}
    return sorted(
        {name.rpartition(".")[2] for name, layer in layers.items() if isinstance(layer, torch.nn.Linear | Conv1D)}
    )


def _config(settings: LoraSettings, targets: list[str]) -> Any:
    from peft import LoraConfig, TaskType  # noqa: PLC0415

    return LoraConfig(
        task_type=TaskType.CAUSAL_LM,
        r=settings.rank,
        lora_alpha=settings.alpha,  # pyright: ignore[reportArgumentType]  # peft divides; a float is as good
        lora_dropout=0.0,
        target_modules=targets,
    )
