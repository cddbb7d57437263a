"""The fake as an HTTP server on this machine: the API, faults, and a door for those who test.

A fault is for the next call of one operation: `drop` does what was asked and closes the connection
without an answer, `lose` closes it before anything is done, and a number (429, 500) is answered
with nothing done.
"""

import json
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import yaml
from jsonschema import Draft202012Validator

from benchmarks.fake_prolific import operations
from benchmarks.fake_prolific.world import Denied, Send, World, send_by_http

FILE = Path(__file__).with_name("schema.yaml")


@dataclass(frozen=True)
class Operation:
    name: str
    method: str
    path: str
    status: int
    request: str | None = None
    answer: str | None = None

    def ids(self, method: str, path: str) -> tuple[str, ...] | None:
        """Return the ids in the path, or None where the path is another operation's."""
        pattern = re.escape(self.path).replace(r"\{id\}", "([0-9A-Za-z_-]+)")
        found = re.fullmatch(pattern, path) if method == self.method else None
        return found and found.groups()


@cache
def document() -> dict[str, Any]:
    return yaml.safe_load(FILE.read_text(encoding="utf-8"))


@cache
def known_operations(part: str = "operations") -> tuple[Operation, ...]:
    """Return the operations that are used, or with "foreign" those that only others ask."""
    return tuple(Operation(name=name, **facts) for name, facts in document()[part].items())


def problems(shape: str | None, value: Any) -> list[str]:
    if shape is None:
        return []
    validator = Draft202012Validator({"shapes": document()["shapes"], "$ref": f"#/shapes/{shape}"})
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(value)]


PREFIX = "/api/v1"
SECONDS_BETWEEN_EVENTS = 0.5


class FakeProlific:
    def __init__(
        self,
        port: int = 0,
        *,
        token: str = "token",
        deposit: int = 100_000,
        strict: bool = True,
        sends_events: bool = False,
    ) -> None:
        self.world, self.token, self.strict = World(deposit), token, strict
        self.faults: dict[str, list[str]] = {}
        self.calls: list[str] = []
        self.lock = threading.RLock()
        self.server = ThreadingHTTPServer(
            ("127.0.0.1", port), type("Handler", (Handler,), {"fake": self})
        )
        # By itself, or whenever a test says so.
        self.sends_events, self.ended = sends_events, threading.Event()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def __enter__(self) -> "FakeProlific":
        serve = self.server.serve_forever
        self.thread = threading.Thread(target=serve, kwargs={"poll_interval": 0.01}, daemon=True)
        self.thread.start()
        if self.sends_events:
            threading.Thread(target=self._keep_sending, daemon=True).start()
        return self

    def __exit__(self, *problem: object) -> None:
        self.ended.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def fail_next(self, operation: str, *faults: str) -> None:
        """Let the operation's next calls fail so, one fault a call ('' lets one through)."""
        self.faults.setdefault(operation, []).extend(faults)

    def send_events(self, send: Send = send_by_http) -> int:
        with self.lock:
            self.world.announce()
            now, due = self.world.now, self.world.hooks.take_due(self.world.now)
        for delivery in due:  # whoever is sent to may ask something before answering
            self.world.hooks.deliver(delivery, now, send)
        return len(due)

    def _keep_sending(self) -> None:
        while not self.ended.wait(SECONDS_BETWEEN_EVENTS):
            self.send_events()

    def answer(self, operation: Operation, ids: tuple[str, ...], body: Any) -> Any:
        if found := problems(operation.request, body) if self.strict else []:
            raise Denied(400, found)
        answer = getattr(operations, operation.name)(self.world, body, *ids)
        self.world.announce()
        body = answer.body if isinstance(answer, operations.Answer) else answer
        if wrong := problems(operation.answer, body):
            raise AssertionError(f"the fake's own answer to {operation.name}: {wrong}")
        return answer

    def drive(self, action: str, facts: dict[str, Any]) -> dict[str, Any]:
        world = self.world
        world.announce()
        if action == "hooks":
            world.hooks.fates += facts["faults"]
            return {"pending": len(world.hooks.pending)}
        if action == "arrive":
            return world.arrive(world.find("studies", facts["study"]), facts.get("pid")).shown()
        if action == "time":
            world.pass_time(timedelta(seconds=facts["seconds"]))
            return {"now": world.now.isoformat()}
        if action == "fault":
            self.fail_next(facts["operation"], *facts["faults"])
            return {}
        if action == "check":
            world.check()
            return {"available": float(world.available)}
        submission = world.find("submissions", facts["submission"])
        if action == "enter":
            world.enter(submission, facts["code"])
        elif action == "leave":
            world.leave(submission, facts.get("status", "RETURNED"))
        else:
            raise Denied(
                404, f"There is no {action}: arrive, enter, leave, time, fault, hooks, check."
            )
        return submission.shown()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    fake: FakeProlific

    def do_GET(self) -> None:
        with self.fake.lock:
            self._respond()

    do_POST = do_PATCH = do_DELETE = do_GET  # noqa: N815

    def _respond(self) -> None:
        address = urlsplit(self.path)
        size = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(size) or b"{}")
        try:
            if address.path.startswith("/driver/"):
                return self._send(200, self.fake.drive(address.path.strip("/")[7:], body))
            body |= dict(parse_qsl(address.query))
            self._operate(address.path.removeprefix(PREFIX), body)
        except Denied as denied:
            error = {"status": denied.status, "title": "Refused", "detail": denied.detail}
            self._send(denied.status, {"error": error})

    def _operate(self, path: str, body: Any) -> None:
        if self.headers.get("Authorization") != f"Token {self.fake.token}":
            raise Denied(401, "Invalid token.")
        operation, ids = _match(self.command, path)
        self.fake.calls.append(operation.name)
        fault = self.fake.faults.get(operation.name, [])
        planned = fault.pop(0) if fault else ""
        if planned == "lose":
            return self._drop()
        if planned.isdigit():
            raise Denied(int(planned), "A fault that was asked for.")
        if self.command == "GET":
            others = "".join(
                f"{name}={value}&" for name, value in body.items() if "page" not in name
            )
            body["here"] = f"{self.fake.url}{PREFIX}{path}?{others}"
        answer = self.fake.answer(operation, ids, body)
        if planned == "drop":
            return self._drop()
        if isinstance(answer, operations.Answer):
            return self._send(operation.status, answer.body, answer.headers)
        self._send(operation.status, answer)

    def _drop(self) -> None:
        self.close_connection = True

    def _send(self, status: int, answer: Any, headers: Mapping[str, str] | None = None) -> None:
        is_csv = isinstance(answer, str)
        content = b"" if answer is None else (answer if is_csv else json.dumps(answer)).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/csv" if is_csv else "application/json")
        self.send_header("Content-Length", str(len(content)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Say nothing: a request may hold who somebody is."""


def _match(method: str, path: str) -> tuple[Operation, tuple[str, ...]]:
    for operation in (*known_operations(), *known_operations("foreign")):
        ids = operation.ids(method, path)
        if ids is not None:
            return operation, ids
    raise Denied(404, f"{method} {path} is not among the operations of schema.yaml.")
