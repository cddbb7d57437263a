import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from annotation.models import Item
from annotation.protocols import records, versions
from hits.page_texts import TABLES
from hits.practice import PracticePage, practice_page
from hits.questions import task_page
from tests.accessibility import accessibility_problems
from tests.hits.frames import Frame, counts, frame_of, send
from tests.hits.test_answers import xml_of
from tests.hits.test_worker_pages import tab_to

pytestmark = [pytest.mark.browser, pytest.mark.django_db]
TALL = {"width": 390, "height": 3000}
LINE = records.ProtocolQuestion(
    "appropriateness", "line", "How well does it answer?", low_label="badly", high_label="well"
)
POLITE = records.ProtocolQuestion("polite", "yes_no", "Is it polite?")
SPEED = records.ProtocolQuestion(
    "pace", "likert", "How fast is it?", about="item", points=("slow", "fast")
)
WRITTEN = records.PracticeItem(
    context="A: Which film did he mean?",
    candidates=(
        records.PracticeCandidate(
            text="The other one.",
            scores={"appropriateness": 80, "polite": 1},
            feedback={"appropriateness": "It answers what was asked, and no more."},
        ),
        records.PracticeCandidate(text="I like trains.", scores={"appropriateness": 0}),
    ),
    scores={"pace": 2},
    feedback={"pace": "Two turns are soon read."},
)


def document_of(
    item: Item, *questions: records.ProtocolQuestion, **fields
) -> records.ProtocolDocument:
    practice = records.Practice(0.05, fields.pop("items", (WRITTEN,)), pass_percent=75)
    document = records.ProtocolDocument(
        questions or (LINE, POLITE, SPEED), title="Rate replies", comment=False,
        qualifications=records.Qualifications(practice=practice), **fields,
    )  # fmt: skip
    versions.save_draft(study=item.study, document=document)
    versions.freeze(study=item.study)
    return document


@pytest.fixture
def rated(rating: Item) -> PracticePage:
    return practice_page(rating.study, document_of(rating), 0)


@pytest.fixture
def frame(rated: PracticePage) -> Iterator[Frame]:
    with frame_of(html_of(rated)) as frame:
        yield frame


def html_of(page: PracticePage) -> str:
    return task_page(page.item, page.document, practice=page.record())


def answer(page: Page, values: dict[str, tuple[int, int]], pace: str) -> None:
    """By keyboard alone: each response's line, moved by tens from its start, and yes (1) or no."""
    for text, (tens, polite) in values.items():
        card = page.locator(".card", has_text=text)
        tab_to(page, card.locator("[type=range]"))
        page.keyboard.press("Home")
        for _ in range(tens):
            page.keyboard.press("PageUp")
        card.locator(f"[type=radio][value='{polite}']").focus()
        page.keyboard.press("Space")
    page.get_by_label(pace, exact=True).focus()
    page.keyboard.press("Space")


def submit_by_keyboard(page: Page) -> None:
    button = page.locator("#send [type=submit]")
    tab_to(page, button, most=80)
    page.keyboard.press("Enter")


GOOD = {"The other one.": (7, 1), "I like trains.": (1, 0)}
BAD = {"The other one.": (2, 0), "I like trains.": (1, 0)}


def test_answers_are_explained_by_keyboard_then_handed_in_as_they_were(rated, frame, open_page):
    page = open_page(frame.address("task"), viewport=TALL)
    assert accessibility_problems(page) == []
    submit_by_keyboard(page)  # what is missing is said first
    expect(page.locator("#problems")).to_be_visible()
    answer(page, GOOD, "slow")
    button = page.locator("#send [type=submit]").inner_text()
    submit_by_keyboard(page)
    verdict = page.locator("#verdict")
    expect(verdict).to_be_focused()
    expect(verdict.locator("h2")).to_have_text(counts(3, 4))
    expect(verdict).not_to_have_class(re.compile("is-wrong"))
    expect(page.locator("#send [type=submit]")).not_to_have_text(button)
    assert frame.posts == []
    other, trains = (page.locator(".card", has_text=text) for text in GOOD)
    expect(other.locator(".feedback.is-right")).to_have_count(2)
    expect(other.locator(".feedback").first).to_contain_text(
        WRITTEN.candidates[0].feedback["appropriateness"]
    )
    expect(trains.locator(".feedback.is-right")).to_have_count(1)
    wrong = page.locator(".feedback.is-wrong")
    expect(wrong).to_have_count(1)
    expect(wrong.locator("b")).to_contain_text("fast")
    expect(page.locator(".whole .feedback.is-wrong")).to_contain_text(WRITTEN.feedback["pace"])
    expect(page.locator("#cards input:enabled")).to_have_count(0)
    assert accessibility_problems(page) == []
    submit_by_keyboard(page)
    expect(page.locator("body")).to_have_text("Received.")
    grade = rated.grade(xml_of({"answer": frame.posts[0][1]["answer"][0]}))
    assert (grade.n_right, grade.n_graded, grade.is_passed) == (3, 4, True)


