"""A worker's page in a real Chromium: answers come home, and nothing typed is lost when things go
wrong; practice."""

import json
import re
from datetime import timedelta
from decimal import Decimal
from html import unescape

import pytest
from playwright.sync_api import expect

from annotation.imports import import_study
from annotation.models import Judgment, Submission
from annotation.protocols import records, versions
from annotation.readers.item_files import read_responses
from config.samples import FOLDER
from hits import collect, endpoints, plans, publications
from hits.connections import enrol_requester, enrol_worker
from marketplace import clock
from marketplace.hits.drafts import delete_closed_drafts
from marketplace.models import Assignment, AssignmentDraft, ProblemReport
from tests.accessibility import accessibility_problems
from tests.browsers import opened_page, sign_in, wait_until
from tests.hits.samples import CONTEXT, alternatives_item, rating_item
from tests.marketplace.conftest import marketplace_clock  # noqa: F401

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
PASSWORD = "correct horse battery staple"
WIDE = {"width": 1280, "height": 900}


@pytest.fixture
def client(live_server):
    key = enrol_requester(site_url=live_server.url, name="Test lab", test_funds_usd=Decimal(100))
    return endpoints.connect(key=key, endpoint_url=f"{live_server.url}/requester")


@pytest.fixture
def open_site(chromium, live_server):
    enrol_worker(site_url=live_server.url, username="ada", password=PASSWORD)
    opened = []

    def open_(**options):
        manager = opened_page(chromium, **{"base_url": live_server.url, "viewport": WIDE} | options)
        page = manager.__enter__()
        opened.append(manager)
        sign_in(page, "/worker/login/", "ada", PASSWORD)
        return page

    yield open_
    for manager in opened:
        manager.__exit__(None, None, None)


def publish(study, client):
    draft = plans.draft_batch(
        study=study,
        title=study.title,
        description="Judge what is on the page.",
        reward_usd=Decimal("0.12"),
        max_assignments=1,
    )
    batch = plans.plan_batch(draft=draft).batch
    publications.publish_batch(batch=batch, client=client)
    return batch


@pytest.fixture
def rating(client):
    item = rating_item()
    publish(item.study, client)
    return item


@pytest.fixture
def alternatives(client):
    item = alternatives_item()
    publish(item.study, client)
    return item


def task_of(page):
    task = page.frame_locator("iframe#task")
    expect(task.locator("#progress")).not_to_be_empty()
    return task


def accept(page):
    page.goto("/worker/")
    page.locator("th a").first.click()
    page.locator("form.accept button").first.click()
    page.wait_for_url("**/worker/assignments/**")
    return task_of(page)


def answer(task, *positions, key="End"):
    for position in positions:
        task.get_by_role("slider").nth(position).press(key)


def work_text(page, key):
    """A text of the page around the task, from its template; what is filled in may be anything."""
    script = (
        "key => document.querySelector('#work-texts').content.querySelector(`#${key}`).innerHTML"
    )
    parts = re.split(r"\{\w+\}", unescape(page.evaluate(script, key)))
    return re.compile(".+".join(map(re.escape, parts)))


def expect_state(page, key):
    expect(page.locator("#work-state")).to_contain_text(work_text(page, key))


def rated(n):
    return re.compile(rf"^{n}\D+8\D*$")


def expect_rated(task, n):
    expect(task.locator("#progress")).to_have_text(rated(n))


def saved_progress(page, n):
    for _ in range(200):
        draft = AssignmentDraft.objects.first()
        if draft is not None and rated(n).match(draft.progress):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"{draft and draft.progress} is saved, not {n}")


def submit_button(task):
    return task.locator("#send [type=submit]")


def submit(task):
    submit_button(task).click()


def expect_received(page):
    receipt = page.locator("#receipt")
    number = Assignment.objects.get(status="Submitted").receipt
    expect(receipt).to_contain_text(str(number))
    expect(receipt).to_be_focused()
    expect(receipt).to_have_attribute("role", "status")


def judgments():
    text = re.search("<FreeText>(.*?)</FreeText>", Assignment.objects.get().answer, re.DOTALL)[1]
    return [row["value"] for row in json.loads(text.replace("&quot;", '"'))["judgments"]]


