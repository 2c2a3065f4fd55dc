"""The generator over vLLM servers, managed ones or given by URL: sync the weights, check them, sample a shard."""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import polars as pl

from papo.engines.generators import Synced
from papo.engines.protocol import Engine, Progress
from papo.engines.requests import Decode, Generate
from papo.engines.vllm_client import Ask, ServerFailed, VllmLink
from papo.engines.vllm_install import read_stamp
from papo.engines.vllm_pool import TRIES, Pool
from papo.engines.vllm_probe import Probe, check_fingerprint
from papo.engines.vllm_server import ManagedServer, ServerSettings
from papo.engines.weight_transport import DiskTransport, Export
from papo.errors import EngineError, GeneratorDied

A = TypeVar("A")


@dataclass(frozen=True, slots=True, kw_only=True)
class VllmSettings:
    """How a run generates by vLLM; see `schemas.generators.VllmGenerator` for the fields' meaning."""

    server: ServerSettings
    urls: tuple[str, ...] | None = None
    """Servers that somebody else started; None: managed ones."""
    num_servers: int = 1
    gpus: tuple[str, ...] | None = None
    seeded: bool = True
    concurrency: int = 64
    request_seconds: float = 600.0
    api_key: str | None = None


class VllmGenerator:
    """The `Generator` of `papo.engines.generators` over vLLM. Servers start at the first `sync`, from its export."""

    def __init__(
        self, settings: VllmSettings, *, scratch: Path, logs: Path, link: Callable[[str], VllmLink] | None = None
    ) -> None:
        """`scratch`: folder for exports and probes; servers by URL must be able to read it under the same path.
        `link`: makes the client of a URL; tests give fakes."""
        self.settings = settings
        self.servers: list[ManagedServer | None] = [None] * (0 if settings.urls else settings.num_servers)
        """Managed ones, by their number."""
        self._scratch = scratch
        self._logs = logs
        self._link = link or self._new_link
        self._transport = DiskTransport(scratch)
        self._pool = Pool([], concurrency=settings.concurrency)
        self._export: Export | None = None
        self._probe: Probe | None = None
        self._buffers: dict[str, str] = {}
        self._asleep = False

    @property
    def environment(self) -> dict[str, str]:
        found = {"generator": "vllm", "generator_dtype": self.settings.server.dtype}
        found |= {"generator_servers": " ".join(link.url for link in self._pool.links)}
        if self.settings.urls is None:
            found |= {f"generator_{name}": text for name, text in read_stamp(self.settings.server.environment).items()}
        return found

    def sync(self, engine: Engine, request: Generate) -> Synced | None:
        self._wake()
        held = engine.held
        if held is None:
            raise EngineError("the learner holds no policy, so there is nothing to generate from.")
        if self._export is not None and self._export.policy_sha256 == held.policy_sha256 and self._pool.links:
            return None
        started = time.monotonic()
        self._scratch.mkdir(parents=True, exist_ok=True)
        if self._export is None or self._export.policy_sha256 != held.policy_sha256:
            self._export = None
            self._export = self._transport.export(engine, dtype=self.settings.server.dtype)
        export = self._export
        exported = time.monotonic()
        try:
            self._connect(export)
            connected = time.monotonic()
            self._each(lambda link: self._take_over(link, export))
            gap_mean, gap_largest = self._compare(engine, request)
        except BaseException:
            # Whatever stopped this: nobody may take these servers for checked.
            self._export = None
            raise
        return Synced(
            policy_sha256=export.policy_sha256,
            export_sha256=export.export_sha256,
            seconds=time.monotonic() - connected + exported - started,
            start_seconds=connected - exported,
            probe_gap_mean=gap_mean,
            probe_gap_max=gap_largest,
            servers=tuple(link.url for link in self._pool.links),
        )

    def generate(self, engine: Engine, request: Generate, progress: Progress | None = None) -> tuple[str, ...]:
        export = self._export
        if export is None:
            raise EngineError("the generator has no weights: sync comes before each generate.")
        notes = [f"{url} held another policy and was synced again" for url in self._ensure_versions(export)]
        self._check_length(request)
        asks = _asks(request, engine.end_ids(), seeded=self.settings.seeded)
        length = request.max_completion_length

        def tell(done: int) -> None:
            if progress is not None:
                progress(done * length, len(asks) * length)

        with self._with_logs():
            found = self._pool.sample(asks, tell)
        sampled = [row for row in found if row is not None]
        notes += [
            f"{ask.name} was asked for {TRIES} times and not answered within {self.settings.request_seconds:g} s: it is"
            " lost"
            for ask, row in zip(asks, found, strict=True)
            if row is None
        ]
        answered = tuple(address for address, row in zip(request.rows, found, strict=True) if row is not None)
        request = replace(request, rows=answered)
        path = self._scratch / "sampled.parquet"
        columns = {
            "token_ids": pl.Series([row.token_ids for row in sampled], dtype=pl.List(pl.Int32)),
            # A sure token's log-prob may be rounded to just above 0.
            "sampler_logprobs": pl.Series(
                [[min(x, 0.0) for x in row.logprobs] for row in sampled], dtype=pl.List(pl.Float32)
            ),
        }
        pl.DataFrame(columns).write_parquet(path)
        engine.decode(Decode(request=request, sampled=str(path)))
        path.unlink()
        return (*notes, *(f"{url} was dropped: {why}" for url, why in self._pool.take_dropped().items()))

    def rest(self) -> None:
        if not self.settings.server.sleeps or self._asleep or not self._pool.links:
            return
        self._each(lambda link: link.sleep())
        self._asleep = True

    def close(self) -> None:
        for link in self._pool.links:
            link.close()
        self._pool = Pool([], concurrency=self.settings.concurrency)
        for server in self.servers:
            if server is not None:
                server.kill()
        self.servers = [None] * len(self.servers)
        self._export = None
        self._asleep = False
        self._buffers.clear()

    def _wake(self) -> None:
        if self._asleep:
            self._asleep = False
            self._each(lambda link: link.wake())

    def _connect(self, export: Export) -> None:
        """Bring in the servers that are not there: those by URL if they answer, managed ones by starting them. A server
        that was dropped comes back with the next policy, so that a shard goes on without waiting for it."""
        known = {link.url for link in self._pool.links}
        for url in self.settings.urls or ():
            if url.rstrip("/") not in known:
                self._admit(self._link(url))
        fresh: list[tuple[ManagedServer, VllmLink]] = []
        for number, server in enumerate(self.servers):
            if server is None or not server.is_alive or server.url not in known:
                fresh.append(self._start(number, export))
        for server, link in fresh:
            server.wait(link)
            self._admit(link)
        self._check()

    def _start(self, number: int, export: Export) -> tuple[ManagedServer, VllmLink]:
        old = self.servers[number]
        if old is not None:
            old.kill()
        gpus, settings = self.settings.gpus, self.settings.server
        if gpus is not None:
            settings = replace(settings, gpu=gpus[number])
        self.servers[number] = server = ManagedServer(
            export.folder, settings, log=self._logs / f"vllm-{number}.log", pid_file=self._logs / f"vllm-{number}.json"
        )
        return server, self._link(server.url)

    def _admit(self, link: VllmLink) -> None:
        self._pool.links.append(link)
        self._buffers.pop(link.url, None)
        try:
            link.meet()
        except ServerFailed as failure:
            self._pool.drop(link, failure)

    def _take_over(self, link: VllmLink, export: Export) -> None:
        link.load(export.folder, export.policy_sha256)
        link.reset_prefix_cache()
        check_fingerprint(link, export, self._buffers)

    def _compare(self, engine: Engine, request: Generate) -> tuple[float, float]:
        """The worst server's gap to the learner."""
        if self._probe is None:
            frame = pl.read_parquet(request.prompts, columns=["prompt_ids"])
            longest = min(link.max_model_len for link in self._pool.links)
            # The same ones at each sync, so that a cache that was not reset has something to answer from.
            self._probe = Probe(frame["prompt_ids"].to_list(), longest=longest, folder=self._scratch)
        probe, temperature = self._probe, request.temperature or 1.0
        dtype = self.settings.server.dtype
        gaps = self._each(lambda link: probe.gap(link, engine, temperature=temperature, dtype=dtype)).values()
        return max(gap.mean for gap in gaps), max(gap.largest for gap in gaps)

    def _ensure_versions(self, export: Export) -> list[str]:
        """Each server must hold the policy before a shard; one that was started anew behind its URL is synced again."""
        again: list[str] = []
        for url, version in self._each(lambda link: link.version()).items():
            if version != export.policy_sha256:
                link = next(link for link in self._pool.links if link.url == url)
                # Started anew, so its buffers may be others; a reload must then leave them as they are.
                self._buffers.pop(url, None)
                try:
                    self._take_over(link, export)
                except ServerFailed as failure:
                    self._pool.drop(link, failure)
                    continue
                again.append(url)
        self._check()
        return again

    def _each(self, work: Callable[[VllmLink], A]) -> dict[str, A]:
        with self._with_logs():
            return self._pool.each(work)

    def _check(self) -> None:
        with self._with_logs():
            self._pool.check()

    @contextmanager
    def _with_logs(self) -> Generator[None]:
        """Where no server is left, add what the managed ones' logs say."""
        try:
            yield
        except GeneratorDied as error:
            tails = [server.log_tail() for server in self.servers if server is not None]
            raise GeneratorDied("\n".join([str(error), *tails])) from None

    def _check_length(self, request: Generate) -> None:
        needed = request.width + request.max_completion_length
        for link in self._pool.links:
            if needed > link.max_model_len:
                raise EngineError(
                    f"prompts of {request.width} tokens and max_completion_length {request.max_completion_length} need"
                    f" {needed} tokens, but {link.url} takes {link.max_model_len}: raise generator.max_model_len."
                )

    def _new_link(self, url: str) -> VllmLink:
        settings = self.settings
        return VllmLink(
            url, api_key=settings.api_key, request_seconds=settings.request_seconds, concurrency=settings.concurrency
        )


def _asks(request: Generate, end_ids: tuple[int, ...], *, seeded: bool) -> list[Ask]:
    frame = pl.read_parquet(request.prompts, columns=["group_id", "prompt_ids"])
    prompts = {group: tuple(ids) for group, ids in frame.iter_rows()}
    missing = sorted({row.group_id for row in request.rows} - prompts.keys())
    if missing:
        raise EngineError(f"{request.prompts} has no group_id {missing[0]}, which the shard asks for.")
    return [
        Ask(
            prompt_ids=prompts[row.group_id],
            seed=row.seed if seeded else None,
            temperature=request.temperature,
            max_tokens=request.max_completion_length,
            end_ids=end_ids,
            stop_strings=request.stop_strings,
            name=f"row (group_id {row.group_id}, sample_index {row.sample_index})",
        )
        for row in request.rows
    ]
