"""Decisions on participants, once for all HITs of a session; codes entered at Prolific without the
work: put before a person, and never paid unseen; and files about participants: what they told
their recruiter, the recruiter's CSV of their statuses, and who had everything erased."""

import csv
import io
import json
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from decimal import Decimal
from functools import partial
from threading import Event

import pytest
from cryptography.fernet import Fernet
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.db import connection as database, connections
from django.db.models import F

from encryption import encrypt
from marketplace import clock, exceptions, models
from marketplace.hits import assignments, lifecycle, review
from marketplace.money.transfers import make_batch
from marketplace.people import erasure, personal_data
from marketplace.recruiting import intents, participants, places, posting, sessions, submissions
from marketplace.recruiting.calls import call_recruiters, perform_action
from marketplace.recruiting.connections import disconnect, recruiter_of
from marketplace.recruiting.dispatch import SCREENED_OUT, decide_uncertain
from marketplace.recruiting.files import fetch_demographics
from marketplace.recruiting.prolific.words import demographics_of
from tests.codes import message_codes, refused
from tests.marketplace import prolific
from tests.marketplace.recruiting.conftest import OTHER_PID, PID
from tests.marketplace.recruiting.test_recruiter_events import send_by_hand
from tests.marketplace.recruiting.test_recruiters_faults import answer_wrongly
from tests.marketplace.test_worker_site import text_of
from work.models import Job


def claim(fake, posted, submission):
    fake.world.enter(submission, prolific.completion_code(posted))


def open_doubts():
    return models.Intent.objects.filter(**prolific.OPEN_DOUBT)


def settle_doubt(*, is_left):
    decide_uncertain(intent=open_doubts().get(), was_done=is_left)


def claimed(fake, posted, *, opens=True, n_done=0):
    if opens:
        submission, _browser = prolific.begun(fake, posted, n_done)
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
    prolific.minutes()
    doubt = open_doubts().get()
    assert doubt.session.submission_id == submission.id
    assert str(models.Outcome.COMPLETED.label) in doubt.problem
    if opens:
        assert prolific.numbers(doubt.problem)[:2] == [str(n_done), "2"]
    else:
        assert str(submissions.NOT_OPENED) in doubt.problem
    settle_doubt(is_left=is_left)
    prolific.minutes(2)
    assert not open_doubts().exists()
    assert handed_in.status == "AWAITING REVIEW"
    assert submission.status == ("AWAITING REVIEW" if is_left else "REJECTED")
    if is_left:
        return
    assert prolific.session_of(submission).state == "rejected"
    if n_done:  # the rest of the work is free
        assert prolific.statuses() == ["Rejected", "Returned", "Submitted", "Submitted"]
    fake.world.pass_time(timedelta(days=22))
    call_recruiters()
    assert prolific.paid(fake, "reward") == [200]


@pytest.mark.slow
def test_who_is_paid_by_time_after_a_late_code_is_approved_and_charged_for(fake, posted):
    submission, _browser = prolific.begun(fake, posted)
    fake.world.leave(submission, "TIMED-OUT")
    call_recruiters()
    for days in (12, 22):
        clock.advance(timedelta(days=days))
        fake.world.pass_time(timedelta(days=days))
        if submission.status == "TIMED-OUT":
            claim(fake, posted, submission)
        call_recruiters()
    assert (submission.status, prolific.paid(fake, "reward")) == ("APPROVED", [200])
    assert models.Session.objects.get().state == "approved"
    assert models.RecruiterCharge.objects.get(kind="reward").amount == 2
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
    submission, _browser = prolific.begun(fake, posted)
    first = prolific.approve_submitted(mturk)
    entered = posted.codes.filter(outcome=code).values_list("code", flat=True).first()
    fake.world.enter(submission, entered or code)
    prolific.minutes(3)
    assert (submission.status, prolific.paid(fake, "reward")) == ("AWAITING REVIEW", [])
    doubt = open_doubts().get()
    assert prolific.numbers(doubt.problem)[:2] == ["1", "2"]
    assert str(submissions.APPROVAL_WAITS) in doubt.problem
    decide_uncertain(intent=doubt, was_done=is_left)
    call_recruiters()
    assert submission.status == there
    assert not models.Intent.objects.filter(state="written").exists()
    first.refresh_from_db()
    assert first.status == "Approved"


