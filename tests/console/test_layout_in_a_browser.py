from itertools import product
from pathlib import Path

import pytest
from django.conf import settings
from django.template.loader import render_to_string
from django.urls import reverse
from playwright.sync_api import expect

from accounts.roles import Permission
from accounts.teams import create_team
from annotation import label_sets, study_facts
from annotation.models import Study
from annotation.result_kinds.base import find_study_kind
from console.chart_values import Axis
from hits.models import Connection, Recruitment
from results.computing import request_result
from results.kinds import result_kind
from retrieval.models import Collection
from simulation import models, recorded_studies, stored_catalogues, stored_experiments
from tests.accessibility import accessibility_problems, accessible_nodes
from tests.annotation.studies import rate, rating_study
from tests.browsers import opened_page, sign_in
from tests.console import filled
from tests.console.addresses import PAGES_OF_A_COLLECTION, address
from tests.console.conftest import PASSWORD
from tests.pictures import keep_picture
from tests.retrieval import collections
from tests.simulation import answered, stored

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("_immediate_tasks"),
]
DESK, TELEPHONE, SMALLEST = 1280, 390, 320


@pytest.fixture
def page(chromium, live_server, researcher, settings):
    settings.SITE_URL = live_server.url
    viewport = {"width": DESK, "height": 900}
    with opened_page(chromium, base_url=live_server.url, viewport=viewport) as page:
        sign_in(page, "/login/", "rosa", PASSWORD)
        yield page


@pytest.fixture
def team(researcher):
    return create_team(name="Lab", owner=researcher)


def sideways(page):
    return page.evaluate(
        """() => [document.documentElement, ...document.querySelectorAll(".scroll")]
          .filter((node) => node.scrollWidth > node.clientWidth + 1)
          .map((node) => node.ariaLabel || node.tagName)"""
    )


def page_problems(page):
    """What is inaccessible, and whether the page scrolls sideways; a wide table does by itself."""
    keep_picture(page)
    return [*accessibility_problems(page), *({"HTML"} & {*sideways(page)})]


def assert_fits(page):
    for width in (TELEPHONE, DESK):
        page.set_viewport_size({"width": width, "height": 800})
        assert page_problems(page) == []


def visited(page, places, widths):
    for where, width in product(places, widths):
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(where)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        yield where


def right_edge(page, locator):
    page.wait_for_timeout(100)
    box = locator.bounding_box()
    return box["x"] + box["width"]


@pytest.mark.parametrize("width", [DESK, TELEPHONE])
def test_an_unbroken_response_leaves_its_ratings_and_the_flags_in_sight(page, researcher, width):
    study = rating_study(owner=researcher, n_items=1)
    for name in ("Ann", "Bob"):
        submission = rate(study, name, "d0", {"alpha": 3, "beta": 4})
        submission.justification = submission.comment = "The second response repeats itself."
        submission.save()
    study.items.get().candidates.update(text="W" * 2000)
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(reverse("console:item", args=[study.slug, study.items.get().pk]))
    cells = page.locator("main table").first.locator("tbody tr").first.locator("td").all()
    summaries = page.locator("main summary").all()
    assert len(summaries) == 3  # of its candidates, and of two submissions
    for each in [*cells, *summaries]:
        assert right_edge(page, each) <= width


TABLES = ["", "items/", "launch/", "answers/", "agreement/", "agreement/annotators/"]
TABLES += ["agreement/disagreement/", "adjudication/?threshold=0", "labels/", "validation/"]
TABLES += ["results/", "downloads/", "report/", "members/"]


@pytest.mark.parametrize("width", [SMALLEST, TELEPHONE])
def test_on_a_telephone_tables_are_lines_and_nothing_scrolls_sideways(page, researcher, width):
    study = filled.scored_study(
        owner=researcher, conditions=("calm", "angry"), metrics=("nll", "bleurt")
    )
    batch = filled.add_batch(study, n_published=2)
    filled.add_assignment(batch.hits.first(), problem="The answer names no candidate.")
    find_study_kind(study_facts.AGREEMENT).compute_now(study)
    find_study_kind(study_facts.RESULTS).compute_now(study)
    filled.store_validation(study)
    label_sets.make_label_set(question=study.questions.get(), rule=label_sets.Rule("mean"))
    page.set_viewport_size({"width": width, "height": 800})
    wrong = {}
    for path in [*TABLES, f"items/{study.items.first().pk}/", f"batches/{batch.pk}/"]:
        page.goto(f"/studies/{study.slug}/{path}")
        page.wait_for_load_state("networkidle")
        if found := sideways(page):
            wrong[path] = found
    page.goto("/")
    assert sideways(page) == []
    assert wrong == {}
    stage = page.locator("main .scroll tbody tr").first.locator("td[data-label]").first
    assert stage.evaluate("node => getComputedStyle(node).display") == "flow-root"
    assert accessibility_problems(page) == []


