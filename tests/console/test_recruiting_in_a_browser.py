"""From a CSV file to a validated report by participants whom a fake Prolific sends, in browsers:
the researcher works on the console's pages alone, and nothing moves in the ledger."""

import csv
import io
import re

import pytest
from playwright.sync_api import expect

from accounts.models import AuditEntry
from hits.models import Assignment, Recruitment
from marketplace.models import LedgerTransaction
from marketplace.money.payouts import make_batch
from marketplace.money.reconciliation import store_audit
from marketplace.recruiting.fake_prolific.server import FakeProlific
from tests.browsers import sign_in
from tests.console.conftest import PASSWORD
from tests.console.hands import Keyboard, Pointer
from tests.console.test_first_study_in_a_browser import (
    N_ITEMS,
    REPLIES,
    download_the_report,
    read_results,
    score,
)
from tests.console.walkers import Reviewer, Worker
from tests.console.work import work_off
from work.execution import run_job
from work.request import request_job

pytestmark = [
    pytest.mark.long,
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(900),
]
DESK, TELEPHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


@pytest.fixture
def fake(settings):
    with FakeProlific() as running:
        settings.PROLIFIC_URL = running.url
        yield running
        running.world.check()


def test_participants_of_a_recruiter_do_a_study(browsers, researcher, fake):
    rosa = Reviewer(browsers(DESK), Pointer(), "rosa")
    begin(rosa)
    connect_prolific(rosa, fake)
    launch_for_participants(rosa)
    draft_and_publish(rosa)
    movements = LedgerTransaction.objects.count()
    refuse(Worker(browsers(TELEPHONE), Pointer(), "zoe"), fake)
    for number in range(N_ITEMS):
        viewport, hands = (DESK, Keyboard()) if number else (TELEPHONE, Pointer())
        take_part(Worker(browsers(viewport), hands, f"participant {number}"), fake)
    rosa.collect()
    see_who_came(rosa)
    stop_the_study(rosa)
    approve(rosa, fake)
    read_results(rosa)
    score(rosa)
    download_the_report(rosa)
    assert rosa.problems == []
    assert LedgerTransaction.objects.count() == movements
    assert make_batch() is None
    assert store_audit().n_problems == 0


def table() -> bytes:
    """Two systems' replies, under headings of the lab's own."""
    content = io.StringIO()
    rows = csv.writer(content)
    rows.writerow(["Dialog ID", "History", "Bot", "It said", "Gold answer"])
    for n in range(7, 7 + N_ITEMS):
        gold = f"I am sorry. The next one leaves at {n}:15; shall I book a seat?"
        for system, reply in REPLIES.items():
            history = f"User: My flight at {n} was cancelled.\nAssistant: Where to?\nUser: Oslo."
            rows.writerow([f"d{n}", history, system, reply.format(n=n), gold])
    return content.getvalue().encode()


def begin(rosa):
    """A team, this site's marketplace, and a study of a CSV file."""
    sign_in(rosa.page, "/login/", rosa.name, PASSWORD)
    rosa.press("link", "Teams")
    rosa.write("Name of the team", "Travel Lab")
    rosa.press("button", "Make the team")
    rosa.press("link", "Studies")
    rosa.press("link", "Make your first study from a file")
    rosa.write("Name of the study", "Airline help desk")
    rosa.upload("airline.csv", table())
    rosa.submit("Go on")
    rosa.choose("Use It said as", "Response")
    rosa.see(REPLIES["terse"])
    rosa.choose("Use Gold answer as", "Reference")
    rosa.see("4 items with 8 responses of 2 systems")
    rosa.submit("Make the study")
    rosa.see_heading("Airline help desk")
    rosa.press("link", "Launch them")
    rosa.connect_this_site()


def connect_prolific(rosa, fake):
    rosa.press("link", "Teams")
    rosa.press("link", "Travel Lab")
    rosa.press("link", "Where the team publishes")
    rosa.see("No recruiter is connected.")
    rosa.write("API token", "mistyped")
    rosa.write("Workspace", fake.world.workspace)
    rosa.submit("Connect Prolific")
    rosa.see("Connecting…")
    work_off()
    rosa.see("does not accept the token")
    expect(rosa.page.get_by_role("alert")).to_be_focused()
    expect(rosa.page.get_by_role("alert")).to_have_count(1)
    token = rosa.page.get_by_label("API token")
    expect(token).to_have_value("")
    expect(token).to_have_accessible_description(re.compile("does not accept the token"))
    look_at_both(rosa, "recruiter-refused")
    rosa.write("API token", "token")
    rosa.submit("Connect Prolific")
    work_off()
    rosa.see("“Prolific” is connected: A researcher, GBP.")
    look_at_both(rosa, "recruiter-connected")


def launch_for_participants(rosa):
    rosa.press("link", "Studies")
    rosa.press("link", "Airline help desk")
    rosa.open_stage("Launch")
    rosa.hands.tick(rosa.page.get_by_label("For participants of a recruiter"))
    rosa.hands.pick(rosa.page.get_by_role("radio", name="All 4 items"))
    rosa.write("Workers for each item", "2")
    expect(rosa.page.get_by_label("Reward for a HIT, $")).to_be_hidden()
    rosa.publish("Publish 4 items", "$0.00", "launch-recruited")