@pytest.mark.slow
@pytest.mark.parametrize("is_approved", [True, False])
def test_who_finishes_after_all_is_doubted_no_more(fake, posted, mturk, is_approved):
    submission, browser = prolific.begun(fake, posted)
    if is_approved:
        prolific.approve_submitted(mturk)
    claim(fake, posted, submission)
    call_recruiters()
    assert open_doubts().exists()
    prolific.work(browser)
    call_recruiters()
    assert submission.status == ("APPROVED" if is_approved else "AWAITING REVIEW")
    assert not models.Intent.objects.filter(kind="doubt").exists()


def test_who_was_asked_back_has_a_day_to_return_the_place(fake, posted):
    submission, browser, _answer = prolific.arrive(fake, posted)
    session = models.Session.objects.get()
    prolific.leave(browser, session)
    session.refresh_from_db()
    fake.world.enter(submission, session.code)
    call_recruiters()
    assert not models.Intent.objects.filter(kind="doubt").exists()
    clock.advance(timedelta(hours=25))
    call_recruiters()
    doubt = open_doubts().get()
    assert str(models.Outcome.NO_CONSENT.label) in doubt.problem
    assert doubt.basis == {"category": "NO_DATA"}


@pytest.mark.slow
def test_a_stopped_study_is_followed_while_somebody_holds_a_place(fake, posted, mturk):
    prolific.approve(mturk, prolific.hand_in(fake, posted))
    place = fake.world.arrive(fake.world.studies[posted.external_id])
    call_recruiters()
    posting.stop_study(study=posted)
    call_recruiters()
    claim(fake, posted, place)
    call_recruiters()
    assert open_doubts().get().session.submission_id == place.id


@pytest.mark.parametrize("is_polled_first", [True, False])
def test_a_worker_with_a_screen_out_code_is_paid_once(
    fake, connection, hit_type, mturk, is_polled_first
):
    pay = {"screen_out_reward": Decimal("0.20"), "screen_out_places": 5}
    study = prolific.publish(connection, hit_type, **pay)
    submission, _browser = prolific.begun(fake, study, 2)
    fake.world.enter(submission, prolific.completion_code(study, "screened_out"))
    if is_polled_first:
        call_recruiters()
    for assignment in models.Assignment.objects.filter(status="Submitted"):
        mturk.approve_assignment(AssignmentId=assignment.public_id)
    prolific.minutes(2)
    assert prolific.paid(fake, "reward") == []
    approval = models.Intent.objects.get(kind="approve")
    assert (approval.state, approval.problem) == ("refused", str(SCREENED_OUT))
    assert set(models.RecruiterCharge.objects.values_list("kind", flat=True)) == {
        "study",
        "screen_out",
    }


def test_work_that_came_since_it_was_listed_is_not_rejected(fake, posted, mturk):
    submission, browser = prolific.begun(fake, posted)
    claim(fake, posted, submission)
    call_recruiters()
    doubt = open_doubts().get()
    prolific.work(browser)
    prolific.approve(mturk, submission)
    with refused(exceptions.InvalidParameter, "work_has_come"):
        decide_uncertain(intent=doubt, was_done=False)
    call_recruiters()
    assert (submission.status, prolific.paid(fake, "reward")) == ("APPROVED", [200])
    assert not open_doubts().exists()


@pytest.mark.slow
def test_a_rejection_of_work_in_the_minutes_of_grace_waits_for_its_late_code(fake, posted, mturk):
    fake.world.now = clock.now()
    submission, browser, _answer = prolific.arrive(fake, posted)
    fake.world.pass_time(timedelta(minutes=40))
    prolific.work(browser, times=2)
    prolific.reject(mturk, submission)
    call_recruiters()
    assert submission.status == "TIMED-OUT"
    fake.world.enter(submission, models.Session.objects.get().code)
    call_recruiters()
    assert (submission.status, models.Session.objects.get().state) == ("REJECTED", "rejected")
    fake.world.pass_time(timedelta(days=22))
    call_recruiters()
    assert prolific.paid(fake, "reward") == []


def test_a_stopped_study_is_not_over_while_a_place_has_a_word_that_is_not_known(fake, posted):
    place = fake.world.arrive(fake.world.studies[posted.external_id])
    posting.stop_study(study=posted)
    place.status = "UNKNOWN"
    call_recruiters()
    posted.refresh_from_db()
    assert posted.n_payable_there != 0
    place.status = "ACTIVE"
    fake.world.enter(place, prolific.completion_code(posted))
    call_recruiters()
    assert open_doubts().count() == 1


