"""The policy with its optimizer: a DeepSpeed engine from one CPU process upwards, stepped by hand.

The loss that comes in is already divided by the one divisor of its optimization batch, so neither micro-batches nor
ranks may scale it again; nothing non-finite gets as far as the weights.
"""

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from papo.engines import adapter, checkpoint, distributed, memory, models
from papo.engines.batching import position_limits
from papo.engines.deepspeed_engine import initialized
from papo.engines.fingerprint import sorted_sha256, tensors_sha256
from papo.engines.models import LoadedModel
from papo.engines.parts import MOMENTS, Parts, gathered
from papo.engines.requests import Fingerprint
from papo.engines.schedule import learning_rate
from papo.engines.settings import EngineSettings, OptimizerSettings
from papo.errors import EngineError


class Learner:
    """A policy that takes optimizer steps. Every method is called on all ranks alike."""

    def __init__(self, model: LoadedModel, settings: EngineSettings, device: torch.device) -> None:
        self.model = model
        self.device = device
        self.optimizer_steps = 0
        """Steps applied; those that were skipped do not count."""
        self.micro_batch_size = settings.micro_batch_size
        """Rows in one forward and backward."""
        self._settings = settings
        self._stage = settings.zero_stage
        self._ranks = settings.ranks
        if settings.activation_checkpointing:
            memory.recompute_activations(model.module)
        model.module.to(device)
        self.engine, self._optimizer = initialized(model.module, settings, device)
        self._parts = Parts(self.engine, stage=self._stage, device=device)
        # Dropout stays off: with it, equal weights would not have ratio 1.
        self.engine.eval()

    @cached_property
    def position_limits(self) -> tuple[int, ...]:
        """What rows may not be padded across."""
        return position_limits(self.engine)

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
            self.discard()
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

    def discard(self) -> None:
        """Drop the gathered gradient without a step: weights, moments and the step count stay as they are."""
        self._drop_gradients()

    @property
    def is_whole(self) -> bool:
        """Whether micro-batches have as many rows as the settings say."""
        return self.micro_batch_size == self._settings.micro_batch_size

    @property
    def can_shrink(self) -> bool:
        """Whether half a gradient can be dropped: ranks and ZeRO stages have parts of it on their way to others."""
        return self._ranks == 1 and self._stage == 0 and self.micro_batch_size > 1

    def shrink(self) -> None:
        """Drop what was gathered, and take half as many rows from now on."""
        self.discard()
        memory.free()
        self.micro_batch_size //= 2

    def fingerprint(self) -> Fingerprint:
        """Hashes of what is held now: parameters and buffers, and the optimizer's masters and moments apart.

        They are of whole tensors, so that they are the same at any number of ranks.
        """
        policy = sorted_sha256(self._whole_tensors())
        optimizer = sorted_sha256(self._moments())
        return Fingerprint(policy_sha256=policy, optimizer_sha256=optimizer, optimizer_steps=self.optimizer_steps)

    def save(self, folder: Path) -> None:
        """Write weights, moments, random states and the step count, to be loaded by any number of ranks."""
        card = {"optimizer_steps": self.optimizer_steps, "ranks": self._ranks, "zero_stage": self._stage}
        checkpoint.save(self._parts, folder, card=card | {"base_sha256": self.base_sha256})

    def load(self, folder: Path) -> None:
        """Take over what `save` wrote. Raises EngineError when the folder holds no checkpoint of this model."""
        card = checkpoint.read_card(folder)
        if card["base_sha256"] != self.base_sha256:
            raise EngineError(
                f"{folder} is of an adapter on weights that hash to {str(card['base_sha256'])[:16]}…; those that are"
                f" loaded hash to {str(self.base_sha256)[:16]}…. Restore the base model's folder as it was."
            )
        checkpoint.load(self._parts, folder, card)
        self.optimizer_steps = card["optimizer_steps"]

    def export(self, folder: Path) -> None:
        """Write the weights, an adapter merged into them, as a Hugging Face folder with their tokenizer."""
        whole = self._stage < 3 and not adapter.is_on(self.engine.module)
        state = None if whole else self._merged()
        distributed.first_does(lambda: models.write(self.engine.module, self.model, folder, state=state))

    def export_adapter(self, folder: Path) -> None:
        """Write the adapter alone, as peft loads it. Raises EngineError where there is none."""
        lora = self._settings.lora
        if lora is None or not adapter.is_on(self.engine.module):
            raise EngineError("the policy has no adapter: it is trained whole. Export it without --adapter.")
        state = {name: self._parts.master(parameter).cpu() for name, parameter in self._parts.parameters.items()}
        base = getattr(self.engine.module.config, "_name_or_path", "")
        distributed.first_does(lambda: adapter.write(state, lora, folder, base=base))

    def is_on_base(self, folder: Path) -> bool:
        """Whether the frozen weights under an adapter are those of a model folder."""
        if not adapter.is_on(self.engine.module):
            return False
        stored, tensors = models.stored_in(folder), adapter.plain(self.engine.module)
        if tensors.keys() <= stored.keys():
            return all(self._is_stored(tensors[name].base, _stored(stored, name)) for name in sorted(tensors))
        # The architecture's files have other names, and cut tensors in other ways.
        named = models.in_files(self.engine.module, dict(self._base_tensors(with_buffers=False)))
        if not named.keys() <= stored.keys():
            return False
        return all(torch.equal(tensor.cpu(), _stored(stored, name).to(tensor.dtype)) for name, tensor in named.items())

    @cached_property
    def base_sha256(self) -> str | None:
        """Of the parameters that are not trained; None where there are none."""
        frozen = {name for name, parameter in self.engine.module.named_parameters() if not parameter.requires_grad}
        return sorted_sha256(pair for pair in self._whole_tensors() if pair[0] in frozen) if frozen else None

    def base_fingerprint(self) -> Fingerprint:
        """What `module_fingerprint` says of the model without its adapter."""
        policy = tensors_sha256(self._base_tensors())
        return Fingerprint(policy_sha256=policy, optimizer_sha256=tensors_sha256([]), optimizer_steps=0)

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
            with self._gathered([tensor]):
                yield name, tensor

    def _moments(self) -> Iterator[tuple[str, Tensor]]:
        """In the order of their names."""
        for name, parameter in sorted(self._parts.parameters.items()):
            if self._parts.has_moments(parameter):
                for key in MOMENTS:
                    yield f"{name}/{key}", self._parts.moment(parameter, key)
            if self._settings.dtype != "float32":
                yield f"{name}/master", self._parts.master(parameter)
            if self._parts.has_moments(parameter):
                yield f"{name}/step", self._parts.steps(parameter)

    def _gathered(self, parameters: Sequence[Tensor]) -> AbstractContextManager[Any]:
        return gathered(list(parameters)) if self._stage == 3 else nullcontext()

    def _merged(self) -> dict[str, Tensor]:
        """What an export holds, on rank 0; each tensor is whole only while it is copied."""
        module, first = self.engine.module, dist.get_rank() == 0
        state: dict[str, Tensor] = {}
        for name, tensors in adapter.plain(module).items():
            with self._gathered(tensors.parameters):
                if first:
                    state[name] = tensors.merged().to("cpu", copy=self._stage == 3)
        return state | {name: buffer.cpu() for name, buffer in self._parts.buffers().items() if first}

    def _is_stored(self, tensor: Tensor, stored: Tensor) -> bool:
        with self._gathered([tensor]):
            return torch.equal(tensor.cpu(), stored.to(tensor.dtype))

    def _base_tensors(self, *, with_buffers: bool = True) -> Iterator[tuple[str, Tensor]]:
        for name, tensors in adapter.plain(self.engine.module).items():
            with self._gathered([tensors.base]):
                yield name, tensors.base.detach().to("cpu", copy=self._stage == 3)
        if with_buffers:
            yield from _buffers_at_rest(self.engine.module)


