import json
import re
from collections.abc import Callable

import pytest
from playwright.sync_api import FrameLocator, Locator, Page, expect

from annotation import evidence, models
from hits.answers import Answer, read_answer
from hits.questions import task_page
from tests.accessibility import accessibility_problems
from tests.browsers import opened_page
from tests.hits.frames import Frame, counts, frame_of, inside, label, send
from tests.hits.test_answers import xml_of

pytestmark = [pytest.mark.browser, pytest.mark.django_db]
NOT_ACCEPTED = "ASSIGNMENT_ID_NOT_AVAILABLE"
Open = Callable[..., Page]


def displayed_order(page: Page | FrameLocator) -> list[str]:
    return [card.get_attribute("data-candidate") for card in page.locator("[data-candidate]").all()]


def sliders(page: Page | FrameLocator) -> Locator:
    return page.get_by_role("slider")


def tab_to(page: Page, target: Locator, key: str = "Tab", most: int = 60) -> None:
    for _ in range(most):
        if target.evaluate("node => node === document.activeElement"):
            return
        page.keyboard.press(key)
    raise AssertionError(f"{most} presses of {key} do not lead to {target}")


def place_of(slider: Locator, across: float, up: float = 0) -> tuple[float, float]:
    """The point of the window at this share of the slider's width, in the middle of its height."""
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    x = min(max(box["width"] * across, 1), box["width"] - 1)
    return box["x"] + x, box["y"] + box["height"] / 2 - up


def submitted_answer(frame: Frame, item: models.Item) -> tuple[dict, Answer]:
    assert [path for path, _ in frame.posts] == ["/mturk/externalSubmit"]
    fields = {name: values[0] for name, values in frame.posts[0][1].items()}
    assert (fields.keys(), fields["assignmentId"]) == ({"assignmentId", "answer"}, "3ASSIGNMENT1")
    return json.loads(fields["answer"]), read_answer(xml_of({"answer": fields["answer"]}), item)


def answer_every_slider(page: Page | FrameLocator) -> None:
    for slider in sliders(page).all():
        slider.press("End")


# Rating


def test_a_rating_is_done_by_keyboard_alone_in_a_sandboxed_frame(rating, rating_frame, open_page):
    page = open_page(rating_frame.address("frame"))
    task = inside(page)
    expect(task.locator("#progress")).to_have_text(counts(0, 8))
    presses = [["Space"], ["ArrowLeft"], ["PageUp"], ["PageDown", "ArrowDown"]]
    presses += [["Home"], ["End"], ["Space", "ArrowRight", "ArrowUp"], ["PageUp", "Home", "PageUp"]]
    for slider, keys in zip(sliders(task).all(), presses, strict=True):
        tab_to(page, slider)
        for key in keys:
            page.keyboard.press(key)
    expect(task.locator("#progress")).to_have_text(counts(8, 8))
    tab_to(page, task.locator("#comment"))
    page.keyboard.type("Clear.")
    order = displayed_order(task)
    tab_to(page, task.locator("#send [type=submit]"))
    page.keyboard.press("Enter")
    expect(task.get_by_text("Received.")).to_be_visible()
    form, answer = submitted_answer(rating_frame, rating)
    assert [judgment.value for judgment in answer.judgments] == [50, 49, 60, 39, 0, 100, 52, 10]
    assert form["order"] == order
    keys = {candidate.blind_key: candidate.key for candidate in rating.candidates.all()}
    assert answer.order == tuple(keys[key] for key in order)
    assert [judgment.position for judgment in answer.judgments] == [0, 0, 1, 1, 2, 2, 3, 3]
    seconds = [judgment.seconds for judgment in answer.judgments]  # since the page was asked for
    assert answer.active_seconds >= max(seconds) - min(seconds) - 0.2
    assert (answer.comment, answer.pasted) == ("Clear.", False)


