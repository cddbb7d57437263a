"""Every address of the marketplace × everybody who may ask for it, by GET and by POST.

Which addresses there are and whose they are, the matrix of the console's tests says; one that is
missing there fails.
"""

from collections.abc import Iterator

import pytest
from django.db import transaction
from django.test import Client
from django.urls import NoReverseMatch, get_resolver, reverse

from accounts.models import User
from marketplace.hits.assignments import accept_hit
from marketplace.models import Assignment, Hit, Requester, Session
from marketplace.people.enrolment import create_worker, issue_access_key
from marketplace.urls import urlpatterns
from marketplace.web.worker.arrivals import AUTO_ACCEPT
from tests.config.test_headers import names
from tests.console.addresses import OPERATORS, REQUESTERS, SIGNED_REQUESTS, WORKERS
from tests.marketplace.conftest import HIT, PASSWORD
from tests.marketplace.recruiting.test_recruited_studies import came, create_hits, open_panel
from tests.stored_changes import changed_tables

pytestmark = pytest.mark.django_db

# Refused or not there; an address that takes the other method refuses with 405.
REFUSED = {400, 401, 403, 404, 405}
NOT_FOUND = "3NOTHERE"
SIGN_IN = "login"


@pytest.fixture
def hit(mturk):
    return Hit.objects.get(public_id=mturk.create_hit(**HIT, MaxAssignments=2)["HIT"]["HITId"])


@pytest.fixture
def people(hit):
    ada, bob = (create_worker(username=name, password=PASSWORD) for name in ("ada", "bob"))
    accept_hit(hit=hit, worker=ada)
    users = {"worker": ada.user, "other_worker": bob.user}
    other = issue_access_key(name="Another lab", deposit_usd=None).requester
    for name, requester in (("requester", hit.requester), ("other_requester", other)):
        users[name] = User.objects.create_user(name, password=PASSWORD)
        requester.users.add(users[name])
    users["operator"] = User.objects.create_user("olga", password=PASSWORD, is_staff=True)
    browsers = {name: Client() for name in users} | {"anonymous": Client()}
    for name, user in users.items():
        browsers[name].force_login(user)
    return browsers


def parts_of(route: str, hit: Hit) -> dict[str, object]:
    known = {
        "requester_id": hit.requester.public_id,
        "hit_id": hit.public_id,
        "hit_type_id": hit.hit_type.public_id,
        "assignment_id": Assignment.objects.get().public_id,
        "access_key_id": hit.requester.access_keys.first().access_key_id,
        "batch_id": 1,
        "session_id": NOT_FOUND,
        "token": "no-such-token",
    }
    return {name: known.get(name, NOT_FOUND) for name in route}


def addresses(names: set[str], hit: Hit) -> Iterator[tuple[str, str]]:
    _, urls = get_resolver().namespace_dict["marketplace"]
    for name in sorted(names):
        for pattern in urls.reverse_dict.getlist(name):
            for _route, parts in pattern[0]:
                try:
                    yield name, reverse(f"marketplace:{name}", kwargs=parts_of(parts, hit))
                except NoReverseMatch as error:
                    raise AssertionError(f"{name} has a part that the matrix lacks") from error


def statuses(browser: Client, where: str) -> set[int | str]:
    answers: set[int | str] = set()
    for method in (browser.get, browser.post):
        with transaction.atomic():
            answer = method(where)
            transaction.set_rollback(True)
        is_led = answer.status_code == 302 and "/login/" in answer.url
        answers.add(SIGN_IN if is_led else answer.status_code)
    return answers


def allowed(browser: Client, names: set[str], hit: Hit, refusals: set[int | str]) -> dict[str, set]:
    opened = {}
    for name, where in addresses(names, hit):
        others = statuses(browser, where) - refusals
        if others:
            opened[name] = others
    return opened


@pytest.mark.parametrize("names", [WORKERS, REQUESTERS, OPERATORS], ids=["work", "pay", "run"])
def test_nobody_gets_in_without_signing_in(people, hit, names):
    assert allowed(people["anonymous"], names, hit, {SIGN_IN, *REFUSED}) == {}


