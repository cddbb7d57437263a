"""A worker of the replay crowd: acts on the worker site as a person's browser would.

It knows HTTP and HTML only. It signs up, opens a HIT, accepts it, reads the page in the
frame and posts the form.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs, urljoin, urlsplit

import requests

from hits.answers import simulation_mark
from hits.exceptions import CrowdStuck
from hits.orders import SLOT, shown_order

UNSENT = {"submit", "button", "image", "reset"}


@dataclass
class Form:
    action: str
    classes: frozenset[str]
    fields: dict[str, str] = field(default_factory=dict)

    @property
    def asks_for_password(self) -> bool:
        return any("password" in name for name in self.fields)


class Page(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.forms: list[Form] = []
        self.frame: str | None = None
        self.task: str | None = None
        self.notices: list[str] = []
        self._in_form = self._in_task = False
        self._notice_tag, self._depth = "", 0
        self.feed(html)
        self.close()

    def form(self, name: str) -> Form | None:
        """The form of that class, such as `accept`."""
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
            classes = frozenset(values.get("class", "").split())
            self.forms.append(Form(values.get("action", ""), classes))
            self._in_form = True
        elif tag == "input" and self._in_form and values.get("type") not in UNSENT:
            self.forms[-1].fields[values.get("name", "")] = values.get("value", "")
        elif tag == "iframe" and values.get("id") == "task":
            self.frame = values.get("src")
        elif tag == "script" and values.get("id") == "task":
            self._in_task, self.task = True, ""

    def handle_endtag(self, tag: str) -> None:
        self._in_form = self._in_form and tag != "form"
        self._in_task = self._in_task and tag != "script"
        self._depth -= bool(self._depth) and tag == self._notice_tag

    def handle_data(self, data: str) -> None:
        if self._depth:
            self.notices.append(data)
        if self._in_task:
            self.task = (self.task or "") + data


# Not for this worker, such as practice that was passed; or not there.
GONE = (403, 404, 409, 410)
PATIENCE_SECONDS = 60
# A site takes only so many new accounts a minute from one address, and may begin anew meanwhile.
PAUSES_SECONDS = (5, 15, 30, 60)
BUSY = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE)


@dataclass(frozen=True)
class Task:
    """One accepted assignment, and its page's task with the candidates as the page shows them."""

    assignment_id: str
    hit_id: str
    submit_url: str
    page: dict[str, Any]


class CrowdWorker:
    """One worker with an account and a session on a worker site."""

    def __init__(self, site_url: str, name: str, *, secret: str) -> None:
        """Give a `secret` that no worker knows: the account's password is made of it."""
        self.site_url, self.name = site_url.rstrip("/"), name
        self.session = requests.Session()
        self.refusal = ""
        self._was_answered = False
        self._secret = secret
        message = f"crowd:{name}".encode()
        self._password = hmac.new(secret.encode(), message, hashlib.sha256).hexdigest()

    def arrive(self) -> None:
        """Sign up, or log in where there is such an account already.

        In this order, since a site refuses many log-ins by names that it does not know.
        """
        if not (self._enter("/worker/signup/") or self._enter("/worker/login/")):
            raise CrowdStuck(
                f"Worker '{self.name}' can neither log in nor sign up.", code="login_refused"
            )

    def _enter(self, path: str) -> bool:
        page = Page(self._get(path).text)
        form = next((form for form in page.forms if form.asks_for_password), None)
        if form is None:
            raise CrowdStuck(
                f"There is no form with a password at {self.site_url}{path}.", code="no_login"
            )
        answer = self._fill(self.site_url + path, self._completed_form(form))
        return urlsplit(answer.url).path != path

    def _completed_form(self, form: Form) -> Form:
        credentials = {name: self._password for name in form.fields if "password" in name}
        credentials |= {name: self.name for name in form.fields if name == "username"}
        return Form(form.action, form.classes, form.fields | credentials)

    def accept(self, hit_id: str) -> Task | None:
        """Accept one HIT by its address; None if it cannot be had any more."""
        return self._accept(f"/worker/hits/{hit_id}/")

    def accept_next(self, hit_type_id: str) -> Task | None:
        """Accept the next HIT of a group; None if there is none left for this worker."""
        return self._accept(f"/worker/groups/{hit_type_id}/")

    def _accept(self, path: str) -> Task | None:
        """A worker who holds the HIT already is shown the work page at once."""
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
        order = shown_order(page, assignment_id, None if slot is None else int(slot))
        return Task(
            assignment_id=assignment_id,
            hit_id=query["hitId"],
            submit_url=query["turkSubmitTo"].rstrip("/") + "/mturk/externalSubmit",
            page=page | {"candidates": order},
        )

    def take_test(self, type_id: str, choices: Sequence[int]) -> None:
        """Take a qualification test with these options, unless it cannot be begun again."""
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
        """Post the form of the task's page; a simulated answer with the proof that it is one."""
        if answer.get("simulated"):
            mark = simulation_mark(task.assignment_id, secret=self._secret)
            answer = answer | {"mark": mark}
        fields = {"assignmentId": task.assignment_id, "answer": json.dumps(answer)}
        self._request("POST", task.submit_url, data=fields)

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
        """Ask, again where the site is busy or cuts the connection: whatever is asked here does
        nothing more when it is asked twice."""
        for pause_seconds in (*PAUSES_SECONDS, None):
            try:
                answer = self.session.request(method, address, timeout=PATIENCE_SECONDS, **options)
            except requests.RequestException as error:
                if pause_seconds is None or not self._was_answered:
                    text = f"No worker site answers at {self.site_url}: {error}"
                    raise CrowdStuck(text, code="no_site") from error
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