@pytest.mark.slow
def test_an_approval_after_a_stopped_study_was_settled_has_it_looked_at_again(fake, posted, mturk):
    submission, _browser = prolific.begun(fake, posted)
    first = models.Assignment.objects.get(status="Submitted")
    claim(fake, posted, submission)
    mturk.reject_assignment(AssignmentId=first.public_id, RequesterFeedback="x" * 120)
    call_recruiters()
    posting.stop_study(study=posted)
    call_recruiters()
    posted.refresh_from_db()
    assert (submission.status, posted.n_payable_there) == ("REJECTED", 0)
    mturk.approve_assignment(AssignmentId=first.public_id, OverrideRejection=True)
    call_recruiters()
    settle_doubt(is_left=True)
    call_recruiters()
    assert (submission.status, prolific.paid(fake, "reward")) == ("APPROVED", [200])


@pytest.mark.slow
def test_a_decision_that_was_refused_is_sent_again_when_somebody_says_so(fake, mturk, handed_in):
    fake.fail_next("move_submission", "400")  # for want of money, say
    prolific.approve(mturk, handed_in)
    call_recruiters()
    [refused] = models.Intent.objects.all()
    assert (refused.state, handed_in.status) == ("refused", "AWAITING REVIEW")
    first, reason = prolific.assignments(handed_in)[0], "x" * 120
    with pytest.raises(mturk.exceptions.RequestError):
        mturk.reject_assignment(AssignmentId=first, RequesterFeedback=reason)
    with pytest.raises(exceptions.InvalidParameter):
        decide_uncertain(intent=refused, was_done=True)
    decide_uncertain(intent=refused, was_done=False)
    call_recruiters()
    assert (handed_in.status, prolific.paid(fake, "reward")) == ("APPROVED", [200])
    assert models.Session.objects.get().state == "approved"


def test_an_approval_during_a_look_has_the_study_looked_at_again(fake, posted, connection):
    posting.stop_study(study=posted)
    call_recruiters()
    before = models.RecruitedStudy.objects.get()
    assert before.n_payable_there == 0
    models.RecruitedStudy.objects.update(n_payable_there=None)  # as a decision does meanwhile
    posting.follow_study(before, recruiter_of(connection))
    assert models.RecruitedStudy.objects.get().n_payable_there is None


@pytest.mark.slow
@pytest.mark.parametrize("is_returned", [True, False])
def test_a_held_place_delays_an_erasure_for_thirty_days_at_most(fake, posted, is_returned):
    submission, browser, _answer = prolific.arrive(fake, posted)
    prolific.leave(browser)
    worker = models.Session.objects.get().worker
    with refused(exceptions.ErasureRefused, "place_held"):
        erasure.erase_worker(worker)
    if is_returned:
        fake.world.leave(submission)
        call_recruiters()
    else:
        clock.advance(timedelta(days=31))
    erasure.erase_worker(worker)


@pytest.mark.parametrize("is_left", [True, False])
def test_work_that_others_have_done_meanwhile_is_put_before_a_person(fake, posted, is_left):
    """Nothing of it is at the review desk, where it could be decided on."""
    submission, browser, _answer = prolific.arrive(fake, posted)
    held = prolific.assignments(submission)
    prolific.run_out_of_time(posted)
    for public_id in held:
        hit = models.Assignment.objects.get(public_id=public_id).hit
        for _ in range(2):
            assignments.accept_hit(worker=participants.new_participant("recruiter"), hit=hit)
    for public_id in held:
        browser.post("/mturk/externalSubmit", {"assignmentId": public_id, "rating": "4"})
    session = prolific.session_of(submission)
    assert session.outcome == "completed"
    fake.world.enter(submission, session.code)
    prolific.minutes(2)
    doubt = open_doubts().get()
    assert str(submissions.DONE_BY_OTHERS) in doubt.problem
    decide_uncertain(intent=doubt, was_done=is_left)
    prolific.minutes(2)
    assert submission.status == ("AWAITING REVIEW" if is_left else "REJECTED")
    assert not open_doubts().exists()


@pytest.fixture
def sent(panel):
    prolific.work(prolific.came(panel, PID, "x1"), times=2)
    return list(models.Assignment.objects.order_by("pk").values_list("public_id", flat=True))


def turk_code(found):
    return found.value.response["TurkErrorCode"].removeprefix("AWS.MechanicalTurk.")


def decisions():
    return list(models.Intent.objects.order_by("pk").values_list("kind", flat=True))


