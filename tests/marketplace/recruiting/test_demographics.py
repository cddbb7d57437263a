"""Files about participants: what they told their recruiter, kept no longer than the participant is
known, and the recruiter's CSV of their statuses, checked whole and taken over once; and who had
everything erased, and is still listed at their recruiter."""

import csv
import io
import json
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from threading import Event

import pytest
from cryptography.fernet import Fernet
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.db import connection as database, connections
from django.db.models import F

from marketplace import clock
from marketplace.exceptions import ErasureRefused, InvalidParameter, InvalidStatusFile
from marketplace.hits import lifecycle, review
from marketplace.models import (
    Assignment,
    AuditEntry,
    ErasedSubmission,
    Hit,
    Intent,
    LedgerTransaction,
    Participant,
    RecruitedStudy,
    RecruiterCharge,
    RecruiterEvent,
    Session,
    SessionDemographics,
    WorkerAccount,
)
from marketplace.people.erasure import erase_worker
from marketplace.people.personal_data import export
from marketplace.recruiting import intents
from marketplace.recruiting.calls import call_recruiters, perform_action
from marketplace.recruiting.connections import disconnect
from marketplace.recruiting.files import fetch_demographics
from marketplace.recruiting.places import free_and_needed
from marketplace.recruiting.prolific.words import demographics_of
from marketplace.recruiting.sessions import end_session
from tests.codes import message_codes, refused
from tests.marketplace.prolific import (
    approve,
    arrive,
    assignments,
    begun,
    came,
    connect,
    hand_in,
    join,
    minutes,
    numbers,
    paid,
    session_of,
    statuses,
    take_over,
    work,
)
from tests.marketplace.recruiting.conftest import OTHER_PID, PID
from tests.marketplace.recruiting.test_recruiter_events import send_by_hand
from tests.marketplace.recruiting.test_recruiters_faults import answer_wrongly
from tests.marketplace.test_worker_site import text_of
from work.models import Job


def home(study):
    return f"/requester-console/{study.requester.public_id}/channels/{study.token}/"


@pytest.fixture
def asked(fake, posted):
    submission = hand_in(fake, posted)
    assert fetch_demographics(study=posted) == 1
    return submission


def test_they_are_kept_encrypted_and_exported_without_what_leads_to_somebody(
    fake, posted, asked, owner
):
    row = SessionDemographics.objects.get()
    assert "United Kingdom" not in row.encrypted_answers
    assert "demographics.csv" in text_of(owner.get(home(posted)))
    content = text_of(owner.post(f"{home(posted)}demographics.csv"))
    assert not any(each in content for each in (asked.id, asked.participant, asked.entered_code))
    (line,) = csv.DictReader(io.StringIO(content))
    assert line["worker_id"] == Session.objects.get().worker.worker_id
    assert set(line) == {"worker_id", "Age", "Sex", "Country of residence"}
    assert line["Country of residence"] == "United Kingdom"
    assert AuditEntry.objects.get(action="study.export_demographics").user.username == "rita"
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
    worker = WorkerAccount.objects.get()
    assert "United Kingdom" in str(export(worker))
    Assignment.objects.update(status="Approved")
    erase_worker(worker)
    assert not SessionDemographics.objects.exists()
    assert fetch_demographics(study=posted) == 0
    assert not SessionDemographics.objects.exists()


@pytest.mark.slow
def test_none_are_kept_of_who_did_not_consent_left_or_sent_nothing(fake, posted, asked):
    left, _browser = begun(fake, posted)
    stopped, _browser = begun(fake, posted)
    fetch_demographics(study=posted)
    assert SessionDemographics.objects.count() == 3
    session = session_of(stopped)
    end_session(session=session, outcome="no_consent")
    assert not SessionDemographics.objects.filter(session=session).exists()
    arrive(fake, posted)  # and sends nothing
    fake.world.leave(left)
    call_recruiters()
    assert SessionDemographics.objects.count() == 1
    assert fetch_demographics(study=posted) == 1
    assert SessionDemographics.objects.get().session.submission_id == asked.id


def test_they_change_their_key(fake, posted, asked, settings, tmp_path):
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode(), *settings.ENCRYPTION_KEYS]
    call_command("reencrypt_secrets")
    settings.ENCRYPTION_KEYS = settings.ENCRYPTION_KEYS[:1]
    file = tmp_path / "d.csv"
    call_command("fetch_demographics", posted.token, "--csv", str(file))
    assert "United Kingdom" in file.read_text()


