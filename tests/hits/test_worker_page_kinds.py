import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from django.conf import settings
from playwright.sync_api import FrameLocator, Locator, Page, expect

from annotation.models import Item
from annotation.protocols import templates
from annotation.protocols.records import (
    Condition,
    Consent,
    Display,
    Example,
    Order,
    ProtocolDocument,
    ProtocolQuestion,
    Reason,
    Time,
)
from annotation.protocols.versions import freeze, save_draft
from hits import answers, page_rendering, page_texts
from hits.questions import html_question, task_page
from marketplace.documents.answer_schemas import answer_errors, check_schema
from tests.accessibility import CONTROLS, GROUPS, accessibility_problems, accessible_nodes
from tests.hits import frames
from tests.hits.samples import RESPONSES, alternatives_item, rating_item
from tests.hits.test_answers import xml_of

pytestmark = [pytest.mark.browser, pytest.mark.django_db]
QUESTIONS = {
    "line": ProtocolQuestion(
        name="line", kind="line", wording="How fitting?", low_label="not at all",
        high_label="completely",
    ),
    "likert": ProtocolQuestion(
        name="likert", kind="likert", wording="It is fluent.", points=("no", "partly", "yes")
    ),
    "category": ProtocolQuestion(
        name="category", kind="category", wording="Which act?", categories=("ask", "tell")
    ),
    "categories": ProtocolQuestion(
        name="categories", kind="categories", wording="Which faults?", categories=("rude", "wrong")
    ),
    "yes_no": ProtocolQuestion(name="yes_no", kind="yes_no", wording="Would it do?"),
    "number": ProtocolQuestion(
        name="number", kind="number", wording="How many facts?", minimum=0, maximum=9, whole=True,
        unit="facts",
    ),
    "short_text": ProtocolQuestion(
        name="short_text", kind="short_text", wording="In a word?", least_length=3
    ),
    "long_text": ProtocolQuestion(name="long_text", kind="long_text", wording="At length?"),
    "preference": ProtocolQuestion(
        name="preference", kind="preference", wording="Which is best?", ties=True
    ),
    "best_worst": ProtocolQuestion(name="best_worst", kind="best_worst", wording="Best and worst?"),
    "ranking": ProtocolQuestion(name="ranking", kind="ranking", wording="In which order?"),
}  # fmt: skip
TICKS = ProtocolQuestion(name="acceptable", kind="selection", wording="Which would do?")


def published(item: Item, **fields) -> tuple[Item, ProtocolDocument]:
    document = ProtocolDocument(**{"title": "Judge it", "comment": False} | fields)
    save_draft(study=item.study, document=document)
    freeze(study=item.study)
    return Item.objects.get(pk=item.pk), document


@pytest.fixture
def framed(open_page) -> Iterator:
    managers = []

    def open_(item: Item, document: ProtocolDocument, path: str = "frame", **options):
        manager = frames.frame_of(task_page(item, document))
        frame = manager.__enter__()
        managers.append(manager)
        return frame, open_page(frame.address(path), **options)

    yield open_
    for manager in managers:
        manager.__exit__(None, None, None)


def read(frame: frames.Frame, item: Item, document: ProtocolDocument):
    posted = frame.posts[0][1]["answer"][0]
    assert answer_errors(frame.page, [("answer", [posted])]) == []
    return json.loads(posted), answers.read_answer(xml_of({"answer": posted}), item, document)


def operate(page: Page, task: FrameLocator, kind: str, by: str) -> None:
    def press(control: Locator, key: str = "Space") -> None:
        control.focus()
        if by == "keyboard":
            page.keyboard.press(key)
        else:
            control.tap() if by == "touch" else control.click()

    if kind == "best_worst":
        best, worst = task.get_by_role("radiogroup").all()
        press(best.get_by_role("radio").first)
        press(worst.get_by_role("radio").last)
    elif kind == "ranking":
        for place, select in enumerate(task.get_by_role("combobox").all(), 1):
            select.focus()
            page.keyboard.type(str(place)) if by == "keyboard" else select.select_option(str(place))
    else:
        for control in controls_of(task, kind):
            press(control, "Space" if kind not in TYPED else "Home")
            page.keyboard.type(TYPED.get(kind, ""))


TYPED = {"number": "7", "short_text": "words", "long_text": "words"}