# From publication to judgments


@pytest.mark.flow
def test_a_rating_made_by_keyboard_becomes_the_studys_judgments(open_site, client):
    responses = FOLDER / "responses.csv"
    draft = read_responses(responses)
    study = import_study(draft=draft, path=responses, slug="rated", title="Rate responses").study
    batch = publish(study, client)
    page = open_site()
    page.get_by_role("link", name="Rate responses", exact=True).press("Enter")
    page.locator("form.accept button").first.press("Enter")
    page.wait_for_url("**/worker/assignments/**")
    task = task_of(page)
    # The marketplace's page and the task within it, as a worker has them: together.
    assert accessibility_problems(page) == []
    letters = []
    for position, slider in enumerate(task.get_by_role("slider").all()):
        slider.press("Home")
        for _ in range(position + 1):
            page.keyboard.press("PageUp")
        letters.append(task.locator("[data-candidate]").nth(position).inner_text()[0])
    before = page.url
    submit_button(task).press("Enter")
    page.wait_for_url(lambda url: url != before)
    collect.collect_batch(batch=batch, client=client)
    judgments = Judgment.objects.of(study).order_by("position")
    assert [judgment.value for judgment in judgments] == [10, 20, 30, 40]
    assert [judgment.position for judgment in judgments] == [0, 1, 2, 3]
    assert letters == ["A", "B", "C", "D"]
    submission = Submission.objects.get()
    assert submission.shown_order == [judgment.candidate.key for judgment in judgments]
    assert submission.seconds is not None
    assert submission.annotator.pseudonym.startswith("A")


# Drafts


def test_another_browser_goes_on_where_the_first_was_left(open_site, rating):
    page = open_site()
    task = accept(page)
    address = page.url
    answer(task, 0, 1, 2)
    page.wait_for_timeout(200)  # as nobody leaves sooner, but before the draft is saved by itself
    page.goto("/worker/earnings/")
    saved_progress(page, 3)
    page.goto(address)
    expect_rated(task_of(page), 3)
    task.locator("#comment").fill("half way")
    answer(task, 3)
    saved_progress(page, 4)
    page.context.close()
    other = open_site()
    other.goto("/worker/")
    expect(other.get_by_text(rated(4))).to_be_visible()
    other.goto(address)
    task = task_of(other)
    expect_rated(task, 4)
    expect(task.locator("#comment")).to_have_value("half way")


def test_two_tabs_are_put_together_and_the_newest_answer_wins(open_site, rating):
    page = open_site()
    task = accept(page)
    second = page.context.new_page()
    second.goto(page.url)
    other = task_of(second)
    answer(task, 0, 1)
    saved_progress(page, 2)
    answer(other, 1, 2, key="Home")
    saved_progress(second, 3)
    expect_state(second, "merged")
    for tab in (second, page):
        if tab is page:
            tab.bring_to_front()
            tab.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        frame = task_of(tab)
        expect_rated(frame, 3)
        values = [frame.get_by_role("slider").nth(n).input_value() for n in range(3)]
        assert values == ["100", "0", "0"]


def test_without_a_connection_answers_stay_in_the_browser_until_there_is_one(open_site, rating):
    page = open_site()
    task = accept(page)
    address = page.url
    kept = "Object.keys(localStorage).some((key) => key.startsWith('assay:draft:'))"
    page.context.set_offline(True)
    answer(task, 0, 1)
    expect(page.locator("#saved")).to_have_text(work_text(page, "here"))
    assert page.evaluate(kept)
    assert not AssignmentDraft.objects.exists()
    page.context.set_offline(False)
    saved_progress(page, 2)
    expect(page.locator("#saved")).to_have_text(work_text(page, "saved"))
    wait_until(page, f"!{kept}")
    # A page that is closed without a connection leaves them in the browser, too.
    page.route("**/draft/", lambda route: route.abort())
    answer(task, 2)
    expect(page.locator("#saved")).to_have_text(work_text(page, "here"))
    tab = page.context.new_page()
    page.close()
    tab.goto(address)
    saved_progress(tab, 3)