@pytest.mark.parametrize("fault", ["drop", "lose", "429", "500"])
def test_what_is_not_answered_is_said_and_nothing_is_kept(fake, posted, fault):
    hand_in(fake, posted)
    fake.fail_next("demographic_export", fault)
    with pytest.raises(InvalidParameter):
        call_command("fetch_demographics", posted.token)
    assert not SessionDemographics.objects.exists()
    call_command("fetch_demographics", posted.token)
    assert SessionDemographics.objects.count() == 1


def test_closing_a_posted_study_stops_it_at_its_recruiter(fake, posted, owner):
    owner.post(f"{home(posted)}close/")
    posted.refresh_from_db()
    assert (posted.state, posted.action) == ("active", "stop")
    perform_action(posted.pk, posted.action_number)
    posted.refresh_from_db()
    there = fake.world.studies[posted.external_id]
    assert (posted.state, there.status) == ("stopped", "COMPLETED")


def test_a_posted_study_whose_token_is_gone_stays_open_and_that_is_said(posted, connection, owner):
    disconnect(connection=connection)
    assert message_codes(owner.post(f"{home(posted)}close/", follow=True)) == ["disconnected"]
    assert RecruitedStudy.objects.get().state == "active"


def test_what_the_recruiter_decided_is_taken_over_once(done):
    movements = LedgerTransaction.objects.count()
    file = "Submission ID,Participant ID,Status\nx1,,APPROVED\nx2,,RETURNED\n"
    assert take_over(done, file).n_changed == 2
    assert statuses() == ["Approved", "Approved", "Returned", "Returned"]
    states = dict(Session.objects.values_list("submission_id", "state"))
    assert states == {"x1": "approved", "x2": "returned"}
    again = take_over(done, file)
    assert (again.n_changed, again.n_unchanged) == (0, 2)
    assert not Intent.objects.exists()
    assert LedgerTransaction.objects.count() == movements
    assert AuditEntry.objects.filter(action="study.import_statuses").count() == 2


def test_an_approval_there_stands_against_a_rejection_here(done, mturk):
    for assignment in Assignment.objects.filter(status="Submitted"):
        mturk.reject_assignment(AssignmentId=assignment.public_id, RequesterFeedback="No. " * 30)
    take_over(done, "submission_id,status\nx1,approved\n")
    assert statuses() == ["Accepted", "Accepted", "Approved", "Approved"]


def test_a_rejection_there_leaves_what_is_approved_here(done, mturk):
    for assignment in Assignment.objects.filter(status="Submitted"):
        mturk.approve_assignment(AssignmentId=assignment.public_id)
    result = take_over(done, "submission_id,status,reason\nx1,rejected,Too fast\n")
    assert result.n_changed == 0
    assert [each.partition(":")[0] for each in result.contradictions] == ["x1"]
    assert statuses() == ["Accepted", "Accepted", "Approved", "Approved"]


def test_what_a_program_decided_is_done_when_the_file_says_so(done, mturk):
    for assignment in Assignment.objects.filter(status="Submitted"):
        mturk.approve_assignment(AssignmentId=assignment.public_id)
    assert Intent.objects.get().state == "written"
    assert take_over(done, "submission_id,status\nx1,approved\n").n_changed == 1
    assert Intent.objects.get().state == "done"


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
    take_over(done, f"PROLIFIC_PID,status\n{OTHER_PID},{status}\n")
    session = Session.objects.get(submission_id="x2")
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
        with refused(InvalidStatusFile, code) as found:
            take_over(done, text)
        assert "panel.csv" in str(found.value)
        assert numbers(found.value)[0] == line
        assert statuses() == ["Accepted", "Accepted", "Submitted", "Submitted"]


def test_who_came_twice_needs_the_submission_and_of_who_is_asked_no_file_is_taken(done):
    Session.objects.filter(submission_id="x2").update(
        worker=Session.objects.get(submission_id="x1").worker
    )
    with refused(InvalidStatusFile, "ambiguous_participant"):
        take_over(done, f"participant_id,status\n{PID},approved\n")
    take_over(done, f"participant_id,submission_id,status\n{PID},x1,approved\n")
    assert Session.objects.get(submission_id="x1").state == "approved"
    type(done.connection).objects.update(encrypted_token="x")
    done.connection.refresh_from_db()
    with refused(InvalidStatusFile, "asked_by_api"):
        take_over(done, "submission_id,status\n")


