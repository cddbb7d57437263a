import re
from decimal import Decimal

import pytest
from django.conf import settings
from django.contrib.sessions.models import Session
from django.urls import reverse
from playwright.sync_api import expect

from annotation.flags import store_evidence
from annotation.study_facts import MEASURE
from console.models import PagePreferences
from hits import collect, connections, models
from marketplace.models import BonusPayment, WorkerBlock, WorkerMessage
from marketplace.people.enrolment import create_worker, issue_access_key
from tests.accessibility import accessibility_problems
from tests.browsers import opened_page, sign_in
from tests.console.conftest import PASSWORD
from tests.console.work import request_for_later, work_off
from tests.hits.samples import lab_study
from tests.hits.work import hand_in, hit_on, published_batch
from tests.marketplace.conftest import assert_ledger_balances
from work.models import Job

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
SIZES = {"desk": (1280, 900), "telephone": (390, 844)}
SYSTEMS = ("alpha", "beta", "gamma", "delta")
CAREFUL = dict(zip(SYSTEMS, (20, 80, 45, 60), strict=True))


@pytest.fixture
def study(live_server, settings, researcher):
    key = issue_access_key(name="Lab", deposit_usd=Decimal(100))
    settings.MARKETPLACE_ENDPOINT_URL = f"{live_server.url}/requester"
    settings.MARKETPLACE_ACCESS_KEY_ID = key.access_key_id
    settings.MARKETPLACE_SECRET_ACCESS_KEY = key.secret_access_key
    study = lab_study(researcher, n_items=2, systems=SYSTEMS, title="Help desk")
    client = connections.client_of(connections.site_connection())
    batch = published_batch(study, client, reward_usd="0.56", max_assignments=3)
    for name, values in (("ann", CAREFUL), ("bob", CAREFUL), ("eve", dict.fromkeys(SYSTEMS, 50))):
        worker = create_worker(username=name, password=PASSWORD)
        for item in ("d0", "d1"):
            comment = "The second one was hard to read." if name == "bob" else ""
            seconds = 120 if name != "eve" else 12
            hand_in(worker, hit_on(batch, item), values, comment=comment, active_seconds=seconds)
    collect.collect_batch(batch=batch, client=client)
    store_evidence(study)
    yield study
    assert_ledger_balances()