def open_batch(rosa):
    rosa.open_stage("Collect")
    rosa.press("link", re.compile("^Batch "))
    rosa.see_heading("Participants")


def draft_and_publish(rosa):
    open_batch(rosa)
    rosa.write("Items for one participant", "2")
    rosa.write("Minutes for all of them", "10")
    rosa.write("Reward of a participant", "1.50")
    rosa.write("Participants", "5")
    look_at_both(rosa, "offer")
    rosa.submit("Draft it, and say what it costs")
    alert = rosa.page.get_by_role("alert")
    expect(alert).to_be_focused()
    expect(alert).to_contain_text("8 judgments are not in yet: work for 4 participants")
    look_at_both(rosa, "offer-refused")
    rosa.write("Participants", "")
    rosa.submit("Draft it, and say what it costs")
    rosa.finish_job()
    rosa.see("8.00 GBP, by Prolific, fees included")
    look_at_both(rosa, "priced")
    rosa.write("Type the amount to confirm", "7.00")
    rosa.submit("Publish the study")
    rosa.see("This is not the amount above.")
    assert Recruitment.objects.get().state == "draft"
    rosa.write("Type the amount to confirm", "8.00")
    rosa.submit("Publish the study")
    rosa.finish_job()
    rosa.see("Open at Prolific.")
    rosa.see("Nobody has come yet.")
    look_at_both(rosa, "open")
    assert AuditEntry.objects.filter(action="recruitment.publish", actor_name="rosa").exists()


def arrive(participant, fake):
    """A participant takes a place there, and opens the study's link; their submission."""
    [there] = fake.world.studies.values()
    submission = fake.world.arrive(there)
    link = there.facts["external_study_url"]
    for mark, value in (
        ("{{%PROLIFIC_PID%}}", submission.participant),
        ("{{%STUDY_ID%}}", there.id),
        ("{{%SESSION_ID%}}", submission.id),
    ):
        link = link.replace(mark, value)
    participant.page.goto(link)
    participant.see_heading("Airline help desk")
    participant.submit("Take part")
    return submission


def return_with_code(participant, fake, submission):
    """Go back with the code: Prolific's own page is not on this machine."""
    code = participant.page.locator("#completion-code").inner_text()
    back = participant.page.get_by_role("link", name="Go back to app.prolific.com")
    assert back.get_attribute("href").endswith(f"?cc={code}")
    fake.world.enter(submission, code)


def refuse(participant, fake):
    submission = arrive(participant, fake)
    participant.look("participant-arrived")
    participant.submit("I don't want to take part")
    return_with_code(participant, fake, submission)
    assert submission.return_requested
    fake.world.leave(submission)


def take_part(participant, fake):
    submission = arrive(participant, fake)
    participant.press("link", "Start")
    for number in range(2):
        participant.page.wait_for_url("**/worker/assignments/**")
        participant.rate_by(lambda text, more=number / 10: (0.6 if "sorry" in text else 0.1) + more)
        participant.submit_answers()
    participant.see_heading("Thank you, you have finished")
    participant.look("participant-done")
    return_with_code(participant, fake, submission)
    assert participant.problems == []


def follow():
    """What happens each minute."""
    for kind in ("call_recruiters", "follow_recruiters"):
        run_job(request_job(kind=kind).pk)


def see_who_came(rosa):
    follow()
    open_batch(rosa)
    rosa.see("4 of 4 completed")
    expect(rosa.page.get_by_role("row", name="Finished, not decided 4")).to_be_visible()
    expect(rosa.page.get_by_role("row", name="Did not consent 1")).to_be_visible()
    look_at_both(rosa, "came")


def stop_the_study(rosa):
    """All judgments are in: no more participants can be asked for."""
    rosa.see("no more participants are needed")
    expect(rosa.page.get_by_label("Participants in all")).to_have_count(0)
    look_at_both(rosa, "enough")
    rosa.page.locator("summary", has_text="Stop for good").click()
    rosa.submit("Stop the study")
    rosa.finish_job()
    rosa.see("Closed at Prolific.")


def approve(rosa, fake):
    rosa.open_desk()
    rosa.approve_unflagged(8)
    rosa.send_all(8)
    assert set(Assignment.objects.values_list("status", flat=True)) == {"Approved"}
    open_batch(rosa)
    follow()
    rosa.page.reload()
    expect(rosa.page.get_by_role("row", name="Approved 4")).to_be_visible()
    look_at_both(rosa, "approved")
    assert [amount for kind, _key, amount in fake.world.paid if kind == "reward"] == [200] * 4


def look_at_both(rosa, name):
    """On a desk, and as on a telephone."""
    rosa.look(name)
    rosa.page.set_viewport_size(TELEPHONE)
    rosa.look(f"{name}-telephone")
    rosa.page.set_viewport_size(DESK)
