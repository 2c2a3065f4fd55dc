from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from papo.engines.host import EngineHost
from papo.engines.requests import CreateModel, Open
from papo.engines.settings import TinyModel
from tests.engines import support


@dataclass(frozen=True)
class Bench:
    """One engine for many tests, with a tiny model and its prompts. Each test opens what it needs."""

    host: EngineHost
    model: Path
    prompts: Path

    def open(self) -> None:
        self.host.start()
        self.host.open(Open(model=str(self.model)))


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    folder = tmp_path_factory.mktemp("bench")
    host = support.new_host(folder)
    model = folder / "model"
    host.create(CreateModel(model=TinyModel(hidden_size=32, heads=2, kv_heads=1), folder=str(model)))
    prompts = support.write_prompts(host, model, folder)
    yield Bench(host, model, prompts)
    host.close()