def test_our_own_file_is_read_with_its_signs_against_formulas(panel, owner):
    work(came(panel, PID, "%2Bx"), times=2)
    ours = text_of(owner.post(f"{home(panel)}join.csv"))
    assert "'+x," in ours
    decided = ours.replace(",finished,", ",approved,")
    wrong = SimpleUploadedFile("p.csv", b"a,b\n")
    page = text_of(owner.post(f"{home(panel)}statuses/", {"statuses-file": wrong}))
    assert "p.csv" in page
    assert Session.objects.get().state == "finished"
    file = SimpleUploadedFile("p.csv", decided.encode())
    owner.post(f"{home(panel)}statuses/", {"statuses-file": file})
    assert Session.objects.get().state == "approved"


def test_the_command_imports_unless_it_is_dry(done, tmp_path, capsys):
    path = tmp_path / "panel.csv"
    path.write_text("submission_id,status\nx1,approved\n")
    call_command("import_participant_statuses", done.token, str(path), "--dry-run")
    assert "Submitted" in statuses()
    call_command("import_participant_statuses", done.token, str(path), "--json")
    facts = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert facts == {"n_changed": 1, "n_unchanged": 0, "contradictions": []}
    with pytest.raises(CommandError) as found:
        call_command("import_participant_statuses", "nothing", str(path))
    assert "nothing" in str(found.value)


# Erased participants


@pytest.fixture
def erased(fake, posted):
    submission = hand_in(fake, posted)
    RecruiterEvent.objects.create(
        connection=posted.connection,
        event_id="e1",
        submission_id=submission.id,
        received_at=clock.now(),
    )
    Assignment.objects.update(status="Rejected")
    erase_worker(Session.objects.get().worker)
    return submission


def nobody_is_known():
    return not Session.objects.exists() and not Participant.objects.exists()


def test_what_their_recruiter_lists_brings_nobody_back_and_is_charged_once(fake, posted, erased):
    minutes(3)
    assert nobody_is_known()
    assert not Intent.objects.exists()
    assert not RecruiterCharge.objects.filter(kind="reward").exists()
    fake.world.pass_time(timedelta(days=22))
    minutes(3)
    [charge] = RecruiterCharge.objects.filter(kind="reward")
    assert (charge.amount, charge.study, charge.session) == (2, posted, None)
    assert erased.id not in charge.external_id
    assert (erased.status, paid(fake, "reward")) == ("APPROVED", [200])
    assert nobody_is_known()


@pytest.mark.slow
@pytest.mark.parametrize(("how", "n_paid"), [("left", 0), ("approved by time", 1)])
def test_whose_approval_was_not_sent_is_charged_for_if_paid(
    fake, posted, mturk, how, n_paid, handed_in
):
    disconnect(connection=posted.connection)
    approve(mturk, handed_in)
    erase_worker(Session.objects.get().worker)
    if how == "left":
        fake.world.leave(handed_in)
    fake.world.pass_time(timedelta(days=22))
    connect(fake, posted.requester)
    minutes(3)
    charges = RecruiterCharge.objects.filter(kind="reward")
    assert (charges.count(), len(paid(fake, "reward"))) == (n_paid, n_paid)
    assert nobody_is_known()


@pytest.mark.parametrize("how", ["RETURNED", "TIMED-OUT"])
def test_who_left_and_was_erased_holds_no_place(fake, posted, how):
    before = free_and_needed(posted)
    submission, _browser, _answer = arrive(fake, posted)
    fake.world.leave(submission, how)
    call_recruiters()
    assert free_and_needed(posted) == before == (4, 4)
    erase_worker(Session.objects.get().worker)
    call_recruiters()
    assert free_and_needed(posted) == before


@pytest.mark.slow
def test_erased_work_holds_a_place_if_paid_and_none_if_rejected(fake, posted, erased):
    call_recruiters()
    free, _needed = free_and_needed(posted)
    fake.world.reject(erased)
    call_recruiters()
    assert free_and_needed(posted)[0] == free + 1
    erased.status = "AWAITING REVIEW"  # taken back, and paid
    fake.world.approve(erased)
    call_recruiters()
    assert free_and_needed(posted)[0] == free


