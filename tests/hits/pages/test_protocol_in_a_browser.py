"""The Protocol page as it is used: saved while typing, beside the worker's page."""

import re

import pytest
from playwright.sync_api import Page, expect

from accounts.models import User
from annotation.models import Study
from annotation.protocols.templates import read_protocol
from annotation.protocols.versions import current_document, save_draft
from tests.accessibility import accessibility_problems
from tests.annotation.studies import rating_study
from tests.browsers import opened_page, sign_in
from tests.console.conftest import PASSWORD

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
WORDING = "Would a sensible person say this?"


@pytest.fixture
def study(researcher: User) -> Study:
    study = rating_study(owner=researcher, title="Airline help desk", conditions=("ironic",))
    save_draft(study=study, document=read_protocol("style_ratings"))
    return study


@pytest.fixture(params=[1280, 390])
def page(request, chromium, live_server, study, researcher):
    size = {"width": request.param, "height": 900}
    with opened_page(chromium, base_url=live_server.url, viewport=size) as page:
        sign_in(page, "/", researcher.username, PASSWORD)
        page.goto(f"/studies/{study.slug}/protocol/")
        yield page


on_desk = pytest.mark.parametrize("page", [1280], indirect=True)


def expect_saved(page: Page) -> None:
    expect(page.locator("#protocol-saved [role=status] .good")).to_be_visible()


def turn_to(page: Page, part: str) -> None:
    if page.viewport_size["width"] < 1000:
        page.locator(f"[data-show={part}]").click()


def test_a_draft_is_saved_while_it_is_typed_and_shown_beside(page: Page, study: Study) -> None:
    page.locator("#question-0 > summary").click()
    page.locator("#q0-wording").fill(WORDING)
    expect_saved(page)
    assert current_document(study).questions[0].wording == WORDING
    page.locator("#q0-high_label").fill("")
    expect(page.locator("#q0-high_label")).to_have_attribute("aria-invalid", "true")
    expect(page.locator("#fault-q0-high_label")).to_be_visible()
    turn_to(page, "preview")
    expect(page.frame_locator("#preview-frame").get_by_text(WORDING).first).to_be_visible()
    # The frame is loaded anew at each change; its page is the worker's, which has its own tests.
    assert accessibility_problems(page, frames=False) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@on_desk
def test_questions_are_moved_by_keys_and_kinds_bring_their_fields(page: Page, study: Study) -> None:
    page.locator("#question-1 > summary").click()
    page.locator("#q1-wording").press("Alt+ArrowUp")
    expect(page.locator("#q0-name")).to_have_value("style_strength")
    page.locator("#q0-kind").select_option("likert")
    expect(page.locator("#q0-points")).to_be_visible()
    assert current_document(study).questions[0].kind == "likert"
    page.locator("#q0-points").fill("low\nhigh")
    expect_saved(page)
    assert current_document(study).questions[0].points == ("low", "high")


def test_a_check_is_written_in_the_form_and_placed_on_the_preview(page: Page, study: Study) -> None:
    page.locator("#section-checks > summary").click()
    page.locator("#add-check").click()
    page.locator("#c0-case0-candidate").fill("I like trains. Goodbye.")
    page.locator("#c0-case0-value").fill("500")
    expect(page.locator("#fault-c0-case0-value")).to_contain_text("500")
    page.locator("#c0-case0-value").fill("5")
    expect(page.locator("#c0-case0-value")).not_to_have_attribute("aria-invalid", "true")
    page.locator("button[value='add-case:0']").click()
    expect(page.locator("#c0-case1-candidate")).to_be_visible()
    assert [case.value for case in current_document(study).checks[0].cases] == [5]
    turn_to(page, "preview")
    page.locator("#placed").select_option("0")
    page.locator("form:has(#placed) button").click()
    turn_to(page, "preview")
    note = page.locator("#placed-note")
    expect(note).to_contain_text(re.compile(r"\b5\b.*\b20\b"))
    frame = page.frame_locator("#preview-frame")
    card = frame.locator(".card").filter(has_text="I like trains. Goodbye.")
    letter = card.locator(".badge").inner_text()
    expect(note).to_contain_text(re.compile(rf"\b{letter}\b"))
    assert accessibility_problems(page, frames=False) == []


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
    page.locator("#section-qualifications > summary").click()
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
    assert accessibility_problems(page, frames=False) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    turn_to(page, "preview")
    expect(page.locator("#practised")).to_have_value("0")
    frame = page.frame_locator("#preview-frame")
    expect(frame.get_by_text("The other one.")).to_be_visible()
    expect(frame.locator("#verdict")).to_have_count(1)
    turn_to(page, "edit")
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
    other.locator("#title").fill("Theirs")
    expect_saved(other)
    page.locator("#title").fill("Mine")
    expect(page.locator("[data-code=draft_changed]")).to_be_visible()
    assert current_document(study).title == "Theirs"
    assert accessibility_problems(page, frames=False) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.locator("button[name=overwrite]").click()
    bring_back = page.locator("form:has([value=replaced]) button")
    expect(bring_back).to_be_visible()
    assert current_document(study).title == "Mine"
    bring_back.click()
    expect(page.locator("#title")).to_have_value("Theirs")
