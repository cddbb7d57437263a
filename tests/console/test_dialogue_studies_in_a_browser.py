"""Studies of dialogues in a browser: the pages on a desk and on a telephone."""

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from accounts.teams import create_team
from annotation.models import Study
from simulation.models import DialogueStudy
from simulation.stored_dialogue_reports import request_report
from simulation.stored_dialogues import request_dialogue_study
from simulation.stored_experiments import request_run
from tests.accessibility import accessibility_problems, accessible_nodes
from tests.browsers import opened_page, sign_in
from tests.console.conftest import PASSWORD
from tests.console.test_layout_in_a_browser import sideways
from tests.pictures import keep_picture
from tests.simulation.answered import answer_outcomes, answer_switching
from tests.simulation.stored import RULES, stored_experiment

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("_immediate_tasks"),
]
WIDTHS = (1280, 390)
COMMON = {"seed": 0, "confidence": 0.95}
USERS = ["base", "tol:3", "base,accepts=target and alternatives"]
# Words of charts that are shortened, or not all within their chart.
CUT_OFF = """() => [...document.querySelectorAll(".drawn svg")].flatMap((svg) => {
  const box = svg.getBoundingClientRect();
  return [...svg.querySelectorAll("text")].filter((text) => {
    const own = text.getBoundingClientRect();
    const isOut = own.left < box.left - 1 || own.right > box.right + 1;
    return isOut || text.textContent.includes("…");
  }).map((text) => `cut off: ${text.textContent}`);
})"""


@pytest.fixture
def page(chromium, live_server, researcher):
    """The researcher Rosa's browser."""
    viewport = {"width": WIDTHS[0], "height": 900}
    with opened_page(chromium, base_url=live_server.url, viewport=viewport) as page:
        sign_in(page, "/login/", "rosa", PASSWORD)
        yield page


def reported(researcher) -> None:
    """Both studies, answered, each with its report."""
    experiment = stored_experiment(create_team(name="Lab", owner=researcher), researcher)
    rules = RULES | {"users": USERS, "seeds": [0], "n_turns": 4}
    version = request_run(experiment=experiment, rules=rules, actor=researcher)
    version.refresh_from_db()
    for kind in DialogueStudy.Kind:
        made = request_dialogue_study(
            kind=kind,
            title=kind.value.capitalize(),
            experiment=experiment,
            version=version,
            file=None,
            actor=researcher,
        )
        study = Study.objects.get(pk=made.study_id)
        if kind == DialogueStudy.Kind.OUTCOMES:
            answer_outcomes(study, experiment)
            users = list(version.users.order_by("position").values_list("name", flat=True))
            rules = {"users": users, "chosen_on": ["random"], "margin": 0.05}
        else:
            answer_switching(study)
            rules = {"users": ["base", "prob:0:0.75"]}
        row = DialogueStudy.objects.select_related("study").get(study=study)
        request_report(dialogues=row, rules=rules | COMMON, actor=researcher)


def test_every_page_fits_a_desk_and_a_telephone(page, researcher):
    reported(researcher)
    addresses = {
        "new-dialogue-study": reverse("console:new-dialogue-study"),
        "outcomes": reverse("console:dialogues", args=["outcomes"]),
        "switching": reverse("console:dialogues", args=["switching"]),
    }
    problems: list[tuple[str, int, object]] = []
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        for name, where in addresses.items():
            page.goto(where)
            expect(page.get_by_role("heading", level=1)).to_be_visible()
            if name != "new-dialogue-study":
                expect(page.locator(".drawn svg, .drawn canvas")).to_have_count(2)
                problems += [(name, width, one) for one in page.evaluate(CUT_OFF)]
            keep_picture(page)
            if "HTML" in sideways(page):  # tables of many columns scroll by themselves
                problems.append((name, width, "the page scrolls sideways"))
            problems += [(name, width, one) for one in accessibility_problems(page)]
    assert problems == []


def test_who_listens_hears_values_and_no_signs(page, researcher):
    reported(researcher)
    page.goto(reverse("console:dialogues", args=["outcomes"]))
    expect(page.locator(".drawn svg, .drawn canvas")).to_have_count(2)
    pictures = [one.name for one in accessible_nodes(page, {"image"})]
    assert "SimBase 1.000 [1.000, 1.000]" in pictures[0]
    assert "random" in pictures[1]
    summaries = accessible_nodes(page, {"DisclosureTriangle"})
    assert page.locator("#compute > summary").inner_text() in [one.name for one in summaries]
    assert not [one.name for one in summaries if {"▸", "▾"} & set(one.name)]


def test_an_error_leads_to_the_first_box_of_its_group(page, researcher):
    reported(researcher)
    page.goto(reverse("console:dialogues", args=["outcomes"]))
    page.locator("#compute > summary").click()
    for box in page.get_by_role("checkbox", checked=True).all():
        box.uncheck()
    page.locator("#compute button").click()
    page.locator(".notice.error a[href^='#id_']").click()
    expect(page.get_by_role("checkbox", name="random")).to_be_focused()