def controls_of(task: FrameLocator, kind: str) -> list[Locator]:
    if kind == "line":
        return task.get_by_role("slider").all()
    if kind == "number":
        return task.get_by_role("spinbutton").all()
    if kind in TYPED:
        return task.get_by_role("textbox").all()
    if kind == "categories":
        return task.locator("[type=checkbox][value='1']").all()
    return [group.get_by_role("radio").first for group in task.get_by_role("radiogroup").all()]


EXPECTED = {
    "line": [50] * 4, "likert": [1] * 4, "category": [0] * 4, "categories": [0, 1] * 4,
    "yes_no": [1] * 4, "number": [7] * 4, "short_text": [], "long_text": [],
    "preference": [1, 0, 0, 0], "best_worst": [1, 0.5, 0.5, 0], "ranking": [1, 2 / 3, 1 / 3, 0],
}  # fmt: skip


WAYS = [
    *((kind, "keyboard") for kind in QUESTIONS),
    *((kind, "mouse") for kind in ("line", "categories", "number", "ranking")),
    *((kind, "touch") for kind in ("line", "likert", "preference", "best_worst")),
]


@pytest.mark.parametrize(("kind", "by"), WAYS)
def test_every_kind_is_answered_and_read_as_the_right_judgments(framed, kind, by):
    language = {"keyboard": "en", "mouse": "ar", "touch": "de"}[by]
    item, document = published(rating_item(), questions=(QUESTIONS[kind],), language=language)
    size = {"keyboard": (1280, 900), "mouse": (320, 640), "touch": (390, 844)}[by]
    viewport = dict(zip(("width", "height"), size, strict=True))
    frame, page = framed(item, document, viewport=viewport, has_touch=by == "touch")
    task = frames.inside(page)
    task.locator("#send [type=submit]").click()
    n_fields = 1 if kind in ("preference", "best_worst", "ranking") else 4
    expect(task.locator("#problems li")).to_have_count(n_fields)
    assert frame.posts == []
    operate(page, task, kind, by)
    expect(task.locator("#progress")).to_have_text(frames.counts(n_fields, n_fields))
    expect(task.locator("#problems")).to_be_hidden()
    frames.send(task)
    assert_answered(frame, item, document, kind)


def assert_answered(frame: frames.Frame, item: Item, document: ProtocolDocument, kind: str) -> None:
    _, answer = read(frame, item, document)
    expected = pytest.approx(EXPECTED[kind], abs=1 if kind == "line" else 1e-9)
    assert [judged.value for judged in answer.judgments] == expected
    texts = [each.text for each in answer.written]
    assert texts == (["words"] * 4 if kind.endswith("_text") else [])


def test_every_control_of_every_kind_is_announced_and_axe_finds_nothing(framed):
    item, document = published(rating_item(), questions=tuple(QUESTIONS.values()))
    _, page = framed(item, document, "task")
    assert accessibility_problems(page) == []
    frames.check_ids(page)
    headings = {question.name: question.heading for question in QUESTIONS.values()}
    choices = [
        ("radio", "no"), ("radio", "partly"), ("radio", "yes"), ("radio", "ask"),
        ("radio", "tell"), ("checkbox", "rude"), ("checkbox", "wrong"),
        ("checkbox", ""), ("radio", ""), ("radio", ""),
    ]  # fmt: skip
    expected = []
    for letter in "ABCD":
        line, number, short, long = (
            frames.label(headings[name], letter)
            for name in ("line", "number", "short_text", "long_text")
        )
        expected += [
            ("button", line, ""),
            ("slider", line, ["How fitting?", "not at all", "completely"]),
            ("button", line, ""),
            *((role, name, "") for role, name in choices),
            ("spinbutton", number, ["How many facts?", "facts"]),
            ("textbox", short, ["In a word?", "0", "3"]),
            ("textbox", long, ["At length?"]),
        ]
    responses = [("radio", frames.label("", letter), "") for letter in "ABCD"]
    expected += [
        *responses, ("radio", "", ""),
        *responses, *responses,
        *(("combobox", frames.label("", letter), "") for letter in "ABCD"),
        ("link", "", ""), ("button", "", ""), ("button", "", ""),
    ]  # fmt: skip
    frames.assert_announced(accessible_nodes(page, CONTROLS), expected)
    wordings = {question.wording for question in QUESTIONS.values()}
    groups = [node for node in accessible_nodes(page, GROUPS) if node.description in wordings]
    asked = []
    for letter in "ABCD":
        for name in ("likert", "category", "categories", "yes_no"):
            asked.append((frames.label(headings[name], letter), QUESTIONS[name].wording))
    for name in ("preference", "best_worst", "ranking"):
        asked.append((headings[name], QUESTIONS[name].wording))
    frames.assert_announced(
        groups, [(node.role, *each) for node, each in zip(groups, asked, strict=True)]
    )


