"""A module and an optimizer as a DeepSpeed engine: its whole configuration, and what we set apart from its defaults."""

from typing import Any

import torch

from papo.engines import distributed
from papo.engines.settings import EngineSettings, OptimizerSettings


def initialized(module: Any, settings: EngineSettings, device: torch.device) -> tuple[Any, Any]:
    """(engine, optimizer) for a module that is on `device`."""
    deepspeed = distributed.join(device)
    # On a CPU that steps for a GPU, one pass over masters and moments instead of ten.
    fused = settings.offload_optimizer or None
    optimizer = torch.optim.AdamW(_parameter_groups(module, settings.optimizer), lr=0.0, fused=fused)
    engine, wrapped, _, _ = deepspeed.initialize(model=module, optimizer=optimizer, config=_config(settings))
    return engine, wrapped


def _parameter_groups(module: Any, settings: OptimizerSettings) -> list[dict[str, Any]]:
    """Matrices decay, vectors (norms, biases) do not: the field's convention."""
    parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]
    groups = (
        {"params": [parameter for parameter in parameters if parameter.dim() >= 2], "decays": True},
        {"params": [parameter for parameter in parameters if parameter.dim() < 2], "decays": False},
    )
    return [group | {"betas": settings.betas, "eps": settings.eps} for group in groups if group["params"]]


def _config(settings: EngineSettings) -> dict[str, Any]:
    zero: dict[str, Any] = {"stage": settings.zero_stage}
    if settings.offload_optimizer:
        zero["offload_optimizer"] = {"device": "cpu", "pin_memory": torch.cuda.is_available()}
    return {
        "train_micro_batch_size_per_gpu": settings.micro_batch_size,
        "gradient_accumulation_steps": 1,
        "zero_optimization": zero,
        "bf16": {"enabled": settings.dtype == "bfloat16"},
        "zero_allow_untested_optimizer": True,
        # DeepSpeed's own Adam for the CPU is compiled at the first start; torch's fused one is there.
        "zero_force_ds_cpu_optimizer": False,
        "steps_per_print": None,
    }