@pytest.mark.parametrize("width", [DESK, SMALLEST])
def test_how_many_topics_is_asked_and_drawn_within_the_window(page, width):
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(reverse("console:how-many"))
    page.locator("a[href*='ask=correlation']").press("Enter")
    page.locator("[name=power]").fill("0.8")
    page.keyboard.press("Enter")
    expect(page.locator("main").get_by_text("97 ").first).to_be_visible()
    expect(page.locator("#curve svg")).to_be_visible()
    assert page_problems(page) == []


@pytest.mark.parametrize("width", [DESK, TELEPHONE])
def test_a_drawn_interval_has_its_scale_in_sight(page, researcher, width):
    study = filled.scored_study(owner=researcher)
    study.questions.update(low_label="bad", high_label="good")
    page.set_viewport_size({"width": width, "height": 900})
    for name, kind, labels in (
        ("results", study_facts.RESULTS, ["0", "25", "50", "75", "100"]),
        ("validation", study_facts.VALIDATION, ["0", "0.25", "0.5", "0.75", "1"]),
    ):
        find_study_kind(kind).compute_now(study)
        page.goto(reverse(f"console:{name}", args=[study.slug]))
        table = page.locator("table.spans.labelled").first
        scales = table.locator(".ticks:visible")
        assert scales.count() == (table.locator("tbody tr").count() if width == TELEPHONE else 1)
        shown = [text for text in scales.first.locator("span:visible").all_inner_texts() if text]
        assert shown[-len(labels) :] == labels
        centres = [middle(one) for one in scales.first.locator("span").all()]
        lines = table.locator("svg.span").first.locator("line.tick, line.zero").all()
        assert centres == pytest.approx([middle(one) for one in lines], abs=4)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    # Buttons below the last fold keep a distance from its rule, and simulated answers are a badge.
    bottom, top = (
        page.locator(where).last.evaluate(f"node => node.getBoundingClientRect().{edge}")
        for where, edge in (("#content details.fold", "bottom"), ("#content .fold + p .btn", "top"))
    )
    assert top - bottom >= 12


def test_every_table_with_drawn_intervals_has_the_numbers_of_its_axis():
    paths = Path(settings.BASE_DIR).glob("*/templates/**/*.html")
    texts = {path: path.read_text() for path in paths}
    drawn = {path for path, text in texts.items() if 'class="spans' in text}
    assert len(drawn) >= 4
    assert [path for path in drawn if "console/_ticks.html" not in texts[path]] == []


def middle(locator):
    return locator.evaluate(
        "node => { const b = node.getBoundingClientRect(); return b.x + b.width / 2; }"
    )


def test_no_label_of_an_axis_leaves_its_column(chromium):
    style = Path(settings.BASE_DIR, "static", "assay.css").read_text()
    ticks = render_to_string("console/_ticks.html", {"axis": Axis(0.0, 1.0, is_share=True)})
    with opened_page(chromium, viewport={"width": DESK, "height": 400}) as page:
        for width in (160, 260, 600):
            page.set_content(f"<style>{style}</style><div style='width: {width}px'>{ticks}</div>")
            beyond = page.locator(".ticks").evaluate("one => one.scrollWidth - one.clientWidth")
            assert beyond == 0, width


def test_a_batch_for_participants_fits_a_telephone_at_each_stage(page, team, researcher):
    recruitment = filled.add_recruitment(
        rating_study("mine", owner=researcher, team=team), state="draft"
    )
    Connection.objects.update(team=team)
    for state in ("draft", "active", "stopped"):
        Recruitment.objects.update(state=state)
        page.goto(reverse("console:batch", args=["mine", recruitment.batch_id]))
        assert_fits(page)
    page.goto(reverse("console:connections", args=[team.slug]))
    assert_fits(page)