@pytest.mark.slow
def test_the_link_of_an_erased_participation_is_refused_and_nothing_says_which_it_was(
    fake, posted, erased, settings
):
    answer = join(posted, erased)
    assert (answer.status_code, answer.context["code"]) == (400, "erased")
    assert nobody_is_known()
    assert ErasedSubmission.objects.get().seal != erased.id
    assert RecruiterEvent.objects.get().submission_id == ""
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode(), *settings.ENCRYPTION_KEYS]
    call_recruiters()
    assert nobody_is_known()  # recognised by the earlier key, too


@pytest.mark.slow
def test_neither_news_that_come_later_nor_charges_name_the_submission(fake, posted, handed_in):
    fake.world.approve(handed_in)
    call_recruiters()
    charge = RecruiterCharge.objects.get(kind="reward")
    assert charge.external_id == handed_in.id
    erase_worker(Session.objects.get().worker)
    body = {"event_type": "submission.status.change", "resource_id": handed_in.id}
    assert send_by_hand(posted.connection, fake.world.hooks.secret, body).status_code == 200
    assert not RecruiterEvent.objects.exclude(submission_id="").exists()
    call_recruiters()
    [after] = RecruiterCharge.objects.filter(kind="reward")
    assert (after.amount, after.external_id) == (charge.amount, f"erased:{charge.pk}")


@pytest.mark.slow
def test_pay_before_an_erasure_is_charged_once_its_price_is_known(fake, posted, monkeypatch):
    fake.world.approve(hand_in(fake, posted))
    with monkeypatch.context() as unheard:
        is_price = lambda path, _query: "cost-calc" in path  # noqa: E731
        answer_wrongly(unheard, is_price, {"total_cost": None})
        call_recruiters()
    assert Session.objects.get().state == "approved"
    erase_worker(Session.objects.get().worker)
    assert not RecruiterCharge.objects.filter(kind="reward").exists()
    minutes(2)
    [charge] = RecruiterCharge.objects.filter(kind="reward")
    assert (charge.amount, charge.study, charge.session) == (2, posted, None)
    assert paid(fake, "reward") == [200]


@pytest.mark.slow
@pytest.mark.parametrize("state", ["written", "sent", "uncertain"])
def test_erasure_waits_for_a_decision_that_is_not_settled_there(state, handed_in):
    Assignment.objects.update(status="Approved")
    session = session_of(handed_in)
    Intent.objects.create(
        connection=session.connection,
        session=session,
        kind="approve",
        key="approve:1",
        state=state,
        created_at=clock.now(),
    )
    with refused(ErasureRefused, "open_calls"):
        erase_worker(session.worker)
    clock.advance(timedelta(days=31))
    erase_worker(session.worker)
    assert nobody_is_known()


@pytest.mark.slow
@pytest.mark.skipif(database.vendor != "postgresql", reason="SQLite has one writer at a time")
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("kind", ["approve", "reject"])
def test_an_erasure_and_a_decision_do_not_wait_for_each_other(posted, monkeypatch, kind, handed_in):
    """Time approves; or work is rejected that the ledger pays for, whose worker reads why."""
    worker, is_held = Session.objects.get().worker, Event()
    if kind == "approve":
        RecruitedStudy.objects.update(n_payable_there=0)
        clock.advance(timedelta(days=4))
        lifecycle.settle_due(Hit.objects.all(), now=clock.now())
        module, name, decide = intents, "last_decision", intents.approve_overdue
    else:
        WorkerAccount.objects.update(paid_by="ledger", payee_id=F("pk"))
        Assignment.objects.update(paid_by="ledger")
        first, second = assignments(handed_in)
        Assignment.objects.filter(public_id=second).update(status="Rejected")
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
        with refused(ErasureRefused, "open_calls"):
            erase_worker(worker)

    def closing(do):
        try:
            return do()
        finally:
            connections.close_all()

    monkeypatch.setattr(module, name, slowly)
    with ThreadPoolExecutor(2) as pool:
        assert next(iter(pool.map(closing, (decide, erase)))) == (1 if kind == "approve" else None)
    assert Intent.objects.get(kind=kind).state == "written"
    assert worker.messages.count() == (0 if kind == "approve" else 1)
