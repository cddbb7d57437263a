"""Requesters' programs on the API's client, and workers who answer on the site."""

import json
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.parse import urlsplit

from assay_client import (
    AssayError,
    Client,
    Conflict,
    JobUnsuccessful,
    ServerFailed,
    ServerUnreachable,
    Study,
)
from benchmarks.marketplace_traffic import FRAME, Answer, Browser
from hits.crowd.replay import Page
from hits.crowd.simulated import SimulatedAnswers
from presentation.numbers import group_values

REQUESTER_PATIENCE_SECONDS = 240.0
REQUESTER_PAUSE_SECONDS = 2.0
# What passes by itself; a job that failed for good is requested again, as by its button.
MOMENTARY = (ServerUnreachable, ServerFailed, JobUnsuccessful, Conflict)
REWARD_USD, BONUS_USD, PART_USD = Decimal("0.25"), Decimal("0.07"), Decimal("0.10")
REASON = "Your reasons were a pleasure to read."
ONE_IN = 3
Result = TypeVar("Result")


class RequesterFailed(Exception):
    """A step could not be done, however often it was tried."""


class Requester:
    def __init__(self, slug: str, site_url: str, token: str, *, seed: int) -> None:
        self.slug, self.rng = slug, random.Random(f"{slug} {seed}")
        self.client = Client(
            site_url,
            token,
            longest_wait_seconds=REQUESTER_PATIENCE_SECONDS,
            on_progress=lambda job: None,
        )
        self.n_launches = self.n_rounds = 0
        self.retries: Counter[str] = Counter()
        self.failures: list[str] = []
        self.bonuses: set[str] = set()

    def run(self, *, is_over: Callable[[], bool], n_items: int, n_assignments: int) -> None:
        try:
            while not is_over():
                study = self._persist("look", lambda: self.client.study(self.slug))
                if self._n_open(study) < n_items * n_assignments / 2:
                    self._launch(study, n_items, n_assignments)
                self.review(study)
                time.sleep(REQUESTER_PAUSE_SECONDS)
        except (AssayError, RequesterFailed) as error:
            self.failures.append(f"{self.slug}: {type(error).__name__}: {error}")

    def finish(self) -> None:
        try:
            study = self._persist("look", lambda: self.client.study(self.slug))
            while self.review(study):
                pass
            for batch_id in study.batches()["id"]:
                batch = study.batch(batch_id)
                self._persist("close", lambda batch=batch: batch.change("close", key=f"{batch.id}"))
            while self.review(study):
                pass
        except (AssayError, RequesterFailed) as error:
            self.failures.append(f"{self.slug}: {type(error).__name__}: {error}")

    def review(self, study: Study) -> int:
        self._persist("collect", study.collect)
        waiting = self._persist("list", study.assignments)
        if waiting.empty:
            return 0
        self.n_rounds += 1
        verdicts = self.rng.choices(("approve", "reject", "part_pay"), (8, 1, 1), k=len(waiting))
        for action, keys in group_values(zip(verdicts, waiting["id"], strict=True)).items():
            self._decide(study, keys, action)
        with_bonus = [key for key in waiting["id"] if key % ONE_IN == 0]
        self._decide(study, with_bonus, "bonus")
        names = waiting.set_index("id")["assignment_id"]
        self._send(study)
        self.bonuses |= set(names[with_bonus])
        return len(waiting)

    def _launch(self, study: Study, n_items: int, n_assignments: int) -> None:
        self.n_launches += 1
        terms = {"how": "sample", "n_items": n_items, "seed": self.n_launches}
        terms |= {"reward_usd": REWARD_USD, "max_assignments": n_assignments}
        key = f"launch {self.n_launches}"

        def launch() -> None:
            # Previewed again, too: what was looked at of pages and account holds for a while only.
            preview = study.preview_launch(**terms)
            try:
                study.launch(preview, key=key)
            except Conflict as error:
                # It was done, its answer was lost, and what is left to launch is less since.
                if error.code != "idempotency_key_reused":
                    raise

        self._persist("launch", launch)

    def _n_open(self, study: Study) -> int:
        batches = self._persist("list", study.batches)
        if batches.empty:
            return 0
        return int((batches["n_hits"] * batches["max_assignments"] - batches["n_collected"]).sum())

    def _decide(self, study: Study, keys: list[int], action: str) -> None:
        amount_usd = {"bonus": BONUS_USD, "part_pay": PART_USD}.get(action)
        text = "" if action == "approve" else REASON
        if keys:
            self._persist(
                action,
                lambda: study.decide(keys, action, text=text, amount_usd=amount_usd),
            )

    def _send(self, study: Study) -> None:
        """The first time under a key of its own; where its job failed, what is left of it."""
        summary = self._persist("read", study.drafts)
        key = f"{self.slug} {self.n_rounds}"
        try:
            self._patiently(
                "send",
                lambda: study.send(summary, key=key),
                (ServerUnreachable, ServerFailed, Conflict),
            )
        except JobUnsuccessful as error:
            self.retries["send: job"] += 1
            again = f"{study.address}jobs/{error.job.id}/resume/"
            self._persist("send again", lambda: study.wait(self.client.send("POST", again)))

    def _persist(self, step: str, act: Callable[[], Result]) -> Result:
        return self._patiently(step, act, MOMENTARY)

    def _patiently(
        self, step: str, act: Callable[[], Result], momentary: tuple[type[AssayError], ...]
    ) -> Result:
        end = time.monotonic() + REQUESTER_PATIENCE_SECONDS
        while True:
            try:
                return act()
            except momentary as error:
                self.retries[f"{step}: {type(error).__name__}"] += 1
                if time.monotonic() > end:
                    raise RequesterFailed(f"{step}: {error}") from error
                time.sleep(REQUESTER_PAUSE_SECONDS)


PATIENCE_SECONDS = 120.0
PAUSE_SECONDS = 1.0
HELD = re.compile(r'href="(/worker/assignments/[^/"]+/)"')
GROUP = re.compile(r'href="(/worker/groups/[^/"?]+/)"')
GONE = HTTPStatus.GONE


class PageFailed(Exception):
    """A page could not be had, however often it was asked for, or is not what it should be."""


@dataclass
class Crowd:
    # By assignment, those of which the site said that it has them.
    answers: dict[str, str] = field(default_factory=dict)
    retries: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)


class Worker:
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
        source = FRAME.search(self._ask(lambda: self.browser.get(path), HTTPStatus.OK).text)
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
            with self.crowd.lock:
                self.crowd.retries[why] += 1
            # What was accepted, and not answered, is on the first page, to be gone on with.
            self.group = ""
            if time.monotonic() > end:
                raise PageFailed(f"For {PATIENCE_SECONDS:g} s there was nothing but: {why}.")
            self._think(PAUSE_SECONDS)

    def _think(self, seconds: float) -> None:
        time.sleep(self.rng.uniform(0.5, 1.5) * seconds)
