"""What weights hash to: sorted tensors by (name, dtype, shape, bytes), never files: their bytes vary."""

import hashlib
import json
from collections.abc import Iterable

import torch
from torch import Tensor


def tensors_sha256(tensors: Iterable[tuple[str, Tensor]]) -> str:
    """Hex digest of named tensors, in the order of their names. Equal digests mean equal bits."""
    return sorted_sha256(sorted(tensors, key=lambda pair: pair[0]))


def sorted_sha256(tensors: Iterable[tuple[str, Tensor]]) -> str:
    """`tensors_sha256` of tensors that come in the order of their names, one at a time."""
    digest = hashlib.sha256()
    for name, tensor in tensors:
        digest.update(json.dumps([name, str(tensor.dtype), list(tensor.shape)]).encode())
        flat = tensor.detach().cpu().contiguous().reshape(-1)
        digest.update(flat.view(torch.uint8).numpy().data if flat.numel() else b"")
    return digest.hexdigest()
