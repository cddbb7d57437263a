"""The review desk in a real Chromium: every decision by keyboard, on a desk and a telephone."""

import re
from decimal import Decimal

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from accounts.models import User
from accounts.roles import Role
from accounts.teams import create_team, set_role
from annotation.access import give_to_team
from annotation.evidence_versions import store_evidence
from annotation.models import Submission
from console.models import PagePreferences
from hits.collect import collect_batch
from hits.connections import client_of, site_connection
from hits.models import Assignment, Connection, DraftDecision, Payment, WorkerNote
from marketplace.models import BonusPayment, WorkerBlock, WorkerMessage
from marketplace.people.enrolment import create_worker, issue_access_key
from tests.accessibility import accessibility_problems
from tests.annotation.studies import rating_study
from tests.browsers import opened_page, sign_in
from tests.console.conftest import PASSWORD
from tests.console.work import work_off
from tests.hits.work import hand_in, hit_on, published_batch
from tests.marketplace.conftest import assert_ledger_balances

pytestmark = [pytest.mark.browser, pytest.mark.long, pytest.mark.django_db(transaction=True)]
SIZES = {"desk": (1280, 900), "telephone": (390, 844)}
SYSTEMS = ("alpha", "beta", "gamma", "delta")
CAREFUL = dict(zip(SYSTEMS, (20, 80, 45, 60), strict=True))


@pytest.fixture
def study(live_server, settings, researcher):
    """Two items done by Ann, Bob and Eve; Eve gave the same rating to everything."""
    key = issue_access_key(name="Lab", deposit_usd=Decimal(100))
    settings.MARKETPLACE_ENDPOINT_URL = f"{live_server.url}/requester"
    settings.MARKETPLACE_ACCESS_KEY_ID = key.access_key_id
    settings.MARKETPLACE_SECRET_ACCESS_KEY = key.secret_access_key
    study = rating_study(n_items=2, systems=SYSTEMS, owner=researcher, title="Help desk")
    give_to_team(study=study, team=create_team(name="Lab", owner=researcher), actor=researcher)
    client = client_of(site_connection())
    batch = published_batch(study, client, reward_usd="0.56", max_assignments=3)
    for name, values in (("ann", CAREFUL), ("bob", CAREFUL), ("eve", dict.fromkeys(SYSTEMS, 50))):
        worker = create_worker(username=name, password=PASSWORD)
        for item in ("d0", "d1"):
            comment = "The second one was hard to read." if name == "bob" else ""
            seconds = 120 if name != "eve" else 12
            hand_in(worker, hit_on(batch, item), values, comment=comment, active_seconds=seconds)
    collect_batch(batch=batch, client=client)
    store_evidence(study)
    yield study
    assert_ledger_balances()


@pytest.fixture(params=SIZES)
def page(request, chromium, live_server, study):
    """Rosa's browser at the desk; nothing that the content policy refuses, no script error."""
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
    """Accessible, and within the window's width."""
    assert page.problems == []
    assert accessibility_problems(page) == []
    width = page.viewport_size["width"]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    # The checker styles what it measures, which the policy refuses it as it would a page.
    page.problems.clear()


def status(page):
    return page.get_by_role("status").first


def act(page, name):
    """Choose a decision by the keyboard: its button, or the menu's."""
    control = page.locator(".dock").locator("a, button").filter(has_text=name, visible=True)
    if not control.count():
        page.locator(".dock .other-acts summary").press("Enter")
    control.first.press("Enter")


def press(page, key):
    """A key for the page's script, which a page that has just come may not have loaded yet."""
    page.wait_for_load_state()
    page.keyboard.press(key)


def send(page):
    page.locator(".dock").get_by_role("link", name="Send…").press("Enter")
    page.get_by_role("button", name="Send").press("Enter")
    expect(status(page)).to_contain_text("Sending in the background")
    finish(page)


def finish(page):
    """Let the worker work; the page follows the job and loads itself anew in the end."""
    work_off()
    expect(page.locator(".notice.success").filter(has_text="done")).to_be_visible()