def test_downloads_and_reports_are_reached_and_fit_a_telephone(page, rosa, researcher, tmp_path):
    study = filled.scored_study(owner=researcher)
    find_study_kind(study_facts.AGREEMENT).compute_now(study)
    find_study_kind(study_facts.REPORT).compute_now(study)
    page.goto(reverse("console:downloads", args=[study.slug]))
    assert_fits(page)
    page.locator("[name=license]").select_option("cc-by-4.0")
    with page.expect_download() as saved:
        page.locator("form:has([name=license]) button").press("Enter")
    assert saved.value.suggested_filename == "scored-dataset.zip"
    page.goto(reverse("console:report", args=[study.slug]))
    assert_fits(page)
    for name in ("heds.html", "datasheet.html", "report.html"):
        where = reverse("console:report-file", args=[study.slug, name])
        path = tmp_path / name
        path.write_bytes(rosa.get(where).content)
        page.goto(path.as_uri())
        assert_fits(page)


# Collections.

FILES = {name for name, needed in PAGES_OF_A_COLLECTION.items() if needed is Permission.EXPORT}
PICTURES = {name for name in PAGES_OF_A_COLLECTION if name.endswith("-picture")}
NO_PAGES = FILES | PICTURES | {"collection-work"}


def sent_files():
    files = {"qrels.txt": collections.qrels_text(), "bad.run": "t0 Q0 d1 1 high dense\n"}
    for tag, skill, seed in (("dense", 3.0, 1), ("bm25", 0.5, 2)):
        files[f"{tag}.run"] = collections.run_text(tag, skill=skill, seed=seed)
    return [
        {"name": name, "mimeType": "text/plain", "buffer": text.encode()}
        for name, text in files.items()
    ]


def test_a_collection_is_made_filled_and_evaluated_by_the_keyboard(page, team):
    page.goto("/collections/")
    page.locator("main a[href='/new-collection/']").first.press("Enter")
    page.locator("[name=name]").fill("Shoes")
    page.keyboard.press("Enter")
    page.wait_for_url("**/collections/shoes/files/")
    page.locator("[name=uploads]").set_input_files(sent_files())
    page.locator("form.narrow button").press("Enter")
    fault = page.locator(".notice.error").filter(has_text="bad.run")
    expect(fault.locator("li")).to_contain_text("1: ")
    fault.locator("form[action*='/remove/'] button").press("Enter")
    expect(fault).to_have_count(0)
    page.locator("a[href$='/evaluation/']").first.press("Enter")
    page.locator("#evaluate button").press("Enter")
    expect(page.locator("[data-code=best]")).to_contain_text("dense")
    page.locator("figure.chart canvas, figure.chart svg").first.wait_for()
    assert accessibility_problems(page) == []
    page.get_by_role("link", name="RR@10").press("Enter")
    expect(page.locator(".said-first")).to_contain_text("RR@10")
    assert Collection.objects.get().results.count() == 1


def cut_choices(page):
    """What is chosen in a list and is wider than its box; captions of one word a line."""
    return page.evaluate(
        """() => {
          const pen = document.createElement("canvas").getContext("2d");
          const isCut = (list) => {
            const style = getComputedStyle(list);
            pen.font = style.font;
            const room = list.clientWidth - 16 - parseFloat(style.paddingLeft);
            return pen.measureText(list.selectedOptions[0]?.text ?? "").width > room;
          };
          const lists = [...document.querySelectorAll("select")].filter((one) => one.clientWidth);
          const narrow = [...document.querySelectorAll("caption")]
            .filter((one) => one.clientWidth && one.clientWidth < 0.6 * one.parentNode.clientWidth);
          return [...lists.filter(isCut).map((one) => one.selectedOptions[0].text),
                  ...narrow.map((one) => one.textContent.trim())];
        }"""
    )


def test_every_page_of_a_collection_is_accessible_and_fits_a_telephone(page, team, researcher):
    collection = collections.evaluated_collection(team, researcher)
    collections.add_file(
        collection, "shoes.csv", "docno,title\nd1,Red boot\nd2,Blue shoe\n", kind="catalogue"
    )
    wrong = {}
    for name in sorted({*PAGES_OF_A_COLLECTION} - NO_PAGES | {"collections", "new-collection"}):
        page.set_viewport_size({"width": DESK, "height": 900})
        page.goto(address(name))
        page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
        wrong[name] = accessibility_problems(page)
        keep_picture(page)
        for width in (SMALLEST, TELEPHONE):
            page.set_viewport_size({"width": width, "height": 800})
            page.wait_for_timeout(100)
            keep_picture(page)
            wrong[name] += [(width, each) for each in sideways(page)]
        wrong[name] += [(TELEPHONE, each) for each in cut_choices(page)]
    assert {name: problems for name, problems in wrong.items() if problems} == {}


# Experiments and studies of dialogues.


