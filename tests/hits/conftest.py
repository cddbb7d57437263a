from contextlib import ExitStack

import pytest
from playwright.sync_api import Page

from accounts.models import User
from annotation.models import Study
from hits import models, questions
from marketplace.models import WorkerAccount
from marketplace.people.enrolment import create_worker
from tests.annotation.studies import rating_study
from tests.browsers import opened_page
from tests.hits import frames, samples, work
from tests.hits.wire import wire_of
from tests.marketplace.conftest import assert_ledger_balances, marketplace_clock  # noqa: F401


@pytest.fixture
def ada(db):
    return User.objects.create_user("ada")


@pytest.fixture
def keys(db):
    return work.requester_keys()


@pytest.fixture
def site(live_server, keys, settings):
    """The address of this test's site, which has the requester's key where commands look for it."""
    settings.MARKETPLACE_ENDPOINT_URL = f"{live_server.url}/requester"
    settings.MARKETPLACE_ACCESS_KEY_ID = keys["access_key_id"]
    settings.MARKETPLACE_SECRET_ACCESS_KEY = keys["secret_access_key"]
    return str(live_server.url)


@pytest.fixture
def funded_site(live_server, settings):
    """The address of this test's site, whose teams become requesters with test funds."""
    settings.SITE_URL = live_server.url
    settings.MARKETPLACE_ENDPOINT_URL = f"{live_server.url}/requester"
    settings.MARKETPLACE_TEST_FUNDS = True
    return str(live_server.url)


@pytest.fixture(scope="module")
def stored_work(stored_for_module):
    """The keys of a requester of whom Ann has done three HITs of $1.00, for all tests of a module:
    its `keys` are these."""
    keys = work.requester_keys()
    work.collected_work(rating_study(), keys, "ann")
    return keys


@pytest.fixture
def wire(keys):
    """The way to the marketplace; whatever a test does over it, the books balance at its end."""
    yield wire_of(keys)
    assert_ledger_balances()


@pytest.fixture
def client(wire):
    """The requester's boto3 client, which goes over the wire."""
    return wire.client


@pytest.fixture
def make_worker(db):
    """A worker of a name, whom a module may have stored for all its tests."""

    def make(name: str) -> WorkerAccount:
        stored = WorkerAccount.objects.filter(user__username=name).first()
        return stored or create_worker(username=name, password="a-long-and-winding-password")

    return make


@pytest.fixture
def ann(make_worker):
    return make_worker("ann")


@pytest.fixture
def bob(make_worker):
    return make_worker("bob")


@pytest.fixture
def study(db):
    """Items d0, d1, d2 with responses of alpha and beta, rated 0-100 under one question; a module
    may have stored it for all its tests."""
    return Study.objects.filter(slug="ratings").first() or rating_study()


@pytest.fixture
def batch(study, wire):
    """The study's one, which a module has stored; the ledger balances after each test."""
    return models.Batch.objects.get(study=study)


@pytest.fixture
def open_page(chromium):
    """Opens an address in a browser context of its own, and holds the page to having no errors."""
    problems = []

    def open_(address: str, **options: object) -> Page:
        options = {"viewport": {"width": 1280, "height": 900}} | options
        page = stack.enter_context(opened_page(chromium, **options))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda entry: entry.type == "error" and problems.append(entry.text))
        page.goto(address)
        return page

    with ExitStack() as stack:
        yield open_
    assert problems == []


@pytest.fixture
def rating(db):
    return samples.rating_item()


@pytest.fixture
def alternatives(db):
    return samples.alternatives_item()


@pytest.fixture
def rating_frame(rating):
    with frames.frame_of(questions.task_page(rating)) as frame:
        yield frame


@pytest.fixture
def alternatives_frame(alternatives):
    with frames.frame_of(questions.task_page(alternatives)) as frame:
        yield frame