@pytest.mark.parametrize("language", [page_texts.SOURCE, *page_texts.TABLES])
def test_a_page_is_in_the_language_of_its_study_accessible_and_scrolls_down_only(framed, language):
    fields = {
        "questions": tuple(QUESTIONS.values()), "language": language, "reason": Reason("page", 5),
        "examples": (Example("good", "Gladly.", scores={"likert": 3}, explanation="Kind."),),
        "time": Time(estimate_seconds=86_400),
    }  # fmt: skip
    item, document = published(rating_item(), **fields)
    _, page = framed(item, document, "task", viewport={"width": 320, "height": 9000})
    html = page.locator("html")
    expect(html).to_have_attribute("lang", language)
    expect(html).to_have_attribute("dir", "rtl" if language == "ar" else "ltr")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert accessibility_problems(page) == []
    # All kinds at once still fit a question.
    assert len(html_question(item, document).encode()) < 65_535
    task = re.search(r'<script id="task"[^>]*>(.*?)</script>', task_page(item, document))[1]
    check_schema(page_rendering.answer_schema(json.loads(task)))
    if language == "ar":
        slider = page.get_by_role("slider").first
        slider.click(position={"x": slider.bounding_box()["width"] * 0.1, "y": 20})
        value = float(slider.input_value())
        assert value > 80
        slider.press("ArrowLeft")
        assert float(slider.input_value()) == value + 1
        slider.press("ArrowRight")
        assert float(slider.input_value()) == value


def test_every_text_of_the_page_has_a_translation_in_every_table():
    files = (Path(settings.BASE_DIR) / "templates" / "worker_page").rglob("*.html")
    texts = set(re.findall(r'{% say "([^"]*)"', "\n".join(path.read_text() for path in files)))
    for language, table in page_texts.TABLES.items():
        assert set(table) == texts, language
        for text, translated in table.items():
            placeholders = [sorted(re.findall(r"\{\w+\}", each)) for each in (text, translated)]
            assert placeholders[0] == placeholders[1], text


# Shortcut keys


def press_keys(page: Page, *keys: str) -> None:
    page.locator("iframe").focus()
    for key in keys:
        page.keyboard.press(key)


def test_a_page_of_points_takes_one_key_per_answer_and_one_to_submit(framed):
    questions = (QUESTIONS["likert"], QUESTIONS["yes_no"])
    item, document = published(rating_item(), questions=questions)
    frame, page = framed(item, document)
    task = frames.inside(page)
    # Enter, pressed from habit, neither skips a question nor submits.
    press_keys(page, "3", "Enter", "1", "Enter", *"121221", "Enter")
    expect(task.get_by_text("Received.")).to_be_hidden()
    press_keys(page, "Control+Enter")
    expect(task.get_by_text("Received.")).to_be_visible()
    _, answer = read(frame, item, document)
    assert [judged.value for judged in answer.judgments] == [3, 1, 1, 0, 1, 0, 2, 1]


def test_numbers_are_typed_on_lines_and_enter_moves_on(framed):
    item, document = published(rating_item(), questions=(QUESTIONS["line"],))
    frame, page = framed(item, document)
    task = frames.inside(page)
    press_keys(page, "9")
    page.wait_for_timeout(1100)
    press_keys(page, *"80", "Enter", *"7", "Enter", *"100", "Shift+Enter", "9", "Enter", "Enter")
    expect(task.locator("#progress")).to_have_text(frames.counts(3, 4))
    # A number is shown to whoever types one, however the line is set.
    expect(task.locator("output")).to_have_text(["80", "9", "100", ""])
    line, ends = (task.locator(each).first.bounding_box() for each in ("[type=range]", ".ends"))
    assert ends["x"] + ends["width"] == pytest.approx(line["x"] + line["width"], abs=8)
    page.keyboard.press("Enter")
    expect(task.locator("#send [type=submit]")).to_be_focused()
    press_keys(page, "Shift+Enter", *"25", "Control+Enter")
    expect(task.get_by_text("Received.")).to_be_visible()
    _, answer = read(frame, item, document)
    assert [judged.value for judged in answer.judgments] == [80, 9, 100, 25]


