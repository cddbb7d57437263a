"""What is in sight without scrolling sideways, on a desk and on a telephone."""

import pytest
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import expect

from accounts.teams import create_team
from annotation.access import give_to_team
from annotation.label_sets import Rule, make_label_set
from console.results import RESULTS, compute
from hits.models import Connection
from tests.accessibility import accessibility_problems
from tests.annotation.studies import rate, rating_study
from tests.browsers import opened_page, sign_in
from tests.console.conftest import PASSWORD
from tests.console.filled import add_assignment, add_batch, scored_study, store_validation

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
def test_an_unbroken_response_leaves_its_ratings_in_sight(page, study, width):
    study.items.get().candidates.update(text="W" * 2000)
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(reverse("console:item", args=[study.slug, study.items.get().pk]))
    table = page.locator("main table").first
    for cell in table.locator("tbody tr").first.locator("td").all():
        assert right_edge(page, cell) <= width


@pytest.mark.parametrize("width", [DESK, TELEPHONE])
def test_a_submission_is_flagged_without_scrolling_sideways(page, study, width):
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(reverse("console:item", args=[study.slug, study.items.get().pk]))
    summaries = page.locator("main summary")
    assert summaries.count() == 3  # of its candidates, and of two submissions
    for summary in summaries.all():
        assert right_edge(page, summary) <= width


def test_all_of_a_submission_is_in_sight_on_a_desk(page, study):
    page.goto(reverse("console:item", args=[study.slug, study.items.get().pk]))
    for region in page.locator("main .scroll").all():
        assert region.evaluate("node => node.scrollWidth - node.clientWidth") <= 0


@pytest.mark.usefixtures("_immediate_tasks")
def test_what_the_ends_of_a_scale_are_called_stands_at_its_ends(page, researcher):
    study = scored_study(owner=researcher)
    low, high = "Not at all fit for what was said before", "Fit for all that was said before"
    study.questions.update(low_label=low, high_label=high)
    compute(study, RESULTS)
    page.goto(reverse("console:results", args=[study.slug]))
    cell, low, high = page.locator("th .ends").evaluate(
        """ends => [ends, ends.firstChild, ends.lastChild].map(node => {
            const range = document.createRange();
            range.selectNodeContents(node);
            const box = node === ends ? node.getBoundingClientRect() : null;
            const lines = [...range.getClientRects()].filter(one => one.width > 8);
            return box ? [box.left, box.right]
                : [Math.min(...lines.map(one => one.left)), lines.map(one => one.right)];
        })"""
    )
    assert low[0] == pytest.approx(cell[0], abs=1)
    assert len(high[1]) > 1
    assert high[1] == pytest.approx([cell[1]] * len(high[1]), abs=6)


def test_labels_are_made_on_the_smallest_telephone(page, study):
    study.questions.update(name="appropriateness-to-the-conversation")
    page.set_viewport_size({"width": SMALLEST, "height": 600})
    page.goto(reverse("console:labels", args=[study.slug]))
    assert right_edge(page, page.locator("[name=rule]")) <= SMALLEST
    assert page.evaluate("document.documentElement.scrollWidth") <= SMALLEST


def test_the_table_of_label_sets_fits_a_desk(page, researcher, study):
    question = study.questions.first()
    for method in ("trimmed_mean", "bias_precision"):
        make_label_set(question=question, rule=Rule(method), created_by=researcher)
    page.goto(reverse("console:labels", args=[study.slug]))
    table = page.locator("main .scroll")
    expect(table).to_be_visible()
    assert table.evaluate("region => region.scrollWidth <= region.clientWidth")


