"""Every control of the worker's pages: what is checked once all are answered, by mouse and by
keyboard, and again after a reload; and what a screen reader is given for each."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from annotation.models import Item
from hits.questions import task_page
from tests.accessibility import CONTROLS, GROUPS, accessible_nodes
from tests.hits.frames import Frame, assert_announced, check_ids, counts, frame_of
from tests.hits.samples import rating_item
from tests.hits.test_worker_pages import (
    tab_to,
)

pytestmark = [pytest.mark.browser, pytest.mark.django_db]
LABELS = {
    "Appropriateness": ["never", "perhaps", "certainly"],
    "Style strength": ["no style", "some", "much"],
}


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


# Categories

ANSWERS = ["0", "1", "2", "0", "1", "2", "2", "1"]


def test_every_category_that_is_clicked_stays_checked(categories_frame, open_page):
    page = open_page(categories_frame.address("task"))
    groups = page.get_by_role("radiogroup")
    expect(groups).to_have_count(8)
    # The last arrow stays within its question.
    groups.first.get_by_role("radio").first.focus()
    for key in ("Space", *["ArrowDown"] * 3):
        page.keyboard.press(key)
    expect(groups.first.locator("[value='0']")).to_be_focused()
    assert choices_of(page) == ["0"]
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


# Sliders


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
    assert_announced(
        accessible_nodes(page, CONTROLS),
        [
            ("button", alternatives.context, ""),
            *((role, title, "") for title in titles for role in ("checkbox", "button")),
            ("checkbox", "", ""),
            ("textbox", "", ["0 ", " 20 "]),
            ("textbox", "", ""),
            ("link", "", ""),
            ("button", "", ""),
        ],
    )
    question = alternatives.study.questions.get()
    names = [node.name for node in accessible_nodes(page, GROUPS)]
    assert question.wording in names
