import re
import threading
import time
from contextlib import contextmanager
from datetime import timedelta
from itertools import pairwise

import pytest
from django.core.management import call_command
from django.db import connection as database
from django.utils import timezone
from playwright.sync_api import Page, expect

from accounts.models import Team, User
from annotation import models, study_facts
from annotation.imports import import_study
from annotation.readers.item_files import read_responses
from config.samples import FOLDER
from hits.models import Batch, Hit
from marketplace.models import Hit as MarketplaceHit
from tests.accessibility import accessibility_problems
from tests.browsers import opened_page, sign_in
from tests.console.conftest import PASSWORD
from tests.hits.pages.test_rehearsal import stored_rehearsal

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
DESK, TELEPHONE = 1280, 390


@pytest.fixture
def study(researcher: User):
    path = FOLDER / "responses.csv"
    names = {"slug": "sample", "title": "Four assistants rated"}
    return import_study(draft=read_responses(path), path=path, owner=researcher, **names).study


@pytest.fixture
def worker():
    with background_worker():
        yield


@contextmanager
def background_worker():
    is_over = threading.Event()

    def work() -> None:
        try:
            while not is_over.is_set():
                call_command("run_worker", until_empty=True)
                time.sleep(0.2)
        finally:
            database.close()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


@pytest.fixture(params=[DESK, TELEPHONE])
def page(request, chromium, funded_site, study):
    viewport = {"width": request.param, "height": 900}
    with opened_page(chromium, base_url=funded_site, viewport=viewport) as page:
        sign_in(page, "/login/", "rosa", PASSWORD)
        yield page


# What does not depend on the width is tried on a desk.
on_desk = pytest.mark.parametrize("page", [DESK], indirect=True)