@pytest.mark.usefixtures("_immediate_tasks")
def test_the_report_s_file_is_accessible_and_fits_a_telephone(page, researcher, rosa, page_text):
    study = scored_study(owner=researcher, metrics=("nll", "bleurt"))
    page_text(study, "report")
    file = rosa.get(reverse("console:report-file", args=[study.slug, "report.html"]))
    page.goto("about:blank")
    page.set_content(file.content.decode())
    assert page.get_by_role("main").locator("svg").count() > 0
    assert accessibility_problems(page) == []
    page.set_viewport_size({"width": TELEPHONE, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= TELEPHONE


TABLES = ["", "items/", "launch/", "answers/", "agreement/", "agreement/annotators/"]
TABLES += ["agreement/disagreement/", "adjudication/?threshold=0", "labels/", "validation/"]
TABLES += ["results/", "downloads/", "report/", "members/"]


@pytest.fixture
def everything(researcher):
    study = scored_study(owner=researcher, conditions=("calm", "angry"), metrics=("nll", "bleurt"))
    batch = add_batch(study, n_published=2)
    add_assignment(batch.hits.first(), problem="The answer names no candidate.")
    compute(study, "agreement")
    compute(study, "results")
    store_validation(study)
    make_label_set(question=study.questions.get(), rule=Rule("mean"))
    return study


def sideways(page):
    """What scrolls sideways: the page, or a table in it."""
    return page.evaluate(
        """() => [document.documentElement, ...document.querySelectorAll(".scroll")]
          .filter((node) => node.scrollWidth > node.clientWidth + 1)
          .map((node) => node.ariaLabel || node.tagName)"""
    )


@pytest.mark.parametrize("width", [SMALLEST, TELEPHONE])
def test_on_a_telephone_tables_are_labelled_lines_and_nothing_scrolls_sideways(
    page, everything, width
):
    page.set_viewport_size({"width": width, "height": 800})
    item, batch = everything.items.first().pk, everything.batches.get(is_recruited=False).pk
    wrong = {}
    for path in [*TABLES, f"items/{item}/", f"batches/{batch}/"]:
        page.goto(f"/studies/{everything.slug}/{path}")
        page.wait_for_load_state("networkidle")
        if found := sideways(page):
            wrong[path] = found
    page.goto("/")
    assert sideways(page) == []
    assert wrong == {}
    stage = page.locator("main .scroll tbody tr").first.locator("td[data-label]").first
    assert stage.evaluate("node => getComputedStyle(node).display") == "flow-root"
    assert accessibility_problems(page) == []


def connection_of(team, *, problem=""):
    return Connection.objects.create(
        team=team,
        name="Elsewhere",
        marketplace="crowd.example.org",
        endpoint_url="https://crowd.example.org/requester",
        access_key_id="AKIAEXAMPLE",
        problem=problem,
        failed_at=timezone.now(),
    )


@pytest.fixture
def launch_page(page, study, researcher):
    """The Launch page on a telephone, of a study with a batch that is out."""
    team = create_team(name="Lab", owner=researcher)
    give_to_team(study=study, team=team, actor=researcher)
    connection_of(team)
    add_batch(study)
    page.set_viewport_size({"width": TELEPHONE, "height": 800})
    page.goto(reverse("console:launch", args=[study.slug]))
    return page


def test_fields_beside_each_other_stand_in_a_row_though_a_label_wraps(launch_page):
    launch_page.locator("details.more > summary").click()
    minutes = launch_page.locator("[name=minutes]").bounding_box()
    days = launch_page.locator("[name=days]").bounding_box()
    assert minutes["x"] != days["x"]
    assert minutes["y"] == days["y"]


def test_a_value_stands_beside_its_label_however_long_that_is(launch_page):
    cells = launch_page.locator("table.labelled tbody tr").first.locator("td:not(:first-child)")
    left_edge = "cell => { const range = document.createRange(); range.selectNodeContents(cell);"
    left_edge += " return range.getBoundingClientRect().left; }"
    assert cells.count() > 3
    assert len({cell.evaluate(left_edge) for cell in cells.all()}) == 1


@pytest.mark.parametrize("width", [DESK, TELEPHONE, SMALLEST])
def test_what_went_wrong_with_a_connection_stands_below_its_name(page, researcher, width):
    team = create_team(name="Lab", owner=researcher)
    connection_of(team, problem="It took so long that the rest is left for later. " * 2)
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(reverse("console:connections", args=[team.slug]))
    address = page.get_by_text("https://crowd.example.org").bounding_box()
    problem = page.locator(".notice.error:visible")
    assert problem.bounding_box()["y"] >= address["y"] + address["height"]
    assert right_edge(page, problem) <= width


@pytest.mark.parametrize("width", [DESK, TELEPHONE, SMALLEST])
def test_how_many_topics_is_asked_and_drawn_within_the_window(page, width):
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(reverse("console:how-many"))
    page.locator("a[href*='ask=correlation']").press("Enter")
    page.locator("[name=power]").fill("0.8")
    page.keyboard.press("Enter")
    expect(page.locator("main").get_by_text("97 ").first).to_be_visible()
    expect(page.locator("#curve svg")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert accessibility_problems(page) == []


@pytest.mark.usefixtures("_immediate_tasks")
@pytest.mark.parametrize("width", [DESK, TELEPHONE])
@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("results", ["0", "25", "50", "75", "100"]),
        ("validation", ["0", "0.25", "0.5", "0.75", "1"]),
    ],
)
def test_a_drawn_interval_has_its_scale_in_sight(page, researcher, width, name, labels):
    study = scored_study(owner=researcher)
    study.questions.update(low_label="bad", high_label="good")
    for each in ("results", "validation"):
        compute(study, each)
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(reverse(f"console:{name}", args=[study.slug]))
    table = page.locator("table.spans.labelled").first
    scales = table.locator(".ticks:visible")
    rows = table.locator("tbody tr").count()
    assert scales.count() == (rows if width == TELEPHONE else 1)
    shown = [text for text in scales.first.locator("span:visible").all_inner_texts() if text]
    assert shown[-len(labels) :] == labels
    centres = [middle(one) for one in scales.first.locator("span").all()]
    lines = [
        middle(one) for one in table.locator("svg.span").first.locator("line.tick, line.zero").all()
    ]
    assert centres == pytest.approx(lines, abs=4)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def middle(locator):
    """Where the middle of something is, in CSS pixels from the left."""
    return locator.evaluate(
        "node => { const b = node.getBoundingClientRect(); return b.x + b.width / 2; }"
    )
