import re

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from annotation import models, study_facts
from annotation.result_kinds.base import find_study_kind
from tests.accessibility import accessibility_problems
from tests.annotation.studies import doubt, rate, rated_study, rating_study
from tests.browsers import opened_page, sign_in, wait_until
from tests.console import filled, work
from tests.console.conftest import PASSWORD
from work.models import Job

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 390, "height": 800}


@pytest.fixture(params=["light", "dark"])
def page(request, chromium, live_server):
    """A page that keeps what it asked the network for in `addresses`."""
    look = {"color_scheme": request.param, "viewport": WIDE}
    with opened_page(chromium, base_url=live_server.url, **look) as page:
        page.addresses, page.complaints = [], []
        page.on("request", lambda sent: page.addresses.append(sent.url))
        # Anything the content policy refuses is told here.
        page.on("console", lambda entry: entry.type == "error" and page.complaints.append(entry))
        page.on("pageerror", lambda error: page.complaints.append(error))
        yield page
        assert page.addresses
        assert not [str(entry) for entry in page.complaints]
        assert all(url.startswith(live_server.url) for url in page.addresses)


# What does not depend on the colours is tried in one of them.
in_light = pytest.mark.parametrize("page", ["light"], indirect=True)


def check_accessible(page):
    assert not [str(entry) for entry in page.complaints]
    for size in (WIDE, NARROW):
        page.set_viewport_size(size)
        assert accessibility_problems(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    page.set_viewport_size(WIDE)
    # The checker styles what it measures, which the policy refuses it as it would a page.
    page.complaints.clear()


def test_signing_in_and_out_is_accessible(page, researcher):
    page.goto("/")
    check_accessible(page)
    page.locator("[name=username]").fill("rosa")
    page.locator("[name=password]").fill("a guess")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_be_visible()
    check_accessible(page)
    sign_in(page, "/", "rosa", PASSWORD)
    check_accessible(page)
    page.locator("form[action$='/logout/'] button").press("Enter")
    page.wait_for_url("**/login/**")


@pytest.fixture
def full_study(researcher):
    study = filled.scored_study(
        owner=researcher,
        title="Dialogue responses",
        conditions=("calm", "angry"),
        metrics=("nll", "bleurt"),
        level="ordinal",
    )
    filled.add_scores(study, "perplexity", higher_is_better=False)
    batch = filled.add_batch(study, n_published=2)
    filled.add_assignment(batch.hits.first(), problem="The answer names no candidate.")
    doubt(models.Submission.objects.first())
    for name in ("agreement", "results", "validation"):
        find_study_kind(name).compute_now(study)
    return study


def test_a_rating_study_with_everything_in_it_is_accessible(page, full_study):
    sign_in(page, "/", "rosa", PASSWORD)
    check_accessible(page)
    page.locator("main table a[href='/studies/scored/']").press("Enter")
    expect(page.get_by_role("heading", name="Dialogue responses")).to_be_visible()
    check_accessible(page)
    stages = page.locator("nav.stages.wide")
    for name in ("items", "launch", "answers", "results", "labels", "validation", "downloads"):
        stage = stages.locator(f"a[href='/studies/scored/{name}/']")
        stage.press("Enter")
        expect(stage).to_have_attribute("aria-current", "page")
        if name in ("results", "validation"):
            # An answer and its evidence on two screens; the rest is folded, and drawn on request.
            assert page.evaluate("document.documentElement.scrollHeight") <= 2 * 900
            check_accessible(page)
            page.evaluate("document.querySelectorAll('.fold').forEach((one) => one.open = true)")
            for chart in page.locator("[data-chart]").all():
                expect(chart).to_have_attribute("data-drawn", "true")
        check_accessible(page)


@pytest.mark.parametrize("page", ["dark"], indirect=True)
def test_main_pages_are_legible_in_the_dark(page, full_study):
    sign_in(page, "/", "rosa", PASSWORD)
    names = ["study", "protocol", "review", "adjudication", "paper", "members", "search", "delete"]
    of_all = ["studies", "new-study", "collections", "experiments", "teams", "how-many"]
    for path in (
        *(reverse(f"console:{name}", args=[full_study.slug]) for name in names),
        *(reverse(f"console:{name}") for name in of_all),
        *("/account/", "/nowhere/", "/worker/", "/worker/dashboard"),
    ):
        page.goto(path)
        if path.endswith("/paper/"):
            page.locator("[data-code=open_fields] > summary").press("Enter")
            expect(page.locator("[name='1/1.1']")).to_be_visible()
            with page.expect_download():
                page.locator("[data-downloads]").press("Enter")
            kept = f"localStorage['downloaded:{path}']"
            wait_until(page, kept)
            page.evaluate(f"{kept} = {kept}.replace(/[.]/g, '!')")
            page.reload()
            expect(page.locator("[data-code=changed_since]").first).to_be_visible()
        assert not accessibility_problems(page), path
    page.complaints.clear()


@in_light
def test_scoring_is_asked_for_by_keyboard_and_followed_by_the_page(page, full_study):
    sign_in(page, "/", "rosa", PASSWORD)
    page.goto("/studies/scored/validation/")
    view = page.locator("details.change")
    for choice in ("level=system", "condition=angry"):
        view.locator("summary").click()
        view.locator(f"a[href*='{choice}']").press("Enter")
        page.wait_for_url(f"**{choice}**")
    expect(view.locator(".tabs a[href*='level=system']")).to_have_attribute("aria-current", "true")
    page.locator("#score > summary").click()
    page.locator("[name=metric][value=rouge1]").check()
    page.locator("#score button").press("Enter")
    expect(page.locator(".notice[role=status]").first).to_contain_text("rouge1")
    check_accessible(page)
    job = Job.objects.get(kind=study_facts.SCORE)
    assert job.state == Job.State.QUEUED
    work.work_off()
    job.refresh_from_db()
    expect(page.get_by_text(job.message)).to_be_visible()


def test_agreement_is_drawn_in_the_page_s_colours_and_accessible(page, full_study):
    sign_in(page, "/", "rosa", PASSWORD)
    page.goto("/studies/scored/agreement/")
    charts = page.locator("[data-chart]")
    expect(charts).to_have_count(4)
    for chart in charts.all():
        expect(chart).to_have_attribute("data-drawn", "true")
    forest = page.get_by_role("img").filter(has=page.locator("svg")).first
    expect(forest).to_have_attribute("aria-label", re.compile(r"appropriateness .* 0\.\d\d"))
    expect(forest.locator("svg")).to_contain_text("appropriateness, calm")
    check_accessible(page)
    page.locator("main a[href*='/disagreement/']").first.press("Enter")
    check_accessible(page)
    page.locator("th a[href*='sort=item']").press("Enter")
    expect(page.locator("th[aria-sort=ascending] a[href*='item']")).to_be_visible()
    page.get_by_role("link", name="d0").first.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("d0")
    check_accessible(page)
    page.goto("/studies/scored/agreement/annotators/")
    check_accessible(page)


@in_light
def test_disputes_are_decided_one_after_another_by_keyboard_alone(page, researcher):
    study = rating_study(owner=researcher, systems=("alpha",), level="ordinal")
    study.questions.update(scale_max=4)
    for item, first, second in (("d0", 1, 2), ("d1", 0, 4), ("d2", 1, 3)):
        rate(study, "Ann", item, {"alpha": first})
        rate(study, "Bob", item, {"alpha": second})
    find_study_kind("agreement").compute_now(study)
    sign_in(page, "/", "rosa", PASSWORD)
    page.goto("/studies/ratings/adjudication/?threshold=0")
    check_accessible(page)
    page.get_by_label("0", exact=True).focus()
    for value in (2, 1, 3):
        page.keyboard.press("Space")
        for _ in range(value):
            page.keyboard.press("ArrowRight")
        page.keyboard.press("Enter")
        expect(page.locator(".notice.success")).to_be_visible()
        if value != 3:
            expect(page.get_by_label("0", exact=True)).to_be_focused()
    expect(page.locator("[data-code=all_decided]")).to_be_visible()
    decisions = models.Adjudication.objects.values_list("candidate__item__key", "value")
    assert list(decisions) == [("d1", 2), ("d2", 1), ("d0", 3)]
    check_accessible(page)


@in_light
@pytest.mark.flow
def test_a_page_that_waits_shows_its_result_and_labels_are_made_by_keyboard(page, researcher):
    rated_study(owner=researcher)
    sign_in(page, "/", "rosa", PASSWORD)
    page.goto("/studies/rated/agreement/")
    expect(page.locator("[data-chart]")).to_have_count(0)
    check_accessible(page)
    work.work_off()
    expect(page.locator("[data-chart]").first).to_be_visible()
    page.goto("/studies/rated/labels/")
    check_accessible(page)
    page.locator("[name=rule]").select_option("median:appropriateness")
    page.locator("form[action$='/labels/make/'] button").press("Enter")
    expect(page.locator(".notice[id^=job-]")).to_be_visible()
    expect(page.locator("main table")).to_have_count(0)
    work.work_off()
    expect(page.locator("main tbody tr")).to_contain_text("1appropriatenessmedian")
    check_accessible(page)


@in_light
def test_a_study_at_its_beginning_and_an_address_that_is_not_there_are_accessible(page, researcher):
    rating_study(owner=researcher, n_items=0)
    sign_in(page, "/", "rosa", PASSWORD)
    page.goto("/")
    page.keyboard.press("Tab")
    skip = page.locator("a[href^='#']").first
    expect(skip).to_be_focused()  # the keyboard reaches the content first
    expect(skip).to_be_in_viewport()
    for name in ("", "items/", "agreement/", "validation/"):
        page.goto(f"/studies/ratings/{name}")
        check_accessible(page)
    page.goto("/studies/nothing/")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    # The browser itself tells of the missing page.
    page.complaints.clear()
    check_accessible(page)