def assert_in_order(page: Page) -> None:
    assert accessibility_problems(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


PUBLISH = "button[form=launch-form].btn-primary"
GIVE, CONNECT = "form[action$='/launch/team/'] button", "form[action$='/launch/connect/'] button"


@pytest.mark.flow
def test_a_newcomer_launches_a_pilot_by_mouse(page, worker):
    began, clicks = time.monotonic(), 0

    def click(selector: str) -> None:
        nonlocal clicks
        page.locator(selector).first.click()
        clicks += 1

    click("table a[href='/studies/sample/']")
    click("main a.btn[href$='/launch/']")
    assert_in_order(page)
    click(GIVE)
    assert_in_order(page)
    click(CONNECT)
    expect(page.locator(PUBLISH)).to_be_visible()
    expect(page.locator("#checks .pending")).to_have_count(0)
    assert_in_order(page)
    click(PUBLISH)
    expect(page.locator(".notice.success")).to_be_visible()
    assert_in_order(page)
    # The README promises five minutes; most of it is reading.
    assert clicks == 5
    assert time.monotonic() - began < 120
    batch = Batch.objects.get()
    assert batch.selection["n"] == Hit.objects.of(batch).published().count()
    assert MarketplaceHit.objects.count() == batch.selection["n"] < batch.study.items.count()


def test_prices_follow_what_is_typed(page, worker):
    launch_page(page)
    page.locator("[name=reward_usd]").fill("1.00")
    page.locator("[name=max_assignments]").fill("2")
    page.locator("[name=n_items]").fill("2")
    expect(page.locator("#cost .sum")).to_have_text("$4.00")
    assert page.locator("[name=n_items]").input_value() == "2"
    page.locator("[name=reward_usd]").press("Tab")
    expect(page.locator("#id_how")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#price-sample")).to_have_text("$4.00")
    page.locator("#how-listed").check()
    page.locator("[name=keys]").fill("no such item")
    expect(page.locator("#checks")).to_contain_text("no such item")
    assert_in_order(page)


@on_desk
@pytest.mark.parametrize("gap_seconds", [0.3, 1.2])
def test_whoever_presses_again_and_again_publishes_the_pilot_alone(page, worker, gap_seconds):
    launch_page(page)
    button = page.locator(PUBLISH)
    button.scroll_into_view_if_needed()
    box = button.bounding_box()
    assert box is not None
    point = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    for _press in range(4):
        page.mouse.click(*point)
        time.sleep(gap_seconds)
    # A later press may have chosen what is at the point by then; it is not launched by that.
    page.goto("/studies/sample/launch/")
    expect(page.locator(".notice.success")).to_be_visible()
    page.goto("/studies/sample/launch/")
    expect(page.locator("#cost .sum")).to_have_text("–")
    expect(page.locator(PUBLISH)).to_have_count(0)
    assert_in_order(page)
    batch = Batch.objects.get()
    assert MarketplaceHit.objects.count() == batch.selection["n"] < batch.study.items.count()
    # The rest is one choice and one press away.
    page.locator("#how-rest").check()
    expect(page.locator(PUBLISH)).to_contain_text(" 9 ")


def launch_page(page: Page) -> None:
    page.goto("/studies/sample/launch/")
    page.locator(GIVE).click()
    page.locator(CONNECT).click()
    expect(page.locator(PUBLISH)).to_be_visible()
    expect(page.locator("#checks .pending")).to_have_count(0)


@on_desk
def test_all_of_it_by_keyboard(page, worker):
    page.goto("/studies/sample/launch/")
    for button in (GIVE, CONNECT):
        tab_to(page, button)
        page.keyboard.press("Enter")
        expect(page.locator(button)).to_have_count(0)
    expect(page.locator(PUBLISH)).to_be_visible()
    expect(page.locator("#checks .pending")).to_have_count(0)
    tab_to(page, "details:has([name=title]) > summary")
    page.keyboard.press("Enter")
    expect(page.locator("[name=title]")).to_be_visible()
    assert_in_order(page)
    tab_to(page, PUBLISH)
    page.keyboard.press("Enter")
    expect(page.locator(".notice.success")).to_be_visible()
    assert MarketplaceHit.objects.exists()


def test_each_state_of_a_rehearsal_is_in_order(page, study):
    step = page.locator("#rehearsal")

    def expect_state(state: str) -> None:
        page.goto("/studies/sample/launch/")
        expect(step).to_have_attribute("data-state", state)
        assert_in_order(page)

    models.Study.objects.filter(pk=study.pk).update(owner=User.objects.get())
    expect_state("before")
    expect(step).to_have_class(re.compile("current"))
    step.locator("form .btn-primary").click()
    jobs = study_facts.jobs_of(study).of_kind(study_facts.REHEARSE)
    now = timezone.now()
    times = {"started_at": now - timedelta(seconds=96), "progress_at": now, "leased_until": now}
    jobs.update(state="running", phase="assignments", n_done=96, n_total=180, **times)
    expect_state("running")
    expect(step).to_contain_text("96 of 180 assignments")
    expect(step.locator("progress")).to_be_visible()
    expect(step.locator("form[action*='/stop/'] button")).to_be_visible()
    jobs.update(state="failed", message="The marketplace did not answer.")
    expect_state("failed")
    expect(step).to_contain_text("The marketplace did not answer.")
    expect(step.locator("form[action*='/again/'] button")).to_be_visible()
    jobs.update(state="done")
    study.items.get(position=1).candidates.update(text="word " * 400)
    stored_rehearsal(study)
    expect_state("finished")
    expect(step).not_to_have_class(re.compile("current"))
    step.locator("[data-code=long_pages] a").click()
    expect(page.locator("iframe.trial")).to_be_visible()


def tab_to(page: Page, selector: str) -> None:
    for _press in range(80):
        page.keyboard.press("Tab")
        if page.evaluate("one => document.activeElement.matches(one)", selector):
            return
    raise AssertionError(f"Tab does not lead to {selector}")


def assert_in_both_schemes(page: Page) -> None:
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        assert_in_order(page)


def test_pay_under_the_minimum_and_a_changed_price_keep_the_choices(page, worker):
    launch_page(page)
    Team.objects.update(wage_floor_usd=12)
    # A recruiter that is not connected is offered where it would be chosen.
    assert page.locator(".options > *").count() == 3
    expect(page.locator(".options [data-code=not_connected] a")).to_be_visible()
    page.locator("[name=reward_usd]").fill("0.05")
    enough = page.locator("#checks [name=enough_usd]")
    expect(enough).to_be_visible()
    marks = page.locator("svg.wage text")
    expect(marks.first).to_be_visible()
    assert_in_both_schemes(page)
    boxes = [mark.bounding_box() for mark in marks.all() if mark.is_visible()]
    boxes = sorted(
        ((box["y"], box["x"], box["width"]) for box in boxes if box), key=lambda b: b[:2]
    )
    for (y, x, width), (next_y, next_x, _width) in pairwise(boxes):
        assert next_y > y or x + width < next_x
    enough.click()
    expect(page.locator("#checks [name=enough_usd]")).to_have_count(0)
    assert float(page.locator("[name=reward_usd]").input_value()) > 0.1
    page.locator("[name=n_items]").fill("4")
    page.locator("[name=max_assignments]").fill("4")
    expect(page.locator("#cost dt").first).to_have_text(re.compile(r"4\D+4\D"))
    new = page.locator("#cost [name=total]").input_value()
    page.locator("#cost [name=total]").evaluate("each => each.value = '1.26'")
    page.locator(PUBLISH).click()
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("$1.26")
    expect(alert).to_contain_text(f"${new}")
    expect(page.locator(PUBLISH)).to_contain_text(f"${new}")
    assert page.locator("[name=n_items]").input_value() == "4"
    assert_in_both_schemes(page)
    assert not Batch.objects.exists()


@on_desk
def test_faults_are_listed_first_and_lead_to_their_fields(page, worker):
    launch_page(page)
    page.locator("[name=reward_usd]").fill("0.005")
    page.locator(PUBLISH).click()
    link = page.get_by_role("alert").locator("a[href='#id_reward_usd']")
    expect(link).to_be_visible()
    assert_in_order(page)
    link.click()
    expect(page.locator("[name=reward_usd]")).to_be_focused()
    assert not Batch.objects.exists()


def test_people_are_invited_by_links_and_work_without_an_account(page, worker, chromium):
    launch_page(page)
    page.locator("#id_is_invited").check()
    expect(page.locator("#cost .sum")).to_have_text("$0.00")
    expect(page.locator("[name=reward_usd]")).not_to_be_visible()
    page.locator("[name=hits_per_person]").fill("2")
    expect(page.locator("#checks .pending")).to_have_count(0)
    assert_in_order(page)
    page.locator(PUBLISH).click()
    expect(page.locator(".notice.success")).to_be_visible()
    page.locator(".notice a[href$='#participants']").first.click()
    assert_in_order(page)
    page.locator("[name=names]").fill("Ann Lee\nbob@example.org")
    page.locator("button[value=invite]").click()
    rows = page.locator("#participants tr[data-code=unopened]")
    expect(rows).to_have_count(2)
    assert_in_order(page)
    link = rows.first.locator("td .id").last.inner_text()
    with opened_page(chromium, viewport={"width": TELEPHONE, "height": 844}) as theirs:
        theirs.goto(link)
        assert_in_order(theirs)
        theirs.locator("form.accept button").click()
        assert_in_order(theirs)
        theirs.locator("a.button.primary").click()
        expect(theirs.locator("iframe")).to_be_visible()
    page.locator("button[value=share]").click()
    expect(page.locator("#shared-link")).to_be_visible()
    page.locator("tr", has_text="Ann Lee").locator("form button").click()
    expect(page.locator("#participants tr[data-code=revoked]")).to_have_count(1)
    assert_in_order(page)
    page.locator("button[value=close]").click()
    expect(page.locator("button[value=open]")).to_be_visible()
    assert_in_order(page)