def test_letters_choose_among_responses(framed):
    names = ("preference", "best_worst", "ranking")
    item, document = published(rating_item(), questions=tuple(QUESTIONS[name] for name in names))
    frame, page = framed(item, document)
    task = frames.inside(page)
    press_keys(page, "b", "d")
    expect(task.locator("#progress")).to_have_text(frames.counts(1, 3))  # the worst is missing
    press_keys(page, "Shift+d", "a", "c", "a", "d", "b", "Control+Enter")
    expect(task.get_by_text("Received.")).to_be_visible()
    posted, _ = read(frame, item, document)
    a, b, c, d = posted["order"]
    assert [row["value"] for row in posted["judgments"]] == [
        b, {"best": a, "worst": d}, [[c], [a], [d], [b]],
    ]  # fmt: skip


def test_letters_select_products_and_zero_selects_none(framed):
    item, document = published(alternatives_item(), questions=(TICKS,))
    frame, page = framed(item, document)
    task = frames.inside(page)
    press_keys(page, "?")
    expect(task.locator("#keys kbd").get_by_text("Z", exact=True)).to_be_visible()
    press_keys(page, "Escape", "0", "a", "c", "b", "b", "Control+Enter")
    expect(task.get_by_text("Received.")).to_be_visible()
    _, answer = read(frame, item, document)
    values = {judged.candidate.key: judged.value for judged in answer.judgments}
    assert [key for key in answer.order if values[key]] == [answer.order[0], answer.order[2]]


def test_keys_are_listed_can_be_switched_off_and_leave_texts_alone(framed):
    questions = (QUESTIONS["short_text"], QUESTIONS["likert"])
    item, document = published(rating_item(), questions=questions)
    _, page = framed(item, document, "task")
    first = page.get_by_role("textbox").first
    first.focus()
    page.keyboard.type("a1?")
    expect(first).to_have_value("a1?")
    page.keyboard.press("Enter")
    digits = "nodes => nodes.map((node) => getComputedStyle(node, '::after').content)"
    labels = [f'"{n}" / ""' for n in (1, 2, 3)] * 4
    assert page.locator(".points label").evaluate_all(digits) == labels
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    assert accessibility_problems(page) == []
    page.get_by_role("dialog").get_by_role("checkbox").uncheck()
    assert page.locator(".points label").evaluate_all(digits) == ["none"] * 12
    page.keyboard.press("Escape")
    page.keyboard.press("1")
    expect(page.locator("#progress")).to_have_text(frames.counts(1, 8))


# Conditions


def test_a_question_appears_on_its_condition_and_is_asked_for_only_then(framed):
    why = ProtocolQuestion(
        name="why", kind="short_text", wording="Why not?", when=Condition("yes_no", any_of=("no",))
    )
    item, document = published(rating_item(), questions=(QUESTIONS["yes_no"], why))
    frame, page = framed(item, document)
    task = frames.inside(page)
    groups = task.get_by_role("radiogroup")
    expect(task.get_by_role("textbox")).to_have_count(0)
    for group, value in zip(groups.all(), "1110", strict=True):
        group.locator(f"[value='{value}']").check()
    expect(task.get_by_role("textbox")).to_have_count(1)
    task.locator("#send [type=submit]").click()
    expect(task.locator("#problems li")).to_have_count(1)
    task.get_by_role("textbox").fill("It is rude.")
    frames.send(task)
    posted, answer = read(frame, item, document)
    assert [judged.value for judged in answer.judgments] == [1, 1, 1, 0]
    [why] = answer.written
    assert (why.text, why.candidate.key) == ("It is rude.", answer.order[3])
    assert len(posted["judgments"]) == 5