# Sending


def test_a_submission_is_received_and_said_so_on_the_next_page(open_site, rating):
    page = open_site()
    task = accept(page)
    assert accessibility_problems(page) == []
    answer(task, *range(8))
    submit_button(task).evaluate("node => { node.click(); node.click(); }")
    page.wait_for_url("**/worker/")
    expect_received(page)
    assert judgments() == [100] * 8
    assert accessibility_problems(page) == []
    page.locator("#receipt a").first.click()
    task = task_of(page)
    expect(task.get_by_role("slider").first).to_have_value("100")
    expect(task.get_by_role("slider").first).to_be_disabled()
    assert accessibility_problems(page) == []


@pytest.mark.parametrize("fault", ["502", "cut", "offline"])
def test_what_could_not_be_sent_is_kept_and_sent_again(open_site, rating, fault):
    page = open_site()
    task = accept(page)
    answer(task, *range(8))
    failures = []

    def fail(route):
        failures.append(1)
        if fault == "502":
            route.fulfill(status=502, body="<h1>Bad gateway</h1>")
        else:
            route.abort("connectionrefused")

    if fault == "offline":
        page.context.set_offline(True)
    else:
        page.route("**/externalSubmit", fail)
    submit(task)
    state = page.locator("#work-state")
    expect_state(page, "waiting")
    expect(state).to_contain_text("10 ")
    assert accessibility_problems(page) == []
    state.locator("button").nth(1).click()  # change the answers
    expect(submit_button(task)).to_be_enabled()
    expect(task.locator("main")).not_to_have_attribute("inert", "")
    answer(task, 7, key="Home")
    expect(task.get_by_role("slider").nth(7)).to_have_value("0")
    submit(task)
    expect_state(page, "waiting")
    assert Assignment.objects.get().status == "Accepted"
    if fault == "offline":
        page.context.set_offline(False)
    else:
        page.unroute("**/externalSubmit")
        state.locator("button").first.click()  # try now
    page.wait_for_url("**/worker/")
    expect_received(page)
    assert sorted(judgments()) == [0] + [100] * 7


