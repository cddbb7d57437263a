"""Workers at their browsers: who is shown an error tries again, as one does, and gives up late."""

from __future__ import annotations

import json
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from benchmarks.marketplace_traffic import FRAME, Answer, Browser
from hits.crowd.pages import Page
from hits.crowd.simulated import SimulatedAnswers

PATIENCE_SECONDS = 120.0
PAUSE_SECONDS = 1.0
HELD = re.compile(r'href="(/worker/assignments/[^/"]+/)"')
GROUP = re.compile(r'href="(/worker/groups/[^/"?]+/)"')
GONE = HTTPStatus.GONE


class PageFailed(Exception):
    """A page could not be had, however often it was asked for, or is not what it should be."""


@dataclass
class Crowd:
    """What all workers together have seen and sent."""

    answers: dict[str, str] = field(default_factory=dict)
    """By assignment, those of which the site said that it has them."""
    retries: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def note_retry(self, why: str) -> None:
        with self.lock:
            self.retries[why] += 1


class Worker:
    """One worker, who looks for work, does it, and goes on with what was broken off."""

    def __init__(
        self, name: str, session_key: str, site_url: str, crowd: Crowd, sources: Sequence[Any]
    ) -> None:
        address = urlsplit(site_url)
        self.name, self.crowd = name, crowd
        self.sources: Sequence[SimulatedAnswers] = sources
        self.rng = random.Random(name)
        self.browser = Browser(str(address.hostname), address.port or 80, session_key)
        self.group = ""

    def work(self, *, is_over: Callable[[], bool], thinking_seconds: float) -> None:
        """Do one HIT after the other until it is over; what is begun then is finished."""
        try:
            self._think(thinking_seconds * 3)
            while not is_over():
                self._do_one(thinking_seconds)
                self._think(thinking_seconds)
        except PageFailed as error:
            self.crowd.failures.append(f"{self.name}: {error}")
        finally:
            self.browser.close()

    def _do_one(self, thinking_seconds: float) -> None:
        path = self._take()
        if not path:
            return
        page = self._ask(lambda: self.browser.get(path), HTTPStatus.OK)
        source = FRAME.search(page.text)
        if source is None:
            raise PageFailed(f"{path} has no task.")
        frame_path = source[1].replace("&amp;", "&")
        frame = self._ask(lambda: self.browser.get(frame_path), HTTPStatus.OK)
        task = json.loads(Page(frame.text).task or "{}")
        self._think(thinking_seconds)
        self._submit(path.rstrip("/").rpartition("/")[2], self._answer(task))

    def _take(self) -> str:
        """The address of the assignment that is held, or of the next one; empty without work."""
        if not self.group:
            home = self._ask(lambda: self.browser.get("/worker/"), HTTPStatus.OK)
            if held := HELD.search(home.text):
                return held[1]
            groups = GROUP.findall(home.text)
            if not groups:
                return ""
            self.group = self.rng.choice(groups)
        path = f"{self.group}accept/"
        accepted = self._ask(lambda: self.browser.post(path, {}), HTTPStatus.FOUND, GONE)
        if accepted.status == GONE:
            self.group = ""
        return accepted.location

    def _answer(self, task: Mapping[str, Any]) -> str:
        for source in self.sources:
            if (task["item"], task["candidates"][0]) in source.texts:
                return json.dumps(source.answer(self.name, dict(task)))
        raise PageFailed(f"Nobody's item {task['item']} is on the page.")

    def _submit(self, assignment_id: str, answer: str) -> None:
        fields = {"assignmentId": assignment_id, "answer": answer}
        self._ask(
            lambda: self.browser.post("/mturk/externalSubmit", fields, is_ours=False), HTTPStatus.OK
        )
        with self.crowd.lock:
            self.crowd.answers[assignment_id] = answer

    def _ask(self, ask: Callable[[], Answer], *statuses: HTTPStatus) -> Answer:
        """The page, asked for again where the site has a bad moment."""
        end = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                answer = ask()
            except (OSError, KeyError, ValueError) as error:
                self.browser.close()
                why = type(error).__name__
            else:
                if answer.status in statuses:
                    return answer
                if answer.status < HTTPStatus.INTERNAL_SERVER_ERROR:
                    raise PageFailed(f"{answer.status}: {Page(answer.text).notice or answer.text}")
                why = f"status {answer.status}"
            self.crowd.note_retry(why)
            # What was accepted, and not answered, is on the first page, to be gone on with.
            self.group = ""
            if time.monotonic() > end:
                raise PageFailed(f"For {PATIENCE_SECONDS:g} s there was nothing but: {why}.")
            self._think(PAUSE_SECONDS)

    def _think(self, seconds: float) -> None:
        time.sleep(self.rng.uniform(0.5, 1.5) * seconds)
