"""The whole loop without a shell, from an invitation to the last closed batch, in real browsers."""

import re
from decimal import Decimal

import pytest
from playwright.sync_api import expect

from accounts.models import Membership
from hits.models import Assignment, Batch, WorkerNote
from marketplace.models import BonusPayment, WorkerAccount, WorkerBlock, WorkerMessage
from marketplace.people.enrolment import create_worker
from tests.annotation.studies import rating_study
from tests.browsers import sign_in
from tests.console.conftest import PASSWORD
from tests.console.hands import Keyboard, Pointer
from tests.console.walkers import Reviewer, Walker, Worker
from tests.console.work import work_off
from tests.hits.work import hand_in, hit_on
from work.execution import run_job
from work.request import request_job

pytestmark = [
    pytest.mark.long,
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(900),
]
SYSTEMS = ("alpha", "beta", "gamma", "delta")
CAREFUL = dict(zip(SYSTEMS, (20, 80, 45, 60), strict=True))
CARELESS = dict.fromkeys(SYSTEMS, 50)
REASON = "Reason, which the worker reads"
BLOCK_REASON = "Reason, for the team and the marketplace"
APPEAL_ANSWER = "Answer, which the worker reads; to grant the appeal, override the rejection too"


@pytest.fixture
def study(researcher):
    return rating_study("desk", n_items=3, systems=SYSTEMS, owner=researcher, title="Help desk")


WALKS = [
    pytest.param({"width": 1280, "height": 900}, Keyboard(), id="desk-by-keyboard"),
    pytest.param({"width": 390, "height": 844}, Pointer(), id="telephone"),
]


@pytest.mark.parametrize(("viewport", "hands"), WALKS)
def test_a_study_is_walked_from_the_invitation_to_its_close(browsers, study, viewport, hands):
    rosa = Walker(browsers(viewport), hands, "rosa")
    nina = Reviewer(browsers(viewport), hands, "nina")
    ada = Worker(browsers(viewport), hands, "ada")
    make_a_team(rosa)
    nina.join(rosa.invite("Researcher"), "Dialogue Lab")
    assert Membership.objects.get(user__username="nina").role == "researcher"
    connect(rosa)

    launch_the_pilot(nina)
    ada.sign_up()
    ada.do_a_hit("Help desk")
    crowd = {
        name: create_worker(username=name, password=PASSWORD) for name in ("bob", "cid", "eve")
    }
    pilot = study.batches.get()
    work_on(pilot, {name: crowd[name] for name in ("bob", "eve")})
    nina.collect()
    launch_the_rest(nina)
    rest = study.batches.exclude(pk=pilot.pk).get()
    work_on(rest, crowd)
    nina.collect()

    review_one_by_one(nina)
    review_by_rule(nina)
    appeal(ada)
    grant_the_appeal(nina)
    expect_grant(ada)

    launch_a_second_round(nina, pilot)
    assert_barred(ada)
    zoe = Worker(browsers(viewport), hands, "zoe")
    zoe.sign_up()
    zoe.do_a_hit("Help desk")
    nina.collect()
    approve_the_rest(nina)
    close_all(nina)
    statuses = sorted(Assignment.objects.values_list("status", flat=True))
    assert statuses == ["Approved"] * 7 + ["Rejected"] * 3
    assert rosa.problems == nina.problems == ada.problems == zoe.problems == []


def make_a_team(rosa):
    sign_in(rosa.page, "/login/", rosa.name, PASSWORD)
    rosa.look("home-new")
    rosa.press("link", "Teams")
    rosa.look("teams")
    rosa.write("Name of the team", "Dialogue Lab")
    rosa.press("button", "Make the team")
    rosa.see_heading("Dialogue Lab")


def connect(rosa):
    """The study's owner gives it to the team, and connects this site's marketplace."""
    rosa.press("link", "Studies")
    rosa.press("link", "Help desk")
    rosa.look("study")
    rosa.press("link", "Launch them")
    rosa.look("launch-team")
    rosa.choose("Team", "Dialogue Lab")
    rosa.press("button", "Give the study to the team")
    rosa.connect_this_site()
    rosa.press("link", "Teams")
    rosa.press("link", "Dialogue Lab")
    rosa.press("link", "Where the team publishes")
    rosa.look("marketplaces")
    rosa.write("Budget, $", "25")
    rosa.press("button", "Save")
    expect(rosa.page.get_by_label("Budget, $")).to_have_value("25.00")


def launch_the_pilot(nina):
    nina.press("link", "Studies")
    nina.press("link", "Help desk")
    nina.press("link", "Launch them")
    nina.write("Reward for a HIT, $", "0.50")
    nina.write("Workers for each item", "3")
    nina.publish("Publish the pilot", "$1.50", "launch-pilot")


def launch_the_rest(nina):
    nina.open_stage("Launch")
    nina.hands.pick(nina.page.get_by_role("radio", name="The other 2 items"))
    nina.publish("Publish 2 items", "$3.00", "launch-rest")


def work_on(batch, crowd):
    """Careful work of everyone but Eve, who gives one answer to everything, at once."""
    for name, worker in crowd.items():
        for hit in batch.hits.all():
            values, seconds = (CARELESS, 12) if name == "eve" else (CAREFUL, 120)
            hand_in(worker, hit_on(batch, hit.item.key), values, active_seconds=seconds)


