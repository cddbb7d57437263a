"""What workers, requesters and operators use works under the content policy, in real Chromium."""

import re

import pytest
from playwright.sync_api import expect

from accounts.models import User
from tests.browsers import opened_page, sign_in
from tests.marketplace.conftest import EXTERNAL_QUESTION, HIT, PASSWORD, submit
from tests.marketplace.forms import FULL_FORM
from tests.marketplace.test_tasks_in_a_browser import PLAIN

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

PICTURE = b"GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff,\x00\x00\x00\x00\x01"
PICTURE += b"\x00\x01\x00\x00\x02\x02D\x01\x00;"
POLICY = re.compile("content security policy|refused to", re.IGNORECASE)


@pytest.fixture(params=[1280, 390])
def page(request, chromium, live_server):
    """A page that must end without a complaint of the policy in its log."""
    size = {"width": request.param, "height": 900}
    with opened_page(chromium, base_url=live_server.url, viewport=size) as page:
        complaints = []
        page.on("console", lambda line: complaints.append(line.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.route(
            "https://study.example/**",
            lambda route: route.fulfill(content_type="text/html", body="<h1>A study</h1>"),
        )
        page.route(
            "https://pictures.example/**",
            lambda route: route.fulfill(content_type="image/gif", body=PICTURE),
        )
        yield page
        assert not [text for text in complaints if POLICY.search(text)]
        assert page.evaluate("document.documentElement.scrollWidth") <= request.param


def test_a_page_that_breaks_the_policy_is_noticed(chromium, live_server, db):
    """The browser does say so, else the tests below would prove nothing."""
    with opened_page(chromium, base_url=live_server.url) as page:
        lines = []
        page.on("console", lambda line: lines.append(line.text))
        page.goto("/worker/login/")
        page.evaluate("document.body.setAttribute('style', 'color: red')")
        page.evaluate(
            "document.body.append(Object.assign(document.createElement('script'), {text: '1'}))"
        )
        page.evaluate("fetch('https://elsewhere.example/').catch(() => {})")
        page.wait_for_timeout(500)
        assert len([line for line in lines if POLICY.search(line)]) >= 3


def test_a_worker_works_in_a_frame(page, mturk, worker):
    start, end = HIT["Question"].index("<!doctype"), HIT["Question"].index("]]>")
    mturk.create_hit(**HIT | {"Question": HIT["Question"][:start] + PLAIN + HIT["Question"][end:]})
    sign_in(page, "/worker/login/", "ada", PASSWORD)
    page.get_by_role("link", name="Rate eight responses").press("Enter")
    page.wait_for_url("**/worker/groups/**")
    expect(page.frame_locator("iframe#task").get_by_label("Rating")).to_be_visible()
    height = page.locator("iframe#task").evaluate("frame => frame.offsetHeight")
    assert height == 450  # as its requester wished
    page.get_by_role("button", name="Accept this HIT").press("Enter")
    page.wait_for_url("**/worker/assignments/**")
    expect(page.locator("#time-left")).to_contain_text("min")
    page.get_by_text("More", exact=True).press("Enter")
    page.get_by_label("Accept the next HIT by itself").check()
    frame = page.frame_locator("iframe#task")
    frame.get_by_label("Rating").fill("4")
    frame.get_by_role("button", name="Submit").press("Enter")
    page.wait_for_url("**/worker/")


def test_a_page_elsewhere_is_loaded_into_the_frame(page, mturk, worker):
    mturk.create_hit(**HIT | {"Question": EXTERNAL_QUESTION})
    sign_in(page, "/worker/login/", "ada", PASSWORD)
    page.get_by_role("link", name="Rate eight responses").press("Enter")
    heading = page.frame_locator("iframe#task").get_by_role("heading", name="A study")
    expect(heading).to_be_visible()
    page.get_by_role("button", name="Accept this HIT").press("Enter")
    page.wait_for_url("**/worker/assignments/**")
    expect(heading).to_be_visible()


def test_pictures_of_a_form_are_loaded(page, mturk, worker):
    mturk.create_hit(**HIT | {"Question": FULL_FORM})
    sign_in(page, "/worker/login/", "ada", PASSWORD)
    with page.expect_response("https://pictures.example/**"):
        page.get_by_role("link", name="Rate eight responses").press("Enter")
    page.get_by_role("button", name="Accept this HIT").press("Enter")
    page.wait_for_url("**/worker/assignments/**")
    page.get_by_role("button", name="Submit").press("Enter")
    expect(page.locator("#complaints")).to_be_visible()


def test_other_pages_of_everybody(page, mturk, worker, requester):
    submit(worker, mturk.create_hit(**HIT)["HIT"]["HITId"])
    user = User.objects.create_user("olga", password=PASSWORD, is_staff=True)
    requester.users.add(user)
    sign_in(page, "/worker/login/", "ada", PASSWORD)
    for name in ("", "dashboard/", "earnings/", "messages/", "qualifications/", "profile/"):
        page.goto(f"/worker/{name}")
    page.goto("/account/password/")
    expect(page.get_by_label("Current Password")).to_be_visible()
    page.goto("/nothing/")
    page.context.clear_cookies()
    sign_in(page, "/requester-console/login/", "olga", PASSWORD)
    home = f"/requester-console/{requester.public_id}/"
    for address in (home, f"{home}statement/", f"{home}channels/"):
        page.goto(address)
    for name in ("", f"requesters/{requester.public_id}/", "payouts/", "audit/", "status/"):
        page.goto(f"/marketplace-operator/{name}")