def test_approving_is_written_down_once_and_a_submission_is_not_decided_in_two_ways(mturk, sent):
    movements = models.LedgerTransaction.objects.count()
    mturk.approve_assignment(AssignmentId=sent[0])
    with pytest.raises(mturk.exceptions.RequestError) as found:
        mturk.reject_assignment(AssignmentId=sent[1], RequesterFeedback="No.")
    assert turk_code(found) == "InvalidAssignmentState"
    assert models.Assignment.objects.get(public_id=sent[1]).status == "Submitted"
    mturk.approve_assignment(AssignmentId=sent[1])
    assert decisions() == ["approve"]
    assert models.Session.objects.get().state == "approved"
    assert models.LedgerTransaction.objects.count() == movements
    assert make_batch() is None


def test_a_bonus_is_the_recruiters_to_pay_and_under_a_token_once(mturk, sent):
    worker_id = models.Session.objects.get().worker.worker_id
    bonus = {"WorkerId": worker_id, "AssignmentId": sent[0], "BonusAmount": "1.50", "Reason": "!"}
    movements = models.LedgerTransaction.objects.count()
    mturk.send_bonus(**bonus, UniqueRequestToken="t")
    with pytest.raises(mturk.exceptions.RequestError) as found:
        mturk.send_bonus(**bonus, UniqueRequestToken="t")
    assert turk_code(found) == "DuplicateRequest"
    with pytest.raises(mturk.exceptions.RequestError) as found:
        mturk.send_bonus(**bonus | {"WorkerId": "A" * 14})
    assert "A" * 14 in str(found.value)
    assert models.Intent.objects.get().amount == Decimal("1.50")
    assert not models.BonusPayment.objects.exists()
    assert models.LedgerTransaction.objects.count() == movements


def test_another_currency_is_refused_and_who_is_blocked_screened_out(mturk, sent, panel):
    panel.connection.settings = {"currency": "GBP"}
    panel.connection.save()
    worker_id = models.Session.objects.get().worker.worker_id
    with pytest.raises(mturk.exceptions.RequestError) as found:
        mturk.send_bonus(WorkerId=worker_id, AssignmentId=sent[0], BonusAmount="1", Reason="!")
    assert "GBP" in str(found.value)
    assert not models.Intent.objects.exists()
    mturk.create_worker_block(
        WorkerId=models.Session.objects.get().worker.worker_id, Reason="Careless"
    )
    page = text_of(prolific.came(panel, PID, "x2").get("/worker/study/", follow=True))
    assert prolific.completion_code(panel, "screened_out") in page


def test_the_participants_file_is_the_requesters_and_audited(
    mturk, sent, panel, requester, owner, ada
):
    mturk.approve_assignment(AssignmentId=sent[0], RequesterFeedback="=thanks")
    where = f"/requester-console/{requester.public_id}/channels/{panel.token}/join.csv"
    assert owner.get(where).status_code == 405
    assert ada.post(where).status_code in (302, 403, 404)
    assert not models.AuditEntry.objects.filter(action="study.export_join").exists()
    (row,) = csv.DictReader(io.StringIO(text_of(owner.post(where))))
    session = models.Session.objects.get()
    assert (row["submission_id"], row["participant_id"]) == ("x1", PID)
    assert (row["worker_id"], row["code"]) == (session.worker.worker_id, session.code)
    assert (row["n_hits"], row["n_handed_in"], row["decision"]) == ("2", "2", "approve")
    assert row["reason"] == "'=thanks"
    assert models.AuditEntry.objects.get(action="study.export_join").user.username == "rita"
    listed = mturk.list_assignments_for_hit(HITId=panel.hit_type.hits.first().public_id)
    assert PID not in str(listed)


def test_of_a_panel_that_is_not_called_messages_are_not_said_to_be_sent(mturk, sent, panel, worker):
    [failure] = mturk.notify_workers(
        Subject="Hello",
        MessageText="More.",
        WorkerIds=[models.Session.objects.get().worker.worker_id],
    )["NotifyWorkersFailureStatuses"]
    assert failure["NotifyWorkersFailureMessage"]
    assert not models.Intent.objects.exists()
    assert not models.WorkerMessage.objects.exists()
    panel.connection.encrypted_token = encrypt("token")
    panel.connection.save()
    ids = [models.Session.objects.get().worker.worker_id, worker.worker_id]
    answer = mturk.notify_workers(Subject="Hello", MessageText="More tomorrow.", WorkerIds=ids)
    assert [each["WorkerId"] for each in answer["NotifyWorkersFailureStatuses"]] == ids[1:]
    assert models.Intent.objects.get().text == "Hello\n\nMore tomorrow."
    assert not models.WorkerMessage.objects.exists()