@pytest.fixture(params=SIZES)
def page(request, chromium, live_server, study):
    width, height = SIZES[request.param]
    viewport = {"width": width, "height": height}
    problems = []
    with opened_page(chromium, base_url=live_server.url, viewport=viewport) as page:
        page.on("console", lambda entry: entry.type == "error" and problems.append(entry.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        sign_in(page, "/login/", "rosa", PASSWORD)
        page.goto(desk())
        page.problems = problems
        yield page
        assert problems == []


on_desk = pytest.mark.parametrize("page", ["desk"], indirect=True)


def desk(name="review"):
    return reverse(f"console:{name}", args=["ratings"])


def check(page):
    assert page.problems == []
    assert accessibility_problems(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]
    # The checker styles what it measures, which the policy refuses it as it would a page.
    page.problems.clear()


def expect_notice(page, code):
    expect(page.locator(f"[role=status][data-code={code}]")).to_be_visible()


def act(page, action):
    approve = page.locator(".dock form:has([value=approve]) button")
    link = page.locator(f".dock a[href$='do={action}']").filter(visible=True)
    control = approve if action == "approve" else link
    if not control.count():
        page.locator(".dock .other-acts summary").press("Enter")
    control.first.press("Enter")


def decide(page, **fields):
    form = page.locator("form.act")
    action = form.locator("[name=action]").get_attribute("value")
    for name, text in fields.items():
        form.locator(f"[name={name}]").fill(text)
    form.locator("button").press("Enter")
    expect_notice(page, f"drafted_{action}")


def approve(page):
    act(page, "approve")
    expect_notice(page, "drafted_approve")


def open_summary(page):
    page.locator(".dock .sent a").press("Enter")


def send_button(page, n):
    return page.locator("form[action$='/sending/'] button", has_text=re.compile(rf"\b{n}\b"))


def press(page, key):
    """A key for the page's script, which a page that has just come may not have loaded yet."""
    page.wait_for_load_state()
    page.keyboard.press(key)


def send(page):
    open_summary(page)
    page.locator("form[action$='/sending/'] button").press("Enter")
    expect_notice(page, "sending")
    work_off()
    expect(page.locator("[id^=job-].success")).to_be_visible()


def statuses():
    return sorted(models.Assignment.objects.values_list("status", flat=True))


def test_flagged_work_comes_first_with_its_numbers(page):
    expect(page.locator("#item-of")).to_contain_text("d0")
    flags = page.locator("aside.side")
    expect(flags).to_contain_text("12 s")
    expect(flags).to_contain_text("2 m")  # the median of all submissions is 2 min 0 s
    expect(page.locator("svg[role=img][aria-label*='appropriateness: 50']")).to_have_count(4)
    expect(page.get_by_text(re.compile(r"\b6\b.*\$3\.36")).first).to_be_visible()
    check(page)


@pytest.mark.flow
def test_work_is_approved_rejected_and_paid_in_part_and_sent_together(page):
    act(page, "reject")
    expect(page.locator("[name=text]")).to_be_focused()
    check(page)
    page.locator("[data-reason]").first.press("Enter")
    expect(page.locator("[name=text]")).to_have_value(re.compile(".{100}", re.DOTALL))
    decide(page)
    expect(page.get_by_role("status").first).to_be_focused()
    act(page, "part_pay")
    decide(page, amount_usd="0.20", text="Half of it is careless.")
    approve(page)
    assert statuses() == ["Submitted"] * 6
    open_summary(page)
    expect(page.locator("tr.total")).to_have_text(re.compile(r"3\s*\$0\.76"))
    check(page)
    send_button(page, 3).press("Enter")
    expect_notice(page, "sending")
    check(page)
    work_off()
    expect(page.locator("[id^=job-].success")).to_contain_text("$0.20")
    assert statuses() == ["Approved", "Rejected", "Rejected", *["Submitted"] * 3]
    assert [str(bonus.amount_usd) for bonus in BonusPayment.objects.all()] == ["0.20"]
    check(page)


@on_desk
def test_bonus_message_and_block(page):
    approve(page)
    first = models.DraftDecision.objects.get().assignment
    for action, fields in [
        ("bonus", {"amount_usd": "0.10", "text": "Thank you."}),
        ("message", {"subject": "More to come", "text": "There is a second round."}),
        ("block", {"text": "Wants a rest."}),
    ]:
        page.goto(f"{desk()}?assignment={first.pk}")
        act(page, action)
        if action == "bonus":
            check(page)
        decide(page, **fields)
    send(page)
    assert BonusPayment.objects.get().reason == "Thank you."
    assert WorkerMessage.objects.filter(subject="More to come").count() == 1
    assert WorkerBlock.objects.get().reason == "Wants a rest."
    page.goto(f"{desk()}?show=approved")
    act(page, "unblock")
    decide(page)
    send(page)
    assert not WorkerBlock.objects.exists()


@on_desk
@pytest.mark.skipif(settings.PSEUDO_LOCALE, reason="accented texts are wider")
def test_on_the_smallest_telephone_all_decisions_stand_in_one_row(page):
    page.set_viewport_size({"width": 320, "height": 640})
    decisions = page.locator(".dock .acts > *").filter(visible=True)
    assert decisions.count() == 4
    assert len({one.bounding_box()["y"] for one in decisions.all()}) == 1
    word = page.locator(".dock .other-acts .word").text_content()
    assert word in page.locator(".dock").aria_snapshot()
    check(page)


@on_desk
def test_letters_decide_while_no_field_has_the_focus(page):
    place = page.locator(".turn strong")
    for key, n in (("j", 2), ("k", 1)):
        press(page, key)
        expect(place).to_have_text(re.compile(rf"^\D*{n}\D+6\D*$"))
    press(page, "j")
    expect(place).to_have_text(re.compile(r"^\D*2\D+6\D*$"))
    press(page, "a")
    expect_notice(page, "drafted_approve")
    # On from there, and not to the first that waits.
    expect(place).to_have_text(re.compile(r"^\D*3\D+6\D*$"))
    press(page, "r")
    field = page.locator("form.act [name=text]")
    expect(field).to_be_focused()
    page.keyboard.type("a rushed answer")
    expect(field).to_have_value("a rushed answer")
    press(page, "Escape")
    expect(field).to_have_count(0)
    press(page, "u")
    expect_notice(page, "taken_back")
    assert not models.DraftDecision.objects.exists()
    for key, action in (("p", "part_pay"), ("m", "message")):
        press(page, key)
        expect(page.locator(f"form.act [name=action][value={action}]")).to_have_count(1)
        press(page, "Escape")
        expect(page.locator(".act")).to_have_count(0)
    press(page, "?")
    expect(page.locator("details.keys .menu")).to_be_visible()
    check(page)
    press(page, "a")
    expect_notice(page, "drafted_approve")
    press(page, "s")
    page.wait_for_url(f"**{desk('review-send')}")


@on_desk
def test_letters_can_be_switched_off(page):
    page.goto(reverse("console:letter-keys"))
    check(page)
    page.locator("#letter_keys").press("Space")
    page.locator("form:has(#letter_keys) button").press("Enter")
    expect_notice(page, "letter_keys_off")
    assert not PagePreferences.objects.get().has_letter_keys
    page.goto(desk())
    press(page, "a")
    press(page, "s")
    page.wait_for_timeout(300)
    assert not models.DraftDecision.objects.exists()
    assert desk() in page.url


@on_desk
def test_what_is_spent_elsewhere_has_its_amount_typed(page):
    models.Connection.objects.update(marketplace="turk.example")
    approve(page)
    open_summary(page)
    check(page)
    send_button(page, 1).press("Enter")
    expect_notice(page, "not_sent")
    assert models.DraftDecision.objects.exists()
    page.locator("[name=typed_usd]").fill("0.56")
    page.keyboard.press("Enter")
    expect_notice(page, "sending")


@on_desk
def test_reasons_and_notes_are_the_teams(page):
    page.goto(desk("review-reasons"))
    check(page)
    page.locator("[name=title]").fill("Careless")
    page.locator("[name=text]").fill("The answers do not fit the page.")
    page.locator("form.rule button").press("Enter")
    expect_notice(page, "reason_stored")
    check(page)
    page.goto(f"{desk()}?do=reject")
    page.get_by_role("link", name="Careless").press("Enter")
    expect(page.locator("[name=text]")).to_have_value("The answers do not fit the page.")
    page.goto(desk())
    page.locator("details:has([name=note]) summary").press("Enter")
    page.locator("[name=note]").fill("Writes good comments.")
    page.locator("form[action$='/note/'] button").press("Enter")
    expect(page.get_by_text("Writes good comments.")).to_be_visible()
    assert models.WorkerNote.objects.get().author.username == "rosa"


# The page while its flags are computed: its content follows when the job is done, without loading
# the page anew, and leaves presses, focus and typed text alone.

NOTE, NEWS = "[name=note]", "#news"
# The page asks each second whether the job is done.
TWO_POLLS_MS = 2500


@pytest.fixture
def measuring(page, study, researcher):
    study.refresh_from_db()
    study.judgments_version += 1
    study.save(update_fields=["judgments_version"])
    basis = str(study.judgments_version)
    request_for_later(study=study, kind=MEASURE, requested_by=researcher, basis=basis)
    page.goto(desk())
    expect(page.locator("#measuring")).to_be_visible()
    page.evaluate("window.mark = 1")
    return page


def finish_the_job(page):
    with page.expect_response(lambda reply: reply.headers.get("hx-refresh") == "true"):
        work_off()
    assert Job.objects.get(kind=MEASURE).state == Job.State.DONE


def is_the_same(page):
    return page.evaluate("window.mark === 1")


def write_note(page):
    page.locator("details:has([name=note]) summary").click()
    page.locator(NOTE).fill("Writes good comments.")


@on_desk
def test_the_content_follows_with_the_submission_that_was_read(measuring):
    page = measuring
    heading = page.locator("#item-of").inner_text()
    number = page.locator("nav.queue [aria-current]").get_attribute("href").rpartition("=")[2]
    assert page.url.endswith(f"assignment={number}")
    page.reload()
    assert page.locator("#item-of").inner_text() == heading
    page.locator("a[data-key=j]").click()
    heading = page.locator("#item-of").inner_text()
    page.evaluate("window.mark = 1")
    work_off()
    expect(page.locator("#measuring")).to_have_count(0)
    assert is_the_same(page)
    assert page.locator("#item-of").inner_text() == heading


@on_desk
def test_a_press_that_is_under_way_counts(measuring):
    page = measuring
    box = page.locator("button[data-key=a]").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    finish_the_job(page)
    page.wait_for_timeout(TWO_POLLS_MS)
    with page.expect_navigation():
        page.mouse.up()
    expect_notice(page, "drafted_approve")
    assert models.DraftDecision.objects.get().action == "approve"


@on_desk
def test_a_decision_on_its_way_is_not_called_off(measuring):
    page = measuring

    def delay(route):
        page.wait_for_timeout(TWO_POLLS_MS)
        route.continue_()

    page.route("**/review/*/draft/", delay)
    page.locator("button[data-key=a]").click(no_wait_after=True)
    work_off()
    expect_notice(page, "drafted_approve")
    assert models.DraftDecision.objects.get().action == "approve"


@on_desk
def test_what_is_typed_keeps_the_page_until_it_is_taken_back(measuring):
    page = measuring
    write_note(page)
    assert page.locator(NEWS).is_hidden()
    finish_the_job(page)
    expect(page.locator(NEWS)).to_be_visible()
    page.wait_for_timeout(TWO_POLLS_MS)
    assert is_the_same(page)
    page.locator(NOTE).fill("")
    expect(page.locator("#measuring")).to_have_count(0)
    assert is_the_same(page)


@on_desk
def test_who_is_logged_out_is_told_and_gets_no_login_page_within_the_page(measuring):
    page = measuring
    write_note(page)
    Session.objects.all().delete()
    notice = page.locator("#logged-out")
    expect(notice).to_be_visible()
    assert page.locator("[name=password]").count() == 0
    assert page.locator(NOTE).input_value() == "Writes good comments."
    notice.locator("a").click()
    expect(page.locator("[name=password]")).to_be_visible()
    assert page.url.endswith("?next=/studies/ratings/review/")
