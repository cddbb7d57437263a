"""Decisions on participants, once for all HITs of a session; and codes entered at Prolific without
the work: put before a person, and never paid unseen."""

import csv
import io
from datetime import timedelta
from decimal import Decimal

import pytest

from encryption import encrypt
from marketplace import clock
from marketplace.exceptions import ErasureRefused, InvalidParameter
from marketplace.hits import lifecycle
from marketplace.hits.assignments import accept_hit
from marketplace.models import (
    Assignment,
    AuditEntry,
    BonusPayment,
    Intent,
    LedgerTransaction,
    Outcome,
    RecruitedStudy,
    RecruiterCharge,
    Session,
    WorkerMessage,
)
from marketplace.money.transfers import make_batch
from marketplace.people.erasure import erase_worker
from marketplace.recruiting.calls import call_recruiters
from marketplace.recruiting.connections import recruiter_of
from marketplace.recruiting.dispatch import SCREENED_OUT, decide_uncertain
from marketplace.recruiting.intents import approve_overdue
from marketplace.recruiting.participants import new_participant
from marketplace.recruiting.posting import follow_study, stop_study
from marketplace.recruiting.submissions import APPROVAL_WAITS, DONE_BY_OTHERS, NOT_OPENED
from tests.codes import refused
from tests.marketplace.prolific import (
    OPEN_DOUBT,
    approve,
    approve_submitted,
    arrive,
    assignments,
    begun,
    came,
    completion_code,
    hand_in,
    leave,
    minutes,
    numbers,
    paid,
    publish,
    reject,
    reload,
    run_out_of_time,
    session_of,
    statuses,
    work,
)
from tests.marketplace.recruiting.conftest import PID
from tests.marketplace.test_worker_site import text_of


def claim(fake, posted, submission):
    fake.world.enter(submission, completion_code(posted))


def open_doubts():
    return Intent.objects.filter(**OPEN_DOUBT)


def settle_doubt(*, is_left):
    decide_uncertain(intent=open_doubts().get(), was_done=is_left)


def claimed(fake, posted, *, opens=True, n_done=0):
    if opens:
        submission, _browser = begun(fake, posted, n_done)
    else:
        submission = fake.world.arrive(fake.world.studies[posted.external_id])
    claim(fake, posted, submission)
    return submission


@pytest.mark.slow
@pytest.mark.parametrize("is_left", [False, True])
@pytest.mark.parametrize(("opens", "n_done"), [(True, 0), (True, 1), (False, 0)])
def test_a_code_without_the_work_is_put_before_a_person_once(
    fake, posted, opens, n_done, is_left, handed_in
):
    submission = claimed(fake, posted, opens=opens, n_done=n_done)
    minutes()
    doubt = open_doubts().get()
    assert doubt.session.submission_id == submission.id
    assert str(Outcome.COMPLETED.label) in doubt.problem
    if opens:
        assert numbers(doubt.problem)[:2] == [str(n_done), "2"]
    else:
        assert str(NOT_OPENED) in doubt.problem
    settle_doubt(is_left=is_left)
    minutes(2)
    assert not open_doubts().exists()
    assert handed_in.status == "AWAITING REVIEW"
    assert submission.status == ("AWAITING REVIEW" if is_left else "REJECTED")
    if is_left:
        return
    assert session_of(submission).state == "rejected"
    if n_done:  # the rest of the work is free
        assert statuses() == ["Rejected", "Returned", "Submitted", "Submitted"]
    fake.world.pass_time(timedelta(days=22))
    call_recruiters()
    assert paid(fake, "reward") == [200]


