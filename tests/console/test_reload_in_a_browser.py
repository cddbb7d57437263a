"""A page that is loaded anew when its job is done leaves presses, focus and typed text alone."""

import pytest
from django.contrib.sessions.models import Session
from django.urls import reverse
from playwright.sync_api import expect

from annotation.study_jobs import MEASURE
from hits.models import DraftDecision, WorkerNote
from tests.browsers import opened_page, sign_in
from tests.console.conftest import PASSWORD
from tests.console.test_review_in_a_browser import study  # noqa: F401 -- a fixture
from tests.console.work import request_for_later, work_off
from work.models import Job

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
NOTE, NEWS = "[name=note]", "#news"
# The page asks each second whether the job is done.
TWO_POLLS_MS = 2500


@pytest.fixture
def page(chromium, live_server, study, researcher):  # noqa: F811
    """The desk while the flags are computed again; `mark` tells this page from one loaded anew."""
    study.refresh_from_db()
    study.judgments_version += 1
    study.save(update_fields=["judgments_version"])
    basis = str(study.judgments_version)
    request_for_later(study=study, kind=MEASURE, requested_by=researcher, basis=basis)
    viewport = {"width": 1280, "height": 900}
    with opened_page(chromium, base_url=live_server.url, viewport=viewport) as page:
        sign_in(page, "/login/", "rosa", PASSWORD)
        page.goto(reverse("console:review", args=[study.slug]))
        expect(page.locator("#measuring")).to_be_visible()
        page.evaluate("window.mark = 1")
        yield page


def finish_the_job(page):
    """The job is done, and the page has been told so."""
    with page.expect_response(lambda reply: reply.headers.get("hx-refresh") == "true"):
        work_off()
    assert Job.objects.get(kind=MEASURE).state == Job.State.DONE


def is_the_same(page):
    return page.evaluate("window.mark === 1")


def write_note(page):
    page.locator("details:has([name=note]) summary").click()
    page.locator(NOTE).fill("Writes good comments.")


def test_the_page_is_loaded_anew_with_the_submission_that_was_read(page):
    page.locator("a[data-key=j]").click()
    heading = page.locator("#item-of").inner_text()
    page.evaluate("window.mark = 1")
    work_off()
    expect(page.locator("#measuring")).to_have_count(0)
    assert not is_the_same(page)
    assert page.locator("#item-of").inner_text() == heading


def test_a_reload_shows_the_submission_that_stood_first(page):
    heading = page.locator("#item-of").inner_text()
    number = page.locator("nav.queue [aria-current]").get_attribute("href").rpartition("=")[2]
    assert page.url.endswith(f"assignment={number}")
    page.reload()
    assert page.locator("#item-of").inner_text() == heading


def test_a_press_that_is_under_way_counts(page):
    box = page.locator("button[data-key=a]").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    finish_the_job(page)
    page.wait_for_timeout(TWO_POLLS_MS)
    with page.expect_navigation():
        page.mouse.up()
    expect(page.locator("[data-code=drafted_approve]")).to_be_visible()
    assert DraftDecision.objects.get().action == "approve"


def test_a_decision_on_its_way_is_not_called_off(page):
    def delay(route):
        page.wait_for_timeout(TWO_POLLS_MS)
        route.continue_()

    page.route("**/review/*/draft/", delay)
    page.locator("button[data-key=a]").click(no_wait_after=True)
    work_off()
    expect(page.locator("[data-code=drafted_approve]")).to_be_visible()
    assert DraftDecision.objects.get().action == "approve"


def test_what_is_typed_waits_for_its_button(page):
    write_note(page)
    assert page.locator(NEWS).is_hidden()
    finish_the_job(page)
    expect(page.locator(NEWS)).to_be_visible()
    page.wait_for_timeout(TWO_POLLS_MS)
    assert is_the_same(page)
    page.locator("form[action$='/note/'] button").click()
    expect(page.get_by_text("Writes good comments.")).to_be_visible()
    assert WorkerNote.objects.get().text == "Writes good comments."


def test_a_text_taken_back_lets_the_page_be_loaded_anew(page):
    write_note(page)
    finish_the_job(page)
    expect(page.locator(NEWS)).to_be_visible()
    page.locator(NOTE).fill("")
    expect(page.locator("#measuring")).to_have_count(0)
    assert not is_the_same(page)


def test_who_is_logged_out_is_told_and_gets_no_login_page_within_the_page(page):
    write_note(page)
    Session.objects.all().delete()
    notice = page.locator("#logged-out")
    expect(notice).to_be_visible()
    assert page.locator("[name=password]").count() == 0
    assert page.locator(NOTE).input_value() == "Writes good comments."
    notice.locator("a").click()
    expect(page.locator("[name=password]")).to_be_visible()
    assert page.url.endswith("?next=/studies/ratings/review/")
