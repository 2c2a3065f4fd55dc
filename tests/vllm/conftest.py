"""A learner and two managed vLLM servers for all tests of this folder; skipped where vLLM's environment is absent."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from papo.engines.host import EngineHost
from papo.engines.requests import CreateModel, Generate, Open
from papo.engines.settings import TinyModel
from papo.engines.vllm_client import Ask, VllmLink
from papo.engines.vllm_generator import VllmGenerator, VllmSettings
from papo.engines.vllm_install import read_stamp
from papo.engines.vllm_server import SIDE, ServerSettings
from tests.engines import support

ENVIRONMENT = os.environ.get("PAPO_VLLM", "engines/vllm")
HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    absent = not read_stamp(ENVIRONMENT)
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.vllm)
            item.add_marker(pytest.mark.timeout(1500))
            if absent:
                reason = f"no vLLM environment in {ENVIRONMENT}: papo engines install-vllm makes it"
                item.add_marker(pytest.mark.skip(reason=reason))


@dataclass
class Bench:
    host: EngineHost
    generator: VllmGenerator
    model: Path
    prompts: Path
    folder: Path

    def request(self, name: str = "rollouts", **changes: Any) -> Generate:
        fields: dict[str, Any] = {
            "prompts": str(self.prompts),
            "rows": support.addresses(),
            "batch_rows": support.GROUPS * support.SAMPLES,
            "width": support.WIDTH,
            "max_completion_length": support.LONGEST,
            "temperature": 0.8,
            "policy_version": 0,
            "sampling_sha256": "settings",
            "output": str(self.folder / f"{name}.parquet"),
        }
        return Generate(**(fields | changes))

    def sample(self, name: str = "rollouts", **changes: Any) -> pl.DataFrame:
        request = self.request(name, **changes)
        self.generator.sync(self.host, request)
        self.generator.generate(self.host, request)
        return pl.read_parquet(request.output)

    def gap(self, frame: pl.DataFrame, temperature: float = 0.8) -> float:
        """Largest |log-prob of the sampler − of the learner|."""
        path, output = self.folder / "gap.parquet", self.folder / "scores.parquet"
        frame.write_parquet(path)
        scores = support.write_logprobs(self.host, self.prompts, path, output, temperature=temperature)
        apart = frame["sampler_logprobs"].explode() - scores["old_logprobs"].explode()
        return float(apart.abs().max())  # type: ignore[arg-type]  # polars types max() by the union of all dtypes

    def learn(self) -> None:
        """Another policy: one update on fresh rollouts of the learner's own."""
        rollouts, credit = self.folder / "own.parquet", self.folder / "credit.parquet"
        frame = support.sample(self.host, self.prompts, rollouts)
        support.write_advantages(frame, credit)
        self.host.update(support.update_request(self.prompts, rollouts, credit))

    def read(self, request: Generate) -> pl.DataFrame:
        return pl.read_parquet(request.output)

    def prompt_ids(self) -> list[tuple[int, ...]]:
        return [tuple(ids) for ids in pl.read_parquet(self.prompts)["prompt_ids"].to_list()]

    def ask(self, prompt: tuple[int, ...]) -> Ask:
        """A greedy request."""
        return Ask(prompt_ids=prompt, seed=0, temperature=0.0, max_tokens=support.LONGEST, end_ids=self.host.end_ids())

    def links(self) -> list[VllmLink]:
        return list(self.generator._pool.links)

    def plant(self, fault: str) -> None:
        for link in self.links():
            link._call(fault, {})


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    folder = tmp_path_factory.mktemp("vllm")
    host = support.new_host(folder)
    model = folder / "model"
    # vLLM has no attention kernel for heads of 16 on a CPU.
    host.create(CreateModel(model=TinyModel(hidden_size=64, heads=2, kv_heads=1), folder=str(model)))
    prompts = support.write_prompts(host, model, folder)
    server = ServerSettings(
        environment=ENVIRONMENT,
        dtype="float32",
        max_model_len=320,
        worker="planted_worker.PlantedWorker",
        python_path=os.pathsep.join([str(SIDE), str(HERE)]),
        sleeps=True,
    )
    generator = VllmGenerator(VllmSettings(server=server, num_servers=2), scratch=folder / "sync", logs=folder / "logs")
    yield Bench(host, generator, model, prompts, folder)
    generator.close()
    host.close()


@pytest.fixture
def opened(bench: Bench) -> Bench:
    """The bench with the first policy open and both servers in its hands."""
    bench.host.start()
    bench.host.open(Open(model=str(bench.model)))
    return bench