# Demographics and statuses


def home(study):
    return f"/requester-console/{study.requester.public_id}/channels/{study.token}/"


@pytest.fixture
def asked(fake, posted):
    submission = prolific.hand_in(fake, posted)
    assert fetch_demographics(study=posted) == 1
    return submission


def test_they_are_kept_encrypted_and_exported_without_what_leads_to_somebody(
    fake, posted, asked, owner
):
    assert "United Kingdom" not in models.SessionDemographics.objects.get().encrypted_answers
    assert "demographics.csv" in text_of(owner.get(home(posted)))
    content = text_of(owner.post(f"{home(posted)}demographics.csv"))
    assert not any(each in content for each in (asked.id, asked.participant, asked.entered_code))
    (line,) = csv.DictReader(io.StringIO(content))
    assert line["worker_id"] == models.Session.objects.get().worker.worker_id
    assert set(line) == {"worker_id", "Age", "Sex", "Country of residence"}
    assert line["Country of residence"] == "United Kingdom"
    assert models.AuditEntry.objects.get(action="study.export_demographics").user.username == "rita"
    owner.post(f"{home(posted)}demographics/")
    assert Job.objects.filter(kind="fetch_demographics").exists()
    listed = (
        "Submission id,Participant id,Status,Reviewed at,Age,Total approvals,Who\n"
        "s1,p1,APPROVED,2026-01-01,30,7,p1\n"
    )
    assert dict(demographics_of(listed)) == {"s1": {"Age": "30", "Total approvals": "7"}}


@pytest.mark.slow
def test_asked_again_they_are_the_same_and_gone_with_the_participant(fake, posted, asked):
    fetch_demographics(study=posted)
    worker = models.WorkerAccount.objects.get()
    assert "United Kingdom" in str(personal_data.export(worker))
    models.Assignment.objects.update(status="Approved")
    erasure.erase_worker(worker)
    assert not models.SessionDemographics.objects.exists()
    assert fetch_demographics(study=posted) == 0
    assert not models.SessionDemographics.objects.exists()


@pytest.mark.slow
def test_none_are_kept_of_who_did_not_consent_left_or_sent_nothing(fake, posted, asked):
    left, _browser = prolific.begun(fake, posted)
    stopped, _browser = prolific.begun(fake, posted)
    fetch_demographics(study=posted)
    assert models.SessionDemographics.objects.count() == 3
    session = prolific.session_of(stopped)
    sessions.end_session(session=session, outcome="no_consent")
    assert not models.SessionDemographics.objects.filter(session=session).exists()
    prolific.arrive(fake, posted)  # and sends nothing
    fake.world.leave(left)
    call_recruiters()
    assert models.SessionDemographics.objects.count() == 1
    assert fetch_demographics(study=posted) == 1
    assert models.SessionDemographics.objects.get().session.submission_id == asked.id


def test_they_change_their_key(fake, posted, asked, settings, tmp_path):
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode(), *settings.ENCRYPTION_KEYS]
    call_command("reencrypt_secrets")
    settings.ENCRYPTION_KEYS = settings.ENCRYPTION_KEYS[:1]
    file = tmp_path / "d.csv"
    call_command("fetch_demographics", posted.token, "--csv", str(file))
    assert "United Kingdom" in file.read_text()


@pytest.mark.parametrize("fault", ["drop", "lose", "429", "500"])
def test_what_is_not_answered_is_said_and_nothing_is_kept(fake, posted, fault):
    prolific.hand_in(fake, posted)
    fake.fail_next("demographic_export", fault)
    with pytest.raises(exceptions.InvalidParameter):
        call_command("fetch_demographics", posted.token)
    assert not models.SessionDemographics.objects.exists()
    call_command("fetch_demographics", posted.token)
    assert models.SessionDemographics.objects.count() == 1


def test_closing_a_posted_study_stops_it_at_its_recruiter(fake, posted, owner):
    owner.post(f"{home(posted)}close/")
    posted.refresh_from_db()
    assert (posted.state, posted.action) == ("active", "stop")
    perform_action(posted.pk, posted.action_number)
    posted.refresh_from_db()
    assert (posted.state, fake.world.studies[posted.external_id].status) == ("stopped", "COMPLETED")


def test_a_posted_study_whose_token_is_gone_stays_open_and_that_is_said(posted, connection, owner):
    disconnect(connection=connection)
    assert message_codes(owner.post(f"{home(posted)}close/", follow=True)) == ["disconnected"]
    assert models.RecruitedStudy.objects.get().state == "active"