def test_cannot_tell_is_an_answer_without_a_value(framed):
    rating = replace(QUESTIONS["likert"], cannot_tell=True)
    why = ProtocolQuestion(
        name="why", kind="short_text", wording="Why?", when=Condition("likert", below=2)
    )
    item, document = published(rating_item(), questions=(rating, why))
    frame, page = framed(item, document)
    task = frames.inside(page)
    for group in task.get_by_role("radiogroup").all():
        expect(group.get_by_role("radio")).to_have_count(4)
        group.get_by_label("I can’t tell").check()
    task.get_by_role("radiogroup").first.get_by_role("radio").nth(1).check()
    expect(task.get_by_role("textbox")).to_have_count(0)
    expect(task.locator("#progress")).to_have_text(frames.counts(4, 4))
    frames.send(task)
    _, answer = read(frame, item, document)
    assert [judged.value for judged in answer.judgments] == [2]
    assert [each.reason for each in answer.missing] == ["cannot_tell"] * 3


# Reasons


def test_a_reason_is_asked_for_each_choice_and_its_length_counted(framed):
    item, document = published(alternatives_item(), questions=(TICKS,), reason=Reason("choice", 10))
    frame, page = framed(item, document)
    task = frames.inside(page)
    # Enter leads to what is missing, and not past it.
    press_keys(page, "b", "Enter")
    expect(task.locator(".why:not([hidden]) textarea")).to_be_focused()
    boxes = task.get_by_role("checkbox")
    boxes.nth(1).uncheck()
    boxes.nth(0).check()
    boxes.nth(3).check()
    reasons = task.get_by_role("textbox")
    expect(reasons).to_have_count(2)
    reasons.first.fill("short")
    task.locator("#send [type=submit]").click()
    problems = task.locator("#problems li")
    expect(problems).to_have_count(2)
    expect(problems.filter(has_text=frames.counts(5, 10))).to_have_count(1)
    reasons.first.fill("Just as large.")
    reasons.last.fill("Of equal colour.")
    expect(task.locator("#problems")).to_be_hidden()
    frames.send(task)
    _, answer = read(frame, item, document)
    reasons = {answer.order[0]: "Just as large.", answer.order[3]: "Of equal colour."}
    assert {each.candidate.key: each.text for each in answer.written} == reasons


# Consent


def test_consent_is_asked_before_anything_else_and_sent(framed):
    item, document = published(
        rating_item(), questions=(QUESTIONS["likert"],),
        consent=Consent("I am 18 and take part.", "We **study** dialogue."),
    )  # fmt: skip
    _, alone = framed(item, document, "task")
    expect(alone.get_by_text("I am 18 and take part.")).to_be_visible()
    assert accessibility_problems(alone) == []
    frame, page = framed(item, document)
    task = page.frame_locator("iframe")
    expect(task.get_by_text("I am 18 and take part.")).to_be_visible()
    expect(task.locator("#work")).to_be_hidden()
    expect(task.locator("footer")).to_be_hidden()
    expect(task.get_by_role("status")).to_be_empty()
    task.locator("#disagree").click()
    expect(task.get_by_role("status")).not_to_be_empty()
    task.locator("#agree").press("Enter")
    expect(task.locator("#work")).to_be_visible()
    for group in task.get_by_role("radiogroup").all():
        group.get_by_role("radio").first.check()
    frames.send(task)
    _, answer = read(frame, item, document)
    assert answer.consented_at is not None


def test_what_is_shown_of_an_item_is_what_its_protocol_says(framed):
    item, document = published(
        rating_item(), questions=(QUESTIONS["likert"],), instructions="Be **kind**.",
        display=Display(context=False, condition=True, condition_label="Style"),
    )  # fmt: skip
    _, page = framed(item, document, "task")
    expect(page.get_by_text("Lisbon")).to_have_count(0)
    expect(page.locator("#context")).to_contain_text("Style: ironic")
    expect(page.locator("#instructions strong")).to_have_text("kind")


