"""The Design page as it is used: saved while typing, next to the annotators' page."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from playwright.sync_api import Page, Route, expect

from accounts.models import User
from annotation.models import Study
from annotation.protocols.templates import read_protocol
from annotation.protocols.versions import current_document, freeze, newest_version, save_draft
from tests.accessibility import accessibility_problems
from tests.annotation.studies import rating_study
from tests.browsers import opened_page, sign_in
from tests.console.conftest import PASSWORD

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
WORDING = "Would a sensible person say this?"


@pytest.fixture
def study(researcher: User) -> Study:
    study = rating_study(owner=researcher, title="Airline help desk", conditions=("ironic",))
    save_draft(study=study, document=read_protocol("likert_agreement"))
    return study


@pytest.fixture(params=[1280, 390])
def page(request, chromium, live_server, study, researcher):
    size = {"width": request.param, "height": 900}
    is_phone = request.param == 390
    options = {"viewport": size, "has_touch": is_phone, "is_mobile": is_phone}
    with opened_page(chromium, base_url=live_server.url, **options) as page:
        sign_in(page, "/", researcher.username, PASSWORD)
        page.goto(f"/studies/{study.slug}/protocol/")
        yield page


on_desk = pytest.mark.parametrize("page", [1280], indirect=True)
on_phone = pytest.mark.parametrize("page", [390], indirect=True)
# What can be operated, with several of one choice or bar as one.
CONTROLS = """() => {
  const shown = (each) => each.checkVisibility({ visibilityProperty: true });
  const one = (selector) => [...document.querySelectorAll(selector)].some(shown) ? 1 : 0;
  const all = (selector) => [...document.querySelectorAll(selector)].filter(shown).length;
  const groups = ".tasks, .addbar, .q-acts";
  const fields = "#protocol-form :is(input, select, textarea, button, summary)";
  const others = [...document.querySelectorAll(fields)]
    .filter((each) => shown(each) && !each.closest(groups) && each.type !== "hidden");
  return one(".tasks input") + all(".q-acts .edit") + one(".addbar button") + one("[data-step]")
    + all(".btn-primary") + others.length;
}"""


def expect_saved(page: Page) -> None:
    expect(page.locator("#protocol-saved [data-state=saved]")).to_be_visible()


def expect_accessible(page: Page) -> None:
    # The frame is loaded again at each change; its page is the annotators', which has own tests.
    assert accessibility_problems(page, frames=False) == []
    expect_to_fit(page)


def expect_to_fit(page: Page) -> None:
    # Not innerWidth, which on a phone grows with what is too wide.
    assert page.evaluate("document.documentElement.scrollWidth <= screen.width")


@contextmanager
def held_requests(page: Page, address: str) -> Iterator[list[Route]]:
    """Requests to addresses that end so get no answer until the end."""
    held: list[Route] = []
    page.route(f"**{address}", lambda route: held.append(route))
    yield held
    for route in held:
        route.continue_()
    page.unroute(f"**{address}")


def expect_in_both_schemes(page: Page) -> None:
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        expect_accessible(page)


def color(page: Page, selector: str) -> str:
    return page.locator(selector).evaluate("each => getComputedStyle(each).color")


def test_a_first_visit_has_few_controls_and_a_draft_is_saved_while_it_is_typed(
    page: Page, study: Study
) -> None:
    assert page.evaluate(CONTROLS) <= 12
    page.wait_for_load_state("networkidle")
    assert accessibility_problems(page) == []
    expect_accessible(page)
    page.locator("#q0-edit").click()
    page.locator("#q0-wording").fill(WORDING)
    expect_saved(page)
    expect(page.locator("#line-q0-")).to_contain_text(WORDING)
    assert current_document(study).questions[0].wording == WORDING
    page.locator("#q0-point4").fill("")
    page.locator("#q1-edit").click()
    expect(page.locator("#q0-wording")).to_be_hidden()
    expect(page.locator("#question-0 .q-fault")).to_be_visible()
    page.locator("#errors > summary").click()
    expect(page.locator("#errors > ul")).to_be_in_viewport(ratio=1)
    expect_to_fit(page)
    page.locator("[data-field=q0-point4]").click()
    expect(page.locator("#q0-point4")).to_be_focused()
    expect(page.locator("#q0-point4")).to_have_attribute("aria-invalid", "true")
    expect(page.frame_locator("#preview-frame").get_by_text(WORDING).first).to_be_visible()
    # The preview follows in its own window.
    expect(page.locator("#q0-point4")).to_be_in_viewport()
    page.locator("[data-width=desktop]").click()
    expect(page.locator("#preview-frame")).to_be_in_viewport(ratio=0.9)
    expect_accessible(page)


@on_desk
def test_a_design_is_made_and_undone_by_keyboard(page: Page, study: Study) -> None:
    expect(page.locator("#size [data-figure=hits]")).to_be_visible()
    size = page.locator("#size-figures").inner_text()
    page.locator("#task-rate").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#task-pairs")).to_be_focused()
    expect(page.locator(".q")).to_have_count(1)
    assert [each.kind for each in current_document(study).questions] == ["preference"]
    expect(page.locator("#size-figures")).not_to_have_text(size, use_inner_text=True)
    page.locator("[value='add:likert']").press("Enter")
    expect(page.locator("#q1-wording")).to_be_focused()
    page.locator("#q1-points-up").press("Space")
    expect(page.locator("#q1-point5")).to_be_visible()
    expect(page.locator("#q1-points-up")).to_be_focused()
    page.locator("#q1-wording").press("Alt+ArrowUp")
    expect(page.locator("#q0-up")).to_be_focused()
    expect(page.locator("#q0-wording")).to_be_visible()
    page.locator("#q0-wording").fill("How clear is the response?")
    page.locator("[value='add:check']").press("Enter")
    expect(page.locator("#q2-check-value")).to_be_visible()
    assert current_document(study).questions[0].name == "clear"
    expect_accessible(page)
    for n_cards in (2, 2, 2, 1, 3):
        # Several steps have as many cards, so that only the answer tells that one is undone.
        with page.expect_response(lambda answer: answer.request.method == "POST"):
            page.locator("#undo").press("Enter")
        expect(page.locator(".q")).to_have_count(n_cards)
        page.wait_for_load_state("networkidle")
    assert current_document(study) == read_protocol("likert_agreement")


@on_desk
def test_sections_stay_open_while_a_question_changes(page: Page, study: Study) -> None:
    page.locator("#section-instructions > summary").click()
    page.locator("#example-0 > summary").click()
    expect(page.locator("#e0-score-makes_sense")).to_be_visible()
    expect(page.locator("#e0-score-problem")).to_have_count(0)
    page.locator("#q0-edit").click()
    page.locator("label[for=q0-about-item]").click()
    expect(page.locator("#e0-score-makes_sense")).to_have_count(0)
    expect(page.locator("#e0-score-is_helpful")).to_be_visible()
    page.locator("#q0-more-options > summary").click()
    page.locator("#q0-kind").select_option("line")
    expect(page.locator("#q0-low_label")).to_have_value("Strongly disagree")
    expect(page.locator("#q0-kind")).to_be_visible()
    expect(page.locator("#e0-candidate")).to_be_visible()
    page.locator("#qualifications-countries").evaluate("each => each.value = 'Utopia'")
    page.locator("#title").fill("Rate")
    expect(page.locator("#qualifications-countries")).to_be_visible()


@on_phone
def test_a_design_is_made_by_touch_with_the_preview_as_a_sheet(page: Page, study: Study) -> None:
    page.locator("#q0-more").tap()
    page.locator("#q0-copy").tap()
    expect(page.locator(".q")).to_have_count(4)
    page.locator("#q1-wording").fill(WORDING)
    expect_saved(page)
    page.locator(".design-dock button").tap()
    sheet = page.locator("#preview:popover-open")
    expect(sheet).to_be_visible()
    expect(page.frame_locator("#preview-frame").get_by_text(WORDING).first).to_be_visible()
    page.locator(".close-sheet").tap()
    expect(sheet).to_have_count(0)
    page.locator("#size [data-step='1']").tap()
    expect_saved(page)
    page.wait_for_timeout(1000)
    assert current_document(study).completion.assignments_per_item == 4
    expect_accessible(page)


def test_a_published_version_is_read_only_and_is_copied(page: Page, study: Study) -> None:
    freeze(study=study)
    page.reload()
    expect(page.locator("#protocol-saved [data-state=published]")).to_be_visible()
    page.locator("#q0-edit").click()
    expect(page.locator("#q0-wording")).to_be_disabled()
    expect(page.locator(".addbar, #undo")).to_have_count(0)
    # Nothing seems to change what cannot be changed, and preview links can still be revoked.
    expect(page.locator("#size [data-figure=annotators]")).to_be_visible()
    expect(page.locator("#size [data-step]")).to_have_count(0)
    expect(page.locator("#preview-links form button").first).to_be_visible()
    expect_in_both_schemes(page)
    # axe does not measure fields that are disabled.
    page.emulate_media(color_scheme="dark")
    ground = "each => getComputedStyle(each).backgroundColor"
    assert page.locator("#q0-wording").evaluate(ground) == "rgb(12, 18, 19)"
    page.locator("form:has([name=source]) button").click()
    page.locator("#q0-edit").click()
    expect(page.locator("#q0-wording")).to_be_enabled()
    assert newest_version(study).number == 2


def test_figures_and_drafts_on_their_way_are_marked(page: Page, study: Study) -> None:
    muted = page.evaluate("getComputedStyle(document.querySelector('.muted')).color")
    figure = "#size [data-figure=hits]"
    expect(page.locator(figure)).to_have_text("3")
    assert color(page, figure) != muted
    page.locator("#q0-edit").click()
    with held_requests(page, "/protocol/size/"), held_requests(page, "/protocol/save/"):
        page.locator("#q0-wording").fill(WORDING)
        expect(page.locator("#protocol-saved .saving")).to_be_visible()
        expect(page.locator("#protocol-saved [role=status]")).to_be_hidden()
        # The old figures stay.
        expect(page.locator(figure)).to_have_text("3")
        assert color(page, figure) == color(page, ".design-dock dd >> nth=0") == muted
        expect_in_both_schemes(page)
    expect_saved(page)
    expect(page.locator("#size-figures.htmx-request")).to_have_count(0)
    assert color(page, figure) != muted


def test_long_texts_stay_in_their_cards(page: Page, study: Study) -> None:
    document = current_document(study)
    first, second, *others = document.questions
    sentence = "Is each statement in this response correct, complete and easy to understand? "
    first = replace(first, wording=sentence * 6, title=sentence)
    second = replace(second, wording="Rindfleischetikettierung" * 9, title="Aufgabe" * 14)
    save_draft(study=study, document=replace(document, questions=(first, second, *others)))
    page.reload()
    one_line = page.locator("#line-q2- .q-wording").bounding_box()
    for wording in page.locator(".q-wording").all():
        box = wording.bounding_box()
        assert box
        assert one_line
        assert box["height"] <= 2.5 * one_line["height"]
    page.wait_for_load_state("networkidle")
    expect_accessible(page)
    page.locator("#q1-edit").click()
    expect_in_both_schemes(page)


def test_an_extra_response_is_placed_on_the_preview(page: Page, study: Study) -> None:
    page.locator("#add-check").click()
    page.locator("#c0-case0-candidate").fill("I like trains. Goodbye.")
    page.locator("#c0-case0-value").fill("500")
    expect(page.locator("#fault-c0-case0-value")).to_contain_text("500")
    page.locator("#c0-case0-value").fill("5")
    expect(page.locator("#c0-case0-value")).not_to_have_attribute("aria-invalid", "true")
    page.locator("button[value='add-case:0']").click()
    expect(page.locator("#c0-case1-candidate")).to_be_visible()
    assert [case.value for case in current_document(study).checks[0].cases] == [5]
    page.locator("#placed").select_option("0")
    page.locator("form:has(#placed) button").click()
    note = page.locator("#placed-note")
    expect(note).to_contain_text(re.compile(r"\b5\b.*\b1\b"))
    frame = page.frame_locator("#preview-frame")
    card = frame.locator(".card").filter(has_text="I like trains. Goodbye.")
    letter = card.locator(".badge").inner_text()
    expect(note).to_contain_text(re.compile(rf"\b{letter}\b"))
    expect_accessible(page)


@on_desk
def test_a_fault_leads_to_its_line_of_the_yaml(page: Page, study: Study) -> None:
    page.locator("a[href*='tab=yaml']").click()
    page.locator("#yaml").fill("assay_protocol: 1\ntitle: x\nquestions: []\n")
    page.locator("#protocol-yaml-form button").click()
    fault = page.locator("[data-line='3']")
    expect(fault).to_be_visible()
    fault.click()
    expect(page.locator("#yaml")).to_be_focused()
    assert page.evaluate("getSelection().toString()") == "questions: []"
    assert accessibility_problems(page) == []


def test_practice_on_the_own_page_is_written_and_shown_beside(page: Page, study: Study) -> None:
    save_draft(study=study, document=read_protocol("style_ratings"))
    page.reload()
    page.locator("#section-people > summary").click()
    page.locator("#qualifications-practice").click()
    expect(page.locator("#p0-item")).to_be_visible()
    page.locator("#p0-c0-text").fill("The other one.")
    page.locator("#p0-c0-score-appropriateness").fill("180")
    expect(page.locator("#fault-p0-c0-score-appropriateness")).to_contain_text("180")
    page.locator("#p0-c0-score-appropriateness").fill("80")
    page.locator("#p0-c0-feedback-appropriateness").fill("It answers what was asked.")
    page.locator("#p0-condition").fill("ironic")
    expect(page.locator("#fault-p0-c0-score-appropriateness")).to_have_count(0)
    page.locator("button[value='show-page-practice:0']").click()
    expect(page.locator("#p0-c1-text")).to_be_visible()
    expect_accessible(page)
    expect(page.locator("#practised")).to_have_value("0")
    frame = page.frame_locator("#preview-frame")
    expect(frame.get_by_text("The other one.")).to_be_visible()
    expect(frame.locator("#verdict")).to_have_count(1)
    page.locator("#p0-item").fill("d1")
    page.locator("#p0-item").press("Tab")
    expect(page.locator("#p0-c0-candidate")).to_be_visible()
    page.wait_for_load_state("networkidle")  # of the preview, which reads the database too
    [item, *_] = current_document(study).qualifications.practice.items
    assert (item.item, item.candidates[0].scores) == ("d1", {"appropriateness": 80})


@on_desk
def test_of_two_windows_the_later_saves_over_the_other_when_asked(page: Page, study: Study) -> None:
    other = page.context.new_page()
    other.goto(page.url)
    other.locator("#section-instructions > summary").click()
    other.locator("#title").fill("Theirs")
    expect_saved(other)
    page.locator("#section-instructions > summary").click()
    page.locator("#title").fill("Mine")
    expect(page.locator("[data-code=draft_changed]")).to_be_visible()
    assert current_document(study).title == "Theirs"
    expect_accessible(page)
    page.locator("button[name=overwrite]").click()
    expect_saved(page)
    assert current_document(study).title == "Mine"
    page.locator("#undo").click()
    expect(page.locator("#title")).to_have_value("Theirs")
