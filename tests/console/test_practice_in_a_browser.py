"""Practice as a worker meets it on the marketplace, in a real Chromium, to its last attempt."""

import os
import re
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
    press(page, page.locator("form.accept button").first)
    page.wait_for_url("**/worker/assignments/**")
    task = task_of(page)
    option = task.locator(f"input[value='{choice}']").first
    if page.viewport_size["width"] < 1000:
        option.tap()
    else:
        option.focus()
        option.press("Space")
    press(page, task.locator("#send button"))
    expect(task.locator("#verdict")).to_be_focused()
    return task


def batch_type(batch: Batch) -> str:
    batch.refresh_from_db()
    return batch.practice_type_id


def task_text(task, key: str) -> str:
    """A text of the task's page, which it keeps in a template."""
    script = "(node, key) => node.content.querySelector(`#${key}`).textContent"
    return task.locator("#texts").evaluate(script, key)


def show_unmet(page: Page) -> Locator:
    """Unfold why the HITs cannot be accepted yet."""
    page.locator("td details summary").first.click()
    return page.locator("td details").first


@pytest.mark.parametrize("options", [{}, PHONE], ids=["desktop", "phone"])
def test_two_attempts_fail_and_every_page_says_what_holds(open_site, batch, client, options):
    page = open_site(**options)
    page.goto("/worker/")
    unmet = show_unmet(page)
    expect(unmet.locator("a[href*='/qualifications/']")).to_have_count(0)
    assert accessibility_problems(page) == []
    shot(page, "practice-first")
    unmet.locator("a[href*='/groups/']").click()
    task = practise(page, "0")
    advice = task.locator("#verdict p")
    expect(advice).to_have_text(task_text(task, "failed-more"))
    expect(task.locator(".feedback.is-wrong")).to_have_count(1)
    expect(task.locator(".tick:visible")).to_have_count(0)
    assert accessibility_problems(page) == []
    shot(page, "practice-feedback")
    page.reload()
    task = task_of(page)
    expect(advice).to_have_text(task_text(task, "failed-more"))
    press(page, task.locator("#send button"))
    page.wait_for_url("**/worker/groups/**")
    task = practise(page, "0")
    expect(advice).to_have_text(task_text(task, "failed-last"))
    press(page, task.locator("#send button"))
    page.wait_for_url("**/worker/")
    expect(show_unmet(page).locator("a")).to_have_count(0)  # the result is still to come
    collect_batch(batch=batch, client=client)
    page.reload()
    expect(show_unmet(page).locator("[data-code=not_passed]")).to_be_visible()
    assert accessibility_problems(page) == []
    shot(page, "practice-not-passed")
    page.goto(f"/worker/qualifications/{batch_type(batch)}/")
    expect(page.locator("[data-code=not_passed]")).to_be_visible()
    assert accessibility_problems(page) == []
    shot(page, "practice-qualification")


def test_the_page_of_what_was_sent_shows_what_was_right(open_site, batch):
    page = open_site()
    page.goto("/worker/")
    show_unmet(page).locator("a[href*='/groups/']").click()
    practise(page, "1").locator("#send button").click()
    page.locator("#receipt a").first.click()
    task = task_of(page)
    expect(task.locator("#verdict h2")).to_have_text(re.compile(r"^\D+1\D+1\D+$"))
    expect(task.locator("#verdict p")).to_be_hidden()
    expect(task.locator(".feedback.is-right")).to_have_count(1)
    expect(task.locator("input[value='1']").first).to_be_checked()
    expect(page.locator(".fields")).to_be_hidden()
    page.locator("#received summary").click()
    expect(page.locator(".fields")).to_be_visible()
    shot(page, "practice-sent")
    assert accessibility_problems(page) == []