def test_a_product_to_choose_is_named_by_its_title_and_what_is_looked_for_stays_in_view(framed):
    fields = {
        "questions": (QUESTIONS["preference"],),
        "display": Display(reference=True, candidates="product"),
    }
    item, document = published(rating_item(), **fields)
    item.reference = "A boot of red leather"
    lines = ("You look for a red boot", "Shown before: a clog", "Shown now: a black sandal")
    item.context = "\n".join(lines)
    _, page = framed(item, document, "task")
    page.set_viewport_size({"width": 390, "height": 844})
    named = re.compile(rf"\b[A-D]\b.*{re.escape(RESPONSES[0])}$")
    expect(page.get_by_role("radio", name=named)).to_have_count(1)
    expect(page.locator(".last .text")).to_have_text(f"{lines[0]}\n{lines[2]}")
    page.locator(".card").last.scroll_into_view_if_needed()
    for pinned, text in ((".last", lines[2]), (".reference", item.reference)):
        expect(page.locator(f"{pinned} .text")).to_be_in_viewport()
        expect(page.locator(f"{pinned} .text")).to_contain_text(text)


# Size


def test_a_page_is_light_and_holds_only_the_widgets_it_uses():
    item, document = published(rating_item(), questions=(QUESTIONS["likert"],))
    page = task_page(item, document)
    assert "kinds.line" not in page
    assert "kinds.ranking" not in page
    assert len(gzip.compress(page.encode())) <= 14 * 1024
    item, document = published(alternatives_item(), questions=(TICKS,))
    without_pictures = re.sub(r'src="data:[^"]*"', "", task_page(item, document))
    assert len(gzip.compress(without_pictures.encode())) <= 14 * 1024


# Alternatives


def test_every_alternative_that_is_ticked_stays_ticked(alternatives_frame, open_page):
    page = open_page(alternatives_frame.address("task"))
    boxes = page.locator(".grid .card:not(.none) input")
    for box in boxes.all():
        box.click()
    assert page.locator(".grid :checked").count() == boxes.count() == 14
    page.locator("#justification").fill("All of them are lamps.")
    page.locator("#comment").fill("A large choice")
    page.reload()
    expect(page.locator("#progress")).to_have_text(frames.counts(14))
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
    frames.check_ids(page)
    titles = page.locator(".grid .card:not(.none) .text").all_inner_texts()
    assert sorted(titles) == sorted(each.text for each in alternatives.candidates.all())
    frames.assert_announced(
        accessible_nodes(page, CONTROLS),
        [
            ("button", alternatives.context, ""),
            *((role, title, "") for title in titles for role in ("checkbox", "button")),
            ("checkbox", "", ""),
            ("textbox", "", ["0 ", " 20 "]),
            ("textbox", "", ""),
            ("link", "", ""),
            ("button", "", ""),
            ("button", "", ""),
        ],
    )
    question = alternatives.study.questions.get()
    assert question.wording in [node.name for node in accessible_nodes(page, GROUPS)]


def test_a_reason_that_is_there_twice_or_copied_is_asked_about_once(framed):
    why = ProtocolQuestion(name="why", kind="long_text", wording="Why?")
    item, document = published(rating_item(), questions=(why,), reason=Reason("page", 5))
    frame, page = framed(item, document)
    task = frames.inside(page)
    boxes = task.get_by_role("textbox").all()
    texts = ["It answers the question.", "it  answers the question.", "Fine.", "Fine."]
    for box, text in zip(boxes, [*texts, "I like <B>all</B>  trains."], strict=True):
        box.fill(text)
    task.locator("#send [type=submit]").click()
    rows = task.locator("#problems").get_by_role("link")
    expect(rows).to_have_count(2)
    rows.first.click()
    expect(boxes[1]).to_be_focused()
    assert frame.posts == []
    frames.send(task)
    _, answer = read(frame, item, document)
    assert answer.justification == "I like <B>all</B>  trains."


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
def test_the_first_question_is_in_sight_below_the_instructions(framed, width, height):
    document = templates.read_protocol("style_ratings")
    # The responses have one to four lines on a phone.
    order = Order(policy="fixed")
    item, document = published(rating_item(), **(vars(document) | {"order": order}))
    _, page = framed(item, document, "task", viewport={"width": width, "height": height})
    question, footer = page.locator(".field").first, page.locator("footer")
    assert question.bounding_box()["y"] + 60 < footer.bounding_box()["y"]
    brief, unfold = page.locator("#instructions > div"), page.locator("#unfold")
    unfold.click()
    expect(unfold).to_be_hidden()
    assert brief.evaluate("node => node.scrollHeight <= node.clientHeight")
    assert accessibility_problems(page) == []
