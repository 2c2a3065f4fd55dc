"""One optimizer step by real ranks that writes the gradient it takes: `python -m tests.engines.gradients ASKED`.

Started by `tests.engines.test_ranks`, once for all ZeRO stages, as importing DeepSpeed is most of the time.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from papo.engines.group import free_port, rank_environment
from papo.engines.messages import from_json, to_json
from papo.engines.requests import Update
from papo.engines.settings import EngineSettings

Gradient = dict[str, Any]
"""Tensors by the name of their parameter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The first step of each update on the weights of `model`, under each of the settings."""

    model: str
    updates: tuple[Update, ...]
    settings: tuple[EngineSettings, ...]
    deal: int | None = None
    """One rank computes the micro-batches that this many ranks would have, one after the other."""
    out_of_memory_at: int | None = None
    """The micro-batch, counted from 0, whose backward pass runs out of memory."""
    output: str
    """Folder for UPDATE-SETTINGS.safetensors."""


def take(asked: Asked, folder: Path) -> list[list[Gradient]]:
    """Run the ranks to their end; by update and settings, the gradient."""
    from safetensors.torch import load_file

    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "asked.json"
    path.write_text(json.dumps(to_json(Asked, asked)))
    port, ranks = str(free_port()), asked.settings[0].ranks
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.engines.gradients", str(path)],
            env=rank_environment(asked.settings[0], rank=rank, port=port, scratch=folder),
            cwd=Path(__file__).resolve().parents[2],
        )
        for rank in range(ranks)
    ]
    assert [process.wait(300) for process in processes] == [0] * ranks
    return [
        [load_file(Path(asked.output) / f"{update}-{number}.safetensors") for number in range(len(asked.settings))]
        for update in range(len(asked.updates))
    ]


def distance(gradient: Gradient, other: Gradient) -> float:
    """‖a − b‖ / ‖b‖ over all tensors, in double precision."""
    assert gradient.keys() == other.keys()
    squares = [((gradient[name].double() - other[name].double()) ** 2).sum() for name in other]
    whole = [(other[name].double() ** 2).sum() for name in other]
    return float((sum(squares) / sum(whole)) ** 0.5)


def main(path: str) -> None:
    import torch
    from safetensors.torch import save_file

    from papo.engines import adapter, distributed, models, update
    from papo.engines.learner import Learner

    asked: Asked = from_json(Asked, json.loads(Path(path).read_text()))
    rank = int(os.environ["RANK"])
    device = distributed.use_device("cpu", local_rank=rank)
    distributed.use_determinism(device)
    if asked.deal is not None:
        _deal(update, asked.deal)

    class Recording(Learner):
        taken: Gradient
        passes = 0

        def backward(self, *arguments: Any, **named: Any) -> None:
            super().backward(*arguments, **named)
            if self.passes == asked.out_of_memory_at:
                # After a part of the gradient is there: it must be dropped.
                self.passes += 1
                raise torch.OutOfMemoryError("planted")
            self.passes += 1

        def step(self, *arguments: Any, **named: Any) -> tuple[float, bool]:
            names = [name for name, parameter in self.engine.module.named_parameters() if parameter.requires_grad]
            self.taken = {
                name: gradient.clone().contiguous() for name, gradient in zip(names, self._gradients(), strict=True)
            }
            return super().step(*arguments, **named)

    Path(asked.output).mkdir(parents=True, exist_ok=True)
    for number, settings in enumerate(asked.settings):
        torch.set_num_threads(settings.threads)
        for index, request in enumerate(asked.updates):
            loaded = models.load(Path(asked.model), dtype=torch.float32, trust_remote_code=False)
            if settings.lora is not None:
                adapter.add(loaded.module, settings.lora)
            learner = Recording(loaded, settings, device)
            stats = update.train_policy(learner, request, settings=settings, rank=rank, tick=lambda done, total: None)
            if rank == 0:
                Path(asked.output, f"{index}-{number}.json").write_text(json.dumps(asdict(stats)))
                save_file(learner.taken, Path(asked.output) / f"{index}-{number}.safetensors")
            learner.close()


def _deal(update: Any, ranks: int) -> None:
    plan = update.plan

    def dealt(lengths: Sequence[int], *, micro_batch_size: int, **_: Any) -> list[list[Any]]:
        plans = plan(lengths, micro_batch_size=micro_batch_size, ranks=ranks)
        return [[batch for batches in plans for batch in batches if batch.counted]]

    update.plan = dealt


if __name__ == "__main__":
    main(sys.argv[1])
    # What gloo does at interpreter exit can wait for the other rank.
    os._exit(0)
