"""A marketplace's frame around a worker's page: serves it sandboxed, and takes what it sends."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlencode, urlsplit

SANDBOX = "allow-scripts allow-forms allow-modals"


def counts(*numbers: int) -> re.Pattern[str]:
    """A text in any language that holds these numbers in this order, and no others."""
    return re.compile(r"^\D*" + r"\D+".join(map(str, numbers)) + r"\D*$")


def label(question: str, letter: str) -> re.Pattern[str]:
    """The name of a control of a question of the response under a letter, in any language."""
    return re.compile(rf"{re.escape(question)}.*\b{letter}\b")


class Frame(ThreadingHTTPServer):
    """Serves one page: at /task as it is, at /frame inside a sandboxed iframe."""

    daemon_threads = True

    def __init__(self, page: str) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.page = page
        self.posts: list[tuple[str, dict[str, list[str]]]] = []

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def address(self, path: str, assignment_id: str | None = "3ASSIGNMENT1") -> str:
        query = {"hitId": "3HIT", "workerId": "AWORKER", "turkSubmitTo": f"{self.origin}/"}
        if assignment_id is not None:
            query["assignmentId"] = assignment_id
        return f"{self.origin}/{path}?{urlencode(query)}"


class Handler(BaseHTTPRequestHandler):
    server: Frame

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        inner = f'<iframe sandbox="{SANDBOX}" src="/task?{escape(parts.query)}"'
        document = f'<!DOCTYPE html>{inner} width="1250" height="880" title="task"></iframe>'
        self.answer(document if parts.path == "/frame" else self.server.page)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.posts.append((self.path, parse_qs(body, keep_blank_values=True)))
        self.answer("<!DOCTYPE html><p>Received.</p>")

    def answer(self, page: str) -> None:
        content = page.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def frame_of(page: str) -> Iterator[Frame]:
    with Frame(page) as frame:
        thread = threading.Thread(target=frame.serve_forever, daemon=True)
        thread.start()
        yield frame
        frame.shutdown()
        thread.join()