def statuses():
    return sorted(Assignment.objects.values_list("status", flat=True))


def test_flagged_work_comes_first_with_its_numbers(page):
    expect(page.get_by_role("heading", name="d0, answered by")).to_be_visible()
    flags = page.get_by_role("complementary", name="Flags and worker")
    expect(flags).to_contain_text("12 s for all of it")
    expect(flags).to_contain_text("The median of all submissions is 2 min 0 s.")
    strips = page.get_by_role("img", name="appropriateness: 50; others:")
    expect(strips).to_have_count(4)
    expect(page.get_by_text("6 wait, $3.36 with fees.")).to_be_visible()
    check(page)


def test_work_is_approved_rejected_and_paid_in_part_and_sent_together(page):
    act(page, "Reject…")
    expect(page.get_by_label("Reason, which the worker reads")).to_be_focused()
    check(page)
    page.get_by_role("link", name="One answer throughout").press("Enter")
    expect(page.get_by_label("Reason, which the worker reads")).to_have_value(
        re.compile("^The same answer")
    )
    page.get_by_role("button", name="Reject", exact=True).press("Enter")
    expect(status(page)).to_contain_text("not sent yet")
    expect(status(page)).to_be_focused()
    act(page, "Part pay…")
    page.get_by_label("Amount, US dollars").fill("0.20")
    page.get_by_label("Reason, which the worker reads").fill("Half of it is careless.")
    page.get_by_role("button", name="Part pay").press("Enter")
    expect(status(page)).to_contain_text("Part pay")
    act(page, "Approve $0.56")
    expect(status(page)).to_contain_text("Approve")
    assert statuses() == ["Submitted"] * 6
    page.locator(".dock").get_by_role("link", name="Send…").press("Enter")
    expect(page.get_by_role("row", name="In all 3 $0.76")).to_be_visible()
    check(page)
    page.get_by_role("button", name="Send 3 decisions, $0.76").press("Enter")
    expect(status(page)).to_contain_text("Sending in the background")
    check(page)
    work_off()
    expect(page.get_by_text("1 approved, 2 rejected, 1 payment, $0.20")).to_be_visible()
    assert statuses() == ["Approved", "Rejected", "Rejected", *["Submitted"] * 3]
    assert [str(bonus.amount_usd) for bonus in BonusPayment.objects.all()] == ["0.20"]
    check(page)


def test_bonus_message_block_and_note(page):
    act(page, "Approve $0.56")
    expect(status(page)).to_contain_text("Approve")
    first = DraftDecision.objects.get().assignment
    page.goto(f"{desk()}?assignment={first.pk}")
    act(page, "Bonus…")
    check(page)
    page.get_by_label("Amount, US dollars").fill("0.10")
    page.get_by_label("Reason, which the worker reads").fill("Thank you.")
    page.get_by_role("button", name="Bonus").press("Enter")
    expect(status(page)).to_contain_text("Bonus")
    page.goto(f"{desk()}?assignment={first.pk}")
    act(page, "Message…")
    page.get_by_label("Subject").fill("More to come")
    page.get_by_role("textbox", name="Message").fill("There is a second round next week.")
    page.get_by_role("button", name="Message").press("Enter")
    expect(status(page)).to_contain_text("Message")
    page.goto(f"{desk()}?assignment={first.pk}")
    act(page, "Block worker…")
    page.get_by_label("Reason, for the team").fill("Wants a rest.")
    page.get_by_role("button", name="Block").press("Enter")
    expect(status(page)).to_contain_text("Block")
    send(page)
    assert BonusPayment.objects.get().reason == "Thank you."
    assert WorkerMessage.objects.filter(subject="More to come").count() == 1
    assert WorkerBlock.objects.get().reason == "Wants a rest."
    page.goto(f"{desk()}?show=approved")
    act(page, "Unblock worker…")
    page.get_by_role("button", name="Unblock").press("Enter")
    send(page)
    assert not WorkerBlock.objects.exists()


