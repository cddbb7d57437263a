"""One trial of the whole loop: published, answered, collected, decided, paid, overridden and closed
while processes are killed, the line to the marketplace fails, and buttons are pressed twice."""

import random
import secrets
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from http import HTTPStatus
from pathlib import Path
from threading import Event
from typing import Any

import requests
from django.conf import settings
from django.db import connection
from django.test import Client
from django.test.utils import setup_test_environment
from django.urls import reverse
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from accounts.models import User
from accounts.roles import Role
from accounts.teams import create_team, set_role
from annotation.access import give_to_team
from annotation.models import Study
from annotation.study_facts import COLLECT, PUBLISH, REVIEW, jobs_of
from benchmarks.big_study import build_items
from benchmarks.commands import in_background
from benchmarks.faults.loop_checks import faults_of, n_double_messages
from benchmarks.faults.site import HostileLine, Site, hostile_line
from encryption import encrypt
from hits.collect import collect_batch
from hits.connections import client_of
from hits.crowd.replay import CrowdWorker
from hits.crowd.simulated import SimulatedAnswers
from hits.drafts import Action, draft_decision, drafts_of, paid_part, summary_of
from hits.exceptions import CrowdStuck, HitsError
from hits.jobs import APPLY_CHANGES
from hits.models import Assignment, Batch, Connection, DeliveryState, Hit, Message, Payment
from hits.progress import fetch_statement
from marketplace.models import Assignment as Work
from marketplace.people.enrolment import issue_access_key
from work.models import Job

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
        held = Work.objects.filter(
            worker__user__username=worker.name, status=Work.Status.ACCEPTED
        ).first()
        try:
            task = worker.accept(held.hit.public_id) if held else worker.accept_next(hit_type_id)
        except CrowdStuck:
            return False
        if task is None:
            return False
        _patiently(worker.submit, task, self.source.answer(worker.name, task.page))
        return True


# Between kills, by how long the site takes to load: what is killed must have had time to work.
SHORTEST_PAUSE, LONGEST_PAUSE = 0.05, 0.4
PHASE_SECONDS = 600.0
REWARD_USD, BONUS_USD, PART_USD = Decimal("0.25"), Decimal("0.07"), Decimal("0.10")
N_WORKERS = 4
REASON = "Your reasons were a pleasure to read."
PART_REASON = "Half of it is there."


@dataclass
class Outcome:
    seed: int
    n_hits: int
    seconds: float = 0.0
    kills: Counter[str] = field(default_factory=Counter)
    line_faults: Counter[str] = field(default_factory=Counter)
    step_seconds: dict[str, float] = field(default_factory=dict)
    n_answers: int = 0
    n_payments: int = 0
    n_presses_again: int = 0
    n_double_messages: int = 0
    faults: list[str] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        return not self.faults and self.n_answers > 0 and self.n_payments > 0

    def record(self) -> dict[str, Any]:
        counts = {"kills": dict(self.kills), "line_faults": dict(self.line_faults)}
        return vars(self) | counts | {"is_good": self.is_good}


def run_loop_trial(*, n_hits: int, seed: int, port: int, log: Path) -> Outcome:
    outcome = Outcome(seed, n_hits)
    started = time.monotonic()
    with hostile_line(f"http://127.0.0.1:{port}", seed=seed) as line:
        environment = {"AWS_ENDPOINT_URL_MTURK": f"{line.url}/requester"}
        site = Site(port=port, log=log, environment=environment)
        begun = time.monotonic()
        site.start()
        try:
            site.wait_until_it_answers()
            load_seconds = time.monotonic() - begun
            trial = LoopTrial(outcome, line, f"http://127.0.0.1:{port}")
            with in_background(partial(_kill_often, site, outcome, load_seconds)):
                trial.run()
            trial.settle()
        finally:
            n_left = site.end()
        outcome.line_faults = line.faults
    outcome.faults += trial.check() + ([f"{n_left} processes were left over."] if n_left else [])
    outcome.seconds = round(time.monotonic() - started, 1)
    return outcome


def _kill_often(site: Site, outcome: Outcome, load_seconds: float, ended: Event) -> None:
    rng = random.Random(outcome.seed)
    while not ended.wait(load_seconds * rng.uniform(SHORTEST_PAUSE, LONGEST_PAUSE)):
        outcome.kills[site.kill_one(rng)] += 1


