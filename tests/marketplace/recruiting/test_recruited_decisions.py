"""What a program decides about participants: once for all HITs of a session, for the recruiter."""

import csv
import io
from decimal import Decimal

import pytest
from django.test import Client

from accounts.models import User
from encryption import encrypt
from marketplace import clock
from marketplace.hits import lifecycle
from marketplace.models import (
    Assignment,
    AuditEntry,
    BonusPayment,
    Intent,
    LedgerTransaction,
    Session,
    WorkerMessage,
)
from marketplace.money.transfers import make_batch
from marketplace.people.enrolment import let_act_for
from marketplace.recruiting.intents import approve_overdue
from tests.marketplace.conftest import PASSWORD
from tests.marketplace.prolific import came, completion_code, work
from tests.marketplace.recruiting.conftest import PID
from tests.marketplace.test_worker_site import text_of


@pytest.fixture
def done(panel):
    work(came(panel, PID, "x1"), times=2)
    return list(Assignment.objects.order_by("pk").values_list("public_id", flat=True))


def turk_code(found):
    return found.value.response["TurkErrorCode"].removeprefix("AWS.MechanicalTurk.")


def decisions():
    return list(Intent.objects.order_by("pk").values_list("kind", flat=True))


def test_approving_is_written_down_once_for_the_submission(mturk, done):
    movements = LedgerTransaction.objects.count()
    for assignment in done:
        mturk.approve_assignment(AssignmentId=assignment)
    assert decisions() == ["approve"]
    assert Session.objects.get().state == "approved"
    assert LedgerTransaction.objects.count() == movements
    assert make_batch() is None


def test_one_submission_is_not_decided_in_two_ways(mturk, done):
    mturk.approve_assignment(AssignmentId=done[0])
    with pytest.raises(mturk.exceptions.RequestError) as found:
        mturk.reject_assignment(AssignmentId=done[1], RequesterFeedback="No.")
    assert turk_code(found) == "InvalidAssignmentState"
    assert Assignment.objects.get(public_id=done[1]).status == "Submitted"
    assert decisions() == ["approve"]


def test_a_rejection_is_overridden(mturk, done):
    for assignment in done:
        mturk.reject_assignment(AssignmentId=assignment, RequesterFeedback="Half is missing.")
    assert (decisions(), Session.objects.get().state) == (["reject"], "rejected")
    assert not WorkerMessage.objects.exists()
    with pytest.raises(mturk.exceptions.RequestError):
        mturk.approve_assignment(AssignmentId=done[0])
    mturk.approve_assignment(AssignmentId=done[0], OverrideRejection=True)
    # The rejection, which was not sent yet, is sent no more.
    assert (decisions(), Session.objects.get().state) == (["approve"], "approved")


def test_what_time_approves_is_approved_at_the_recruiter(mturk, done, requester):
    assert approve_overdue() == 0
    Assignment.objects.update(auto_approval_at="2020-01-01T00:00Z")
    for hit in requester.hits.all():
        type(hit).objects.filter(pk=hit.pk).update(next_transition_at="2020-01-01T00:00Z")
    lifecycle.sweep(clock.now())
    assert approve_overdue() == 1
    assert approve_overdue() == 0
    assert decisions() == ["approve"]


def test_a_bonus_is_the_recruiters_to_pay_and_under_a_token_once(mturk, done):
    worker_id = Session.objects.get().worker.worker_id
    bonus = {"WorkerId": worker_id, "AssignmentId": done[0], "BonusAmount": "1.50", "Reason": "!"}
    movements = LedgerTransaction.objects.count()
    mturk.send_bonus(**bonus, UniqueRequestToken="t")
    with pytest.raises(mturk.exceptions.RequestError) as found:
        mturk.send_bonus(**bonus, UniqueRequestToken="t")
    assert turk_code(found) == "DuplicateRequest"
    with pytest.raises(mturk.exceptions.RequestError) as found:
        mturk.send_bonus(**bonus | {"WorkerId": "A" * 14})
    assert "A" * 14 in str(found.value)
    assert Intent.objects.get().amount == Decimal("1.50")
    assert not BonusPayment.objects.exists()
    assert LedgerTransaction.objects.count() == movements


def test_a_bonus_in_another_currency_is_refused(mturk, done, panel):
    panel.connection.settings = {"currency": "GBP"}
    panel.connection.save()
    worker_id = Session.objects.get().worker.worker_id
    with pytest.raises(mturk.exceptions.RequestError) as found:
        mturk.send_bonus(WorkerId=worker_id, AssignmentId=done[0], BonusAmount="1", Reason="!")
    assert "GBP" in str(found.value)
    assert not Intent.objects.exists()


def test_messages_go_by_the_recruiter_that_is_called(mturk, done, panel, worker):
    panel.connection.encrypted_token = encrypt("token")
    panel.connection.save()
    ids = [Session.objects.get().worker.worker_id, worker.worker_id]
    answer = mturk.notify_workers(Subject="Hello", MessageText="More tomorrow.", WorkerIds=ids)
    assert [each["WorkerId"] for each in answer["NotifyWorkersFailureStatuses"]] == ids[1:]
    assert Intent.objects.get().text == "Hello\n\nMore tomorrow."
    assert not WorkerMessage.objects.exists()


def test_who_is_blocked_is_screened_out_at_the_door(mturk, done, panel):
    mturk.create_worker_block(WorkerId=Session.objects.get().worker.worker_id, Reason="Careless")
    page = text_of(came(panel, PID, "x2").get("/worker/study/", follow=True))
    assert completion_code(panel, "screened_out") in page


def test_the_participants_file_is_the_requesters_and_audited(mturk, done, panel, requester, ada):
    mturk.approve_assignment(AssignmentId=done[0], RequesterFeedback="=thanks")
    User.objects.create_user("rita", password=PASSWORD)
    let_act_for(requester=requester, username="rita")
    rita = Client()
    rita.force_login(User.objects.get(username="rita"))
    where = f"/requester-console/{requester.public_id}/channels/{panel.token}/join.csv"
    assert rita.get(where).status_code == 405
    assert ada.post(where).status_code in (302, 403, 404)
    assert not AuditEntry.objects.filter(action="study.export_join").exists()
    (row,) = csv.DictReader(io.StringIO(text_of(rita.post(where))))
    session = Session.objects.get()
    assert (row["submission_id"], row["participant_id"]) == ("x1", PID)
    assert (row["worker_id"], row["code"]) == (session.worker.worker_id, session.code)
    assert (row["n_hits"], row["n_handed_in"], row["decision"]) == ("2", "2", "approve")
    assert row["reason"] == "'=thanks"
    assert AuditEntry.objects.get(action="study.export_join").user.username == "rita"
    listed = mturk.list_assignments_for_hit(HITId=panel.hit_type.hits.first().public_id)
    assert PID not in str(listed)


def test_of_a_panel_that_is_not_called_messages_are_not_said_to_be_sent(mturk, done):
    [failure] = mturk.notify_workers(
        Subject="Hello", MessageText="More.", WorkerIds=[Session.objects.get().worker.worker_id]
    )["NotifyWorkersFailureStatuses"]
    assert failure["NotifyWorkersFailureMessage"]
    assert not Intent.objects.exists()
    assert not WorkerMessage.objects.exists()
