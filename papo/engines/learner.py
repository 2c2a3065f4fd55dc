"""The policy with its optimizer: a DeepSpeed engine from one CPU process upwards, stepped by hand.

The loss that comes in is already divided by the one divisor of its optimization batch, so neither micro-batches nor
ranks may scale it again; nothing non-finite gets as far as the weights.
"""

import gc
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from papo.engines import checkpoint, distributed, models
from papo.engines.fingerprint import sorted_sha256, tensors_sha256
from papo.engines.models import LoadedModel
from papo.engines.parts import MOMENTS, Parts, gathered
from papo.engines.protocol import EngineSettings, Fingerprint, OptimizerSettings
from papo.engines.schedule import learning_rate
from papo.errors import EngineError


class Learner:
    """A policy that takes optimizer steps. Every method is called on all ranks alike."""

    def __init__(self, model: LoadedModel, settings: EngineSettings, device: torch.device) -> None:
        self.model = model
        self.device = device
        self.optimizer_steps = 0
        """Steps applied; those that were skipped do not count."""
        self._stage = settings.zero_stage
        self._ranks = settings.ranks
        deepspeed = distributed.join(device)
        model.module.to(device)
        optimizer = torch.optim.AdamW(_parameter_groups(model.module, settings.optimizer), lr=0.0)
        self.engine, self._optimizer, _, _ = deepspeed.initialize(
            model=model.module, optimizer=optimizer, config=_deepspeed_config(settings)
        )
        self._parts = Parts(self.engine, stage=self._stage, device=device)
        self._has_masters = settings.dtype != "float32"
        # Dropout stays off: with it, equal weights would not have ratio 1.
        self.engine.eval()

    def backward(self, loss: Tensor, *, last: bool) -> None:
        """Add the gradient of `loss` to that of the step under way; `last` marks its last micro-batch on every rank."""
        self.engine.set_gradient_accumulation_boundary(last)
        # DeepSpeed takes the mean over ranks, where our divisor already knows the rows of all of them.
        self.engine.backward(loss * self._ranks, scale_wrt_gas=False)

    def step(self, settings: OptimizerSettings, *, finite: bool) -> tuple[float, bool]:
        """Apply the gathered gradient: (its norm before clipping, whether it was applied).

        A step whose loss (`finite`) or gradient is not finite leaves weights, moments and the step count as they are.
        """
        norm = self._gradient_norm()
        if not finite or not np.isfinite(norm):
            self._drop_gradients()
            return norm, False
        rate = learning_rate(settings, step=self.optimizer_steps)
        for group in self._optimizer.param_groups:
            group["lr"] = rate
            group["betas"] = settings.betas
            group["eps"] = settings.eps
            group["weight_decay"] = settings.weight_decay if group["decays"] else 0.0
        self._set_clipping(settings.max_grad_norm, norm)
        self.engine.set_gradient_accumulation_boundary(True)
        self.engine.step()
        self.optimizer_steps += 1
        return norm, True

    def fingerprint(self) -> Fingerprint:
        """Hashes of what is held now: parameters and buffers, and the optimizer's masters and moments apart.

        They are of whole tensors, so that they are the same at any number of ranks.
        """
        policy = sorted_sha256(self._whole_tensors())
        optimizer = sorted_sha256(self._moments())
        return Fingerprint(policy_sha256=policy, optimizer_sha256=optimizer, optimizer_steps=self.optimizer_steps)

    def save(self, folder: Path) -> None:
        """Write weights, moments, random states and the step count, to be loaded by any number of ranks."""
        frozen = self._frozen_sha256()
        card = {"optimizer_steps": self.optimizer_steps, "ranks": self._ranks, "zero_stage": self._stage}
        checkpoint.save(self._parts, folder, card=card | {"frozen_sha256": frozen})

    def load(self, folder: Path) -> None:
        """Take over what `save` wrote. Raises EngineError when the folder holds no checkpoint of this model."""
        card = checkpoint.read_card(folder)
        frozen = self._frozen_sha256()
        if card["frozen_sha256"] != frozen:
            raise EngineError(
                f"{folder} was made on base weights that hash to {str(card['frozen_sha256'])[:16]}…; those that are"
                f" loaded hash to {str(frozen)[:16]}…. Restore the base model's folder as it was."
            )
        checkpoint.load(self._parts, folder, card)
        self.optimizer_steps = card["optimizer_steps"]

    def export(self, folder: Path) -> None:
        """Write the weights as a Hugging Face folder with the tokenizer and decoding defaults they came with."""
        module = self.engine.module
        with self.whole_parameters():
            if dist.get_rank() == 0:
                module.generation_config, neutral = self.model.generation_config, module.generation_config
                try:
                    models.write(module, self.model.tokenizer, folder)
                finally:
                    module.generation_config = neutral
        dist.barrier()

    def close(self) -> None:
        """Let go of the memory: DeepSpeed's hooks hold the module in a cycle."""
        self.engine.destroy()
        gc.collect()

    def whole_parameters(self) -> AbstractContextManager[Any]:
        """A context in which the module can be used as any module, also where ZeRO 3 keeps only parts of it."""
        if self._stage < 3:
            return nullcontext()
        return gathered(list(self.engine.module.parameters()))

    def _gradient_norm(self) -> float:
        """L2 norm of the whole gradient, before it is used: DeepSpeed tells it only after the step."""
        return float(torch.nn.utils.get_total_norm([gradient.float() for gradient in self._gradients()]))

    def _gradients(self) -> Iterator[Tensor]:
        from deepspeed.utils import safe_get_full_grad  # noqa: PLC0415

        for parameter in self.engine.module.parameters():
            gradient = parameter.grad if self._stage == 0 else safe_get_full_grad(parameter)
            if gradient is not None:
                yield gradient

    def _set_clipping(self, limit: float | None, norm: float) -> None:
        if self._stage or hasattr(self._optimizer, "clip_grad"):
            self._optimizer.clip_grad = limit or 0.0
        elif limit is not None:
            parameters = list(self.engine.module.parameters())
            torch.nn.utils.clip_grads_with_norm_(parameters, limit, torch.tensor(norm))

    def _drop_gradients(self) -> None:
        self._optimizer.zero_grad()
        for parameter in self.engine.module.parameters():
            parameter.grad = None
        if self._stage in (1, 2):
            # What the partitions have summed up lies apart from the parameters. DeepSpeed does the same when it finds
            # an overflow by itself, which it looks for in half precision only.
            self._optimizer._release_preflattened_grad_buffers()
            for held in (self._optimizer.averaged_gradients, self._optimizer.all_grad_tensors):
                held.update(dict.fromkeys(held))
            self._optimizer.micro_step_id = -1
        elif self._stage == 3:
            self._optimizer._overflow_clean_up(1.0)
            self._optimizer.micro_step_id = 0

    def _whole_tensors(self) -> Iterator[tuple[str, Tensor]]:
        """Parameters and buffers in the order of their names, each gathered while it is looked at."""
        for name, tensor in sorted(_named_tensors(self.engine.module), key=lambda pair: pair[0]):
            with gathered([tensor]) if self._stage == 3 else nullcontext():
                yield name, tensor

    def _moments(self) -> Iterator[tuple[str, Tensor]]:
        """In the order of their names."""
        for name, parameter in sorted(self._parts.parameters.items()):
            if self._parts.has_moments(parameter):
                for key in MOMENTS:
                    yield f"{name}/{key}", self._parts.moment(parameter, key)
            if self._has_masters:
                yield f"{name}/master", self._parts.master(parameter)
            if self._parts.has_moments(parameter):
                yield f"{name}/step", self._parts.steps(parameter)

    def _frozen_sha256(self) -> str | None:
        """Of the parameters that are not trained; None where there are none."""
        frozen = [name for name, parameter in self.engine.module.named_parameters() if not parameter.requires_grad]
        return sorted_sha256(pair for pair in self._whole_tensors() if pair[0] in frozen) if frozen else None