def _stored(files: Mapping[str, Any], name: str) -> Tensor:
    return files[name].get_tensor(name)


def _named_tensors(module: Any) -> Iterator[tuple[str, Tensor]]:
    # Buffers too: a rotary table that was cast to bfloat16 changes every log-prob under equal weights.
    yield from module.named_parameters()
    yield from _buffers_at_rest(module)


def _buffers_at_rest(module: Any) -> Iterator[tuple[str, Tensor]]:
    """LongRoPE and dynamic scaling set a module's frequencies anew in each pass, from its length: what they hold is a
    trace of the last pass, and what they are set from is the state."""
    for name, buffer in module.named_buffers():
        path, _, leaf = name.rpartition(".")
        owner, layer = module.get_submodule(path), leaf.removesuffix("inv_freq")
        kinds: Any = getattr(owner, "rope_type", None)
        kind = kinds.get(layer.removesuffix("_")) if isinstance(kinds, Mapping) else kinds
        if leaf.endswith("inv_freq") and kind in ("longrope", "dynamic"):
            # Of what it is set from, the same again.
            yield name, getattr(owner, f"{layer}original_inv_freq", buffer)
        else:
            yield name, buffer


def module_fingerprint(module: Any) -> Fingerprint:
    """The fingerprint of a module without an optimizer."""
    return Fingerprint(
        policy_sha256=tensors_sha256(_named_tensors(module)), optimizer_sha256=tensors_sha256([]), optimizer_steps=0
    )