def submission_of(name, batch):
    worker = WorkerAccount.objects.get(user__username=name)
    return Assignment.objects.select_related("hit__item", "worker").get(
        hit__batch=batch, worker__worker_id=worker.worker_id
    )


def review_one_by_one(nina):
    """The pilot: each decision on one submission."""
    pilot = Batch.objects.earliest("pk")
    nina.press("link", "Studies")
    nina.look("home-waiting")
    nina.press("link", re.compile("^Review 9"))
    work_off()
    expect(nina.page.locator("#measuring")).to_have_count(0)
    nina.look("desk")
    nina.turn_to(submission_of("ada", pilot))
    nina.decide("Reject…")
    nina.look("desk-reject")
    nina.press("link", "Too fast")
    expect(nina.page.get_by_label(REASON)).to_have_value(re.compile("If we are mistaken"))
    nina.store("Reject", "Reject")
    nina.turn_to(submission_of("eve", pilot))
    nina.decide("Part pay…", **{"Amount, US dollars": "0.20", REASON: "Half of it is careless."})
    nina.store("Part pay", "Part pay")
    nina.turn_to(submission_of("eve", pilot))
    nina.decide("Block worker…", **{BLOCK_REASON: "Gives one answer to everything."})
    nina.store("Block", "Block")
    nina.turn_to(submission_of("bob", pilot))
    nina.approve("0.50")
    nina.turn_to(submission_of("bob", pilot))
    nina.decide("Bonus…", **{"Amount, US dollars": "0.10", REASON: "Thank you."})
    nina.store("Bonus", "Bonus")
    nina.turn_to(submission_of("bob", pilot))
    nina.decide("Message…", Subject="More to come", Message="There is a second round.")
    nina.store("Message", "Message")
    nina.turn_to(submission_of("bob", pilot))
    nina.hands.press(nina.page.get_by_text("Add a note"))
    nina.write("Note, for the team alone", "Writes good comments.")
    nina.press("button", "Store the note")
    nina.see("Writes good comments.")
    nina.look("desk-decided")
    nina.send(6)
    nina.look("desk-sent")
    assert sorted(bonus.amount_usd for bonus in BonusPayment.objects.all()) == [
        Decimal("0.10"),
        Decimal("0.20"),
    ]
    assert WorkerMessage.objects.filter(subject="More to come").count() == 1
    assert WorkerBlock.objects.exists()
    assert WorkerNote.objects.get().author.username == "nina"


def review_by_rule(nina):
    """The rest: what was too fast, and what has no flag."""
    nina.press("link", "By rule…")
    nina.press("link", "Reject what was too fast")
    nina.write("Faster than the median time divided by", "6")
    nina.write(REASON, "Too fast to have read it.")
    nina.press("button", "Preview")
    nina.see_heading("It takes 2 submissions, $0.00")
    nina.look("rule")
    nina.press("button", "Decide so on 2")
    nina.press("link", "Back to the desk")
    nina.approve_unflagged(4, "2.00")
    nina.send_all(6)


def appeal(ada):
    ada.page.goto("/worker/dashboard/")
    ada.look("worker-dashboard")
    ada.press("link", "Appeal")
    ada.look("worker-appeal")
    ada.write("Why is the rejection wrong? You can appeal once.", "I read all of it twice.")
    ada.press("button", "Appeal")
    ada.see("Not answered yet.")


def grant_the_appeal(nina):
    """Answer it, and override the rejection."""
    run_job(request_job(kind="collect_appeals").pk)
    nina.press("link", "Studies")
    nina.look("home-appeal")
    nina.press("link", re.compile("^Read the appeal"))
    nina.turn_to(submission_of("ada", Batch.objects.earliest("pk")))
    nina.look("desk-appeal")
    nina.write(APPEAL_ANSWER, "You are right: we looked again.")
    nina.submit("Answer the appeal")
    nina.finish_job()
    nina.see("1 appeal answered")
    nina.turn_to(submission_of("ada", Batch.objects.earliest("pk")))
    nina.decide("Override…")
    nina.look("desk-override")
    nina.store("Override the rejection", "Override")
    nina.send(1)


def expect_grant(ada):
    ada.page.reload()
    ada.see("You are right: we looked again.")
    ada.see("Approved")


def launch_a_second_round(nina, pilot):
    nina.open_stage("Collect")
    nina.press("link", f"Batch {pilot.pk}")
    nina.look("batch")
    nina.press("link", "Second round…")
    nina.write("Workers for each item", "1")
    nina.publish("Publish 1 item", "$0.50", "launch-second")


def assert_barred(ada):
    """Who worked in an earlier round is not even offered the new HIT."""
    ada.page.goto("/worker/")
    ada.see("There are none right now.")


def approve_the_rest(nina):
    nina.open_desk()
    nina.approve("0.50")
    nina.send(1)


def close_all(nina):
    for batch in Batch.objects.order_by("pk"):
        nina.open_stage("Collect")
        nina.press("link", f"Batch {batch.pk}")
        nina.press("link", "Close the batch…")
        nina.look(f"close-{batch.round}")
        nina.submit("Close the batch")
        nina.finish_job()
        nina.see("Closed on")
        nina.see("Both agree to the cent")
        nina.look(f"closed-{batch.round}")
