"""Experiments in a browser: the pages on a desk and on a telephone."""

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from accounts.teams import create_team
from simulation.stored_catalogues import drawn_products
from simulation.stored_experiments import request_run
from simulation.stored_training import request_training
from tests.accessibility import accessibility_problems
from tests.browsers import opened_page, sign_in
from tests.console.conftest import PASSWORD
from tests.console.test_layout_in_a_browser import sideways
from tests.pictures import keep_picture
from tests.retrieval.collections import filled_collection
from tests.simulation.stored import RULES, stored_experiment

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("_immediate_tasks"),
]
WIDTHS = (1280, 390)


@pytest.fixture
def page(chromium, live_server, researcher):
    """The researcher Rosa's browser."""
    viewport = {"width": WIDTHS[0], "height": 900}
    with opened_page(chromium, base_url=live_server.url, viewport=viewport) as page:
        sign_in(page, "/login/", "rosa", PASSWORD)
        yield page


def test_every_page_fits_a_desk_and_a_telephone(page, researcher):
    team = create_team(name="Lab", owner=researcher)
    filled_collection(team, researcher)
    experiment = stored_experiment(team, researcher)
    request_run(experiment=experiment, rules=RULES, actor=researcher)
    trained = request_training(
        catalogue=drawn_products(team=team, n_items=400, actor=researcher),
        name="GRU-SL",
        kind="gru-sl",
        choices={"epochs": 2, "width": 8},
        start_from=None,
        actor=researcher,
    )
    addresses = {
        "experiments": reverse("console:experiments"),
        "new-experiment": reverse("console:new-experiment"),
        "experiment": reverse("console:experiment", args=["shoes"]),
        "experiment-delete": reverse("console:experiment-delete", args=["shoes"]),
        "catalogues": reverse("console:catalogues"),
        "catalogue": reverse("console:catalogue", args=[experiment.catalogue_id]),
        "recommenders": reverse("console:recommenders"),
        "new-recommender": reverse("console:new-recommender"),
        "recommender": reverse("console:recommender", args=[trained.pk]),
        "recommender-delete": reverse("console:recommender-delete", args=[trained.pk]),
        "catalogue-delete": reverse("console:catalogue-delete", args=[trained.catalogue_id]),
    }
    problems: list[tuple[str, int, object]] = []
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        for name, where in addresses.items():
            page.goto(where)
            expect(page.get_by_role("heading", level=1)).to_be_visible()
            if name == "experiment":
                expect(page.locator(".drawn svg, .drawn canvas").last).to_be_visible()
            keep_picture(page)
            if "HTML" in sideways(page):  # tables of many columns scroll by themselves
                problems.append((name, width, "the page scrolls sideways"))
            problems += [(name, width, one) for one in accessibility_problems(page)]
    assert problems == []


def test_the_focus_is_on_what_was_answered(page, researcher):
    """A screen reader reads it first, of a page whose title is the one of before."""
    team = create_team(name="Lab", owner=researcher)
    filled_collection(team, researcher)
    stored_experiment(team, researcher)
    for where in (reverse("console:new-experiment"), reverse("console:experiment", args=["shoes"])):
        page.goto(where)
        if page.locator("[name=name]").count():
            page.locator("[name=name]").fill("Heels")
            page.locator("select[name=catalogue]").select_option("stand-in")
        page.locator("button[name=check]").click()
        expect(page.locator(".notice[role=status][autofocus]")).to_be_focused()
        page.locator("[name=n_turns]").fill("0")
        page.locator("form.narrow").evaluate("(form) => { form.noValidate = true; }")
        page.locator("button[name=check]").click()
        expect(page.locator(".notice.error[role=alert][autofocus]")).to_be_focused()


def test_what_has_the_keyboard_is_outlined(page, researcher):
    team = create_team(name="Lab", owner=researcher)
    filled_collection(team, researcher)
    page.goto(reverse("console:new-experiment"))
    outlines: dict[str, set[str]] = {}
    for _ in range(60):
        page.keyboard.press("Tab")
        kind, outline = page.evaluate(
            """() => {
                const one = document.activeElement, style = getComputedStyle(one);
                return [one.type || one.localName, `${style.outlineWidth} ${style.outlineStyle}`];
            }"""
        )
        outlines.setdefault(kind, set()).add(outline)
    assert {"checkbox", "text", "number", "select-one", "submit"} <= outlines.keys()
    outlines.pop("body", None)
    assert {one for each in outlines.values() for one in each} == {"3px solid"}
