"""Those who use the site while it is killed: people who press buttons twice, and workers."""

import secrets
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import Any

import requests
from django.conf import settings
from django.db import connection
from django.test import Client

from hits.crowd.replay import CrowdWorker
from hits.crowd.simulated import SimulatedAnswers
from hits.exceptions import CrowdStuck
from marketplace.models import Assignment

PATIENCE_SECONDS = 240.0
PAUSE_SECONDS = 0.3


class Person:
    """Somebody signed in: reads pages in this process, presses buttons over the network."""

    def __init__(self, user: Any, site_url: str) -> None:
        self.user, self.site_url = user, site_url
        self.reader = Client()
        self.reader.force_login(user)
        self.session_key = self.reader.cookies["sessionid"].value

    def press(self, path: str, form: Mapping[str, Any]) -> int:
        token = secrets.token_hex(16)
        cookies = {"sessionid": self.session_key, "csrftoken": token}
        end = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < end:
            try:
                answer = requests.post(
                    self.site_url + path,
                    data={**form, "csrfmiddlewaretoken": token},
                    cookies=cookies,
                    timeout=60,
                    allow_redirects=False,
                )
            except requests.RequestException:
                time.sleep(PAUSE_SECONDS)
                continue
            if answer.status_code < HTTPStatus.INTERNAL_SERVER_ERROR:
                return answer.status_code
        raise TimeoutError(f"{path} could not be pressed.")


def press_at_once(*presses: tuple[Person, str, Mapping[str, Any]]) -> list[int]:
    both = [press for press in presses for _ in range(2)]
    with ThreadPoolExecutor(len(both)) as pool:
        return list(pool.map(lambda press: press[0].press(press[1], press[2]), both))


class Crowd:
    """Workers who do whatever a group has, and come back when the site fails them."""

    def __init__(self, *, site_url: str, n_workers: int, source: SimulatedAnswers) -> None:
        self.source = source
        self.workers = [
            CrowdWorker(site_url, f"crowd-{n}", secret=settings.SECRET_KEY)
            for n in range(n_workers)
        ]

    def work(self, hit_type_id: str, *, is_done: Callable[[], bool]) -> None:
        with ThreadPoolExecutor(len(self.workers)) as pool:
            runs = [pool.submit(self._run, each, hit_type_id, is_done) for each in self.workers]
        for run in runs:
            run.result()

    def _run(self, worker: CrowdWorker, hit_type_id: str, is_done: Callable[[], bool]) -> None:
        try:
            _patiently(worker.arrive)
            while not is_done():
                if not self._do_next(worker, hit_type_id):
                    time.sleep(PAUSE_SECONDS)
        finally:
            connection.close()

    def _do_next(self, worker: CrowdWorker, hit_type_id: str) -> bool:
        held = Assignment.objects.filter(
            worker__user__username=worker.name, status=Assignment.Status.ACCEPTED
        ).first()
        try:
            task = worker.accept(held.hit.public_id) if held else worker.accept_next(hit_type_id)
        except CrowdStuck:
            return False
        if task is None:
            return False
        answer = self.source.answer(worker.name, task.page)
        _patiently(lambda: worker.submit(task, answer))
        return True


def _patiently(act: Callable[[], None]) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return act()
        except CrowdStuck:
            if time.monotonic() > end:
                raise
            time.sleep(PAUSE_SECONDS)
