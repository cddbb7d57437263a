"""Requesters' programs on the API's client: each launches, collects, decides and pays all along."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from typing import TypeVar

from assay_client import (
    AssayError,
    Client,
    Conflict,
    JobUnsuccessful,
    ServerFailed,
    ServerUnreachable,
    Study,
)

PATIENCE_SECONDS = 240.0
PAUSE_SECONDS = 2.0
# What passes by itself; a job that failed for good is requested again, as by its button.
MOMENTARY = (ServerUnreachable, ServerFailed, JobUnsuccessful, Conflict)
REWARD_USD, BONUS_USD, PART_USD = Decimal("0.25"), Decimal("0.07"), Decimal("0.10")
REASON = "Your reasons were a pleasure to read."
ONE_IN = 3
Result = TypeVar("Result")


class RequesterFailed(Exception):
    """A step could not be done, however often it was tried."""


class Requester:
    """A program with a token, and what it has seen itself do."""

    def __init__(self, slug: str, site_url: str, token: str, *, seed: int) -> None:
        self.slug, self.rng = slug, random.Random(f"{slug} {seed}")
        self.client = Client(
            site_url, token, longest_wait_seconds=PATIENCE_SECONDS, on_progress=lambda job: None
        )
        self.n_launches = self.n_rounds = 0
        self.retries: Counter[str] = Counter()
        self.failures: list[str] = []
        self.bonuses: set[str] = set()

    def run(self, *, is_over: Callable[[], bool], n_items: int, n_assignments: int) -> None:
        """Until it is over: see that there is work, and decide on what came in."""
        try:
            while not is_over():
                study = self._persist("look", lambda: self.client.study(self.slug))
                if self._n_open(study) < n_items * n_assignments / 2:
                    self._launch(study, n_items, n_assignments)
                self.review(study)
                time.sleep(PAUSE_SECONDS)
        except (AssayError, RequesterFailed) as error:
            self.failures.append(f"{self.slug}: {type(error).__name__}: {error}")

    def finish(self) -> None:
        """Decide on the rest, and close what is open, once nothing is killed any more."""
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

    def close(self) -> None:
        self.client.close()

    def review(self, study: Study) -> int:
        """Collect, decide on all that waits, send it; how many that was."""
        self._persist("collect", study.collect)
        waiting = self._persist("list", study.assignments)
        if waiting.empty:
            return 0
        self.n_rounds += 1
        for action, keys in self._verdicts(list(waiting["id"])).items():
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
        """How many assignments are out, and not in."""
        batches = self._persist("list", study.batches)
        if batches.empty:
            return 0
        return int((batches["n_hits"] * batches["max_assignments"] - batches["n_collected"]).sum())

    def _verdicts(self, keys: list[int]) -> dict[str, list[int]]:
        actions = self.rng.choices(("approve", "reject", "part_pay"), (8, 1, 1), k=len(keys))
        verdicts: dict[str, list[int]] = {}
        for key, action in zip(keys, actions, strict=True):
            verdicts.setdefault(action, []).append(key)
        return verdicts

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
            self._resume(study, error)

    def _resume(self, study: Study, error: JobUnsuccessful) -> None:
        def again() -> None:
            record = self.client.send("POST", f"{study.address}jobs/{error.job.id}/resume/")
            study.wait(record)

        self._persist("send again", again)

    def _persist(self, step: str, act: Callable[[], Result]) -> Result:
        return self._patiently(step, act, MOMENTARY)

    def _patiently(
        self, step: str, act: Callable[[], Result], momentary: tuple[type[AssayError], ...]
    ) -> Result:
        end = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return act()
            except momentary as error:
                self.retries[f"{step}: {type(error).__name__}"] += 1
                if time.monotonic() > end:
                    raise RequesterFailed(f"{step}: {error}") from error
                time.sleep(PAUSE_SECONDS)