@on_desk
def test_on_the_smallest_telephone_all_decisions_stand_in_one_row(page):
    page.set_viewport_size({"width": 320, "height": 640})
    decisions = page.locator(".dock .acts > *").filter(visible=True)
    assert decisions.count() == 4
    assert len({one.bounding_box()["y"] for one in decisions.all()}) == 1
    assert "More" in page.locator(".dock").aria_snapshot()
    check(page)


def test_a_rejection_is_overridden(page):
    act(page, "Reject…")
    page.get_by_label("Reason, which the worker reads").fill("Too fast.")
    page.get_by_role("button", name="Reject", exact=True).press("Enter")
    send(page)
    page.goto(f"{desk()}?show=rejected")
    check(page)
    act(page, "Override…")
    expect(page.locator(".dock")).to_contain_text("pays $0.56, fees included")
    page.get_by_role("button", name="Override").press("Enter")
    send(page)
    assert statuses() == ["Approved", *["Submitted"] * 5]


def test_by_rule_shows_what_it_takes_and_then_decides(page):
    page.goto(desk("review-rules"))
    check(page)
    page.get_by_role("link", name="Reject what was too fast").press("Enter")
    page.get_by_label("Faster than the median").fill("6")
    page.get_by_role("button", name="Preview").press("Enter")
    expect(page.get_by_role("heading", name="It takes 2 submissions, $0.00")).to_be_visible()
    check(page)
    page.get_by_role("button", name="Decide so on 2").press("Enter")
    expect(page.get_by_role("row", name="Reject 2 $0.00")).to_be_visible()
    page.goto(f"{desk('review-rules')}?rule=approve-unflagged&hours=0")
    expect(page.get_by_role("heading", name="It takes 4 submissions, $2.24")).to_be_visible()
    page.get_by_role("button", name="Decide so on 4").press("Enter")
    page.get_by_role("button", name="Send 6 decisions, $2.24").press("Enter")
    expect(status(page)).to_contain_text("Sending in the background")
    finish(page)
    assert statuses() == ["Approved"] * 4 + ["Rejected"] * 2
    query = "rule=bonus-workers&least_approved=2&amount_usd=0.25&text=Thank+you."
    page.goto(f"{desk('review-rules')}?{query}")
    expect(page.get_by_role("heading", name="It takes 2 submissions, $0.50")).to_be_visible()
    page.get_by_role("button", name="Decide so on 2").press("Enter")
    page.get_by_role("button", name="Send 2 decisions, $0.50").press("Enter")
    expect(status(page)).to_contain_text("Sending in the background")
    finish(page)
    assert BonusPayment.objects.count() == 2
    page.goto(f"{desk('review-rules')}?{query}")
    expect(page.get_by_role("heading", name="It takes 0 submissions")).to_be_visible()
    page.goto(desk())
    expect(page.get_by_text("Nothing waits.")).to_be_visible()
    check(page)


@on_desk
def test_letters_decide_while_no_field_has_the_focus(page):
    press(page, "j")
    expect(page.get_by_text("2 of 6")).to_be_visible()
    press(page, "k")
    expect(page.get_by_text("1 of 6")).to_be_visible()
    press(page, "a")
    expect(status(page)).to_contain_text("Approve")
    press(page, "r")
    field = page.get_by_label("Reason, which the worker reads")
    expect(field).to_be_focused()
    page.keyboard.type("a rushed answer")
    expect(field).to_have_value("a rushed answer")
    press(page, "Escape")
    expect(field).to_have_count(0)
    press(page, "u")
    expect(status(page)).to_contain_text("Taken back: Approve.")
    assert not DraftDecision.objects.exists()
    for key, title in (("p", "Part pay"), ("m", "Message")):
        press(page, key)
        expect(page.get_by_role("heading", name=title)).to_be_visible()
        press(page, "Escape")
        expect(page.locator(".act")).to_have_count(0)
    press(page, "?")
    expect(page.get_by_text("A approve, R reject")).to_be_visible()
    check(page)
    press(page, "a")
    expect(status(page)).to_contain_text("Approve")
    press(page, "s")
    expect(page.get_by_role("heading", name="Send decisions")).to_be_visible()


