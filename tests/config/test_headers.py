import re

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import URLResolver, get_resolver, reverse

from marketplace.models import Requester
from marketplace.people.enrolment import create_worker, issue_access_key
from tests.annotation.studies import rated_study
from tests.marketplace.conftest import PASSWORD

pytestmark = pytest.mark.django_db
BASE = {"default-src": "'none'", "base-uri": "'none'", "script-src": "'self'"}
BASE |= {"style-src": "'self'", "form-action": "'self'", "connect-src": "'self'"}
# Their answers have a policy of their own: they run in a sandbox.
SANDBOXED = {"picture", "frame", "preview_frame", "protocol-preview", "trial-page"}
SANDBOXED |= {"shared-preview-page"}
# Anything may stand in an address; what is no object is a page too, which says so.
EXAMPLES = {
    "uuid": "00000000-0000-4000-8000-000000000000",
    "slug": "rated",
    "int": "1",
    "str": "x.csv",
    "entity_id": "A1",
    "format": "json",
}


def names(patterns, space=""):
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            inner = f"{space}{pattern.namespace}:" if pattern.namespace else space
            parts = arguments(pattern)
            for name, more in names(pattern.url_patterns, inner):
                yield name, parts | more
        else:
            yield f"{space}{pattern.name}", arguments(pattern)


def arguments(pattern):
    groups = pattern.pattern.regex.groupindex
    kinds = re.findall(r"<(?:(\w+):)?(\w+)>", str(pattern.pattern))
    examples = {name: EXAMPLES.get(kind, EXAMPLES.get(name, "x")) for kind, name in kinds}
    return {name: examples.get(name, EXAMPLES.get(name, "rated")) for name in groups}


def policy_of(answer):
    parts = answer.headers["Content-Security-Policy"].split(";")
    split = (part.strip().partition(" ") for part in parts if part.strip())
    return {name: values for name, _, values in split}


def check_policy(answer, name=""):
    policy = policy_of(answer)
    assert "unsafe" not in str(policy) or name.split(":")[-1] in SANDBOXED, (name, policy)
    if "sandbox" in policy:
        assert name.split(":")[-1] in SANDBOXED, name
        return
    assert policy | BASE == policy, (name, policy)
    assert policy.get("frame-ancestors", "") in ("'none'", ""), (name, policy)


ADDRESSES = [
    (name, reverse(name, kwargs=parts))
    for name, parts in names(get_resolver().url_patterns)
    if not name.endswith("None")  # the requester API's other spelling, which has no name
] + [("marketplace:requester_api", "/requester/")]


@pytest.fixture
def visitors():
    users = get_user_model().objects
    researcher = users.create_user("rosa", password=PASSWORD)
    operator = users.create_user("olga", password=PASSWORD, is_staff=True)
    rated_study(owner=researcher)
    issue_access_key(name="Lab")
    Requester.objects.get().users.add(researcher)
    browsers = {"nobody": Client(raise_request_exception=False)}
    for user in (researcher, operator, create_worker(username="ada", password=PASSWORD).user):
        browsers[user.username] = Client(raise_request_exception=False)
        browsers[user.username].force_login(user)
    return browsers


def test_what_signs_in_or_out_is_not_stored_and_every_kind_of_address_is_known(visitors):
    assert len(ADDRESSES) > 80
    known = {name.split(":")[0] for name, _ in ADDRESSES}
    assert known >= {"console", "marketplace", "account_change_password"}
    for name in ("console:logout", "marketplace:logout", "marketplace:requester_logout"):
        answer = visitors["ada"].post(reverse(name))
        check_policy(answer)
        assert "no-store" in answer.headers["Cache-Control"]
        visitors["ada"].force_login(get_user_model().objects.get(username="ada"))
    form = {"username": "rosa", "password": PASSWORD}
    answer = Client().post("/worker/login/", form)
    assert answer.status_code == 302
    assert "no-store" in answer.headers["Cache-Control"]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["get", "post"])
def test_every_address_has_a_strict_policy_and_private_ones_are_not_stored(visitors, method):
    statuses = set()
    for name, address in ADDRESSES:
        if name in ("console:logout", "marketplace:logout", "marketplace:requester_logout"):
            continue
        for person, browser in visitors.items():
            answer = getattr(browser, method)(address)
            statuses.add(answer.status_code)
            assert answer.status_code != 500, (name, person)
            check_policy(answer, name)
            if person != "nobody" and name != "console:picture":
                assert "no-store" in answer.headers["Cache-Control"], (name, person)
    assert statuses >= ({200, 302, 404} if method == "get" else {302, 403, 405})


@pytest.mark.parametrize(
    ("path", "host", "status"),
    [("/nothing/", "testserver", 404), ("/broken/", "testserver", 500), ("/", "evil", 400)],
)
def test_errors_bear_the_policy_too(visitors, settings, path, host, status):
    settings.ROOT_URLCONF = "tests.config.failing_urls"
    for browser in visitors.values():
        answer = browser.get(path, headers={"host": host})
        assert answer.status_code == status
        check_policy(answer)


def test_a_form_from_another_site_is_refused_and_static_files_may_be_stored(visitors):
    browser = Client(enforce_csrf_checks=True)
    answer = browser.post("/worker/login/", {"username": "ada", "password": PASSWORD})
    assert answer.status_code == 403
    check_policy(answer)
    answer = visitors["rosa"].get("/static/assay.css")
    assert answer.status_code == 200
    assert "no-store" not in answer.headers["Cache-Control"]
    answer.close()


@pytest.mark.slow
def test_a_page_that_any_site_may_frame_is_the_receipt_alone(visitors):
    assert {
        name
        for name, address in ADDRESSES
        for answer in [visitors["nobody"].post(address)]
        if "sandbox" not in policy_of(answer) and "frame-ancestors" not in policy_of(answer)
    } == {"marketplace:external_submit"}