def test_what_the_recruiter_decided_is_taken_over_once(done):
    movements = models.LedgerTransaction.objects.count()
    file = "Submission ID,Participant ID,Status\nx1,,APPROVED\nx2,,RETURNED\n"
    assert prolific.take_over(done, file).n_changed == 2
    assert prolific.statuses() == ["Approved", "Approved", "Returned", "Returned"]
    states = dict(models.Session.objects.values_list("submission_id", "state"))
    assert states == {"x1": "approved", "x2": "returned"}
    again = prolific.take_over(done, file)
    assert (again.n_changed, again.n_unchanged) == (0, 2)
    assert not models.Intent.objects.exists()
    assert models.LedgerTransaction.objects.count() == movements
    assert models.AuditEntry.objects.filter(action="study.import_statuses").count() == 2


def test_an_approval_there_stands_against_a_rejection_here(done, mturk):
    for assignment in models.Assignment.objects.filter(status="Submitted"):
        mturk.reject_assignment(AssignmentId=assignment.public_id, RequesterFeedback="No. " * 30)
    assert not models.WorkerMessage.objects.exists()
    prolific.take_over(done, "submission_id,status\nx1,approved\n")
    assert prolific.statuses() == ["Accepted", "Accepted", "Approved", "Approved"]


def test_what_a_program_approved_is_done_when_the_file_says_so_and_not_rejected(done, mturk):
    for assignment in models.Assignment.objects.filter(status="Submitted"):
        mturk.approve_assignment(AssignmentId=assignment.public_id)
    result = prolific.take_over(done, "submission_id,status,reason\nx1,rejected,Too fast\n")
    assert result.n_changed == 0
    assert [each.partition(":")[0] for each in result.contradictions] == ["x1"]
    assert prolific.statuses() == ["Accepted", "Accepted", "Approved", "Approved"]
    assert models.Intent.objects.get().state == "written"
    assert prolific.take_over(done, "submission_id,status\nx1,approved\n").n_changed == 1
    assert models.Intent.objects.get().state == "done"


@pytest.mark.parametrize(
    ("status", "state", "outcome"),
    [
        ("Timed-out", "timed_out", ""),
        ("no consent", "finished", "no_consent"),
        ("SCREENED OUT", "finished", "screened_out"),
        ("awaiting review", "started", ""),
    ],
)
def test_participations_end_as_the_recruiter_says(done, status, state, outcome):
    prolific.take_over(done, f"PROLIFIC_PID,status\n{OTHER_PID},{status}\n")
    session = models.Session.objects.get(submission_id="x2")
    assert (session.state, session.outcome) == (state, outcome)


def test_a_file_with_an_error_changes_nothing(done):
    for lines, code, line in (
        ("x9,,approved", "unknown_participation", "2"),
        (f"x1,{OTHER_PID},approved", "unknown_participation", "2"),
        (",,approved", "missing_id", "2"),
        ("x1,,paid", "unknown_status", "2"),
        ("x1,,approved\nx1,,rejected", "contradiction", "3"),
    ):
        text = f"submission_id,participant_id,status\n{lines}\nx2,,returned\n"
        with refused(exceptions.InvalidStatusFile, code) as found:
            prolific.take_over(done, text)
        assert "panel.csv" in str(found.value)
        assert prolific.numbers(found.value)[0] == line
        assert prolific.statuses() == ["Accepted", "Accepted", "Submitted", "Submitted"]


def test_who_came_twice_needs_the_submission_and_of_who_is_asked_no_file_is_taken(done):
    models.Session.objects.filter(submission_id="x2").update(
        worker=models.Session.objects.get(submission_id="x1").worker
    )
    with refused(exceptions.InvalidStatusFile, "ambiguous_participant"):
        prolific.take_over(done, f"participant_id,status\n{PID},approved\n")
    prolific.take_over(done, f"participant_id,submission_id,status\n{PID},x1,approved\n")
    assert models.Session.objects.get(submission_id="x1").state == "approved"
    type(done.connection).objects.update(encrypted_token="x")
    done.connection.refresh_from_db()
    with refused(exceptions.InvalidStatusFile, "asked_by_api"):
        prolific.take_over(done, "submission_id,status\n")


