"""A marketplace's frame around a worker's page: serves it sandboxed, and takes what it sends."""

import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlencode, urlsplit

from playwright.sync_api import FrameLocator, Page, expect

from tests.accessibility import Node

SANDBOX = "allow-scripts allow-forms allow-modals"


def counts(*numbers: int) -> re.Pattern[str]:
    """A text in any language that holds these numbers in this order, and no others."""
    return re.compile(r"^\D*" + r"\D+".join(map(str, numbers)) + r"\D*$")


def label(question: str, letter: str) -> re.Pattern[str]:
    """The name of a control of a question of the response under a letter, in any language."""
    return re.compile(rf"{re.escape(question)}.*\b{letter}\b")


def assert_announced(
    nodes: Sequence[Node], expected: Sequence[tuple[str, str | re.Pattern[str], Sequence[str]]]
) -> None:
    """Each node has this role, a name that contains this text or matches the pattern, and a
    description that contains these texts, or is empty without any."""
    assert [node.role for node in nodes] == [role for role, _, _ in expected]
    for node, (_, name, parts) in zip(nodes, expected, strict=True):
        is_named = name in node.name if isinstance(name, str) else name.search(node.name)
        assert node.name, node
        assert is_named, (node, name)
        assert all(part in node.description for part in parts), (node, parts)
        assert bool(node.description) is bool(parts), (node, parts)


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


def inside(page: Page) -> FrameLocator:
    """The worker's page in its frame, once its script has run."""
    task = page.frame_locator("iframe")
    expect(task.locator("#progress")).not_to_be_empty()
    return task


def send(task: Page | FrameLocator) -> None:
    """Submit, and wait for the marketplace's answer."""
    task.locator("#send [type=submit]").click()
    expect(task.get_by_text("Received.")).to_be_visible()


def check_ids(page: Page) -> None:
    """No id occurs twice, and every reference leads to something."""
    ids = page.eval_on_selector_all("[id]", "nodes => nodes.map((node) => node.id)")
    assert len(ids) == len(set(ids))
    for name in ("aria-describedby", "aria-labelledby", "for"):
        values = page.eval_on_selector_all(
            f"[{name}]", f"nodes => nodes.map((node) => node.getAttribute('{name}'))"
        )
        assert {part for value in values for part in value.split()} <= set(ids), name
