import pytest

from hits.questions import task_page
from tests.firefox import Firefox
from tests.hits.frames import frame_of, label
from tests.hits.samples import rating_item
from tests.hits.test_worker_page_kinds import QUESTIONS, TYPED, assert_answered, published

pytestmark = [pytest.mark.browser, pytest.mark.django_db]
TO_ANSWER = {
    "line": "[type=range]",
    "number": "[type=number]",
    "short_text": "[type=text], textarea",
    "long_text": "textarea",
    "categories": "[type=checkbox][value='1']",
    "best_worst": "[type=radio]",
    "ranking": "select",
}


def operate(firefox: Firefox, kind: str) -> None:
    found = firefox.displayed(TO_ANSWER.get(kind, "[type=radio]"))
    if kind == "ranking":
        for place, select in enumerate(found, 1):
            firefox.press(select, str(place))
    elif kind == "best_worst":
        firefox.press(found[0], " ")
        firefox.press(found[-1], " ")
    elif kind in TYPED:
        for field in found:
            firefox.press(field, TYPED[kind])
    else:
        groups: dict[str, str] = {}
        for control in found:
            name = firefox.call("WebDriver:GetElementAttribute", id=control, name="name")
            groups.setdefault(control if kind in ("line", "categories") else name, control)
        for control in groups.values():
            firefox.press(control, " ")


@pytest.mark.parametrize("kind", list(QUESTIONS))
def test_every_kind_is_answered_by_keyboard_and_read_as_the_right_judgments(firefox, kind):
    item, document = published(rating_item(), questions=(QUESTIONS[kind],))
    with frame_of(task_page(item, document)) as frame:
        firefox.open(frame.address("frame"))
        firefox.enter_frame()
        firefox.wait_for("#progress", "0")
        submit = firefox.find("#send [type=submit]")[0]
        firefox.press(submit, "\ue007")
        assert firefox.displayed("#problems li")
        assert frame.posts == []
        operate(firefox, kind)
        assert not firefox.displayed("#problems li")
        firefox.press(submit, "\ue007")
        firefox.wait_for("p", "Received.")
        assert_answered(frame, item, document, kind)


def test_controls_have_the_names_that_say_question_and_response(firefox):
    kinds = ("line", "number", "short_text", "long_text", "likert")
    item, document = published(rating_item(), questions=tuple(QUESTIONS[kind] for kind in kinds))
    with frame_of(task_page(item, document)) as frame:
        firefox.open(frame.address("task"))
        firefox.wait_for("#progress", "0")
        named = sorted(
            (firefox.role(one), firefox.name(one))
            for selector in ("[type=range]", "[type=number]", "textarea", "[type=text]")
            for one in firefox.displayed(selector)
        )
        groups = [firefox.name(one) for one in firefox.displayed("[role=radiogroup]")]
    roles = dict(zip(kinds, ("slider", "spinbutton", "textbox", "textbox"), strict=False))
    assert len(named) == 4 * len(roles)
    for kind, role in roles.items():
        for name in (label(QUESTIONS[kind].heading, letter) for letter in "ABCD"):
            assert sum(one == role and bool(name.search(text)) for one, text in named) == 1, name
    for letter, group in zip("ABCD", groups, strict=True):
        assert label(QUESTIONS["likert"].heading, letter).search(group)
