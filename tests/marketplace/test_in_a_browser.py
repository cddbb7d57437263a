"""A worker's whole way, in a real Chromium and by the keyboard."""

import pytest
from playwright.sync_api import expect

from marketplace.models import Assignment, WorkerAccount
from tests.accessibility import accessibility_problems
from tests.browsers import opened_page
from tests.marketplace.conftest import HIT, HTML_QUESTION, PASSWORD

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

TASK = """<!doctype html><html lang="en"><title>Task</title><body>
<form method="post"><input type="hidden" name="assignmentId" id="key">
<label>Rating <input name="rating"></label><button>Submit</button></form>
<p id="origin"></p>
<script>
const query = new URLSearchParams(location.search);
document.getElementById("key").value = query.get("assignmentId");
document.forms[0].action = query.get("turkSubmitTo") + "/mturk/externalSubmit";
let cookies;
try { cookies = document.cookie } catch (error) { cookies = error.name }
document.getElementById("origin").textContent = `${self.origin} ${cookies}`;
</script></body></html>"""


@pytest.fixture
def page(chromium, live_server):
    with opened_page(chromium, base_url=live_server.url) as page:
        yield page


@pytest.fixture
def two_hits(mturk):
    start, end = HTML_QUESTION.index("<!doctype"), HTML_QUESTION.index("]]>")
    question = HTML_QUESTION[:start] + TASK + HTML_QUESTION[end:]
    for _ in range(2):
        mturk.create_hit(**HIT | {"Question": question})


def sign_up(page):
    page.goto("/worker/signup/")
    page.get_by_label("Name or e-mail address").fill("ada")
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_label("Password confirmation").fill(PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_url("**/worker/")


def check_accessible(page):
    # What a requester puts into the frame is the requester's to answer for.
    assert accessibility_problems(page, frames=False) == []


def test_who_may_not_sign_up_so_is_led_to_what_to_mend(page):
    page.goto("/worker/signup/")
    page.get_by_label("Name or e-mail address").fill("ada")
    page.get_by_label("Password", exact=True).fill("123")
    page.get_by_label("Password confirmation").fill("123")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_be_focused()
    expect(page.get_by_role("alert")).to_contain_text("too short")


def test_a_worker_signs_up_works_and_is_led_on(page, two_hits):
    sign_up(page)
    check_accessible(page)
    page.get_by_role("link", name="Rate eight responses").press("Enter")
    expect(page.locator("form.accept")).to_be_visible()
    check_accessible(page)
    page.get_by_role("button", name="Accept this HIT").press("Enter")
    for _ in range(2):
        if "/groups/" in page.url:
            page.get_by_role("button", name="Accept this HIT").press("Enter")
        page.wait_for_url("**/worker/assignments/**")
        frame = page.frame_locator("iframe#task")
        expect(frame.locator("#origin")).to_have_text("null SecurityError")
        check_accessible(page)
        here = page.url
        frame.get_by_label("Rating").fill("4")
        frame.get_by_label("Rating").press("Enter")
        page.wait_for_url(lambda url, here=here: url != here)
        expect(page.get_by_role("status").first).to_contain_text("were submitted")
    page.wait_for_url("**/worker/")
    expect(page.get_by_role("status").last).to_contain_text("are left for you")
    page.get_by_role("link", name="Dashboard").press("Enter")
    expect(page.get_by_text("$1.26")).to_be_visible()
    check_accessible(page)
    assert [a.status for a in Assignment.objects.all()] == ["Submitted", "Submitted"]


def test_coming_back_to_a_submitted_hit_says_that_it_was_submitted(page, two_hits):
    sign_up(page)
    page.get_by_role("link", name="Rate eight responses").click()
    page.get_by_role("button", name="Accept this HIT").click()
    page.wait_for_url("**/worker/assignments/**")
    here = page.url
    frame = page.frame_locator("iframe#task")
    frame.get_by_label("Rating").fill("4")
    frame.get_by_label("Rating").press("Enter")
    page.wait_for_url("**/worker/groups/**")
    page.go_back()
    expect(page.get_by_text("has been submitted already")).to_be_visible()
    assert page.url == f"{here}submitted/"


def test_a_message_from_elsewhere_does_not_move_the_worker_on(page, two_hits):
    sign_up(page)
    page.get_by_role("link", name="Rate eight responses").click()
    page.get_by_role("button", name="Accept this HIT").click()
    page.wait_for_url("**/worker/assignments/**")
    here = page.url
    # This listener comes after the page's own, which has seen the message when this one has.
    page.evaluate(
        """() => new Promise((done) => {
          window.addEventListener("message", done);
          window.postMessage({type: "assay:submitted"}, "*");
        })"""
    )
    assert page.evaluate("Object.keys(sessionStorage)") == []
    assert page.url == here


def test_a_worker_can_return_a_hit(page, two_hits):
    sign_up(page)
    page.get_by_role("link", name="Rate eight responses").click()
    page.get_by_role("button", name="Accept this HIT").click()
    page.get_by_role("button", name="Return this HIT").press("Enter")
    expect(page.get_by_role("status")).to_contain_text("You returned")
    assert WorkerAccount.objects.get().assignments.get().status == "Returned"
