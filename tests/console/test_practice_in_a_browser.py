"""Practice as a worker meets it on the marketplace, in a real Chromium, to its last attempt."""

import os
from decimal import Decimal

import pytest
from playwright.sync_api import Locator, Page, expect

from annotation.protocols.records import (
    Practice,
    PracticeCandidate,
    PracticeItem,
    ProtocolDocument,
    ProtocolQuestion,
    Qualifications,
)
from annotation.protocols.versions import freeze, save_draft
from hits.collect import collect_batch
from hits.launch_plans import draft_batch, plan_batch
from hits.models import Batch
from hits.publish import publish_batch
from tests.accessibility import accessibility_problems
from tests.console.test_work_in_a_browser import client, marketplace_clock, open_site, task_of
from tests.hits.samples import rating_item

__all__ = ["client", "marketplace_clock", "open_site"]
pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
SHOTS = os.environ.get("SCREENSHOTS")
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True}
POLITE = ProtocolQuestion("polite", "yes_no", "Is it polite?")


@pytest.fixture
def batch(client) -> Batch:
    """A study whose two pages of practice have one response each, which is polite."""
    study = rating_item().study
    items = tuple(
        PracticeItem(candidates=(PracticeCandidate(text=text, scores={"polite": 1}),))
        for text in ("Thank you.", "You are welcome.")
    )
    practice = Qualifications(practice=Practice(0.05, items))
    document = ProtocolDocument((POLITE,), title="Rate replies", qualifications=practice)
    save_draft(study=study, document=document)
    freeze(study=study)
    draft = draft_batch(
        study=study, title="Rate", description="Read and rate.",
        reward_usd=Decimal("0.12"), max_assignments=1,
    )  # fmt: skip
    batch = plan_batch(draft=draft).batch
    publish_batch(batch=batch, client=client)
    return batch


def shot(page: Page, name: str) -> None:
    if SHOTS:
        page.screenshot(path=f"{SHOTS}/{name}-{page.viewport_size['width']}.png", full_page=True)


def press(page: Page, button: Locator) -> None:
    """By touch on a phone, else by the keyboard."""
    if page.viewport_size["width"] < 1000:
        button.tap()
    else:
        button.focus()
        button.press("Enter")


def practise(page: Page, choice: str):
    """Accept a HIT of practice, answer it and read what is right."""
    press(page, page.get_by_role("button", name="Accept this HIT"))
    page.wait_for_url("**/worker/assignments/**")
    task = task_of(page)
    option = task.get_by_label(choice, exact=True)
    if page.viewport_size["width"] < 1000:
        option.tap()
    else:
        option.focus()
        option.press("Space")
    press(page, task.get_by_role("button", name="Check my answers"))
    expect(task.locator("#verdict")).to_be_focused()
    return task


def batch_type(batch: Batch) -> str:
    batch.refresh_from_db()
    return batch.practice_type_id


@pytest.mark.parametrize("options", [{}, PHONE], ids=["desktop", "phone"])
def test_two_attempts_fail_and_every_page_says_what_holds(open_site, batch, client, options):
    page = open_site(**options)
    page.goto("/worker/")
    page.get_by_text("No, see why").click()
    expect(page.get_by_role("main")).not_to_contain_text("Ask for it")
    assert accessibility_problems(page) == []
    shot(page, "practice-first")
    page.locator("details").get_by_role("link", name="Practice: Rate").click()
    task = practise(page, "No")
    advice = task.locator("#verdict p")
    expect(advice).to_contain_text("and can practise at another HIT.")
    expect(task.locator(".feedback.is-wrong")).to_have_count(1)
    expect(task.locator(".tick:visible")).to_have_count(0)
    assert accessibility_problems(page) == []
    shot(page, "practice-feedback")
    page.reload()
    expect(task_of(page).locator("#verdict p")).to_contain_text("and can practise at another HIT.")
    press(page, task_of(page).get_by_role("button", name="Hand in"))
    page.wait_for_url("**/worker/groups/**")
    task = practise(page, "No")
    expect(task.locator("#verdict p")).to_contain_text("No practice is left for you")
    press(page, task.get_by_role("button", name="Hand in"))
    page.wait_for_url("**/worker/")
    page.get_by_text("No, see why").click()
    expect(page.get_by_role("main")).to_contain_text("the result is still to come")
    collect_batch(batch=batch, client=client)
    page.reload()
    page.get_by_text("No, see why").click()
    expect(page.get_by_role("main")).to_contain_text("your work for it did not pass.")
    assert accessibility_problems(page) == []
    shot(page, "practice-not-passed")
    page.goto(f"/worker/qualifications/{batch_type(batch)}/")
    expect(page.get_by_role("main")).to_contain_text("Your work for it did not pass.")
    assert accessibility_problems(page) == []
    shot(page, "practice-qualification")


def test_what_was_sent_is_read_on_the_page_with_what_was_right(open_site, batch):
    page = open_site()
    page.goto("/worker/")
    page.locator("th").get_by_role("link", name="Practice: Rate").click()
    practise(page, "Yes").get_by_role("button", name="Hand in").click()
    page.get_by_role("link", name="See what you sent").click()
    task = task_of(page)
    expect(task.locator("#verdict h2")).to_have_text("Passed: 1 of 1 answers are right")
    expect(task.locator("#verdict p")).to_be_hidden()
    expect(task.locator(".feedback.is-right")).to_have_count(1)
    expect(task.get_by_label("Yes", exact=True)).to_be_checked()
    expect(page.locator(".fields")).to_be_hidden()
    page.get_by_text("As it was received").click()
    expect(page.locator(".fields")).to_be_visible()
    shot(page, "practice-sent")
    assert accessibility_problems(page) == []