def test_a_slider_has_no_value_and_no_thumb_until_it_is_touched(rating_frame, open_page):
    """Two untouched sliders whose hidden thumbs are apart look alike to the pixel."""
    page = open_page(rating_frame.address("task"))
    slider, other = sliders(page).nth(0), sliders(page).nth(1)
    thumb = "node => getComputedStyle(node).getPropertyValue('--thumb').trim()"
    expect(slider).to_have_attribute("aria-valuetext", re.compile(r"^\D+$"))
    assert slider.evaluate(thumb) == ""
    middle = slider.screenshot()
    slider.evaluate("node => { node.value = 10; }")
    assert slider.screenshot() == middle
    slider.press("Home")
    assert slider.screenshot() != middle
    expect(slider).to_have_attribute("aria-valuetext", counts(0, 0, 100))
    assert [each.evaluate(thumb) for each in (slider, other)] == ["1", ""]
    expect(page.locator("#progress")).to_have_text(counts(1, 8))
    # No number is displayed, and the letters are from left to right.
    answer_every_slider(page)
    assert re.findall(r"\d", page.locator("#cards").inner_text()) == []
    badges = page.locator(".badge")
    assert badges.all_inner_texts() == ["A", "B", "C", "D"]
    lefts = [badge.bounding_box()["x"] for badge in badges.all()]
    assert lefts == sorted(lefts)


def test_a_mouse_sets_a_slider_where_it_presses_or_drags(rating_frame, open_page):
    """A press counts on the hidden thumb, too; a button let go over a slider is no press."""
    page = open_page(rating_frame.address("task"))
    progress = page.locator("#progress")
    for number, (share, value) in enumerate(
        ((0.5, 50), (0.48, 48), (0.1, 8), (0.0, 0), (1.0, 100))
    ):
        slider = sliders(page).nth(number)
        page.mouse.click(*place_of(slider, share))
        expect(progress).to_have_text(counts(number + 1, 8))
        box = slider.bounding_box()
        pixel, across = 100 / (box["width"] - 24), place_of(slider, share)[0] - box["x"]
        exact = min(100, max(0, (across - 12) * pixel))
        assert float(slider.input_value()) == pytest.approx(exact, abs=pixel + 0.5)
        assert float(slider.input_value()) == pytest.approx(value, abs=5)
    buttons = page.get_by_role("button", name=label("Style strength", "C"))
    more, less = (page.locator(f'[data-name="{name}"]').and_(buttons) for name in ("more", "less"))
    box = more.bounding_box()
    assert min(box["width"], box["height"]) >= 44
    for button in (more, more, less):
        button.click()
    slider = sliders(page).nth(5)
    assert slider.input_value() == "51"
    slider = sliders(page).nth(6)
    page.mouse.move(*place_of(slider, 0.2, up=60))
    page.mouse.down()
    page.mouse.move(*place_of(slider, 0.2), steps=4)
    page.mouse.up()
    expect(progress).to_have_text(counts(6, 8))
    page.mouse.down()
    page.mouse.move(*place_of(slider, 0.6), steps=5)
    page.mouse.move(*place_of(slider, 1), steps=5)
    page.mouse.up()
    assert slider.input_value() == "100"


def test_a_finger_sets_a_slider_only_by_a_tap_and_not_as_it_scrolls(rating_frame, open_page):
    page = open_page(
        rating_frame.address("task"), viewport={"width": 400, "height": 500}, has_touch=True
    )
    progress, slider = page.locator("#progress"), sliders(page).nth(0)
    for n_answered in (0, 1):
        if n_answered:
            slider.press("End")
        value = slider.input_value()
        for share in (0.1, 0.5):
            slider.evaluate("node => node.scrollIntoView({ block: 'center' })")
            before = page.evaluate("scrollY")
            swipe(page, *place_of(slider, share), up=130)
            page.wait_for_function(f"scrollY > {before + 40}")
            expect(progress).to_have_text(counts(n_answered, 8))
            assert slider.input_value() == value
    other = sliders(page).nth(1)
    other.evaluate("node => node.scrollIntoView({ block: 'center' })")
    x, y = place_of(other, 0.5)
    page.touchscreen.tap(x + 5, y)
    expect(progress).to_have_text(counts(2, 8))
    pixel = 100 / (other.bounding_box()["width"] - 24)
    assert float(other.input_value()) == pytest.approx(50 + 5 * pixel, abs=pixel + 0.5)