@pytest.mark.parametrize("person", ["worker", "requester", "operator"])
def test_every_action_needs_a_form_of_this_site(people, hit, person):
    browser = Client(enforce_csrf_checks=True)
    browser.cookies = people[person].cookies
    for name, where in addresses(WORKERS | REQUESTERS | OPERATORS, hit):
        with transaction.atomic():
            answer = browser.post(where)
            transaction.set_rollback(True)
        assert answer.status_code in (403, 405), name


@pytest.mark.slow
@pytest.mark.parametrize("person", ["requester", "operator"])
def test_who_is_no_worker_does_no_work(people, hit, person):
    assert allowed(people[person], WORKERS, hit, REFUSED) == {}


@pytest.mark.parametrize("person", ["worker", "other_worker", "other_requester"])
def test_a_requesters_pages_are_its_own_peoples(people, hit, person):
    assert allowed(people[person], REQUESTERS, hit, {SIGN_IN, *REFUSED}) == {}


@pytest.mark.parametrize("person", ["worker", "other_worker", "requester", "other_requester"])
def test_operators_pages_are_operators_alone(people, hit, person):
    assert allowed(people[person], OPERATORS, hit, {SIGN_IN, *REFUSED}) == {}


def test_another_workers_assignment_is_not_there(people, hit):
    held = Assignment.objects.get().public_id
    opened = {}
    # Its switch is the session's own; what it leads to is not there.
    for name, where in addresses(WORKERS - {"auto_accept"}, hit):
        if held in where and (others := statuses(people["other_worker"], where) - REFUSED):
            opened[name] = others
    assert opened == {}
    assert Assignment.objects.get().worker.user.username == "ada"
    accept = f"/worker/hits/{hit.public_id}/accept/"
    assert "marketplace_assignment" in changed_tables(people["other_worker"].post, accept)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("person", "names"), [("worker", WORKERS), ("requester", REQUESTERS), ("operator", OPERATORS)]
)
def test_each_opens_their_own_pages_and_none_breaks(people, hit, person, names):
    answers = {name: statuses(people[person], where) for name, where in addresses(names, hit)}
    assert [name for name, codes in answers.items() if SIGN_IN in codes or 403 in codes] == []
    assert {code for codes in answers.values() for code in codes if code == 500} == set()
    assert sum(200 in codes for codes in answers.values()) >= 3


@pytest.mark.parametrize(
    "person", ["anonymous", "worker", "requester", "other_requester", "operator"]
)
def test_no_session_opens_what_is_signed(people, hit, person):
    assert allowed(people[person], SIGNED_REQUESTS, hit, REFUSED) == {}
    assert Requester.objects.count() == 2


# No GET request changes data: links and pages of other sites can make a browser send them


def changes_by_get(browser: Client, places) -> dict[str, set[str]]:
    session = browser.session
    session[AUTO_ACCEPT] = True
    session.save()
    changes = {where: changed_tables(browser.get, where) for where in places}
    return {where: tables for where, tables in changes.items() if tables}


@pytest.mark.parametrize("name", ["worker", "other_worker", "requester", "operator", "anonymous"])
def test_no_address_of_the_marketplace_changes_data_by_get(people, hit, mturk, name):
    mturk.create_hit(**HIT)
    patterns = get_resolver().namespace_dict["marketplace"][1].reverse_dict
    known = {pattern for pattern in patterns if isinstance(pattern, str)}
    places = [where for _name, where in addresses(known, hit)]
    queries = (f"?groupId={hit.hit_type.public_id}", f"?hitId={hit.public_id}")
    places += [place + query for place in places if "/mturk/" in place for query in queries]
    assert changes_by_get(people[name], places) == {}
    assert Assignment.objects.count() == 1


def test_no_page_of_a_participant_changes_data_by_get(mturk):
    study = open_panel(create_hits(mturk), name="Three", items_per_session=3)
    browser = came(study, "p1", "x1")
    assignment = Assignment.objects.order_by("pk").first()
    known = {
        "session_id": Session.objects.get().public_id,
        "assignment_id": assignment.public_id,
        "hit_id": assignment.hit.public_id,
        "hit_type_id": study.hit_type.public_id,
        "token": study.token,
    }
    places = [
        reverse(f"marketplace:{name}", kwargs={part: known[part] for part in parts})
        for name, parts in names(urlpatterns)
        if set(parts) <= known.keys() and not name.endswith("None") and name != "recruited_file"
    ]
    assert len(places) > 30
    assert changes_by_get(browser, places) == {}
