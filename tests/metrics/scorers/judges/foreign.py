"""A foreign endpoint for the tests: a real HTTP server that answers as it is told to."""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from typing import Any, NamedTuple

from metrics.scorers.judges.client import Client
from metrics.scorers.judges.endpoint import Endpoint, Limits


class Says(NamedTuple):
    """One response on the wire; an iterator's pieces are sent for as long as someone listens."""

    body: Any
    status: int = 200
    headers: dict[str, str] = {}


def chat(*texts: str, logprobs: Any = None, usage: dict[str, int] | None = None) -> Says:
    choices = [
        {"message": {"content": text}, "finish_reason": "stop", "logprobs": logprobs}
        for text in texts
    ]
    return Says({"model": "foreign-1", "choices": choices, "usage": usage})


def error(status: int, message: str = "no", code: str | None = None, **headers: str) -> Says:
    return Says({"error": {"message": message, "code": code}}, status, headers)


class Foreign(ThreadingHTTPServer):
    """Answers with what `answer` returns for the n-th request and its body, and keeps both."""

    answer: Callable[[int, dict[str, Any]], Says]

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[Message] = []
        self.waits: list[float] = []
        self.lock = Lock()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def says(self, *responses: Says) -> None:
        """Give these responses in turn, and the last for ever."""
        self.answer = lambda number, body: responses[min(number, len(responses) - 1)]

    def client(self, budget: Any = None, api_key: str = "", **limits: Any) -> Client:
        """A client that writes its waits down instead of waiting."""
        return Client(
            Endpoint(base_url=self.base_url, model="foreign", api_key=api_key, timeout_seconds=20),
            limits=Limits(**limits),
            budget=budget,
            sleep=self.waits.append,
        )


class Handler(BaseHTTPRequestHandler):
    server: Foreign

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            number = len(self.server.bodies)
            self.server.bodies.append(body | {"path": self.path})
            self.server.headers.append(self.headers)
        says = self.server.answer(number, body)
        if isinstance(says.body, Iterator):
            return self.trickle(says)
        content = says.body if isinstance(says.body, bytes) else json.dumps(says.body).encode()
        self.send_response(says.status)
        for name, value in says.headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def trickle(self, says: Says) -> None:
        self.send_response(says.status)
        self.end_headers()
        with suppress(ConnectionError):
            for piece in says.body:
                self.wfile.write(piece)

    def log_message(self, *args: object) -> None:
        """Say nothing."""