def swipe(page: Page, x: float, y: float, up: float) -> None:
    session = page.context.new_cdp_session(page)
    points = [{"x": x, "y": y - up * step / 10} for step in range(11)]
    for kind, point in zip(["touchStart"] + ["touchMove"] * 10, points, strict=True):
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [point]})
        page.evaluate("() => new Promise(requestAnimationFrame)")
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def test_nothing_is_sent_while_a_rating_is_missing_and_then_once(rating, rating_frame, open_page):
    page = open_page(rating_frame.address("frame"))
    task = inside(page)
    for slider in sliders(task).all()[:6]:
        slider.press("PageUp")
    task.locator("#send [type=submit]").click()
    problems = task.locator("#problems")
    expect(problems).to_be_focused()
    expect(problems.get_by_role("listitem")).to_have_count(2)
    expect(task.locator(".needed").locator("visible=true")).to_have_count(2)
    problems.get_by_role("link", name=label("Style strength", "D")).press("Enter")
    last = task.get_by_role("slider", name=label("Style strength", "D"))
    expect(last).to_be_focused()
    expect(last).to_have_attribute("aria-invalid", "true")
    page.keyboard.press("Home")
    expect(last).to_have_attribute("aria-invalid", "false")
    task.locator("#first").click()
    expect(task.get_by_role("slider", name=label("Appropriateness", "D"))).to_be_focused()
    page.keyboard.press("End")
    expect(problems).to_be_hidden()
    assert rating_frame.posts == []
    task.locator("#send [type=submit]").evaluate("node => { node.click(); node.click(); }")
    expect(task.get_by_text("Received.")).to_be_visible()
    _form, answer = submitted_answer(rating_frame, rating)
    assert [judgment.value for judgment in answer.judgments][-2:] == [100, 0]


@pytest.mark.parametrize("assignment_id", [NOT_ACCEPTED, None])
@pytest.mark.parametrize("kind", ["rating", "alternatives"])
def test_a_preview_shows_everything_and_takes_nothing(request, open_page, kind, assignment_id):
    frame = request.getfixturevalue(f"{kind}_frame")
    task = inside(open_page(frame.address("frame", assignment_id)))
    expect(task.locator("#notice")).to_be_visible()
    expect(task.locator("#cards > [data-candidate]").first).to_be_visible()
    inputs = task.locator("input:not([type=hidden]), textarea, button[type=submit]")
    assert inputs.count() > 5
    assert all(each.is_disabled() for each in inputs.all())
    task.locator("#send").evaluate("form => form.requestSubmit()")
    expect(task.locator("#cards")).to_be_visible()
    assert frame.posts == []


@pytest.mark.parametrize("address", ["javascript:alert(1)//", "", "nowhere"])
def test_a_page_without_a_marketplace_to_send_to_takes_nothing(rating_frame, open_page, address):
    page = open_page(f"{rating_frame.origin}/task?assignmentId=3A&turkSubmitTo={address}")
    expect(page.locator("#notice")).to_be_visible()
    assert all(slider.is_disabled() for slider in sliders(page).all())
    assert "javascript" not in (page.locator("#send").get_attribute("action") or "")


def test_a_draft_and_closed_instructions_survive_a_reload(rating_frame, open_page):
    page = open_page(rating_frame.address("task"))
    details = page.locator("#instructions")
    expect(details).to_have_attribute("open", "")
    details.locator("summary").click()
    page.wait_for_function(
        "Object.entries(localStorage).some(([key, value]) =>"
        " key.startsWith('assay:instructions') && value === 'true')"
    )
    sliders(page).nth(3).press("Home")
    sliders(page).nth(4).press("Space")
    page.locator("#comment").fill("half way")
    page.reload()
    expect(page.locator("#progress")).to_have_text(counts(2, 8))
    assert [sliders(page).nth(at).input_value() for at in (3, 4)] == ["0", "50"]
    expect(page.locator("#comment")).to_have_value("half way")
    page.goto(rating_frame.address("task", "3ANOTHER"))
    expect(page.locator("#progress")).to_have_text(counts(0, 8))
    expect(details).not_to_have_attribute("open", "")


