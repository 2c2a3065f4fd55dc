"""A vLLM worker extension (`--worker-extension-cls papo_vllm_worker.PapoWorker`): takes weights, says what it holds.

Its methods are called by `POST /collective_rpc` and return plain JSON values.
"""

import hashlib
from typing import Any

import torch

CHUNK = 1 << 22
"""Elements summed at a time: the 64-bit copy of a whole embedding would double its memory."""
MASK = (1 << 64) - 1


class PapoWorker:
    """Mixed into vLLM's worker class."""

    # vLLM's worker brings both.
    model_runner: Any
    reload_weights: Any

    def papo_load(self, folder: str, policy_sha256: str) -> dict[str, Any]:
        """Take over the weights of a Hugging Face folder in place. Until that has ended the version is unknown."""
        self._papo_policy = None
        self.reload_weights(weights_path=folder)
        pack_again(self.model_runner.get_model())
        self._papo_policy = policy_sha256
        return {"policy_sha256": policy_sha256}

    def papo_version(self) -> dict[str, Any]:
        """Which policy was loaded last; null before the first load and after one that failed."""
        return {"policy_sha256": getattr(self, "_papo_policy", None)}

    def papo_fingerprint(self) -> dict[str, Any]:
        """Sums over the bits of each parameter, and a hash of all buffers.

        vLLM fuses projections and pads vocabularies: a sum over elements sees neither (padding is 0). Where it packs
        a matrix for the CPU's kernels, the parameter is left empty and has no sum.
        """
        model = self.model_runner.get_model()
        named = [(name, parameter) for name, parameter in model.named_parameters() if parameter.numel()]
        digest = hashlib.sha256()
        for name, buffer in sorted(model.named_buffers()):
            digest.update(f"{name} {buffer.dtype} {tuple(buffer.shape)}".encode())
            digest.update(buffer.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
        return {
            "sums": {name: [str(number) for number in bit_sums(parameter)] for name, parameter in named},
            "elements": sum(parameter.numel() for _, parameter in named),
            "dtype": str(next(model.parameters()).dtype).removeprefix("torch."),
            "buffers": digest.hexdigest(),
        }


def pack_again(model: Any) -> None:
    """On a CPU, a head that is tied to the embedding goes on with matrices packed from the old weights: vLLM's reload
    sees no weight of its own in the files and skips it. The log-prob probe finds this if it is left out."""
    for module in model.modules():
        weight = getattr(module, "weight", None)
        if hasattr(module, "cpu_linear") and weight is not None and weight.numel():
            module.quant_method.process_weights_after_loading(module)


def bit_sums(tensor: torch.Tensor) -> tuple[int, int]:
    """(Σ b, Σ b·(b >> 5)) modulo 2^64, where b is an element's bits as a signed integer."""
    bits = tensor.detach().contiguous().reshape(-1).view({2: torch.int16, 4: torch.int32}[tensor.element_size()])
    first = second = 0
    for start in range(0, bits.numel(), CHUNK):
        part = bits[start : start + CHUNK].long()
        first += int(part.sum())
        second += int((part * (part >> 5)).sum())
    return first & MASK, second & MASK
