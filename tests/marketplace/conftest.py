import io
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.core.management import call_command
from django.db.models import F, Sum
from django.test import Client
from playwright.sync_api import Browser, Page
from pytest_django.live_server_helper import LiveServer

from accounts.models import User
from marketplace import clock, money
from marketplace.bridge import certificates, proxy
from marketplace.hits.assignments import accept_hit, answer_document, submit_answer
from marketplace.models import Assignment, Hit, LedgerEntry, Requester, WorkerAccount
from marketplace.money.reconciliation import audit
from marketplace.people.enrolment import create_worker, issue_access_key
from tests.accessibility import accessibility_problems
from tests.boto_clients import in_process_client
from tests.browsers import opened_page, sign_in
from tests.marketplace.bridges import Trust, bridge_to, lead_programs

HTML_QUESTION = """<?xml version="1.0" encoding="UTF-8"?>
<HTMLQuestion xmlns="http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/2011-11-11/HTMLQuestion.xsd">
<HTMLContent><![CDATA[<!doctype html><title>Task</title>
<form method="post" action="/mturk/externalSubmit"><input name="assignmentId"></form>]]>
</HTMLContent>
<FrameHeight>450</FrameHeight></HTMLQuestion>"""
EXTERNAL_QUESTION = """<ExternalQuestion xmlns="http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/2006-07-14/ExternalQuestion.xsd">
<ExternalURL>https://study.example/task?item=7&amp;round=1</ExternalURL>
<FrameHeight>0</FrameHeight></ExternalQuestion>"""
POLICY_COMPLAINT = re.compile("content security policy|refused to", re.IGNORECASE)
PASSWORD = "a-long-and-winding-password"
HIT_TYPE = {
    "Title": "Rate eight responses",
    "Description": "Read a dialogue and rate what comes next.",
    "Keywords": "dialogue, rating",
    "Reward": "0.63",
    "AssignmentDurationInSeconds": 1200,
    "AutoApprovalDelayInSeconds": 3 * 86_400,
}
# States that it takes two and a half minutes: $15.12 per hour.
ESTIMATE = '<meta name="estimated-seconds" content="150">'
ESTIMATED_QUESTION = HTML_QUESTION.replace("<title>", f"{ESTIMATE}<title>")
HIT = HIT_TYPE | {"LifetimeInSeconds": 86_400, "Question": HTML_QUESTION}


@pytest.fixture(autouse=True)
def marketplace_clock() -> Iterator[None]:
    clock.reset()
    yield
    clock.reset()


@pytest.fixture
def make_keys(db: None) -> Callable[..., dict[str, str]]:
    def make(name: str = "Dialogue lab", deposit: str | None = "100") -> dict[str, str]:
        amount = None if deposit is None else Decimal(deposit)
        return asdict(issue_access_key(name=name, deposit_usd=amount))

    return make


@pytest.fixture
def keys(make_keys: Callable[..., dict[str, str]]) -> dict[str, str]:
    return make_keys()


@pytest.fixture
def mturk(keys: dict[str, str]) -> Iterator[Any]:
    """A boto3 client of a requester with $100. Whatever story a test tells with it,
    the ledger balances at its end and hold exactly what the open work may still cost."""
    yield in_process_client(keys)
    assert_ledger_balances()


@pytest.fixture
def requester(keys: dict[str, str]) -> Requester:
    return Requester.objects.get(access_keys__access_key_id=keys["access_key_id"])


@pytest.fixture
def other_lab(make_keys: Callable[..., dict[str, str]]) -> Any:
    return in_process_client(make_keys("Other lab"))


@pytest.fixture
def hit_id(mturk: Any) -> str:
    hit_id: str = mturk.create_hit(**HIT)["HIT"]["HITId"]
    return hit_id


@pytest.fixture
def hit(hit_id: str) -> Hit:
    return Hit.objects.get(public_id=hit_id)


@pytest.fixture
def olga(db: None) -> Client:
    browser = Client()
    browser.force_login(User.objects.create_user("olga", is_staff=True))
    return browser


@pytest.fixture
def rita(requester: Requester) -> Client:
    user = User.objects.create_user("rita", password=PASSWORD)
    requester.users.add(user)
    browser = Client()
    browser.force_login(user)
    return browser


@pytest.fixture
def owner(requester: Requester, rita: Client) -> Client:
    requester.owners.add(User.objects.get(username="rita"))
    return rita


@pytest.fixture
def make_worker(db: None) -> Callable[[str], WorkerAccount]:
    return lambda name: create_worker(username=name, password=PASSWORD)