@pytest.mark.slow
def test_who_is_paid_by_time_after_a_late_code_is_approved_and_charged_for(fake, posted):
    submission, _browser = begun(fake, posted)
    fake.world.leave(submission, "TIMED-OUT")
    call_recruiters()
    for time in (timedelta(days=12), timedelta(days=22)):
        clock.advance(time)
        fake.world.pass_time(time)
        if submission.status == "TIMED-OUT":
            claim(fake, posted, submission)
        call_recruiters()
    assert (submission.status, paid(fake, "reward")) == ("APPROVED", [200])
    assert Session.objects.get().state == "approved"
    assert RecruiterCharge.objects.get(kind="reward").amount == 2
    assert not open_doubts().exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "is_left", "there"),
    [
        ("XXXX", True, "APPROVED"),
        ("no_more_items", False, "REJECTED"),
        ("completed", True, "APPROVED"),
    ],
)
def test_one_approved_hit_pays_no_participation(fake, posted, mturk, code, is_left, there):
    submission, _browser = begun(fake, posted)
    first = approve_submitted(mturk)
    entered = posted.codes.filter(outcome=code).values_list("code", flat=True).first()
    fake.world.enter(submission, entered or code)
    minutes(3)
    assert (submission.status, paid(fake, "reward")) == ("AWAITING REVIEW", [])
    doubt = open_doubts().get()
    assert numbers(doubt.problem)[:2] == ["1", "2"]
    assert str(APPROVAL_WAITS) in doubt.problem
    decide_uncertain(intent=doubt, was_done=is_left)
    call_recruiters()
    assert submission.status == there
    assert not Intent.objects.filter(state="written").exists()
    first.refresh_from_db()
    assert first.status == "Approved"


@pytest.mark.slow
@pytest.mark.parametrize("is_approved", [True, False])
def test_who_finishes_after_all_is_doubted_no_more(fake, posted, mturk, is_approved):
    submission, browser = begun(fake, posted)
    if is_approved:
        approve_submitted(mturk)
    claim(fake, posted, submission)
    call_recruiters()
    assert open_doubts().exists()
    work(browser)
    call_recruiters()
    assert submission.status == ("APPROVED" if is_approved else "AWAITING REVIEW")
    assert not Intent.objects.filter(kind="doubt").exists()


def test_who_was_asked_back_has_a_day_to_return_the_place(fake, posted):
    submission, browser, _answer = arrive(fake, posted)
    session = Session.objects.get()
    leave(browser, session)
    session.refresh_from_db()
    fake.world.enter(submission, session.code)
    call_recruiters()
    assert not Intent.objects.filter(kind="doubt").exists()
    clock.advance(timedelta(hours=25))
    call_recruiters()
    doubt = open_doubts().get()
    assert str(Outcome.NO_CONSENT.label) in doubt.problem
    assert doubt.basis == {"category": "NO_DATA"}


@pytest.mark.slow
@pytest.mark.parametrize("has_place", [True, False])
def test_a_stopped_study_is_followed_while_somebody_holds_a_place(fake, posted, mturk, has_place):
    approve(mturk, hand_in(fake, posted))
    if has_place:
        place = fake.world.arrive(fake.world.studies[posted.external_id])
    call_recruiters()
    stop_study(study=posted)
    call_recruiters()
    if has_place:
        claim(fake, posted, place)
        call_recruiters()
        assert open_doubts().get().session.submission_id == place.id
        return
    assert reload(posted).n_payable_there == 0
    fake.calls.clear()
    call_recruiters()
    assert "submissions" not in fake.calls


@pytest.mark.parametrize("is_polled_first", [True, False])
def test_a_worker_with_a_screen_out_code_is_paid_once(
    fake, connection, hit_type, mturk, is_polled_first
):
    study = publish(
        connection,
        hit_type,
        reward=Decimal("1.50"),
        screen_out_reward=Decimal("0.20"),
        screen_out_places=5,
    )
    submission, _browser = begun(fake, study, 2)
    fake.world.enter(submission, completion_code(study, "screened_out"))
    if is_polled_first:
        call_recruiters()
    for assignment in Assignment.objects.filter(status="Submitted"):
        mturk.approve_assignment(AssignmentId=assignment.public_id)
    minutes(2)
    assert paid(fake, "reward") == []
    approval = Intent.objects.get(kind="approve")
    assert (approval.state, approval.problem) == ("refused", str(SCREENED_OUT))
    kinds = RecruiterCharge.objects.values_list("kind", flat=True)
    assert set(kinds) == {"study", "screen_out"}


def test_work_that_came_since_it_was_listed_is_not_rejected(fake, posted, mturk):
    submission, browser = begun(fake, posted)
    claim(fake, posted, submission)
    call_recruiters()
    doubt = open_doubts().get()
    work(browser)
    approve(mturk, submission)
    with refused(InvalidParameter, "work_has_come"):
        decide_uncertain(intent=doubt, was_done=False)
    call_recruiters()
    assert (submission.status, paid(fake, "reward")) == ("APPROVED", [200])
    assert not open_doubts().exists()