def test_hostile_texts_are_shown_as_they_are(rating, open_page):
    evil = '</script><script>document.title="owned"</script><img src=x onerror=alert(1)>'
    rating.context = rating.study.title = evil
    rating.study.instructions = evil
    rating.candidates.update(text=evil)
    rating.study.questions.update(wording=evil, low_label='" onfocus="alert(1)'[:64])
    item = models.Item.objects.get(pk=rating.pk)
    item.context, item.study.title = evil, evil
    with frame_of(task_page(item)) as frame:
        page = open_page(frame.address("task"))
        assert page.title() == evil
        assert page.locator("#cards .said .text").all_inner_texts() == [evil] * 4
        assert page.locator("img").count() == 0


# Alternatives


def test_alternatives_are_chosen_by_keyboard_alone(alternatives, alternatives_frame, open_page):
    page = open_page(alternatives_frame.address("frame"))
    task = inside(page)
    boxes = task.locator(".grid input")
    order = displayed_order(task)
    for number in (0, 3):
        tab_to(page, boxes.nth(number))
        page.keyboard.press("Space")
    expect(task.locator("#progress")).to_have_text(counts(2))
    tab_to(page, task.locator("#justification"))
    # No key of the page's own: z enlarges a picture elsewhere.
    page.keyboard.type("Both lamps, zzzzzzzz Z")
    expect(task.get_by_role("dialog")).to_be_hidden()
    tab_to(page, task.locator("#send [type=submit]"))
    page.keyboard.press("Enter")
    expect(task.get_by_text("Received.")).to_be_visible()
    form, answer = submitted_answer(alternatives_frame, alternatives)
    assert form["order"] == order
    assert [judgment.position for judgment in answer.judgments if judgment.value] == [0, 3]
    assert len(answer.judgments) == 14
    assert {judgment.seconds for judgment in answer.judgments if not judgment.value} == {None}
    assert answer.justification == "Both lamps, zzzzzzzz Z"
    assert not answer.pasted


def test_none_of_them_excludes_every_other(alternatives, alternatives_frame, open_page):
    page = open_page(alternatives_frame.address("frame"))
    task = inside(page)
    expect(task.locator("#cards > *").last.locator("#none")).to_be_visible()
    none = task.locator("#none")
    first = task.locator(".grid input").nth(0)
    first.check()
    none.check()
    expect(first).not_to_be_checked()
    expect(task.locator("#progress")).not_to_have_text(re.compile(r"\d"))
    first.check()
    expect(none).not_to_be_checked()
    none.check()
    # A reason may be pasted, which is noted.
    task.locator("#comment").fill("Near enough, everybody")
    page.keyboard.press("Control+A")
    page.keyboard.press("Control+C")
    task.locator("#justification").focus()
    page.keyboard.press("Control+V")
    send(task)
    answer = submitted_answer(alternatives_frame, alternatives)[1]
    assert {judgment.value for judgment in answer.judgments} == {0.0}
    assert answer.judgments[0].seconds is not None
    assert (answer.pasted, answer.justification) == (True, "Near enough, everybody")


