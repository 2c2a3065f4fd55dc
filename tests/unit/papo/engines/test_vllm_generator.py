"""The generator over fake servers and a scripted learner: order of calls, versions, what is noticed after a sync."""

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from papo.engines.requests import Decode, Fingerprint, Generate, Logprobs, RowAddress
from papo.engines.vllm_generator import VllmGenerator, VllmSettings
from papo.engines.vllm_probe import check_fingerprint
from papo.engines.vllm_server import ServerSettings
from papo.engines.weight_transport import bit_sums, folder_sha256
from papo.errors import EngineError, GeneratorDied
from tests.unit.papo.engines.fake_vllm import END, FakeServer

WEIGHTS = {"model.embed": np.array([1.5, -2.25, 0.0], np.float32), "model.norm": np.array([3.0], np.float32)}


def write_safetensors(path: Path, tensors: dict[str, np.ndarray[Any, Any]]) -> None:
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    data = b""
    for name, values in tensors.items():
        header[name] = {
            "dtype": "F32",
            "shape": list(values.shape),
            "data_offsets": [len(data), len(data) + values.nbytes],
        }
        data += values.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


class Learner:
    """What a generator asks of an engine. Weights are a version number that is added to every tensor."""

    def __init__(self) -> None:
        self.version = 0
        self.exports: list[str] = []
        self.scored = -0.5
        self.environment: dict[str, str] = {}

    @property
    def held(self) -> Fingerprint:
        return Fingerprint(policy_sha256=f"policy-{self.version}", optimizer_sha256="", optimizer_steps=0)

    @property
    def tensors(self) -> dict[str, np.ndarray[Any, Any]]:
        return {name: values + self.version for name, values in WEIGHTS.items()}

    def export(self, folder: str) -> None:
        self.exports.append(Path(folder).name)
        write_safetensors(Path(folder) / "model.safetensors", self.tensors)

    def end_ids(self) -> tuple[int, ...]:
        return (END,)

    def logprobs(self, request: Logprobs, progress: Any = None) -> None:
        frame = pl.read_parquet(request.rollouts)
        scores = [[self.scored] * len(ids) for ids in frame["token_ids"]]
        frame.with_columns(pl.Series("old_logprobs", scores, dtype=pl.List(pl.Float32))).write_parquet(request.output)

    def decode(self, request: Decode) -> None:
        pl.read_parquet(request.sampled).write_parquet(request.request.output)

    def __getattr__(self, name: str) -> Any:
        return lambda *_: pytest.fail(f"the generator has no business with {name}")