def test_our_own_file_is_read_with_its_signs_against_formulas(panel, owner):
    prolific.work(prolific.came(panel, PID, "%2Bx"), times=2)
    ours = text_of(owner.post(f"{home(panel)}join.csv"))
    assert "'+x," in ours
    decided = ours.replace(",finished,", ",approved,")
    wrong = SimpleUploadedFile("p.csv", b"a,b\n")
    assert "p.csv" in text_of(owner.post(f"{home(panel)}statuses/", {"statuses-file": wrong}))
    assert models.Session.objects.get().state == "finished"
    file = SimpleUploadedFile("p.csv", decided.encode())
    owner.post(f"{home(panel)}statuses/", {"statuses-file": file})
    assert models.Session.objects.get().state == "approved"


def test_the_command_imports_unless_it_is_dry(done, tmp_path, capsys):
    path = tmp_path / "panel.csv"
    path.write_text("submission_id,status\nx1,approved\n")
    call_command("import_participant_statuses", done.token, str(path), "--dry-run")
    assert "Submitted" in prolific.statuses()
    call_command("import_participant_statuses", done.token, str(path), "--json")
    facts = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert facts == {"n_changed": 1, "n_unchanged": 0, "contradictions": []}
    with pytest.raises(CommandError) as found:
        call_command("import_participant_statuses", "nothing", str(path))
    assert "nothing" in str(found.value)


# Erased participants


@pytest.fixture
def erased(fake, posted):
    submission = prolific.hand_in(fake, posted)
    facts = {"submission_id": submission.id, "received_at": clock.now()}
    models.RecruiterEvent.objects.create(connection=posted.connection, event_id="e1", **facts)
    models.Assignment.objects.update(status="Rejected")
    erasure.erase_worker(models.Session.objects.get().worker)
    return submission


def nobody_is_known():
    return not models.Session.objects.exists() and not models.Participant.objects.exists()


def test_what_their_recruiter_lists_brings_nobody_back_and_is_charged_once(fake, posted, erased):
    prolific.minutes(3)
    assert nobody_is_known()
    assert not models.Intent.objects.exists()
    assert not models.RecruiterCharge.objects.filter(kind="reward").exists()
    fake.world.pass_time(timedelta(days=22))
    prolific.minutes(3)
    [charge] = models.RecruiterCharge.objects.filter(kind="reward")
    assert (charge.amount, charge.study, charge.session) == (2, posted, None)
    assert erased.id not in charge.external_id
    assert (erased.status, prolific.paid(fake, "reward")) == ("APPROVED", [200])
    assert nobody_is_known()


@pytest.mark.slow
@pytest.mark.parametrize(("how", "n_paid"), [("left", 0), ("approved by time", 1)])
def test_whose_approval_was_not_sent_is_charged_for_if_paid(
    fake, posted, mturk, how, n_paid, handed_in
):
    disconnect(connection=posted.connection)
    prolific.approve(mturk, handed_in)
    erasure.erase_worker(models.Session.objects.get().worker)
    if how == "left":
        fake.world.leave(handed_in)
    fake.world.pass_time(timedelta(days=22))
    prolific.connect(fake, posted.requester)
    prolific.minutes(3)
    charges = models.RecruiterCharge.objects.filter(kind="reward")
    assert (charges.count(), len(prolific.paid(fake, "reward"))) == (n_paid, n_paid)
    assert nobody_is_known()


@pytest.mark.parametrize("how", ["RETURNED", "TIMED-OUT"])
def test_who_left_and_was_erased_holds_no_place(fake, posted, how):
    before = places.free_and_needed(posted)
    submission, _browser, _answer = prolific.arrive(fake, posted)
    fake.world.leave(submission, how)
    call_recruiters()
    assert places.free_and_needed(posted) == before == (4, 4)
    erasure.erase_worker(models.Session.objects.get().worker)
    call_recruiters()
    assert places.free_and_needed(posted) == before


@pytest.mark.slow
def test_erased_work_holds_a_place_if_paid_and_none_if_rejected(fake, posted, erased):
    call_recruiters()
    free, _needed = places.free_and_needed(posted)
    fake.world.reject(erased)
    call_recruiters()
    assert places.free_and_needed(posted)[0] == free + 1
    erased.status = "AWAITING REVIEW"  # taken back, and paid
    fake.world.approve(erased)
    call_recruiters()
    assert places.free_and_needed(posted)[0] == free


@pytest.mark.slow
def test_the_link_of_an_erased_participation_is_refused_and_nothing_says_which_it_was(
    fake, posted, erased, settings
):
    answer = prolific.join(posted, erased)
    assert (answer.status_code, answer.context["code"]) == (400, "erased")
    assert nobody_is_known()
    assert models.ErasedSubmission.objects.get().seal != erased.id
    assert models.RecruiterEvent.objects.get().submission_id == ""
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode(), *settings.ENCRYPTION_KEYS]
    call_recruiters()
    assert nobody_is_known()  # recognised by the earlier key, too


