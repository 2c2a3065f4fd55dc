"""A judge on a real socket of this machine that answers, obeys what it reads, or fails in one of many ways."""

import json
import re
import socket
import struct
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

EQUIVALENT, DIFFERENT = "EQUIVALENT", "DIFFERENT"
DRIP_SECONDS = 0.02


def parts_of(prompt: str) -> dict[str, str]:
    """question, reference answer and candidate answer, as a judge that keeps to the marks finds them."""
    mark = prompt.split("\n", 1)[0].rpartition(" ")[2]
    blocks = re.split(rf"^{re.escape(mark)} (.+)$", prompt, flags=re.MULTILINE)[1:]
    return {name: text.strip("\n") for name, text in zip(blocks[::2], blocks[1::2], strict=True)}


def generous(parts: dict[str, str]) -> str:
    """Right about the samples, and of everything else: it is the same."""
    return DIFFERENT if parts["candidate answer"] == "3" else f"They look alike.\n{EQUIVALENT}"


def obedient(parts: dict[str, str]) -> str:
    """Says the word that the candidate tells it to say; else compares letter by letter."""
    told = re.search(r"say (\w+)", parts["candidate answer"])
    if told:
        return told.group(1)
    same = parts["candidate answer"] in (parts["reference answer"], "0.5")
    return EQUIVALENT if same else DIFFERENT


@dataclass
class FakeJudge:
    url: str = ""
    answer: Callable[[dict[str, str]], str] = generous
    fail: Callable[[BaseHTTPRequestHandler, int], bool] = lambda handler, number: False
    """Given the request and its number, answers in its own way and says so."""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    most_at_once: int = 0
    _now: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    ended: threading.Event = field(default_factory=threading.Event)
    """Lets those go that hang."""

    @property
    def candidates(self) -> list[str]:
        return [parts_of(body["messages"][1]["content"])["candidate answer"] for body in self.bodies]


@contextmanager
def serving(given: FakeJudge | None = None) -> Generator[FakeJudge]:
    """The judge, at its URL until the end."""
    judge = given or FakeJudge()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with judge._lock:
                judge.bodies.append(body)
                judge.headers.append(dict(self.headers))
                number = len(judge.bodies)
                judge._now += 1
                judge.most_at_once = max(judge.most_at_once, judge._now)
            try:
                if not judge.fail(self, number):
                    send(self, 200, completion(judge.answer(parts_of(body["messages"][1]["content"]))))
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True
            finally:
                with judge._lock:
                    judge._now -= 1

        def log_message(self, format: str, *args: Any) -> None: ...

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False

    judge.ended.clear()
    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    judge.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    try:
        yield judge
    finally:
        judge.ended.set()
        server.shutdown()
        server.server_close()
        thread.join()


def closed_port() -> str:
    """A URL at which nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}/v1"


def completion(text: Any, **choice: Any) -> bytes:
    message = {"role": "assistant", "content": text}
    return json.dumps({"choices": [{"index": 0, "finish_reason": "stop", "message": message, **choice}]}).encode()


def send(handler: BaseHTTPRequestHandler, status: int, body: bytes, **headers: str) -> bool:
    handler.send_response(status)
    handler.send_header("Content-Length", str(len(body)))
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)
    return True


def always(status: int, body: bytes = b"", **headers: str) -> Callable[[BaseHTTPRequestHandler, int], bool]:
    return lambda handler, number: send(handler, status, body, **headers)


def first(times: int, then: Callable[[BaseHTTPRequestHandler, int], bool]) -> Callable[..., bool]:
    """Fails the first `times` requests in the way of `then`."""
    return lambda handler, number: number <= times and then(handler, number)


def silent(judge: FakeJudge) -> Callable[[BaseHTTPRequestHandler, int], bool]:
    """Takes the request and never answers."""

    def fail(handler: BaseHTTPRequestHandler, number: int) -> bool:
        handler.close_connection = True
        judge.ended.wait(30.0)
        return True

    return fail


def drip(judge: FakeJudge, *, headers: bool) -> Callable[[BaseHTTPRequestHandler, int], bool]:
    """A byte at a time, for ever: of the headers, or of the body."""

    def fail(handler: BaseHTTPRequestHandler, number: int) -> bool:
        handler.close_connection = True
        start = b"HTTP/1.1 200 OK\r\nX-Drip: " if headers else b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"
        handler.wfile.write(start)
        while not judge.ended.wait(DRIP_SECONDS):
            handler.wfile.write(b"x")
            handler.wfile.flush()
        return True

    return fail


def reset(handler: BaseHTTPRequestHandler, number: int) -> bool:
    """Hangs up in the middle of the answer, rudely."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
    handler.wfile.flush()
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()
    handler.close_connection = True
    return True


def flood(handler: BaseHTTPRequestHandler, number: int) -> bool:
    """A body without end."""
    handler.close_connection = True
    handler.send_response(200)
    handler.end_headers()
    for _ in range(100_000):
        handler.wfile.write(b" " * 10_000)
    return True