def test_no_choice_and_a_short_reason_are_both_named(alternatives_frame, open_page):
    page = open_page(alternatives_frame.address("task"))
    page.locator("#justification").fill("  too short   ")
    expect(page.locator("#reason .count")).to_have_text("9")
    page.locator("#send [type=submit]").click()
    problems = page.locator("#problems")
    expect(problems.get_by_role("listitem")).to_have_count(2)
    expect(problems.get_by_role("link").nth(1)).to_have_text(counts(9, 20))
    choices = page.locator("fieldset.choices")
    expect(choices).to_have_accessible_description(re.compile(r"\S"))
    problems.get_by_role("link").first.click()
    expect(page.locator(".grid input").nth(0)).to_be_focused()
    # The whole card is the label of its box.
    card = page.locator(".grid .card").nth(2)
    card.locator("img").click()
    expect(card.get_by_role("checkbox")).to_be_checked()
    expect(choices).to_have_accessible_description("")
    assert card.locator("label").bounding_box()["width"] >= card.bounding_box()["width"] - 2
    card.locator(".text").click()
    expect(card.get_by_role("checkbox")).not_to_be_checked()
    assert alternatives_frame.posts == []


def test_a_picture_is_enlarged_by_key_and_by_button(alternatives_frame, open_page):
    page = open_page(alternatives_frame.address("frame"))
    task = inside(page)
    box, dialog = task.locator(".grid input").nth(4), task.get_by_role("dialog")
    title = task.locator(".grid img").nth(4).get_attribute("alt")
    box.focus()
    page.keyboard.press("z")
    expect(dialog).to_be_visible()
    expect(dialog).to_contain_text(title)
    dialog.locator("#larger").click()
    for shown in dialog.locator("figure > div").all():
        # The middle of each picture, where the product is, not an empty corner.
        assert shown.evaluate(
            "box => Math.abs(box.scrollLeft + box.clientWidth / 2 - box.scrollWidth / 2) < 2"
        )
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(box).to_be_focused()
    task.get_by_role("button", name=title).press("Enter")
    expect(dialog).to_be_visible()
    page.keyboard.press("Enter")
    expect(dialog).to_be_hidden()
    expect(box).not_to_be_checked()
    page.keyboard.press("Enter")
    dialog.locator("#pick").click()
    expect(box).to_be_checked()


# Both


@pytest.mark.parametrize("kind", ["rating", "alternatives"])
def test_the_page_asks_nothing_of_any_other_place(request, chromium, kind):
    frame = request.getfixturevalue(f"{kind}_frame")
    addresses = []
    with opened_page(chromium) as page:
        page.on("request", lambda sent: addresses.append(sent.url))
        page.goto(frame.address("frame"))
        expect(inside(page).locator("#send [type=submit]")).to_be_enabled()
        page.wait_for_load_state("networkidle")
    assert [url for url in addresses if not url.startswith((frame.origin, "data:"))] == []
    assert any("/task" in url for url in addresses)


@pytest.mark.parametrize("kind", ["rating", "alternatives"])
def test_without_javascript_the_page_says_that_it_needs_it(request, open_page, kind):
    frame = request.getfixturevalue(f"{kind}_frame")
    page = open_page(frame.address("task"), java_script_enabled=False)
    expect(page.locator("noscript .notice")).to_be_visible()
    expect(page.locator("#cards > [data-candidate]").first).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", ["rating", "alternatives"])
def test_axe_finds_nothing_at_any_stage_and_nothing_moves(request, open_page, kind, scheme):
    frame = request.getfixturevalue(f"{kind}_frame")
    # So tall that nothing is under the pinned foot, where axe could not tell the contrast.
    options = {"viewport": {"width": 1280, "height": 3000}, "reduced_motion": "reduce"}
    page = open_page(frame.address("task", NOT_ACCEPTED), color_scheme=scheme, **options)
    problems = accessibility_problems(page)
    page.goto(frame.address("task"))
    animations = page.evaluate(
        """() => [...document.querySelectorAll("*")].filter((node) => {
          const style = getComputedStyle(node);
          return style.transitionDuration !== "0s" || style.animationName !== "none"
            || style.scrollBehavior === "smooth";
        }).length"""
    )
    assert animations == 0
    problems += accessibility_problems(page)
    if kind == "rating":
        sliders(page).nth(0).press("End")
    else:
        page.locator(".grid input").nth(0).check()
    page.locator("#send [type=submit]").click()
    expect(page.locator("#problems")).to_be_visible()
    problems += accessibility_problems(page)
    if kind == "alternatives":
        page.locator(".target .enlarge").click()
        problems += accessibility_problems(page)
    assert problems == []


