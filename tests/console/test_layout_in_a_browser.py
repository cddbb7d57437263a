"""What is in sight without scrolling sideways, on a desk and on a telephone."""

import pytest
from django.urls import reverse

from tests.accessibility import accessibility_problems
from tests.annotation.studies import rate, rating_study
from tests.browsers import opened_page, sign_in
from tests.console.conftest import PASSWORD
from tests.console.filled import scored_study

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

DESK, TELEPHONE, SMALLEST = 1280, 390, 320


@pytest.fixture
def page(chromium, live_server, researcher):
    """The researcher Rosa's browser."""
    viewport = {"width": DESK, "height": 900}
    with opened_page(chromium, base_url=live_server.url, viewport=viewport) as page:
        sign_in(page, "/login/", "rosa", PASSWORD)
        yield page


@pytest.fixture
def study(researcher):
    """An item of which two annotators said something."""
    study = rating_study(owner=researcher, n_items=1)
    for name in ("Ann", "Bob"):
        submission = rate(study, name, "d0", {"alpha": 3, "beta": 4})
        submission.justification = "It answers the question that was put to it."
        submission.comment = "The second response repeats itself."
        submission.save()
    return study


def right_edge(page, locator):
    """How far from the window's left edge something ends, in CSS pixels."""
    page.wait_for_timeout(100)
    box = locator.bounding_box()
    return box["x"] + box["width"]


@pytest.mark.parametrize("width", [DESK, TELEPHONE])
def test_a_submission_is_flagged_without_scrolling_sideways(page, study, width):
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(reverse("console:item", args=[study.slug, study.items.get().pk]))
    summaries = page.locator("main summary")
    assert summaries.count() == 2
    for summary in summaries.all():
        assert right_edge(page, summary) <= width


def test_all_of_a_submission_is_in_sight_on_a_desk(page, study):
    page.goto(reverse("console:item", args=[study.slug, study.items.get().pk]))
    region = page.get_by_role("region", name="Submissions")
    assert region.evaluate("node => node.scrollWidth - node.clientWidth") <= 0


def test_labels_are_made_on_the_smallest_telephone(page, study):
    study.questions.update(name="appropriateness-to-the-conversation")
    page.set_viewport_size({"width": SMALLEST, "height": 600})
    page.goto(reverse("console:labels", args=[study.slug]))
    assert right_edge(page, page.get_by_label("Question and method")) <= SMALLEST
    assert page.evaluate("document.documentElement.scrollWidth") <= SMALLEST


@pytest.mark.usefixtures("_immediate_tasks")
def test_the_report_s_file_is_accessible_and_fits_a_telephone(page, researcher, rosa, read):
    study = scored_study(owner=researcher, metrics=("nll", "bleurt"))
    read(study, "report")
    file = rosa.get(reverse("console:report-file", args=[study.slug, "report.html"]))
    page.goto("about:blank")
    page.set_content(file.content.decode())
    assert page.get_by_role("main").locator("svg").count() > 0
    assert accessibility_problems(page) == []
    page.set_viewport_size({"width": TELEPHONE, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= TELEPHONE