@pytest.fixture
def worker(make_worker: Callable[[str], WorkerAccount]) -> WorkerAccount:
    return make_worker("ada")


@pytest.fixture
def browser_of() -> Callable[[WorkerAccount], Client]:
    """A signed-in browser without CSRF short cuts."""

    def sign_in(worker: WorkerAccount) -> Client:
        client = Client()
        client.force_login(worker.user)
        return client

    return sign_in


@pytest.fixture
def ada(worker: WorkerAccount, browser_of: Callable[[WorkerAccount], Client]) -> Client:
    return browser_of(worker)


@contextmanager
def watched_page(browser: Browser, **options: Any) -> Iterator[Page]:
    with opened_page(browser, **options) as page:
        lines: list[str] = []
        page.on("console", lambda line: lines.append(line.text))
        page.on("pageerror", lambda error: lines.append(str(error)))
        page.log_lines = lines  # type: ignore[attr-defined]
        yield page
        assert not [line for line in lines if POLICY_COMPLAINT.search(line)]


def check_accessible(page: Page, *, frames: bool = False) -> None:
    """Axe finds no fault; what a requester put into a frame is the requester's to answer for."""
    log_lines: list[str] = getattr(page, "log_lines", [])
    n_lines = len(log_lines)
    assert accessibility_problems(page, frames=frames) == []
    del log_lines[n_lines:]  # axe itself breaks the content policy


@pytest.fixture
def worker_page(
    chromium: Browser, live_server: LiveServer, worker: WorkerAccount
) -> Iterator[Page]:
    with watched_page(chromium, base_url=live_server.url) as page:
        sign_in(page, "/worker/login/", "ada", PASSWORD)
        yield page


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Trust:
    return certificates.prepare_authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def bridge(live_server: LiveServer, authority: Trust) -> Iterator[proxy.Bridge]:
    with bridge_to(proxy.find_marketplace(live_server.url), authority) as started:
        yield started


@pytest.fixture
def led_to_the_bridge(
    bridge: proxy.Bridge, authority: Trust, keys: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lead_programs(monkeypatch, proxy_url=bridge.url, bundle=str(authority[1]), keys=keys)


def run(command: str, *arguments: Any, **options: Any) -> str:
    out = io.StringIO()
    call_command(command, *arguments, stdout=out, **options)
    return out.getvalue().strip()


def make_type(mturk: Any, name: str = "Chess", **more: Any) -> str:
    """Make a qualification type; return its id."""
    values = {"Name": name, "Description": "d", "QualificationTypeStatus": "Active"}
    created = mturk.create_qualification_type(**values | more)["QualificationType"]
    type_id: str = created["QualificationTypeId"]
    return type_id


def question_with(html: str) -> str:
    start, end = HTML_QUESTION.index("<!doctype"), HTML_QUESTION.index("]]>")
    return HTML_QUESTION[:start] + html + HTML_QUESTION[end:]


def submit(worker: WorkerAccount, hit_id: str, *, worked_seconds: float = 0, **answers: str) -> str:
    """Let a worker do a HIT in so many seconds, and return the assignment's id."""
    assignment = accept_hit(worker=worker, hit=Hit.objects.get(public_id=hit_id))
    if worked_seconds:
        let_time_pass(worker, worked_seconds)
    fields = [(name, [value]) for name, value in (answers or {"rating": "4"}).items()]
    # As from a marketplace that checks no schema: what comes then has to be borne too.
    answer = answer_document(fields)
    return submit_answer(public_id=assignment.public_id, answer=answer, is_checked=False).public_id


def let_time_pass(worker: WorkerAccount, seconds: float) -> None:
    step = timedelta(seconds=seconds)
    times = {name: F(name) - step for name in ("accepted_at", "submitted_at")}
    Assignment.objects.filter(worker=worker).update(**times)


def assert_ledger_balances() -> None:
    assert audit() == []
    total = LedgerEntry.objects.aggregate(total=Sum("amount_usd"))["total"]
    assert total is None or round(total, 2) == 0
    for hit in Hit.objects.with_counts().select_related("hit_type", "requester"):
        is_open = hit.status != "Disposed" and hit.expiration > clock.now()
        promised_usd = Decimal(0)
        for assignment in hit.assignments.filter(status__in=["Accepted", "Submitted"]):
            is_returnable = is_open and assignment.status == "Accepted"
            promised_usd += max(assignment.price_usd, hit.price_usd if is_returnable else 0)
        if is_open:
            promised_usd += hit.free_count * hit.price_usd
        is_settled = hit.next_transition_at is None or hit.next_transition_at > clock.now()
        assert not is_settled or money.ledger.held_for(hit) == promised_usd
