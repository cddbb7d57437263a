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
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from hits.crowd.replay import CrowdWorker
from hits.crowd.simulated import SimulatedAnswers
from hits.exceptions import CrowdStuck
from marketplace.models import Assignment

PAUSE_SECONDS = 0.3
_patiently = Retrying(
    retry=retry_if_exception_type((CrowdStuck, requests.RequestException)),
    stop=stop_after_delay(240),
    wait=wait_fixed(PAUSE_SECONDS),
    reraise=True,
)


class Person:
    """Somebody signed in: reads pages in this process, presses buttons over the network."""

    def __init__(self, user: Any, site_url: str) -> None:
        self.user, self.site_url = user, site_url
        self.reader = Client()
        self.reader.force_login(user)
        self.session_key = self.reader.cookies["sessionid"].value

    def press(self, path: str, form: Mapping[str, Any]) -> int:
        return _patiently(self._press_once, path, form)

    def _press_once(self, path: str, form: Mapping[str, Any]) -> int:
        token = secrets.token_hex(16)
        answer = requests.post(
            self.site_url + path,
            data={**form, "csrfmiddlewaretoken": token},
            cookies={"sessionid": self.session_key, "csrftoken": token},
            timeout=60,
            allow_redirects=False,
        )
        if answer.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
            answer.raise_for_status()
        return answer.status_code


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
        _patiently(worker.submit, task, self.source.answer(worker.name, task.page))
        return True