def test_who_fails_reads_so_and_a_page_loaded_again_is_as_it_was(rated, frame, open_page):
    page = open_page(frame.address("task"), viewport=TALL)
    answer(page, BAD, "slow")
    page.locator("#send [type=submit]").click()
    title = page.locator("#verdict.is-wrong h2")
    expect(title).to_have_text(counts(1, 4, 3))
    # The answer, the right range and the ends of the scale are drawn.
    card = page.locator(".card", has_text="The other one.")
    line, ends = card.locator("[type=range]"), card.locator(".ends span")
    right = rated.right_answers[0].range
    drawn = "(node, name) => Math.round(100 * getComputedStyle(node).getPropertyValue(name))"
    assert [line.evaluate(drawn, name) for name in ("--low", "--high")] == [right.least, right.most]
    expect(card.locator("output")).to_have_text("20")
    expect(ends.first).to_have_text(re.compile(r"\b0\b"))
    expect(ends.last).to_have_text(re.compile(r"\b100\b"))
    expect(card.locator("label.right input")).to_have_value("1")
    page.reload()
    expect(title).to_have_text(counts(1, 4, 3))
    expect(page.locator(".feedback")).to_have_count(4)
    expect(page.locator("#cards input:enabled")).to_have_count(0)
    send(page)
    grade = rated.grade(xml_of({"answer": frame.posts[0][1]["answer"][0]}))
    assert (grade.n_right, grade.is_passed) == (1, False)


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("language", ["de", "ar"])
def test_feedback_is_in_the_studys_language_and_fits(rating, open_page, language, width):
    practice = practice_page(rating.study, document_of(rating, language=language), 0)
    with frame_of(html_of(practice)) as frame:
        page = open_page(frame.address("task"), viewport={"width": width, "height": 3000})
        answer(page, GOOD, "fast")
        page.locator("#send [type=submit]").click()
        title = page.locator("#verdict:not(.is-wrong) h2")
        # "{n} of {total}" in the page's language.
        words = TABLES[language]["Passed: {n} of {total} answers are right"]
        expect(title).to_have_text(words.format(n=4, total=4))
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert accessibility_problems(page) == []


def test_ticks_are_explained_at_their_card(alternatives, open_page):
    own = [each.key for each in alternatives.candidates.all()]
    ticked = records.ProtocolQuestion("acceptable", "selection", "Which would do?")
    scores = {key: {"acceptable": float(key == own[0])} for key in own}
    ticks = tuple(records.PracticeCandidate(candidate=key, scores=scores[key]) for key in own)
    shown = records.PracticeItem(item=alternatives.key, candidates=ticks)
    document = document_of(alternatives, ticked, items=(shown,))
    with frame_of(html_of(practice_page(alternatives.study, document, 0))) as frame:
        page = open_page(frame.address("task"), viewport={"width": 1280, "height": 3000})
        key = alternatives.candidates.get(key=own[1]).blind_key
        page.locator(f'[data-candidate="{key}"] input').check()
        page.locator("#send [type=submit]").click()
        expect(page.locator(".feedback.is-wrong")).to_have_count(2)
        expect(page.locator(".feedback.is-right")).to_have_count(len(own) - 2)
        assert accessibility_problems(page) == []