@pytest.mark.slow
def test_a_rejection_of_work_in_the_minutes_of_grace_waits_for_its_late_code(fake, posted, mturk):
    fake.world.now = clock.now()
    submission, browser, _answer = arrive(fake, posted)
    fake.world.pass_time(timedelta(minutes=40))
    work(browser, times=2)
    reject(mturk, submission)
    call_recruiters()
    assert submission.status == "TIMED-OUT"
    fake.world.enter(submission, Session.objects.get().code)
    call_recruiters()
    assert (submission.status, Session.objects.get().state) == ("REJECTED", "rejected")
    fake.world.pass_time(timedelta(days=22))
    call_recruiters()
    assert paid(fake, "reward") == []


def test_a_stopped_study_is_not_over_while_a_place_has_a_word_that_is_not_known(fake, posted):
    place = fake.world.arrive(fake.world.studies[posted.external_id])
    stop_study(study=posted)
    place.status = "UNKNOWN"
    call_recruiters()
    posted.refresh_from_db()
    assert posted.n_payable_there != 0
    place.status = "ACTIVE"
    fake.world.enter(place, completion_code(posted))
    call_recruiters()
    assert open_doubts().count() == 1


@pytest.mark.slow
def test_an_approval_after_a_stopped_study_was_settled_has_it_looked_at_again(fake, posted, mturk):
    submission, _browser = begun(fake, posted)
    first = Assignment.objects.get(status="Submitted")
    claim(fake, posted, submission)
    mturk.reject_assignment(AssignmentId=first.public_id, RequesterFeedback="x" * 120)
    call_recruiters()
    stop_study(study=posted)
    call_recruiters()
    posted.refresh_from_db()
    assert (submission.status, posted.n_payable_there) == ("REJECTED", 0)
    mturk.approve_assignment(AssignmentId=first.public_id, OverrideRejection=True)
    call_recruiters()
    settle_doubt(is_left=True)
    call_recruiters()
    assert (submission.status, paid(fake, "reward")) == ("APPROVED", [200])


@pytest.mark.slow
def test_a_decision_that_was_refused_is_sent_again_when_somebody_says_so(fake, mturk, handed_in):
    fake.fail_next("move_submission", "400")  # for want of money, say
    approve(mturk, handed_in)
    call_recruiters()
    [refused] = Intent.objects.all()
    assert (refused.state, handed_in.status) == ("refused", "AWAITING REVIEW")
    first, reason = assignments(handed_in)[0], "x" * 120
    with pytest.raises(mturk.exceptions.RequestError):
        mturk.reject_assignment(AssignmentId=first, RequesterFeedback=reason)
    with pytest.raises(InvalidParameter):
        decide_uncertain(intent=refused, was_done=True)
    decide_uncertain(intent=refused, was_done=False)
    call_recruiters()
    assert (handed_in.status, paid(fake, "reward")) == ("APPROVED", [200])
    assert Session.objects.get().state == "approved"


def test_an_approval_during_a_look_has_the_study_looked_at_again(fake, posted, mturk, connection):
    stop_study(study=posted)
    call_recruiters()
    before = RecruitedStudy.objects.get()
    assert before.n_payable_there == 0
    RecruitedStudy.objects.update(n_payable_there=None)  # as a decision does meanwhile
    follow_study(before, recruiter_of(connection))
    assert RecruitedStudy.objects.get().n_payable_there is None


@pytest.mark.slow
@pytest.mark.parametrize("is_returned", [True, False])
def test_a_held_place_delays_an_erasure_for_thirty_days_at_most(fake, posted, is_returned):
    submission, browser, _answer = arrive(fake, posted)
    leave(browser)
    worker = Session.objects.get().worker
    with refused(ErasureRefused, "place_held"):
        erase_worker(worker)
    if is_returned:
        fake.world.leave(submission)
        call_recruiters()
    else:
        clock.advance(timedelta(days=31))
    erase_worker(worker)


@pytest.mark.parametrize("is_left", [True, False])
def test_work_that_others_have_done_meanwhile_is_put_before_a_person(fake, posted, is_left):
    """Nothing of it is at the review desk, where it could be decided on."""
    submission, browser, _answer = arrive(fake, posted)
    held = assignments(submission)
    run_out_of_time(posted)
    for public_id in held:
        hit = Assignment.objects.get(public_id=public_id).hit
        for _ in range(2):
            accept_hit(worker=new_participant("recruiter"), hit=hit)
    for public_id in held:
        browser.post("/mturk/externalSubmit", {"assignmentId": public_id, "rating": "4"})
    session = session_of(submission)
    assert session.outcome == "completed"
    fake.world.enter(submission, session.code)
    minutes(2)
    doubt = open_doubts().get()
    assert str(DONE_BY_OTHERS) in doubt.problem
    decide_uncertain(intent=doubt, was_done=is_left)
    minutes(2)
    assert submission.status == ("AWAITING REVIEW" if is_left else "REJECTED")
    assert not open_doubts().exists()