@on_desk
def test_letters_can_be_switched_off(page):
    page.goto(reverse("console:letter-keys"))
    check(page)
    page.get_by_label("Use letter keys").press("Space")
    page.get_by_role("button", name="Store").press("Enter")
    expect(status(page)).to_contain_text("off")
    assert not PagePreferences.objects.get().has_letter_keys
    page.goto(desk())
    press(page, "a")
    press(page, "s")
    page.wait_for_timeout(300)
    assert not DraftDecision.objects.exists()
    expect(page.get_by_role("heading", name="Review", exact=True)).to_be_visible()


@on_desk
def test_what_is_spent_elsewhere_has_its_amount_typed(page):
    Connection.objects.update(marketplace="turk.example")
    act(page, "Approve $0.56")
    page.locator(".dock").get_by_role("link", name="Send…").press("Enter")
    check(page)
    page.get_by_role("button", name="Send 1 decision").press("Enter")
    expect(status(page)).to_contain_text("Type the amount")
    assert DraftDecision.objects.exists()
    page.get_by_label("Type the amount").fill("0.56")
    page.keyboard.press("Enter")
    expect(status(page)).to_contain_text("Sending in the background")


@on_desk
def test_pressed_twice_in_two_browsers_it_is_paid_once(page, chromium, live_server):
    with opened_page(chromium, base_url=live_server.url) as second:
        sign_in(second, "/login/", "rosa", PASSWORD)
        act(page, "Bonus…")
        page.get_by_label("Amount, US dollars").fill("0.10")
        page.get_by_label("Reason, which the worker reads").fill("Thank you.")
        page.get_by_role("button", name="Bonus").press("Enter")
        expect(status(page)).to_contain_text("Bonus")
        for one in (page, second):
            one.goto(desk("review-send"))
        for one in (page, second):
            one.get_by_role("button", name="Send 1 decision").press("Enter")
        expect(status(second)).to_contain_text("Nothing was sent")
    work_off()
    assert BonusPayment.objects.count() == 1
    assert Payment.objects.get().state == "confirmed"


@on_desk
def test_reasons_and_notes_are_the_teams(page):
    page.goto(desk("review-reasons"))
    check(page)
    page.get_by_label("Name").fill("Careless")
    page.get_by_label("Text").fill("The answers do not fit the page.")
    page.get_by_role("button", name="Store the reason").press("Enter")
    expect(status(page)).to_contain_text("stored")
    check(page)
    page.goto(f"{desk()}?do=reject")
    page.get_by_role("link", name="Careless").press("Enter")
    expect(page.get_by_label("Reason, which")).to_have_value("The answers do not fit the page.")
    page.goto(desk())
    page.get_by_text("Add a note").press("Enter")
    page.get_by_label("Note, for the team alone").fill("Writes good comments.")
    page.get_by_role("button", name="Store the note").press("Enter")
    expect(page.get_by_text("Writes good comments.")).to_be_visible()
    assert WorkerNote.objects.get().author.username == "rosa"


@on_desk
def test_what_could_not_be_read_is_decided_too(page):
    one = Assignment.objects.first()
    Submission.objects.filter(pk=one.submission_id).delete()
    Assignment.objects.filter(pk=one.pk).update(submission=None, problem="It names no item.")
    page.goto(f"{desk()}?assignment={one.pk}")
    expect(page.get_by_text("It names no item.")).to_be_visible()
    check(page)
    act(page, "Approve $0.56")
    expect(status(page)).to_contain_text("Approve")


@pytest.mark.parametrize("role", [Role.ANALYST, Role.ADJUDICATOR, Role.AUDITOR])
def test_other_roles_are_told_that_theirs_does_not_reach(study, signed_in, role):
    carl = User.objects.create_user("carl")
    set_role(team=study.team, user=carl, role=role, actor=None)
    answer = signed_in(carl).get(desk())
    assert answer.status_code == 403
    assert "Your role here is" in answer.content.decode()