class LoopTrial:
    def __init__(self, outcome: Outcome, line: HostileLine, site_url: str) -> None:
        self.outcome, self.line, self.site_url = outcome, line, site_url
        self.rng = random.Random(outcome.seed)
        # For the contexts of pages that are read here, as tests read them.
        setup_test_environment()
        owner, manager = (User.objects.create_user(name) for name in ("rosa", "omar"))
        team = create_team(name="Dialogue lab", owner=owner)
        set_role(team=team, user=manager, role=Role.MANAGER, actor=owner)
        self.study, _items = build_items(owner, n_items=outcome.n_hits, slug="loop")
        give_to_team(study=self.study, team=team, actor=owner)
        self.study = Study.objects.get(pk=self.study.pk)
        key = issue_access_key(name="Dialogue lab", deposit_usd=Decimal(outcome.n_hits))
        self.connection = Connection.objects.create(
            team=team,
            name="Here",
            marketplace="local",
            access_key_id=key.access_key_id,
            encrypted_secret=encrypt(key.secret_access_key),
            fees=settings.MARKETPLACE_FEE_SCHEDULE,
        )
        self.rosa, self.omar = Person(owner, site_url), Person(manager, site_url)

    def run(self) -> None:
        steps: dict[str, Callable[[], None]] = {
            "launch": self._launch,
            "add assignments": lambda: self._change("more", n_more=1),
            "answer and collect": self._answer,
            "decide and pay": self._decide,
            "override": self._override,
            "close": lambda: self._change("close"),
        }
        for name, act in steps.items():
            started = time.monotonic()
            act()
            self.outcome.step_seconds[name] = round(time.monotonic() - started, 1)

    @property
    def batch(self) -> Batch:
        return Batch.objects.select_related("connection", "study").get(study=self.study)

    def _launch(self) -> None:
        path = reverse("console:launch", args=["loop"])
        terms = {"how": "rest", "reward_usd": str(REWARD_USD), "max_assignments": "1"}

        def page() -> Any:
            first = self.rosa.reader.get(path).context["view"].form
            content = {name: first[name].value() for name in first.fields} | terms
            content = {n: v for n, v in content.items() if v not in (None, False)}
            return content, self.rosa.reader.get(path, content).context["view"]

        self._until(lambda: not page()[1].is_held, "the launch is ready")
        form, view = page()
        form |= {"total": f"{view.cost.total_usd:.2f}", "offer": view.offer}
        publish = reverse("console:publish", args=["loop"])
        press_at_once((self.rosa, publish, form), (self.omar, publish, form))
        self._until(
            lambda: not Hit.objects.of(self.batch).unpublished().exists(),
            "all HITs are published",
            again=lambda: self.rosa.press(publish, form),
            kind=PUBLISH,
        )

    def _change(self, name: str, **form: Any) -> None:
        path = reverse("console:batch-change", args=["loop", self.batch.pk, name])
        form |= dict(self.rosa.reader.get(path, form).context["confirmation"].initial)
        press_at_once((self.rosa, path, form), (self.omar, path, form))
        self._until(
            lambda: not Hit.objects.of(self.batch).awaiting_change().exists(),
            f"the change '{name}' is confirmed",
            again=lambda: jobs_again(self.rosa, self.study, APPLY_CHANGES),
            kind=APPLY_CHANGES,
        )

    def _answer(self) -> None:
        n_wanted = 2 * self.outcome.n_hits
        source = SimulatedAnswers(self.study, seed=self.outcome.seed)
        crowd = Crowd(site_url=self.site_url, n_workers=N_WORKERS, source=source)
        handed_in = Work.objects.handed_in()
        crowd.work(self.batch.hit_type_id, is_done=lambda: handed_in.count() >= n_wanted)
        collect = reverse("console:collect", args=["loop"])
        press_at_once((self.rosa, collect, {}), (self.omar, collect, {}))
        self._until(
            lambda: Assignment.objects.exclude(submission=None).count() >= n_wanted,
            "all answers are collected",
            again=lambda: self.omar.press(collect, {}),
            kind=COLLECT,
        )

    def _decide(self) -> None:
        for assignment in Assignment.objects.select_related("hit__batch__connection"):
            for person in (self.rosa, self.omar):
                action, values = self._verdict()
                self._draft(person, assignment, action, **values)
                if assignment.pk % 3 == 0:
                    self._draft(person, assignment, Action.BONUS, text=REASON, amount_usd=BONUS_USD)
            if assignment.pk % 10 == 0:
                values = {"subject": "Thank you", "text": "There will be more of these."}
                self._draft(self.rosa, assignment, Action.MESSAGE, **values)
        self._send()

    def _verdict(self) -> tuple[Action, dict[str, Any]]:
        chance = self.rng.random()
        if chance < 0.6:
            return Action.APPROVE, {}
        if chance < 0.8:
            return Action.REJECT, {"text": "The reasons are missing."}
        return Action.PART_PAY, {"text": PART_REASON, "amount_usd": PART_USD}

    def _override(self) -> None:
        rejected = Assignment.objects.filter(status=Assignment.Status.REJECTED)
        for assignment in rejected.select_related("hit__batch__connection"):
            if self.rng.random() < 0.5:
                part = paid_part(assignment)
                # Whoever overrides what was paid in part types what it comes to.
                values = {} if part is None else {"amount_usd": part.with_reward_usd}
                for person in (self.rosa, self.omar):
                    draft = {"text": "You were right."} | values
                    self._draft(person, assignment, Action.OVERRIDE, **draft)
        self._send()

    def _draft(self, person: Person, assignment: Assignment, action: Action, **values: Any) -> None:
        draft_decision(reviewer=person.user, assignment=assignment, action=action, **values)

    def _send(self) -> None:
        path = reverse("console:review-sending", args=["loop"])
        presses = []
        for person in (self.rosa, self.omar):
            summary = summary_of(drafts_of(self.study, person.user))
            presses.append((person, path, {"digest": summary.digest}))
        press_at_once(*presses)
        self._until(
            lambda: not _unsent(), "all decisions are confirmed", again=self._retry, kind=REVIEW
        )

    def _retry(self) -> None:
        # What failed is requested again from its page, as what was refused is.
        self.omar.press(reverse("console:review-retry", args=["loop"]), {})
        jobs_again(self.omar, self.study, REVIEW)

    def _until(
        self,
        is_so: Callable[[], bool],
        words: str,
        *,
        again: Callable[[], object] = lambda: None,
        kind: str = "",
    ) -> None:
        """Wait; where the job has ended and it still is not so, press again."""
        end = time.monotonic() + PHASE_SECONDS
        while not is_so():
            if time.monotonic() > end:
                raise TimeoutError(f"After {PHASE_SECONDS:g} s it isn't so that {words}.")
            time.sleep(0.5)
            last = jobs_of(self.study).of_kind(kind).first() if kind else None
            if last is not None and not last.is_unfinished and not is_so():
                if last.state == Job.State.DONE:
                    self.outcome.faults.append(f"“{last}” is done, and it isn't so that {words}.")
                self.outcome.n_presses_again += 1
                again()

    def settle(self) -> None:
        self.line.is_hostile = False
        self._until(lambda: not unfinished_jobs(), "no job waits")
        settings.MARKETPLACE_ENDPOINT_URL = f"{self.site_url}/requester"
        try:
            collect_batch(batch=self.batch, client=client_of(self.batch.connection))
            fetch_statement(batch=self.batch)
        except HitsError as error:
            self.outcome.faults.append(f"At the end nothing could be collected: {error}")

    def check(self) -> list[str]:
        self.outcome.n_answers = Assignment.objects.count()
        self.outcome.n_payments = Payment.objects.count()
        self.outcome.n_double_messages = n_double_messages()
        return faults_of(self.batch, deposit_usd=Decimal(self.outcome.n_hits))


def unfinished_jobs() -> int:
    """Jobs that people or events requested; those that come by time come for ever."""
    from work.registry import job_kinds

    periodic = [kind.name for kind in job_kinds().values() if kind.every_seconds]
    return Job.objects.unfinished().exclude(kind__in=periodic).count()


def jobs_again(person: Person, study: Study, kind: str) -> None:
    job = jobs_of(study).of_kind(kind).first()
    if job is not None:
        person.press(reverse("console:again", args=[study.slug, job.pk]), {})


def _unsent() -> bool:
    return (
        Assignment.objects.decided_but_unsent().exists()
        or Assignment.objects.overridden_but_unsent().exists()
        or Payment.objects.unsent().exists()
        or Message.objects.filter(state=DeliveryState.INTENDED).exists()
    )