def test_an_expired_session_loses_nothing(open_site, rating):
    page = open_site()
    task = accept(page)
    address = page.url
    page.context.clear_cookies()
    answer(task, 0, 1)
    state = page.locator("#work-state")
    expect_state(page, "signed-out")
    state.locator("a").click()
    page.locator("[name=username]").fill("ada")
    page.locator("[name=password]").fill(PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_url(address)
    task = task_of(page)
    expect_rated(task, 2)
    saved_progress(page, 2)
    answer(task, *range(8))
    page.context.clear_cookies()
    submit(task)
    number = Assignment.objects.get().receipt
    expect(state).to_contain_text(str(number))
    expect_state(page, "signed-out-sent")
    expect(state).to_be_focused()
    assert Assignment.objects.get().status == "Submitted"


def test_other_views_of_the_task_learn_that_the_work_was_submitted(open_site, rating):
    page = open_site()
    task = accept(page)
    second = page.context.new_page()
    second.goto(page.url)
    other = task_of(second)
    answer(task, *range(8))
    submit(task)
    page.wait_for_url("**/worker/")
    answer(other, 0, key="Home")
    expect(second.locator("#work-state a")).to_have_attribute("href", re.compile("/submitted/$"))
    expect(submit_button(other)).to_be_disabled()
    assert judgments() == [100] * 8
    page.go_back()
    receipt = str(Assignment.objects.get().receipt)
    expect(page.locator(".notice.success")).to_contain_text(receipt)


def test_returning_asks_where_something_was_entered(open_site, rating):
    page = open_site()
    answer(accept(page), 0)
    page.locator("form.return button").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    assert accessibility_problems(page) == []
    dialog.locator("[value=no]").click()
    expect(dialog).to_be_hidden()
    assert Assignment.objects.get().status == "Accepted"
    page.locator("form.return button").click()
    dialog.locator("[value=yes]").click()
    expect(page.get_by_role("status").first).to_be_visible()
    assert Assignment.objects.get().status == "Returned"


# Time


def test_the_time_left_is_the_servers_and_more_is_offered_once(open_site, rating):
    page = open_site()
    page.clock.install(time="2031-05-05T10:00:00Z")  # years ahead
    accept(page)
    total = Assignment.objects.get().deadline - Assignment.objects.get().accepted_at
    minutes = int(total.total_seconds() // 60)
    left = page.locator("#time-left")
    expect(left).to_have_text(re.compile(rf"^\W*({minutes // 60} h|({minutes - 1}|{minutes}) m)"))
    page.clock.fast_forward((int(total.total_seconds()) - 200) * 1000)
    expect_state(page, "soon-over")
    page.locator("#work-state button").first.click()
    expect_state(page, "added")
    page.locator("h1").click()
    page.clock.fast_forward(40_000)
    expect(page.locator("#work-state")).to_be_hidden()
    assert Assignment.objects.get().deadline > Assignment.objects.get().accepted_at + total


def test_when_the_time_is_over_the_page_takes_nothing_more_and_says_so(open_site, rating):
    page = open_site()
    task = accept(page)
    answer(task, 0)
    # Nothing is under way that tells the time.
    expect(page.locator("#saved")).to_have_text(work_text(page, "saved"))
    clock.advance(timedelta(days=2))
    answer(task, 1)
    expect(page.locator("#work-state")).to_be_visible()
    expect(submit_button(task)).to_be_disabled()
    expect(task.locator("main")).to_have_attribute("inert", "")
    assert Assignment.objects.get().status == "Abandoned"
    expect_state(page, "time-over")
    expect(page.locator("#saved")).to_have_text(work_text(page, "here"))
    delete_closed_drafts()
    # The page shows what its browser has kept, and takes nothing.
    assert page.reload().status == 410
    expect_state(page, "time-over")
    expect_rated(task, 2)
    expect(submit_button(task)).to_be_disabled()
    # Who accepts the HIT again can use them.
    task = accept(page)
    expect_state(page, "earlier")
    expect_rated(task, 0)
    page.locator("#work-state button").first.click()
    saved_progress(page, 2)
    expect(page.locator("#work-state")).to_be_hidden()


# Room


def scrolls(page):
    script = "document.documentElement.scrollHeight > innerHeight + 1"
    return page.evaluate(script), page.frames[1].evaluate(script)


@pytest.mark.parametrize(("width", "height"), [(1280, 900), (390, 844), (320, 225)])
@pytest.mark.parametrize("kind", ["rating", "alternatives"])
def test_one_thing_scrolls_and_nothing_sideways(open_site, request, kind, width, height):
    """A desk, a telephone, and the desk at a zoom of 400 %."""
    request.getfixturevalue(kind)
    page = open_site(viewport={"width": width, "height": height})
    task = accept(page)
    wait_until(page, "document.getElementById('task').style.getPropertyValue('--content-height')")
    assert scrolls(page).count(True) == 1
    for frame in page.frames:
        assert frame.evaluate("document.documentElement.scrollWidth <= innerWidth")
    if height >= 480:
        header, footer = page.locator("header.work"), task.locator("footer")
        assert header.bounding_box()["height"] <= 72
        assert footer.bounding_box()["y"] + footer.bounding_box()["height"] <= height + 1
    # What is missing is brought into view however the page scrolls.
    task.locator("#first").click()
    expect(task.locator(":focus")).to_be_in_viewport()


def test_on_a_telephone_the_last_turn_stays_in_sight(open_site, rating):
    page = open_site(viewport={"width": 390, "height": 844})
    task = accept(page)
    task.get_by_role("slider").last.scroll_into_view_if_needed()
    last = task.locator(".last")
    expect(last).to_be_in_viewport()
    expect(last).to_contain_text(CONTEXT.splitlines()[-1].removeprefix("A: "))
    pinned = page.locator("header.work").bounding_box()["height"]
    pinned += last.bounding_box()["height"] + task.locator("footer").bounding_box()["height"]
    assert pinned <= 844 / 3
    last.locator("button").click()
    sheet = task.get_by_role("dialog")
    expect(sheet).to_contain_text(CONTEXT.splitlines()[0].removeprefix("A: "))
    page.set_viewport_size({"width": 390, "height": 320})
    for part in ("h2", "button"):
        expect(sheet.locator(part)).to_be_in_viewport(ratio=1)
    page.keyboard.press("Escape")
    expect(sheet).to_be_hidden()


@pytest.mark.parametrize(("width", "height"), [(390, 844), (1280, 900)])
def test_enlarging_shows_the_pair_larger_than_the_cards(open_site, alternatives, width, height):
    task = accept(open_site(viewport={"width": width, "height": height}))
    card = task.locator("[data-candidate]").nth(2)
    before = card.locator("img").bounding_box()
    card.get_by_role("button").click()
    pair = task.get_by_role("dialog")
    pictures = [picture.bounding_box() for picture in pair.locator("img").all()]
    assert len(pictures) == 2
    assert (pictures[0]["y"] == pictures[1]["y"]) is (width > height)
    for picture in pictures:
        assert picture["width"] * picture["height"] > before["width"] * before["height"]
        assert picture["y"] >= 0
        assert picture["y"] + picture["height"] <= height + 1
    pair.locator("#pick").click()
    pair.locator("#shut").click()
    expect(card.get_by_role("checkbox")).to_be_checked()


# Pictures


def test_a_missing_picture_holds_the_answer_back(open_site, client, settings, live_server):
    settings.SITE_URL = live_server.url
    item = alternatives_item(products=3)
    # Too large to travel inside the page, so that they are addresses.
    for candidate in item.candidates.all():
        picture = candidate.picture
        picture.content = bytes(picture.content).replace(b"</svg>", b" " * 30_000 + b"</svg>")
        picture.save()
    publish(item.study, client)
    page = open_site()
    page.route("**/pictures/**", lambda route: route.abort())
    task = accept(page)
    task.locator("#none").check()
    task.locator("#justification").fill("None of them is a lamp that would do for me.")
    submit(task)
    problems = task.locator("#problems")
    expect(problems.get_by_role("listitem")).to_have_count(4)
    assert Assignment.objects.get().status == "Accepted"
    task.locator(".broken button").nth(1).click()
    expect(task.locator(".broken [role=status]")).to_be_visible()
    for _ in range(100):
        if ProblemReport.objects.exists():
            break
        page.wait_for_timeout(50)
    assert ProblemReport.objects.get().text
    page.unroute("**/pictures/**")
    while task.locator(".broken button").count():
        task.locator(".broken button").first.click()
    expect(problems).to_be_hidden()
    submit(task)
    page.wait_for_url("**/worker/")
    expect_received(page)


# The sum over the load, which is no less than https://web.dev/articles/cls.
SHIFTS = """
window.shifts = 0;
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) shifts += entry.value;
}).observe({ type: "layout-shift", buffered: true });
"""


@pytest.mark.parametrize("kind", ["rating", "alternatives"])
def test_the_work_page_does_not_move_while_it_loads(open_site, request, kind):
    request.getfixturevalue(kind)
    page = open_site(viewport={"width": 320, "height": 844})
    page.add_init_script(SHIFTS)
    accept(page)
    for is_first in (True, False):
        if not is_first:  # now with what the page keeps in the browser
            page.reload()
            task_of(page)
        page.wait_for_timeout(1200)
        assert [frame.evaluate("shifts") < 0.01 for frame in page.frames] == [True, True]


def test_a_page_whose_script_fails_is_shown_after_a_while(open_site, rating):
    page = open_site()
    page.route(
        "**/worker/frame/**",
        lambda route: route.fulfill(
            response=(answer := route.fetch()), body=answer.text().replace("let find", "let broken")
        ),
    )
    page.goto("/worker/")
    page.locator("th a").first.click()
    page.locator("form.accept button").first.click()
    page.wait_for_url("**/worker/assignments/**")
    body = page.frame_locator("iframe#task").locator("body")
    expect(body).to_have_css("visibility", "hidden")
    expect(body).to_have_css("visibility", "visible")


# Practice

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True}
POLITE = records.ProtocolQuestion("polite", "yes_no", "Is it polite?")


@pytest.fixture
def practised(client):
    study = rating_item().study
    items = tuple(
        records.PracticeItem(
            candidates=(records.PracticeCandidate(text=text, scores={"polite": 1}),)
        )
        for text in ("Thank you.", "You are welcome.")
    )
    practice = records.Qualifications(practice=records.Practice(0.05, items))
    document = records.ProtocolDocument((POLITE,), title="Rate replies", qualifications=practice)
    versions.save_draft(study=study, document=document)
    versions.freeze(study=study)
    return publish(study, client)


def press(page, button):
    """By touch on a phone, else by the keyboard."""
    if page.viewport_size["width"] < 1000:
        button.tap()
    else:
        button.focus()
        button.press("Enter")


def practise(page, choice):
    press(page, page.locator("form.accept button").first)
    page.wait_for_url("**/worker/assignments/**")
    task = task_of(page)
    option = task.locator(f"input[value='{choice}']").first
    if page.viewport_size["width"] < 1000:
        option.tap()
    else:
        option.focus()
        option.press("Space")
    press(page, task.locator("#send [type=submit]"))
    expect(task.locator("#verdict")).to_be_focused()
    return task


def task_text(task, key):
    """A text of the task's page, which it keeps in a template."""
    script = "(node, key) => node.content.querySelector(`#${key}`).textContent"
    return task.locator("#texts").evaluate(script, key)


def show_unmet(page):
    page.locator("td details summary").first.click()
    return page.locator("td details").first


@pytest.mark.parametrize("options", [{}, PHONE], ids=["desktop", "phone"])
def test_two_attempts_fail_and_every_page_says_what_holds(open_site, practised, client, options):
    page = open_site(**options)
    page.goto("/worker/")
    unmet = show_unmet(page)
    expect(unmet.locator("a[href*='/qualifications/']")).to_have_count(0)
    assert accessibility_problems(page) == []
    unmet.locator("a[href*='/groups/']").click()
    task = practise(page, "0")
    advice = task.locator("#verdict p")
    expect(advice).to_have_text(task_text(task, "failed-more"))
    expect(task.locator(".feedback.is-wrong")).to_have_count(1)
    expect(task.locator(".tick:visible")).to_have_count(0)
    assert accessibility_problems(page) == []
    page.reload()
    task = task_of(page)
    expect(advice).to_have_text(task_text(task, "failed-more"))
    press(page, task.locator("#send [type=submit]"))
    page.wait_for_url("**/worker/groups/**")
    task = practise(page, "0")
    expect(advice).to_have_text(task_text(task, "failed-last"))
    press(page, task.locator("#send [type=submit]"))
    page.wait_for_url("**/worker/")
    expect(show_unmet(page).locator("a")).to_have_count(0)  # the result is still to come
    collect.collect_batch(batch=practised, client=client)
    page.reload()
    expect(show_unmet(page).locator("[data-code=not_passed]")).to_be_visible()
    assert accessibility_problems(page) == []
    practised.refresh_from_db()
    page.goto(f"/worker/qualifications/{practised.practice_type_id}/")
    expect(page.locator("[data-code=not_passed]")).to_be_visible()
    assert accessibility_problems(page) == []


def test_the_page_of_what_was_sent_shows_what_was_right(open_site, practised):
    page = open_site()
    page.goto("/worker/")
    show_unmet(page).locator("a[href*='/groups/']").click()
    practise(page, "1").locator("#send [type=submit]").click()
    page.locator("#receipt a").first.click()
    task = task_of(page)
    expect(task.locator("#verdict h2")).to_have_text(re.compile(r"^\D+1\D+1\D+$"))
    expect(task.locator("#verdict p")).to_be_hidden()
    expect(task.locator(".feedback.is-right")).to_have_count(1)
    expect(task.locator("input[value='1']").first).to_be_checked()
    expect(page.locator(".fields")).to_be_hidden()
    page.locator("#received summary").click()
    expect(page.locator(".fields")).to_be_visible()
    assert accessibility_problems(page) == []
