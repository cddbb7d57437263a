import hashlib
import hmac
import json
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from http import HTTPStatus
from itertools import cycle
from types import MappingProxyType
from typing import Any, Protocol
from urllib.parse import parse_qs, urljoin, urlsplit

import requests
from django.conf import settings

from annotation.models import Candidate, Study
from annotation.readers.drafts import SubmissionDraft
from hits.answers import simulation_mark
from hits.exceptions import CrowdStuck, require
from hits.models import Batch, Hit
from hits.questions import SLOT, shown_order
from presentation.numbers import count_of, group_values
from presentation.progress import Progress, silently

UNSENT = {"submit", "button", "image", "reset"}


@dataclass
class Form:
    action: str
    classes: frozenset[str]
    fields: dict[str, str] = field(default_factory=dict)


class Page(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.forms: list[Form] = []
        self.frame: str | None = None
        self.task: str | None = None
        self.worker_id = ""
        self.notices: list[str] = []
        self._in_form = self._in_task = self._in_worker_id = False
        self._notice_tag, self._depth = "", 0
        self.feed(html)
        self.close()

    def form(self, name: str) -> Form | None:
        return next((form for form in self.forms if name in form.classes), None)

    @property
    def notice(self) -> str:
        return " ".join(" ".join(self.notices).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if self._depth:
            self._depth += tag == self._notice_tag
        elif "notice" in values.get("class", "").split():
            self._notice_tag, self._depth = tag, 1
        if tag == "form":
            self.forms.append(
                Form(values.get("action", ""), frozenset(values.get("class", "").split()))
            )
            self._in_form = True
        elif tag == "input" and self._in_form and values.get("type") not in UNSENT:
            self.forms[-1].fields[values.get("name", "")] = values.get("value", "")
        elif tag == "iframe" and values.get("id") == "task":
            self.frame = values.get("src")
        elif tag == "script" and values.get("id") == "task":
            self._in_task, self.task = True, ""
        self._in_worker_id = values.get("data-testid") == "worker-id"

    def handle_endtag(self, tag: str) -> None:
        self._in_form = self._in_form and tag != "form"
        self._in_task = self._in_task and tag != "script"
        self._depth -= bool(self._depth) and tag == self._notice_tag

    def handle_data(self, data: str) -> None:
        if self._depth:
            self.notices.append(data)
        if self._in_task:
            self.task = (self.task or "") + data
        if self._in_worker_id:
            self.worker_id, self._in_worker_id = data.strip(), False


# Not for this worker, such as practice that was passed; or not there.
GONE = (403, 404, 409, 410)
PATIENCE_SECONDS = 60
# A site takes only so many new accounts a minute from one address, and may begin anew meanwhile.
# Short at first: a database that is busy is free again within a second.
PAUSES_SECONDS = (1, 2, 4, 8, 15, 30, 60)
BUSY = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE)


@dataclass(frozen=True)
class Task:
    assignment_id: str
    hit_id: str
    submit_url: str
    page: dict[str, Any]


class CrowdWorker:
    def __init__(self, site_url: str, name: str, *, secret: str) -> None:
        # The account's password is derived from the secret, which no worker knows.
        self.site_url, self.name = site_url.rstrip("/"), name
        self.session = requests.Session()
        self.refusal = ""
        # As the site's pages show it, once the worker has signed in.
        self.worker_id = ""
        self._was_answered = False
        self._secret = secret
        self._password = hmac.new(
            secret.encode(), f"crowd:{name}".encode(), hashlib.sha256
        ).hexdigest()

    def arrive(self) -> None:
        # In this order, since a site refuses many log-ins by names that it does not know.
        require(
            self._enter("/worker/signup/") or self._enter("/worker/login/"),
            CrowdStuck(
                f"Worker '{self.name}' can neither log in nor sign up.", code="login_refused"
            ),
        )

    def _enter(self, path: str) -> bool:
        page = Page(self._get(path).text)
        form = next(
            (form for form in page.forms if any("password" in name for name in form.fields)), None
        )
        if form is None:
            raise CrowdStuck(
                f"There is no form with a password at {self.site_url}{path}.", code="no_login"
            )
        credentials = {name: self._password for name in form.fields if "password" in name}
        credentials |= {name: self.name for name in form.fields if name == "username"}
        entered = self._fill(
            self.site_url + path, Form(form.action, form.classes, form.fields | credentials)
        )
        self.worker_id = Page(entered.text).worker_id
        return urlsplit(entered.url).path != path

    def accept(self, hit_id: str) -> Task | None:
        return self._accept(f"/worker/hits/{hit_id}/")

    def accept_next(self, hit_type_id: str) -> Task | None:
        return self._accept(f"/worker/groups/{hit_type_id}/")

    def _accept(self, path: str) -> Task | None:
        # A worker who holds the HIT already is shown the work page at once.
        page = self._get(path, accepted_statuses=GONE)
        form = Page(page.text).form("accept") if page.status_code not in GONE else None
        if form is not None:
            page = self._fill(page.url, form, accepted_statuses=GONE)
        is_accepted = page.status_code not in GONE and "/worker/assignments/" in page.url
        self.refusal = "" if is_accepted else Page(page.text).notice
        return self._open(page) if is_accepted else None

    def live_in(self, country: str) -> None:
        page = self._get("/worker/profile/")
        form = next((one for one in Page(page.text).forms if "subdivision" in one.fields), None)
        if form is None:
            raise CrowdStuck(
                f"The page at {page.url} does not ask where a worker lives.", code="no_residence"
            )
        stated = {"country": country, "subdivision": ""}
        self._fill(page.url, Form(form.action, form.classes, form.fields | stated))

    def _open(self, work: requests.Response) -> Task:
        frame = Page(work.text).frame
        if frame is None:
            raise CrowdStuck(f"The page at {work.url} has no task in a frame.", code="no_task")
        address = urljoin(work.url, frame)
        task = Page(self._get(address).text).task
        if task is None:
            raise CrowdStuck(
                f"The task at {address} is not one of Assay's own pages.", code="foreign_page"
            )
        query = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        assignment_id, slot, page = query["assignmentId"], query.get(SLOT), json.loads(task)
        return Task(
            assignment_id=assignment_id,
            hit_id=query["hitId"],
            submit_url=query["turkSubmitTo"].rstrip("/") + "/mturk/externalSubmit",
            page=page
            | {"candidates": shown_order(page, assignment_id, None if slot is None else int(slot))},
        )

    def take_test(self, type_id: str, choices: Sequence[int]) -> None:
        page = self._get(f"/worker/qualifications/{type_id}/")
        form = Page(page.text).form("accept")
        if form is None:
            return
        test = self._fill(page.url, form)
        form = Page(test.text).form("questions")
        if form is None:
            raise CrowdStuck(f"The page at {test.url} has no test.", code="no_test")
        answers = {f"question-{n}": str(choice) for n, choice in enumerate(choices, start=1)}
        self._fill(test.url, Form(form.action, form.classes, form.fields | answers))

    def submit(self, task: Task, answer: dict[str, Any]) -> None:
        if answer.get("simulated"):
            answer = answer | {"mark": simulation_mark(task.assignment_id, secret=self._secret)}
        self._request(
            "POST",
            task.submit_url,
            data={"assignmentId": task.assignment_id, "answer": json.dumps(answer)},
        )

    def _get(self, path: str, *, accepted_statuses: Collection[int] = ()) -> requests.Response:
        return self._request(
            "GET", urljoin(f"{self.site_url}/", path), accepted_statuses=accepted_statuses
        )

    def _fill(
        self, page: str, form: Form, *, accepted_statuses: Collection[int] = ()
    ) -> requests.Response:
        address, headers = urljoin(page, form.action), {"Referer": page}
        return self._request(
            "POST", address, data=form.fields, headers=headers, accepted_statuses=accepted_statuses
        )

    def _request(
        self, method: str, address: str, *, accepted_statuses: Collection[int] = (), **options: Any
    ) -> requests.Response:
        # Repeated if the site is busy or cuts the connection: every request here is safe to repeat.
        for pause_seconds in (*PAUSES_SECONDS, None):
            try:
                answer = self.session.request(method, address, timeout=PATIENCE_SECONDS, **options)
            except requests.RequestException as error:
                if pause_seconds is None or not self._was_answered:
                    raise CrowdStuck(
                        f"No worker site answers at {self.site_url}: {error}", code="no_site"
                    ) from error
            else:
                self._was_answered = True
                if answer.status_code not in BUSY or pause_seconds is None:
                    break
            time.sleep(pause_seconds)
        if answer.status_code >= 400 and answer.status_code not in accepted_statuses:
            raise CrowdStuck(
                f"{method} {address} answered {answer.status_code}.", code="bad_status"
            )
        return answer


# The options to choose, by the id of a qualification type.
Tests = Mapping[str, Sequence[int]]
NO_TESTS: Tests = MappingProxyType({})
# Whom an answer is about, by blind key, or None for the item; and the question's name.
AnswerKey = tuple[str | None, str]


class AnswerSource(Protocol):
    def answer(self, worker: str, page: dict[str, Any]) -> dict[str, Any]: ...


def form_answer(
    page: dict[str, Any],
    values: Mapping[AnswerKey, Any],
    justification: str = "",
    seconds: Mapping[AnswerKey, float] | None = None,
) -> dict[str, Any]:
    order, times = page["candidates"], seconds or {}
    return {
        "version": page["version"],
        "item": page["item"],
        "order": order,
        "judgments": [
            {
                "candidate": candidate,
                "question": question,
                "value": value,
                "seconds": times.get((candidate, question)),
            }
            for (candidate, question), value in values.items()
        ],
        "justification": justification,
        "comment": "",
        "active_seconds": sum(times.values()) if times else None,
        "pasted": False,
    }


class RecordedAnswers:
    def __init__(self, study: Study, drafts: Iterable[SubmissionDraft]) -> None:
        self.by_item = group_values((draft.item, draft) for draft in drafts)
        self.items = {str(key): name for key, name in study.items.values_list("pk", "key")}
        self.candidates = {
            (str(item), blind): key
            for item, blind, key in Candidate.objects.filter(item__study=study).values_list(
                "item", "blind_key", "key"
            )
        }

    def plan(self, batch: Batch) -> dict[str, list[str]]:
        hits = dict(Hit.objects.of(batch).collectable().values_list("item__key", "hit_id"))
        return group_values(
            (draft.identity or draft.annotator, hits[item])
            for item, drafts in self.by_item.items()
            for draft in drafts
            if item in hits
        )

    def answer(self, worker: str, page: dict[str, Any]) -> dict[str, Any]:
        item = self.items[page["item"]]
        draft = next(
            (d for d in self.by_item.get(item, []) if worker in (d.identity, d.annotator)), None
        )
        if draft is None:
            raise CrowdStuck(
                f"The record has no answer of '{worker}' for item '{item}'.", code="no_answer"
            )
        record = {(j.candidate, j.question): j.value for j in draft.judgments}
        pairs = [(key, pairs["name"]) for key in page["candidates"] for pairs in page["questions"]]
        names = {pair: (self.candidates[page["item"], pair[0]], pair[1]) for pair in pairs}
        for candidate, question in names.values():
            require(
                (candidate, question) in record,
                CrowdStuck(
                    f"The record of '{worker}' has no {question} of '{candidate}' in item "
                    f"'{item}'.",
                    code="no_judgment",
                ),
            )
        return form_answer(
            page, {pair: record[name] for pair, name in names.items()}, draft.justification
        )


@dataclass(frozen=True)
class CrowdPractice:
    hit_type_id: str
    source: AnswerSource
    collect: Callable[[], object]

    def let(self, workers: Mapping[str, CrowdWorker]) -> int:
        n_submitted, names = 0, list(workers)
        while names:
            tasks = {name: workers[name].accept_next(self.hit_type_id) for name in names}
            names = [name for name, task in tasks.items() if task is not None]
            for name, task in tasks.items():
                if task is not None:
                    workers[name].submit(task, self.source.answer(name, task.page))
            self.collect()
            n_submitted += len(names)
        return n_submitted


def crowd_practice(
    batch: Batch, source: AnswerSource, collect: Callable[[], object]
) -> CrowdPractice | None:
    type_id = batch.practice_hit_type_id
    return CrowdPractice(type_id, source, collect) if type_id else None


@dataclass(frozen=True)
class ReplayResult:
    n_workers: int
    n_submitted: int
    n_gone: int
    n_practised: int = 0
    refusal: str = ""

    def __str__(self) -> str:
        practised = f"practised {count_of(self.n_practised, 'time')} and " * bool(self.n_practised)
        sentence = (
            f"{count_of(self.n_workers, 'worker')} {practised}submitted "
            f"{count_of(self.n_submitted, 'assignment')} "
            f"({count_of(self.n_gone, 'HIT was', 'HITs were')} taken or done already)."
        )
        if self.n_submitted or not self.refusal:
            return sentence
        return f"{sentence} Nothing was open for them: {self.refusal}"


def replay_plan(
    *, plan: dict[str, list[str]], source: AnswerSource, site_url: str, **options: Any
) -> ReplayResult:
    steps = [(name, hit_id) for name, hits in plan.items() for hit_id in hits]

    def accept(workers: Mapping[str, CrowdWorker]) -> Iterable[tuple[str, Task | None]]:
        return ((name, workers[name].accept(hit_id)) for name, hit_id in steps)

    return _replay(plan, accept, source, site_url, total=len(steps), **options)


def crowd_names(n_workers: int, *, seed: int) -> list[str]:
    return [f"crowd-{seed}-{number}" for number in range(1, n_workers + 1)]


def replay_group(
    *,
    hit_type_id: str,
    names: Sequence[str],
    source: AnswerSource,
    site_url: str,
    total: int,
    **options: Any,
) -> ReplayResult:
    """Workers take turns at the group's next HIT until none is left; they first pass `tests` and
    `practice`, and live in `countries`."""

    def accept(workers: Mapping[str, CrowdWorker]) -> Iterable[tuple[str, Task | None]]:
        return _turns(workers, hit_type_id)

    return _replay(names, accept, source, site_url, total=total, **options)


def _replay(
    names: Iterable[str],
    accept: Callable[[Mapping[str, CrowdWorker]], Iterable[tuple[str, Task | None]]],
    source: AnswerSource,
    site_url: str,
    *,
    total: int,
    prefix: str = "",
    countries: Sequence[str] = (),
    tests: Tests = NO_TESTS,
    practice: CrowdPractice | None = None,
    progress: Progress = silently,
) -> ReplayResult:
    # In turns; nowhere where a batch takes everybody.
    homes = zip(names, cycle(countries or [""]), strict=False)
    workers = {name: _worker(site_url, prefix + name, tests, home) for name, home in homes}
    n_practised = practice.let(workers) if practice else 0
    n_submitted = n_gone = 0
    for name, task in progress(accept(workers), total):
        if task is None:
            n_gone += 1
            continue
        workers[name].submit(task, source.answer(name, task.page))
        n_submitted += 1
    # What the site said to the first worker whom it gave nothing.
    refusal = next((worker.refusal for worker in workers.values() if worker.refusal), "")
    return ReplayResult(len(workers), n_submitted, n_gone, n_practised, refusal)


def _turns(workers: Mapping[str, CrowdWorker], hit_type_id: str) -> Iterable[tuple[str, Task]]:
    queue = list(workers)
    while queue:
        for name in list(queue):
            task = workers[name].accept_next(hit_type_id)
            if task is None:
                queue.remove(name)
            else:
                yield name, task


def _worker(site_url: str, name: str, tests: Tests, country: str) -> CrowdWorker:
    worker = CrowdWorker(site_url, name, secret=settings.SECRET_KEY)
    worker.arrive()
    if country:
        worker.live_in(country)
    for type_id, choices in tests.items():
        worker.take_test(type_id, choices)
    return worker