@pytest.mark.slow
def test_neither_news_that_come_later_nor_charges_name_the_submission(fake, posted, handed_in):
    fake.world.approve(handed_in)
    call_recruiters()
    charge = models.RecruiterCharge.objects.get(kind="reward")
    assert charge.external_id == handed_in.id
    erasure.erase_worker(models.Session.objects.get().worker)
    body = {"event_type": "submission.status.change", "resource_id": handed_in.id}
    assert send_by_hand(posted.connection, fake.world.hooks.secret, body).status_code == 200
    assert not models.RecruiterEvent.objects.exclude(submission_id="").exists()
    call_recruiters()
    [after] = models.RecruiterCharge.objects.filter(kind="reward")
    assert (after.amount, after.external_id) == (charge.amount, f"erased:{charge.pk}")


@pytest.mark.slow
def test_pay_before_an_erasure_is_charged_once_its_price_is_known(fake, posted, monkeypatch):
    fake.world.approve(prolific.hand_in(fake, posted))
    with monkeypatch.context() as unheard:
        is_price = lambda path, _query: "cost-calc" in path  # noqa: E731
        answer_wrongly(unheard, is_price, {"total_cost": None})
        call_recruiters()
    assert models.Session.objects.get().state == "approved"
    erasure.erase_worker(models.Session.objects.get().worker)
    assert not models.RecruiterCharge.objects.filter(kind="reward").exists()
    prolific.minutes(2)
    [charge] = models.RecruiterCharge.objects.filter(kind="reward")
    assert (charge.amount, charge.study, charge.session) == (2, posted, None)
    assert prolific.paid(fake, "reward") == [200]


@pytest.mark.slow
@pytest.mark.parametrize("state", ["written", "sent", "uncertain"])
def test_erasure_waits_for_a_decision_that_is_not_settled_there(state, handed_in):
    models.Assignment.objects.update(status="Approved")
    session = prolific.session_of(handed_in)
    facts = {"connection": session.connection, "session": session, "created_at": clock.now()}
    models.Intent.objects.create(kind="approve", key="approve:1", state=state, **facts)
    with refused(exceptions.ErasureRefused, "open_calls"):
        erasure.erase_worker(session.worker)
    clock.advance(timedelta(days=31))
    erasure.erase_worker(session.worker)
    assert nobody_is_known()


@pytest.mark.slow
@pytest.mark.skipif(database.vendor != "postgresql", reason="SQLite has one writer at a time")
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("kind", ["approve", "reject"])
def test_an_erasure_and_a_decision_do_not_wait_for_each_other(posted, monkeypatch, kind, handed_in):
    """Time approves; or work is rejected that the ledger pays for, whose worker reads why."""
    worker, is_held = models.Session.objects.get().worker, Event()
    if kind == "approve":
        models.RecruitedStudy.objects.update(n_payable_there=0)
        clock.advance(timedelta(days=4))
        lifecycle.settle_due(models.Hit.objects.all(), now=clock.now())
        module, name, decide = intents, "last_decision", intents.approve_overdue
    else:
        models.WorkerAccount.objects.update(paid_by="ledger", payee_id=F("pk"))
        models.Assignment.objects.update(paid_by="ledger")
        first, second = prolific.assignments(handed_in)
        models.Assignment.objects.filter(public_id=second).update(status="Rejected")
        module, name = review, "reject"
        facts = {"public_id": first, "feedback": "Not careful. " * 10}
        decide = partial(intents.reject_assignment, requester=posted.requester, **facts)
    real = getattr(module, name)

    def slowly(*args, **facts):
        is_held.set()  # the session is held; its study is not yet, and nothing is written
        time.sleep(1)
        return real(*args, **facts)

    def erase():
        is_held.wait(timeout=30)
        with refused(exceptions.ErasureRefused, "open_calls"):
            erasure.erase_worker(worker)

    def closing(do):
        try:
            return do()
        finally:
            connections.close_all()

    monkeypatch.setattr(module, name, slowly)
    with ThreadPoolExecutor(2) as pool:
        assert next(iter(pool.map(closing, (decide, erase)))) == (1 if kind == "approve" else None)
    assert models.Intent.objects.get(kind=kind).state == "written"
    assert worker.messages.count() == (0 if kind == "approve" else 1)