class World:
    def __init__(self, folder: Path, count: int = 2, **settings: Any) -> None:
        self.folder = folder
        self.learner: Any = Learner()
        self.servers = [FakeServer(url=f"http://127.0.0.1:{number + 1}") for number in range(count)]
        by_url = {server.url: server for server in self.servers}
        for server in self.servers:
            server.papo_load = self.loading(server)  # type: ignore[method-assign]  # as a server takes weights over
        server = ServerSettings(environment="", dtype="float32", max_model_len=320, sleeps=True)
        self.generator = VllmGenerator(
            VllmSettings(server=server, urls=tuple(by_url), **settings),
            scratch=folder / "sync",
            logs=folder / "logs",
            link=lambda url: by_url[url].link(),
        )
        ids = pl.Series("prompt_ids", [[5, 6], [7, 8]], dtype=pl.List(pl.Int32))
        pl.DataFrame({"group_id": [0, 1]}).with_columns(ids).write_parquet(folder / "prompts.parquet")

    def loading(self, server: FakeServer) -> Any:
        def load(folder: str, policy_sha256: str) -> dict[str, Any]:
            server.folder, server.held = folder, policy_sha256
            tensors = self.learner.tensors
            server.sums = {
                name: [str(number) for number in bit_sums(name, "F32", values.view(np.int32), dtype="float32")]
                for name, values in tensors.items()
            }
            server.elements = sum(values.size for values in tensors.values())
            return {"policy_sha256": policy_sha256}

        return load

    def request(self, **changes: Any) -> Generate:
        rows = tuple(RowAddress(group_id=index // 4, sample_index=index % 4, seed=index) for index in range(8))
        fields: dict[str, Any] = {
            "prompts": str(self.folder / "prompts.parquet"),
            "rows": rows,
            "batch_rows": 8,
            "width": 2,
            "max_completion_length": 8,
            "temperature": 1.0,
            "policy_version": 0,
            "sampling_sha256": "settings",
            "output": str(self.folder / "rollouts.parquet"),
        }
        return Generate(**(fields | changes))

    def sample(self, **changes: Any) -> pl.DataFrame:
        request = self.request(**changes)
        self.generator.sync(self.learner, request)
        self.notes = self.generator.generate(self.learner, request)
        return pl.read_parquet(request.output)

    def calls(self) -> list[list[str]]:
        return [[call for call in server.calls if call not in ("/health", "/v1/models")] for server in self.servers]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_bug_047_between_new_weights_and_the_next_row_the_cache_is_reset(world: World) -> None:
    world.sample()
    world.learner.version = 1
    for server in world.servers:
        server.calls.clear()

    world.sample()

    for calls in world.calls():
        before = calls[: calls.index("/v1/completions")]
        assert before.index("papo_load") < before.index("/reset_prefix_cache") < before.index("papo_fingerprint")
        assert calls.count("papo_load") == 1


def test_bug_048_the_first_shard_syncs_whatever_the_version_is_called(world: World) -> None:
    world.learner.version = 5

    world.sample()

    assert {server.held for server in world.servers} == {"policy-5"}


def test_bug_050_the_version_of_each_server_is_asked_before_each_shard(world: World) -> None:
    world.sample()
    world.servers[1].held = "policy-of-another-run"
    for server in world.servers:
        server.calls.clear()

    world.sample()

    assert [calls.count("papo_version") for calls in world.calls()] == [1, 1]
    assert [calls.count("papo_load") for calls in world.calls()] == [0, 1]
    assert world.servers[1].held == "policy-0"
    assert [note for note in world.notes if "held another policy" in note]


def test_equal_weights_are_not_synced_again(world: World) -> None:
    request = world.request()

    assert world.generator.sync(world.learner, request) is not None
    assert world.generator.sync(world.learner, request) is None
    assert world.learner.exports == ["a"]


def test_exports_take_turns_and_are_known_by_hash(world: World) -> None:
    for version in range(3):
        world.learner.version = version
        synced = world.generator.sync(world.learner, world.request())
        assert synced is not None
        assert synced.export_sha256 == folder_sha256(world.folder / "sync" / "aba"[version])

    assert world.learner.exports == ["a", "b", "a"]
    card = json.loads((world.folder / "sync" / "a" / "sync.json").read_text())
    assert card["policy_sha256"] == "policy-2"


@pytest.mark.parametrize("fault", ["stale", "cast", "buffer", "outputs"])
def test_weights_that_are_not_the_learners_are_caught_and_named(world: World, fault: str) -> None:
    world.sample()
    world.learner.version = 1
    server = world.servers[1]
    load = server.papo_load

    def faulty(folder: str, policy_sha256: str) -> dict[str, Any]:
        old = dict(server.sums)
        answer = load(folder, policy_sha256)
        match fault:
            case "stale":
                server.sums = old
            case "cast":
                server.sums["model.norm"] = ["1", "2"]
            case "buffer":
                server.buffers = "other tables"
            case _:
                server.shape = lambda choice: choice["logprobs"].update(
                    token_logprobs=[-0.6] * len(choice["token_ids"])
                )
        return answer

    server.papo_load = faulty  # type: ignore[method-assign]  # the fault

    with pytest.raises(EngineError, match="fails the") as caught:
        world.generator.sync(world.learner, world.request())

    assert server.url in str(caught.value)
    assert ("log-prob probe" if fault == "outputs" else "fingerprint") in str(caught.value)
    with pytest.raises(EngineError, match="no weights"):
        world.generator.generate(world.learner, world.request())


def test_fused_matrices_are_compared_by_their_total(tmp_path: Path) -> None:
    world = World(tmp_path, count=1)
    (server,) = world.servers

    def fused(folder: str, policy_sha256: str) -> dict[str, Any]:
        server.held = policy_sha256
        whole = np.concatenate([*world.learner.tensors.values(), np.zeros(3, np.float32)])
        sums = bit_sums("fused", "F32", whole.view(np.int32), dtype="float32")
        own = bit_sums("norm", "F32", world.learner.tensors["model.norm"].view(np.int32), dtype="float32")
        rest = [(total - part) % 2**64 for total, part in zip(sums, own, strict=True)]
        server.sums = {"fused": [str(number) for number in rest], "model.norm": [str(number) for number in own]}
        server.elements = 7
        return {}

    server.papo_load = fused  # type: ignore[method-assign]  # vLLM's way to hold them

    assert world.generator.sync(world.learner, world.request()) is not None

    server.elements, server.sums["fused"] = 7, ["1", "2"]
    export = world.generator._export
    assert export is not None
    with pytest.raises(EngineError, match="the sum of all parameters"):
        check_fingerprint(server.link(), export, {})


def test_a_server_that_dies_in_mid_shard_changes_no_row(world: World, tmp_path: Path) -> None:
    whole = world.sample()
    world.servers[0].dies_after = len(world.servers[0].asked) + 1

    survived = world.sample()

    assert survived.equals(whole)
    assert [note for note in world.notes if world.servers[0].url in note and "dropped" in note]


def test_bug_070_a_lost_row_is_left_out_and_named(world: World) -> None:
    whole = world.sample()
    for server in world.servers:
        server.silent_for = lambda body: body["seed"] == 5

    kept = world.sample()

    assert kept.rows() == [row for index, row in enumerate(whole.rows()) if index != 5]
    (note,) = world.notes
    assert note.startswith("row (group_id 1, sample_index 1) was asked for 2 times and not answered within 600 s")


def test_a_dropped_server_comes_back_with_the_next_policy(world: World) -> None:
    world.sample()
    world.servers[0].down = True
    world.sample()
    world.servers[0].down = False
    world.learner.version = 1

    synced = world.generator.sync(world.learner, world.request())

    assert synced is not None
    assert set(synced.servers) == {server.url for server in world.servers}


def test_all_servers_gone_is_the_generators_death_not_the_learners(world: World) -> None:
    world.sample()
    for server in world.servers:
        server.down = True

    with pytest.raises(GeneratorDied):
        world.sample()

    world.generator.close()
    for server in world.servers:
        server.down = False
    assert world.sample().height == 8


def test_servers_sleep_during_the_update_and_wake_before_the_next_shard(world: World) -> None:
    world.generator.rest()
    world.sample()
    world.generator.rest()
    world.generator.rest()
    world.sample()

    for calls in world.calls():
        assert calls.count("/sleep") == calls.count("/wake_up") == 1
        assert calls.index("/sleep") < calls.index("/wake_up") < len(calls) - 1 - calls[::-1].index("/v1/completions")


def test_seeds_are_a_switch(tmp_path: Path) -> None:
    for seeded in (True, False):
        folder = tmp_path / str(seeded)
        folder.mkdir()
        world = World(folder, count=1, seeded=seeded)
        world.sample()
        drawn = [body["seed"] for body in world.servers[0].asked if len(body["prompt"]) == 2]
        assert sorted(seed for seed in drawn if seed is not None) == (list(range(8)) if seeded else [])


def test_a_shard_that_no_server_can_take_is_refused_before_anything_is_drawn(world: World) -> None:
    with pytest.raises(EngineError, match=r"raise generator\.max_model_len"):
        world.sample(max_completion_length=319)


def test_a_group_without_a_prompt_is_refused(world: World) -> None:
    with pytest.raises(EngineError, match="no group_id 7"):
        world.sample(rows=(RowAddress(group_id=7, sample_index=0, seed=1),))
