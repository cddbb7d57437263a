"""A researcher publishes, a person in a real Chromium does the HIT, the judgments come home."""

from decimal import Decimal

import pytest
from playwright.sync_api import FrameLocator, Page, expect

from annotation.imports import import_study
from annotation.models import Judgment, Study, Submission
from annotation.readers.alternatives import read_alternatives
from annotation.readers.responses import read_responses
from console.samples import FOLDER
from hits.collect import collect_batch
from hits.endpoints import connect
from hits.enrolment import enrol_requester, enrol_worker
from hits.launch_plans import draft_batch, plan_batch
from hits.publish import publish_batch
from tests.accessibility import accessibility_problems
from tests.browsers import opened_page, sign_in

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
PASSWORD = "correct horse battery staple"
REASON = "They have the same shape and colour."


@pytest.fixture
def client(live_server):
    key = enrol_requester(site_url=live_server.url, name="Test lab", test_funds_usd=Decimal(100))
    return connect(key=key, endpoint_url=f"{live_server.url}/requester")


@pytest.fixture
def page(chromium, live_server):
    enrol_worker(site_url=live_server.url, username="ada", password=PASSWORD)
    viewport = {"width": 1280, "height": 900}
    with opened_page(chromium, base_url=live_server.url, viewport=viewport) as page:
        sign_in(page, "/worker/login/", "ada", PASSWORD)
        yield page


def published_batch(study: Study, client):
    draft = draft_batch(
        study=study,
        title=study.title,
        description="Judge what is on the page.",
        reward_usd=Decimal("0.12"),
        max_assignments=1,
    )
    batch = plan_batch(draft=draft).batch
    publish_batch(batch=batch, client=client)
    return batch


def accept_task(page: Page, title: str) -> FrameLocator:
    """The task of the group's next HIT, found and accepted by keyboard."""
    page.get_by_role("link", name=title).press("Enter")
    page.locator("form.accept button").first.press("Enter")
    page.wait_for_url("**/worker/assignments/**")
    task = page.frame_locator("iframe#task")
    expect(task.locator("#progress")).not_to_be_empty()
    # The marketplace's page and the task within it, as a worker has them: together.
    assert accessibility_problems(page) == []
    return task


@pytest.mark.flow
def test_a_rating_made_by_keyboard_becomes_the_studys_judgments(page, client):
    responses = FOLDER / "responses.csv"
    study = import_study(
        draft=read_responses(responses), path=responses, slug="rated", title="Rate responses"
    ).study
    batch = published_batch(study, client)
    page.reload()
    task = accept_task(page, "Rate responses")
    letters = {}
    for position, slider in enumerate(task.get_by_role("slider").all()):
        slider.press("Home")
        for _ in range(position + 1):
            page.keyboard.press("PageUp")
        letters[task.locator("[data-candidate]").nth(position).inner_text()[0]] = 10 * (
            position + 1
        )
    before = page.url
    task.locator("#send button").press("Enter")
    page.wait_for_url(lambda url: url != before)
    collect_batch(batch=batch, client=client)
    judgments = Judgment.objects.of(study).order_by("position")
    assert [judgment.value for judgment in judgments] == [10, 20, 30, 40]
    assert [judgment.position for judgment in judgments] == [0, 1, 2, 3]
    assert letters == {"A": 10, "B": 20, "C": 30, "D": 40}
    submission = Submission.objects.get()
    assert submission.shown_order == [judgment.candidate.key for judgment in judgments]
    assert submission.seconds is not None
    assert submission.annotator.pseudonym.startswith("A")


def test_alternatives_ticked_by_keyboard_become_ones_and_the_rest_zeros(page, client):
    pools = FOLDER / "alternatives.jsonl"
    study = import_study(
        draft=read_alternatives(pools), path=pools, slug="pools", title="Tick alternatives"
    ).study
    batch = published_batch(study, client)
    page.reload()
    task = accept_task(page, "Tick alternatives")
    cards = task.locator("[data-candidate]")
    two_cards = [cards.nth(position) for position in (0, 3)]
    for card in two_cards:
        card.get_by_role("checkbox").press("Space")
    titles = {card.get_by_role("img").first.get_attribute("alt") for card in two_cards}
    before = page.url
    task.locator("textarea").first.press_sequentially(REASON)
    task.locator("#send button").press("Enter")
    page.wait_for_url(lambda url: url != before)
    collect_batch(batch=batch, client=client)
    values = {j.candidate.text: j.value for j in Judgment.objects.of(study)}
    assert len(values) == 8
    assert {title for title, value in values.items() if value == 1} == titles
    submission = Submission.objects.get()
    assert submission.justification == REASON
