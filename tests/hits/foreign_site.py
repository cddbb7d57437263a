"""A marketplace of somebody else's, which answers as it likes, over the network."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any

from accounts import models, teams
from encryption import encrypt
from hits.models import Connection

Answer = Callable[[int], Any] | dict[str, Any]


class ForeignSite:
    """Answers by operation of the Requester API, or by path of the API beside it: with a dict, or
    with what a function of the number of calls so far writes."""

    def __init__(self, address: str, answers: dict[str, Answer]) -> None:
        self.endpoint_url = f"{address}/requester"
        self.answers = answers
        self.requests: list[tuple[str, dict[str, Any]]] = []

    @property
    def n_calls(self) -> int:
        return len(self.requests)


def connection_to(site: ForeignSite, name: str) -> Connection:
    """Of a team of this name, whose owner is Eve."""
    team = teams.create_team(name=name, owner=models.User.objects.create_user("eve"))
    facts = {"marketplace": f"{name.lower()}.example.org", "endpoint_url": site.endpoint_url}
    facts |= {"access_key_id": "AKIA", "encrypted_secret": encrypt("secret")}
    return Connection.objects.create(team=team, name=name, **facts)


@contextmanager
def foreign_site() -> Iterator[ForeignSite]:
    """Serves from a thread of its own until the block ends."""
    lock = Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or "{}")
            operation = self.headers.get("X-Amz-Target", "").rpartition(".")[2]
            name = self.path.removeprefix("/marketplace-api/v1") if "api" in self.path else ""
            with lock:
                site.requests.append((name or operation, content))
                number = site.n_calls
            answer = site.answers.get(name or operation)
            if callable(answer):
                answer = answer(number)
            try:
                self.answer(answer)
            except OSError:
                self.close_connection = True  # nobody listens any more

        def answer(self, answer: Any) -> None:
            if answer is None:
                self.send_error(404)
            elif isinstance(answer, dict):
                self.send_json(json.dumps(answer).encode())
            else:
                for piece in answer:
                    self.wfile.write(piece)
                    self.wfile.flush()

        def send_json(self, body: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *message: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    site = ForeignSite(f"http://127.0.0.1:{server.server_address[1]}", {})
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