def test_every_page_of_experiments_fits_a_desk_and_a_telephone(page, team, researcher):
    collections.filled_collection(team, researcher)
    experiment = stored.stored_experiment(team, researcher)
    stored_experiments.request_run(experiment=experiment, rules=stored.RULES, actor=researcher)
    trained = stored_catalogues.request_training(
        catalogue=stored_catalogues.drawn_products(team=team, n_items=400, actor=researcher),
        name="GRU-SL",
        kind="gru-sl",
        choices={"epochs": 2, "width": 8},
        start_from=None,
        actor=researcher,
    )
    names = ("experiments", "new-experiment", "catalogues", "recommenders", "new-recommender")
    places = [address(name) for name in (*names, "experiment", "experiment-delete")]
    places += [
        address(name, key=key)
        for name, key in (
            ("catalogue", experiment.catalogue_id),
            ("catalogue-delete", trained.catalogue_id),
            ("recommender", trained.pk),
            ("recommender-delete", trained.pk),
        )
    ]
    for where in visited(page, places, (DESK, TELEPHONE)):
        if where == address("experiment"):
            expect(page.locator(".drawn svg, .drawn canvas").last).to_be_visible()
        assert page_problems(page) == [], where


def test_the_focus_is_outlined_and_on_what_was_answered(page, team, researcher):
    """A screen reader reads it first, of a page whose title is the one of before."""
    collections.filled_collection(team, researcher)
    stored.stored_experiment(team, researcher)
    page.goto(address("new-experiment"))
    outlines = {}
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
    for where in (address("new-experiment"), address("experiment")):
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


# Words of charts that are shortened, or not all within their chart.
CUT_OFF = """() => [...document.querySelectorAll(".drawn svg")].flatMap((svg) => {
  const box = svg.getBoundingClientRect();
  return [...svg.querySelectorAll("text")].filter((text) => {
    const own = text.getBoundingClientRect();
    const isOut = own.left < box.left - 1 || own.right > box.right + 1;
    return isOut || text.textContent.includes("…");
  }).map((text) => `cut off: ${text.textContent}`);
})"""


def report_dialogues(team, researcher):
    experiment = stored.stored_experiment(team, researcher)
    users = ["base", "tol:3", "base,accepts=target and alternatives"]
    rules = stored.RULES | {"users": users, "seeds": [0], "n_turns": 4}
    version = stored_experiments.request_run(experiment=experiment, rules=rules, actor=researcher)
    version.refresh_from_db()
    for kind in models.DialogueStudy.Kind:
        made = recorded_studies.request_dialogue_study(
            kind=kind,
            title=kind.value.capitalize(),
            experiment=experiment,
            version=version,
            file=None,
            actor=researcher,
        )
        study = Study.objects.get(pk=made.study_id)
        if kind == models.DialogueStudy.Kind.OUTCOMES:
            answered.answer_outcomes(study, experiment)
            settings = {"first": None, "chosen_on": ["random"], "margin": 0.05, "seed": 0}
        else:
            answered.answer_switching(study)
            settings = {"users": ["base", "prob:0:0.75"], "seed": 0}
        request_result(
            kind=result_kind(kind), subject=study, chosen={}, settings=settings, actor=researcher
        )


def test_pages_of_dialogues_fit_and_say_their_values_to_who_listens(page, team, researcher):
    report_dialogues(team, researcher)
    outcomes = address("dialogues")
    places = (address("new-dialogue-study"), address("dialogues", "switching"), outcomes)
    for where in visited(page, places, (TELEPHONE, DESK)):
        if where != places[0]:
            expect(page.locator(".drawn svg, .drawn canvas")).to_have_count(2)
        assert [*page.evaluate(CUT_OFF), *page_problems(page)] == [], where
    pictures = [one.name for one in accessible_nodes(page, {"image"})]
    assert "SimBase 1.000 [1.000, 1.000]" in pictures[0]
    assert "random" in pictures[1]
    summaries = accessible_nodes(page, {"DisclosureTriangle"})
    assert page.locator("#compute > summary").inner_text() in [one.name for one in summaries]
    assert not [one.name for one in summaries if {"▸", "▾"} & set(one.name)]
    # An error leads to the first box of its group.
    page.locator("#compute > summary").click()
    for box in page.get_by_role("checkbox", checked=True).all():
        box.uncheck()
    page.locator("#compute button").click()
    page.locator(".notice.error a[href^='#id_']").click()
    expect(page.get_by_role("checkbox", name="random")).to_be_focused()
