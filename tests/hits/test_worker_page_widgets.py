"""Every control of the worker's pages: what is checked once all are answered, by mouse and by
keyboard, and again after a reload; and what a screen reader is given for each."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from annotation.models import Item
from hits.questions import task_page
from tests.accessibility import CONTROLS, GROUPS, Node, accessibility_problems, accessible_nodes
from tests.hits.frames import Frame, counts, frame_of, label
from tests.hits.samples import rating_item
from tests.hits.test_worker_pages import (
    answer_every_slider,
    inside,
    sliders,
    submitted_answer,
    tab_to,
)

pytestmark = [pytest.mark.browser, pytest.mark.django_db]
WORDINGS = {
    "Appropriateness": "Could a sensible person say this next?",
    "Style strength": "How strongly does it show a style of its own?",
}
ENDS = {
    "Appropriateness": "not at all entirely",
    "Style strength": "no style very strong style",
}
LABELS = {
    "Appropriateness": ["never", "perhaps", "certainly"],
    "Style strength": ["no style", "some", "much"],
}
COMMENT = Node("textbox", "Comments for the requester (optional)", "")
SUBMIT = Node("button", "Submit", "")
FIRST_MISSING = Node("link", "Go to the first missing", "")


@pytest.fixture
def categories() -> Item:
    """Four responses, two questions with three categories each, and a reason."""
    item = rating_item(justification=10)
    first, second = item.study.questions.all()
    for question, labels in zip((first, second), LABELS.values(), strict=True):
        question.categories = labels
        question.save()
    return Item.objects.get(pk=item.pk)


@pytest.fixture
def categories_frame(categories: Item) -> Iterator[Frame]:
    with frame_of(task_page(categories)) as frame:
        yield frame


def chosen_radios(page: Page) -> list[tuple[str, str]]:
    """The name and value of each radio button that is checked, in the order of the page."""
    return page.eval_on_selector_all(
        "[type=radio]:checked", "nodes => nodes.map((node) => [node.name, node.value])"
    )


def choices_of(page: Page) -> list[str]:
    return [value for _, value in chosen_radios(page)]


def check_ids(page: Page) -> None:
    """No id occurs twice, and every reference leads to something."""
    ids = page.eval_on_selector_all("[id]", "nodes => nodes.map((node) => node.id)")
    assert len(ids) == len(set(ids))
    attributes = ("aria-describedby", "aria-labelledby", "for")
    for name in attributes:
        values = page.eval_on_selector_all(
            f"[{name}]", f"nodes => nodes.map((node) => node.getAttribute('{name}'))"
        )
        assert {part for value in values for part in value.split()} <= set(ids), name


# Categories

ANSWERS = ["0", "1", "2", "0", "1", "2", "2", "1"]


def test_every_category_that_is_clicked_stays_checked(categories, categories_frame, open_page):
    page = open_page(categories_frame.address("task"))
    groups = page.get_by_role("radiogroup")
    expect(groups).to_have_count(8)
    for group, value in zip(groups.all(), ANSWERS, strict=True):
        group.locator(f"[value='{value}']").click()
    assert choices_of(page) == ANSWERS
    assert len({name for name, _ in chosen_radios(page)}) == 8
    expect(page.locator("#progress")).to_have_text(counts(8, 8))
    page.reload()
    expect(page.locator("#progress")).to_have_text(counts(8, 8))
    assert choices_of(page) == ANSWERS
    # Another mind about one of them changes that one.
    groups.nth(3).locator("[value='2']").click()
    assert choices_of(page) == [*ANSWERS[:3], "2", *ANSWERS[4:]]


def test_categories_are_chosen_by_keyboard_alone(categories, categories_frame, open_page):
    page = open_page(categories_frame.address("frame"))
    task = inside(page)
    for group, value in zip(task.get_by_role("radiogroup").all(), ANSWERS, strict=True):
        tab_to(page, group.get_by_role("radio").first)
        page.keyboard.press("Space")
        for _ in range(int(value)):
            page.keyboard.press("ArrowDown")
        expect(group.locator(":checked")).to_have_value(value)
    expect(task.locator(":checked")).to_have_count(8)
    expect(task.locator("#progress")).to_have_text(counts(8, 8))
    tab_to(page, task.locator("#justification"))
    page.keyboard.type("Style is not sense.")
    tab_to(page, task.locator("#send [type=submit]"))
    page.keyboard.press("Enter")
    expect(task.get_by_text("Received.")).to_be_visible()
    values = [
        judgment.value for judgment in submitted_answer(categories_frame, categories)[1].judgments
    ]
    assert values == [float(value) for value in ANSWERS]


def test_the_last_arrow_stays_within_its_question(categories_frame, open_page):
    page = open_page(categories_frame.address("task"))
    first = page.get_by_role("radiogroup").first
    first.get_by_role("radio").first.focus()
    page.keyboard.press("Space")
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    expect(first.locator("[value='0']")).to_be_focused()
    assert choices_of(page) == ["0"]
    expect(page.locator("#progress")).to_have_text(counts(1, 8))


def test_each_group_of_categories_is_announced_with_its_own_question(categories_frame, open_page):
    page = open_page(categories_frame.address("task"))
    check_ids(page)
    groups = [node for node in accessible_nodes(page, GROUPS) if node.name]
    assert groups == [
        Node("radiogroup", f"{question}, response {letter}", WORDINGS[question])
        for letter in "ABCD"
        for question in WORDINGS
    ]
    assert accessible_nodes(page, CONTROLS) == [
        *(
            Node("radio", label, "")
            for _ in "ABCD"
            for question in WORDINGS
            for label in LABELS[question]
        ),
        Node("textbox", "Why did you rate as you did?", reason_help(10)),
        COMMENT,
        FIRST_MISSING,
        SUBMIT,
    ]


def reason_help(least: int) -> str:
    return f"0 of at least {least} characters You may paste; that you did is noted."


def test_what_is_missing_among_categories_is_marked_and_found(categories_frame, open_page):
    page = open_page(categories_frame.address("task"))
    groups = page.get_by_role("radiogroup")
    for group in groups.all()[:-1]:
        group.get_by_role("radio").last.check()
    page.locator("#send [type=submit]").click()
    expect(groups.last).to_have_attribute("aria-invalid", "true")
    expect(groups.first).to_have_attribute("aria-invalid", "false")
    page.get_by_role("link", name=label("Style strength", "D")).press("Enter")
    expect(groups.last.get_by_role("radio").first).to_be_focused()
    page.keyboard.press("Space")
    expect(groups.last).to_have_attribute("aria-invalid", "false")
    assert accessibility_problems(page) == []


# Sliders


def test_every_slider_that_is_moved_stays_where_it_is(rating_frame, open_page):
    page = open_page(rating_frame.address("task"))
    for number, slider in enumerate(sliders(page).all()):
        slider.scroll_into_view_if_needed()
        box = slider.bounding_box()
        slider.click(position={"x": 12 + (box["width"] - 24) * number / 7, "y": 22})
    values = [slider.input_value() for slider in sliders(page).all()]
    assert len(set(values)) == 8
    assert [float(value) for value in values] == sorted(float(value) for value in values)
    page.reload()
    expect(page.locator("#progress")).to_have_text(counts(8, 8))
    assert [slider.input_value() for slider in sliders(page).all()] == values


def test_each_slider_is_announced_with_its_own_question_and_ends(rating_frame, open_page):
    page = open_page(rating_frame.address("task"))
    check_ids(page)
    controls = accessible_nodes(page, CONTROLS)
    assert [node for node in controls if node.role == "slider"] == [
        Node("slider", f"{question}, response {letter}", f"{WORDINGS[question]} {ENDS[question]}")
        for letter in "ABCD"
        for question in WORDINGS
    ]
    assert [node for node in controls if node.role != "slider"] == [
        *(
            Node("button", f"{direction}: {question}, response {letter}", "")
            for letter in "ABCD"
            for question in WORDINGS
            for direction in ("Less", "More")
        ),
        COMMENT,
        FIRST_MISSING,
        SUBMIT,
    ]


def test_lines_and_categories_stand_on_one_page(rating, open_page):
    rating.study.questions.filter(position=0).update(categories=LABELS["Appropriateness"])
    item = Item.objects.get(pk=rating.pk)
    with frame_of(task_page(item)) as frame:
        page = open_page(frame.address("task"))
        check_ids(page)
        answer_every_slider(page)
        for number, group in enumerate(page.get_by_role("radiogroup").all()):
            group.get_by_role("radio").nth(number % 3).click()
        page.reload()
        expect(page.locator("#progress")).to_have_text(counts(8, 8))
        assert choices_of(page) == ["0", "1", "2", "0"]
        assert [slider.input_value() for slider in sliders(page).all()] == ["100"] * 4


# Alternatives


@pytest.mark.parametrize("by", ["mouse", "keyboard"])
def test_every_alternative_that_is_ticked_stays_ticked(alternatives_frame, open_page, by):
    page = open_page(alternatives_frame.address("task"))
    boxes = page.locator(".grid .card:not(.none) input")
    for box in boxes.all():
        if by == "mouse":
            box.click()
        else:
            tab_to(page, box)
            page.keyboard.press("Space")
    assert page.locator(".grid :checked").count() == boxes.count() == 14
    page.locator("#justification").fill("All of them are lamps.")
    page.locator("#comment").fill("A large choice")
    page.reload()
    expect(page.locator("#progress")).to_have_text(counts(14))
    assert page.locator(".grid :checked").count() == 14
    expect(page.locator("#none")).not_to_be_checked()
    expect(page.locator("#justification")).to_have_value("All of them are lamps.")
    expect(page.locator("#comment")).to_have_value("A large choice")
    page.locator("#none").check()
    assert page.locator(".grid :checked").count() == 1
    page.reload()
    expect(page.locator("#none")).to_be_checked()
    assert page.locator(".grid :checked").count() == 1


def test_each_alternative_is_announced_by_its_title(alternatives, alternatives_frame, open_page):
    page = open_page(alternatives_frame.address("task"))
    check_ids(page)
    titles = page.locator(".grid .card:not(.none) .text").all_inner_texts()
    assert sorted(titles) == sorted(each.text for each in alternatives.candidates.all())
    assert accessible_nodes(page, CONTROLS) == [
        Node("button", f"Enlarge the target: {alternatives.context}", ""),
        *(
            node
            for title in titles
            for node in (Node("checkbox", title, ""), Node("button", f"Enlarge: {title}", ""))
        ),
        Node("checkbox", "None of these would do", ""),
        Node("textbox", "Why did you choose as you did?", reason_help(20)),
        COMMENT,
        FIRST_MISSING,
        SUBMIT,
    ]
    question = alternatives.study.questions.get()
    names = [node.name for node in accessible_nodes(page, GROUPS)]
    assert question.wording in names