@pytest.fixture
def done(panel):
    work(came(panel, PID, "x1"), times=2)
    return list(Assignment.objects.order_by("pk").values_list("public_id", flat=True))


def turk_code(found):
    return found.value.response["TurkErrorCode"].removeprefix("AWS.MechanicalTurk.")


def decisions():
    return list(Intent.objects.order_by("pk").values_list("kind", flat=True))


def test_approving_is_written_down_once_and_a_submission_is_not_decided_in_two_ways(mturk, done):
    movements = LedgerTransaction.objects.count()
    mturk.approve_assignment(AssignmentId=done[0])
    with pytest.raises(mturk.exceptions.RequestError) as found:
        mturk.reject_assignment(AssignmentId=done[1], RequesterFeedback="No.")
    assert turk_code(found) == "InvalidAssignmentState"
    assert Assignment.objects.get(public_id=done[1]).status == "Submitted"
    mturk.approve_assignment(AssignmentId=done[1])
    assert decisions() == ["approve"]
    assert Session.objects.get().state == "approved"
    assert LedgerTransaction.objects.count() == movements
    assert make_batch() is None


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


def test_another_currency_is_refused_and_who_is_blocked_screened_out(mturk, done, panel):
    panel.connection.settings = {"currency": "GBP"}
    panel.connection.save()
    worker_id = Session.objects.get().worker.worker_id
    with pytest.raises(mturk.exceptions.RequestError) as found:
        mturk.send_bonus(WorkerId=worker_id, AssignmentId=done[0], BonusAmount="1", Reason="!")
    assert "GBP" in str(found.value)
    assert not Intent.objects.exists()
    mturk.create_worker_block(WorkerId=Session.objects.get().worker.worker_id, Reason="Careless")
    page = text_of(came(panel, PID, "x2").get("/worker/study/", follow=True))
    assert completion_code(panel, "screened_out") in page


def test_the_participants_file_is_the_requesters_and_audited(
    mturk, done, panel, requester, owner, ada
):
    mturk.approve_assignment(AssignmentId=done[0], RequesterFeedback="=thanks")
    where = f"/requester-console/{requester.public_id}/channels/{panel.token}/join.csv"
    assert owner.get(where).status_code == 405
    assert ada.post(where).status_code in (302, 403, 404)
    assert not AuditEntry.objects.filter(action="study.export_join").exists()
    (row,) = csv.DictReader(io.StringIO(text_of(owner.post(where))))
    session = Session.objects.get()
    assert (row["submission_id"], row["participant_id"]) == ("x1", PID)
    assert (row["worker_id"], row["code"]) == (session.worker.worker_id, session.code)
    assert (row["n_hits"], row["n_handed_in"], row["decision"]) == ("2", "2", "approve")
    assert row["reason"] == "'=thanks"
    assert AuditEntry.objects.get(action="study.export_join").user.username == "rita"
    listed = mturk.list_assignments_for_hit(HITId=panel.hit_type.hits.first().public_id)
    assert PID not in str(listed)


def test_of_a_panel_that_is_not_called_messages_are_not_said_to_be_sent(mturk, done, panel, worker):
    [failure] = mturk.notify_workers(
        Subject="Hello", MessageText="More.", WorkerIds=[Session.objects.get().worker.worker_id]
    )["NotifyWorkersFailureStatuses"]
    assert failure["NotifyWorkersFailureMessage"]
    assert not Intent.objects.exists()
    assert not WorkerMessage.objects.exists()
    panel.connection.encrypted_token = encrypt("token")
    panel.connection.save()
    ids = [Session.objects.get().worker.worker_id, worker.worker_id]
    answer = mturk.notify_workers(Subject="Hello", MessageText="More tomorrow.", WorkerIds=ids)
    assert [each["WorkerId"] for each in answer["NotifyWorkersFailureStatuses"]] == ids[1:]
    assert Intent.objects.get().text == "Hello\n\nMore tomorrow."
    assert not WorkerMessage.objects.exists()