def _named_tensors(module: Any) -> Iterator[tuple[str, Tensor]]:
    # Buffers too: a rotary table that was cast to bfloat16 changes every log-prob under equal weights.
    yield from module.named_parameters()
    yield from module.named_buffers()


def module_fingerprint(module: Any) -> Fingerprint:
    """The fingerprint of a module without an optimizer."""
    return Fingerprint(
        policy_sha256=tensors_sha256(_named_tensors(module)), optimizer_sha256=tensors_sha256([]), optimizer_steps=0
    )


def _parameter_groups(module: Any, settings: OptimizerSettings) -> list[dict[str, Any]]:
    """Matrices decay, vectors (norms, biases) do not: the field's convention."""
    parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]
    groups = (
        {"params": [parameter for parameter in parameters if parameter.dim() >= 2], "decays": True},
        {"params": [parameter for parameter in parameters if parameter.dim() < 2], "decays": False},
    )
    return [group | {"betas": settings.betas, "eps": settings.eps} for group in groups if group["params"]]


def _deepspeed_config(settings: EngineSettings) -> dict[str, Any]:
    return {
        "train_micro_batch_size_per_gpu": settings.micro_batch_size,
        "gradient_accumulation_steps": 1,
        "zero_optimization": {"stage": settings.zero_stage, "stage3_gather_16bit_weights_on_model_save": True},
        "bf16": {"enabled": settings.dtype == "bfloat16"},
        "zero_allow_untested_optimizer": True,
        "steps_per_print": None,
    }
