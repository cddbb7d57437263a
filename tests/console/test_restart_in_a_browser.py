"""The site's server is stopped and started again, as a deployment does, while a worker is on the
page, in a real Chromium: nothing typed is lost, and the answer is received once."""

import os
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress

import pytest
from django.conf import settings
from playwright.sync_api import Page, expect

from hits.enrolment import enrol_worker
from marketplace.models import Assignment
from tests.browsers import PATIENCE_MS, opened_page, sign_in
from tests.console.test_work_in_a_browser import (
    PASSWORD,
    WIDE,
    accept,
    answer,
    client,
    expect_rated,
    expect_received,
    expect_state,
    judgments,
    rating,
    saved_progress,
    submit,
    task_of,
    work_text,
)
from tests.hits.processes import PROJECT, database_url
from work.site import site_command

__all__ = ["client", "rating"]  # fixtures
pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

# On a machine that is busy with much else.
START_SECONDS = 240


class Server:
    """The web server that `serve` keeps running, as a process on the test's database."""

    def __init__(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        self.url = f"http://{self.address}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        env = os.environ | {
            **{"DATABASE_URL": database_url(), "SITE_URL": self.url},
            "SECRET_KEY": settings.SECRET_KEY,
            "MARKETPLACE_OPERATOR_SECRET": settings.MARKETPLACE_OPERATOR_SECRET,
        }
        command = site_command(self.address, processes=1)
        self.process = subprocess.Popen(command, cwd=PROJECT, env=env, start_new_session=True)
        deadline = time.monotonic() + START_SECONDS
        while not self.answers():
            assert time.monotonic() < deadline
            assert self.process.poll() is None
            time.sleep(0.1)

    def stop(self) -> None:
        """As systemd stops it; what is being answered is answered."""
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(timeout=PATIENCE_MS / 1000)
            self.process = None

    def answers(self) -> bool:
        with suppress(OSError), urllib.request.urlopen(f"{self.url}/worker/login/", timeout=20):
            return True
        return False


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    try:
        server.start()
        yield server
    finally:
        server.stop()


@pytest.fixture
def page(chromium, server, rating) -> Iterator[Page]:
    enrol_worker(site_url=server.url, username="ada", password=PASSWORD)
    with opened_page(chromium, base_url=server.url, viewport=WIDE) as page:
        sign_in(page, "/worker/login/", "ada", PASSWORD)
        yield page


def test_answers_survive_restarts_of_the_server_and_are_received_once(page, server):
    task = accept(page)
    answer(task, 0, 1)
    saved_progress(page, 2)
    server.stop()
    answer(task, 2, 3, 4)
    expect_rated(task, 5)
    expect(page.locator("#saved")).to_have_text(work_text(page, "here"))
    server.start()
    answer(task, 5)
    saved_progress(page, 6)
    page.reload()
    task = task_of(page)
    expect_rated(task, 6)
    answer(task, 6, 7)
    saved_progress(page, 8)
    server.stop()
    submit(task)
    expect_state(page, "waiting")
    assert Assignment.objects.get().status == "Accepted"
    server.start()
    # By itself: nobody presses anything.
    page.wait_for_url("**/worker/")
    expect_received(page)
    assert Assignment.objects.count() == 1
    assert judgments() == [100] * 8
