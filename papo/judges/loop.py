"""An event loop in a thread of its own: the caller may be any thread, with a loop or not, and can be interrupted."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
TICK_SECONDS = 0.2
"""How often the caller's thread looks up."""
LEAVE_SECONDS = 5.0


def run_apart(work: Coroutine[Any, Any, T], *, tick: Callable[[], None] = lambda: None) -> T:
    """The result of `work`; `tick` is called in this thread now and then. Raises what `work` raises; whatever ends the
    wait (Ctrl-C, a signal's handler) cancels it."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="judge", daemon=True)
    thread.start()
    future = asyncio.run_coroutine_threadsafe(work, loop)
    try:
        while True:
            try:
                return future.result(timeout=TICK_SECONDS)
            except TimeoutError:
                if future.done():
                    return future.result()
                tick()
    finally:
        future.cancel()
        _end(loop, thread)


def _end(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    left = asyncio.run_coroutine_threadsafe(_cancel_all(), loop)
    try:
        left.result(timeout=LEAVE_SECONDS)
    except TimeoutError:
        # What cannot be cancelled (a name that a resolver looks up) ends by itself; nobody waits for it.
        left.cancel()
    loop.call_soon_threadsafe(loop.stop)
    thread.join(timeout=LEAVE_SECONDS)
    if not thread.is_alive():
        loop.close()


async def _cancel_all() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
