"""The worker extension with faults that a test can plant in a running server. Runs in vLLM's environment."""

from typing import Any

import torch
from papo_vllm_worker import PapoWorker  # pyright: ignore[reportMissingImports]  # on vLLM's path alone


class PlantedWorker(PapoWorker):  # pyright: ignore[reportUntypedBaseClass]  # for the same reason
    def plant_stale(self) -> dict[str, Any]:
        """From now on new weights are said to be taken over, but are not."""
        self.reload_weights = lambda weights_path: None
        return {}

    def plant_bf16(self) -> dict[str, Any]:
        """What `.to(torch.bfloat16)` does: weights and rotary tables lose their bits."""
        self._after_reload(self._cast)
        return {}

    def plant_matrix(self) -> dict[str, Any]:
        """After each load something changes that is packed away: only what comes out shows it."""
        self._after_reload(self._shift)
        return {}

    def plant_buffer(self) -> dict[str, Any]:
        """One number of the rotary table."""
        self._keep_buffers()
        table = next(iter(self._model.buffers()))
        table.data.view(-1)[-1] += 1e-3
        return {}

    def plant_nothing(self) -> dict[str, Any]:
        """Take out what the others planted."""
        self.__dict__.pop("reload_weights", None)
        self._model.model.norm.__dict__.pop("forward", None)
        for buffer, kept in zip(self._model.buffers(), self._keep_buffers(), strict=True):
            buffer.data.copy_(kept)
        return {}

    @property
    def _model(self) -> Any:
        return self.model_runner.get_model()

    def _after_reload(self, harm: Any) -> None:
        kept = self.reload_weights

        def reload_weights(weights_path: str) -> None:
            kept(weights_path=weights_path)
            harm()

        self.reload_weights = reload_weights

    def _cast(self) -> None:
        self._keep_buffers()
        for tensor in [*self._model.parameters(), *self._model.buffers()]:
            tensor.data.copy_(tensor.data.to(torch.bfloat16))

    def _shift(self) -> None:
        norm = self._model.model.norm
        forward = type(norm).forward
        norm.forward = lambda *args, **named: _scaled(forward(norm, *args, **named))

    def _keep_buffers(self) -> list[torch.Tensor]:
        if not hasattr(self, "_papo_buffers"):
            self._papo_buffers = [buffer.detach().clone() for buffer in self._model.buffers()]
        return self._papo_buffers


def _scaled(output: Any) -> Any:
    return tuple(part * 1.01 for part in output) if isinstance(output, tuple) else output * 1.01
