"""Many servers as one: the least loaded is asked, one that fails is dropped and what it was asked goes to another.

A request that a living server does not answer in time is asked once more; after that it is lost, and the others are not
kept waiting for it (BUG-070).
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from papo.engines.vllm_client import Ask, Sampled, ServerFailed, ServerSilent, VllmLink
from papo.errors import GeneratorDied

A = TypeVar("A")
TRIES = 2
"""How often a request is asked of living servers."""
MOST_LOST = 0.05
"""Share of a shard that may be lost (one row always may); beyond it the servers are to blame."""
WAKE_SECONDS = 0.2
"""How often the waiting thread looks up, so that Ctrl-C is heard."""


class Pool:
    """Links that are alive. A dropped one stays out until it is put in again."""

    def __init__(self, links: Sequence[VllmLink], *, concurrency: int) -> None:
        """`concurrency`: requests at a time to one server."""
        self.links = list(links)
        self.dropped: dict[str, str] = {}
        """Why each server was dropped since the last `take_dropped`."""
        self._concurrency = concurrency

    def take_dropped(self) -> dict[str, str]:
        """What was dropped since this was last asked."""
        dropped, self.dropped = self.dropped, {}
        return dropped

    def each(self, work: Callable[[VllmLink], A]) -> dict[str, A]:
        """`work` on each server in turn, by URL; one that fails is dropped. Raises GeneratorDied if none is left."""
        found: dict[str, A] = {}
        for link in list(self.links):
            try:
                found[link.url] = work(link)
            except ServerFailed as failure:
                self.drop(link, failure)
        self.check()
        return found

    def drop(self, link: VllmLink, failure: ServerFailed) -> None:
        """Ask this server nothing more."""
        if link in self.links:
            self.links.remove(link)
            self.dropped[link.url] = str(failure)

    def check(self) -> None:
        """Raises GeneratorDied if no server is left."""
        if not self.links:
            reasons = "; ".join(self.dropped.values()) or "none was started"
            raise GeneratorDied(f"no vLLM server is left ({reasons}).")

    def sample(self, asks: Sequence[Ask], progress: Callable[[int], None] | None = None) -> list[Sampled | None]:
        """The completions, in the order of `asks`; None for one that is lost. `progress` is told how many are there.

        Raises GeneratorDied if no server is left, or too many are lost.
        """
        self.check()
        round_ = _Round(self, asks, self._concurrency)
        threads = min(len(asks), self._concurrency * len(self.links))
        executor = ThreadPoolExecutor(threads, thread_name_prefix="vllm")
        futures = [executor.submit(round_.work) for _ in range(threads)]
        try:
            done = 0
            while round_.wait(WAKE_SECONDS):
                if progress is not None and round_.done != done:
                    done = round_.done
                    progress(done)
        finally:
            # Not waited for when this is interrupted: requests that are under way end with their servers.
            round_.stop()
            executor.shutdown(wait=False)
        for future in futures:
            future.result()
        self.check()
        round_.check()
        return round_.results


class _Round:
    """The asks of one shard and who works on them."""

    def __init__(self, pool: Pool, asks: Sequence[Ask], concurrency: int) -> None:
        self.done = 0
        self._pool = pool
        self._asks = asks
        self._concurrency = concurrency
        self._waiting = deque(range(len(asks)))
        self._found: dict[int, Sampled | None] = {}
        self._silent = [0] * len(asks)
        self._may_lose = max(1, int(MOST_LOST * len(asks)))
        self.lost = 0
        self._load = {link.url: 0 for link in pool.links}
        self._asked = dict(self._load)
        self._changed = threading.Condition()
        self._stopped = False

    @property
    def results(self) -> list[Sampled | None]:
        return [self._found[index] for index in range(len(self._asks))]

    def check(self) -> None:
        """Raises GeneratorDied if more is lost than may be."""
        if self._is_failing:
            raise GeneratorDied(
                f"{self.lost} of {len(self._asks)} requests were asked {TRIES} times without an answer in time, by"
                f" servers that say they are well ({', '.join(link.url for link in self._pool.links)}): raise"
                " generator.request_seconds if completions take that long."
            )

    def wait(self, seconds: float) -> bool:
        """Whether there is still something to wait for, after `seconds` at most."""
        with self._changed:
            if not self._over:
                self._changed.wait(seconds)
            return not self._over

    def stop(self) -> None:
        """Start nothing more."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def work(self) -> None:
        """Take asks until there are none, as one of several threads."""
        while (taken := self._take()) is not None:
            index, link = taken
            try:
                found = link.sample(self._asks[index])
            except ServerSilent as failure:
                if link.is_up():
                    self._again(index, link)
                else:
                    self._back(index, link, failure)
            except ServerFailed as failure:
                self._back(index, link, failure)
            except BaseException:
                self.stop()
                raise
            else:
                self._keep(index, link, found)

    @property
    def _over(self) -> bool:
        done = self.done == len(self._asks)
        return self._stopped or done or self._is_failing or not self._pool.links

    @property
    def _is_failing(self) -> bool:
        return self.lost > self._may_lose or self.lost == len(self._asks) > 0

    def _take(self) -> tuple[int, VllmLink] | None:
        """The next ask and the least loaded server; waits while others may still give an ask back."""
        with self._changed:
            while not self._over:
                free = [link for link in self._pool.links if self._load[link.url] < self._concurrency]
                if self._waiting and free:
                    link = min(free, key=lambda link: (self._load[link.url], self._asked[link.url]))
                    self._load[link.url] += 1
                    self._asked[link.url] += 1
                    return self._waiting.popleft(), link
                self._changed.wait()
            return None

    def _keep(self, index: int, link: VllmLink, found: Sampled | None) -> None:
        with self._changed:
            self._load[link.url] -= 1
            self._found[index] = found
            self.done += 1
            self._changed.notify_all()

    def _again(self, index: int, link: VllmLink) -> None:
        """A living server was silent: ask once more, behind the others, or give the request up."""
        self._silent[index] += 1
        if self._silent[index] >= TRIES:
            self.lost += 1
            self._keep(index, link, None)
            return
        with self._changed:
            self._load[link.url] -= 1
            self._waiting.append(index)
            self._changed.notify_all()

    def _back(self, index: int, link: VllmLink, failure: ServerFailed) -> None:
        with self._changed:
            self._load[link.url] -= 1
            self._waiting.appendleft(index)
            self._pool.drop(link, failure)
            self._changed.notify_all()