@pytest.mark.parametrize("kind", ["rating", "alternatives"])
def test_on_a_telephone_targets_are_large_and_no_key_is_named(request, open_page, kind):
    frame = request.getfixturevalue(f"{kind}_frame")
    size = {"width": 390, "height": 844}
    page = open_page(frame.address("task"), viewport=size, has_touch=True, is_mobile=True)
    page.locator("#send [type=submit]").tap()
    expect(page.locator("#problems")).to_be_visible()
    targets = page.locator("a, button, summary").filter(visible=True)
    sizes = [each.bounding_box() for each in targets.all()]
    assert len(sizes) > 3
    assert [size for size in sizes if size["height"] < 44] == []
    assert page.locator(".keyed").filter(visible=True).count() == 0


@pytest.mark.parametrize("kind", ["rating", "alternatives"])
def test_what_has_the_focus_is_outlined_and_in_sight(request, open_page, kind):
    frame = request.getfixturevalue(f"{kind}_frame")
    page = open_page(frame.address("task"), viewport={"width": 1280, "height": 700})
    outlines = []
    for _ in range(30):
        page.keyboard.press("Tab")
        outlines.append(
            page.evaluate(
                """() => {
                  const node = document.activeElement, box = node.getBoundingClientRect();
                  const outlined = [node, node.closest(".card")].some((each) =>
                    each && getComputedStyle(each).outlineStyle === "solid");
                  const y = (Math.max(box.top, 0) + Math.min(box.bottom, innerHeight)) / 2;
                  const on = document.elementFromPoint(box.left + box.width / 2, y);
                  return [node.tagName, outlined, node === document.body || node.contains(on)];
                }"""
            )
        )
    assert [each for each in outlines if each[0] != "BODY" and not (each[1] and each[2])] == []
    assert len(outlines) - len([each for each in outlines if each[0] == "BODY"]) > 10


def test_what_a_worker_does_is_recorded_and_not_what_they_type(rating, rating_frame, open_page):
    page = open_page(rating_frame.address("frame"))
    task = inside(page)
    answer_every_slider(task)
    comment = task.locator("#comment")
    comment.focus()
    page.keyboard.type("Clear, and right on the whole.", delay=30)
    comment.evaluate(
        """node => {
          const clipboardData = new DataTransfer();
          clipboardData.setData("text", "pasted words");
          node.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true }));
        }"""
    )
    task.locator("body").evaluate("() => dispatchEvent(new Event('blur'))")
    send(task)
    posted, answer = submitted_answer(rating_frame, rating)
    effort = evidence.Effort(60, 60, answer.active_seconds, events=answer.events, n_characters=42)
    assert posted["events"] == [list(row) for row in answer.events]
    assert (effort.n_typed, effort.n_pasted, effort.counts["blur"]) == (30, 12, 1)
    assert (effort.typing_ms[0], effort.seen) == (pytest.approx(35, abs=25), (8, 8))
    assert effort.first_input_seconds is not None
    assert effort.signs == []
    assert "Clear" not in json.dumps(posted["events"])
    assert len(json.dumps(posted["events"])) < 1000


def test_a_draft_keeps_what_was_recorded_within_bounds(rating_frame, open_page):
    page = open_page(rating_frame.address("task"))
    comment = page.locator("#comment")
    comment.press_sequentially("A first part.")
    comment.blur()
    page.reload()
    comment.press_sequentially(" And a second.")
    page.evaluate("() => { for (let n = 0; n < 999; n++) dispatchEvent(new Event('blur')); }")
    answer_every_slider(page)
    send(page)
    events = json.loads(rating_frame.posts[0][1]["answer"][0])["events"]
    assert sum(row[2] for row in events if row[1] == "typing") == len("A first part. And a second.")
    assert [row[0] for row in events] == sorted(row[0] for row in events)
    assert sum(row[1] == "blur" for row in events) == 30
