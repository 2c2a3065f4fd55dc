"""The process group of the ranks, one or many, with DeepSpeed told to compile nothing on the way."""

import os
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import HashStore

from papo.errors import EngineError
from papo.losses.objective import merge_sums


def use_device(device: str, *, local_rank: int) -> torch.device:
    """The device of this rank. `device` is auto, cpu or cuda."""
    if device == "cpu" or (device == "auto" and not torch.cuda.is_available()):
        return torch.device("cpu")
    torch.cuda.set_device(local_rank)
    return torch.device("cuda", local_rank)


def use_determinism(device: torch.device) -> None:
    """Ask torch for the same bits at each run. An operation that has none raises on CPU, warns on CUDA."""
    torch.use_deterministic_algorithms(True, warn_only=device.type == "cuda")
    torch.backends.cudnn.benchmark = False


def join(device: torch.device) -> Any:
    """Initialise the group if it is not yet, and return the deepspeed module.

    One rank needs no port and no network: its store is in memory.
    """
    import deepspeed  # noqa: PLC0415  # takes seconds, and only the first open needs it

    # DeepSpeed would compile a shared-memory operator here, for a minute; a run killed meanwhile leaves a lock at
    # which every later run hangs. An empty table of compatible operators also spares the probing of compilers.
    deepspeed.ops.__dict__["__compatible_ops__"] = {}
    if not dist.is_initialized():
        backend = "nccl" if device.type == "cuda" else "gloo"
        if os.environ["WORLD_SIZE"] == "1":
            dist.init_process_group(backend, store=HashStore(), rank=0, world_size=1)
        deepspeed.init_distributed(backend, auto_mpi_discovery=False, verbose=False)
    return deepspeed


def total(sums: Mapping[str, float], device: torch.device) -> dict[str, float]:
    """`merge_sums` over all ranks; every rank gets the same numbers."""
    if dist.get_world_size() == 1:
        return dict(sums)
    parts: list[dict[str, float]] = [{} for _ in range(dist.get_world_size())]
    dist.all_gather_object(parts, dict(sums))
    return merge_sums(parts)


def first_does(work: Callable[[], None]) -> None:
    """Let rank 0 do what only one may, while the others wait; its failure is everyone's."""
    failure: Exception | None = None
    if dist.get_rank() == 0:
        try:
            work()
        except Exception as error:
            failure = error
    agree(failure)


def agree(failure: Exception | None) -> None:
    """Raise on every rank where rank 0 has failed: the others would wait for it for ever."""
    said = [None if failure is None else f"rank 0 failed with {type(failure).__name__}: {failure}"]
    if dist.get_world_size() > 1:
        dist.broadcast_object_list(said, src=0)
    if failure is not None:
        raise failure
    if said[0] is not None:
        raise EngineError(said[0])
