"""Files about participants: what they told their recruiter, kept no longer than the participant is
known, and the recruiter's CSV of their statuses, checked whole and taken over once."""

import csv
import io
import json

import pytest
from cryptography.fernet import Fernet
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.test import Client

from accounts.models import User
from marketplace.exceptions import InvalidParameter, InvalidStatusFile
from marketplace.models import (
    Assignment,
    AuditEntry,
    Intent,
    LedgerTransaction,
    RecruitedStudy,
    Session,
    SessionDemographics,
    WorkerAccount,
)
from marketplace.people.enrolment import let_act_for
from marketplace.people.erasure import erase_worker
from marketplace.people.personal_data import export
from marketplace.recruiting.calls import call_recruiters, perform_action
from marketplace.recruiting.connections import disconnect
from marketplace.recruiting.files import fetch_demographics
from marketplace.recruiting.prolific.words import demographics_of
from marketplace.recruiting.sessions import end_session
from tests.codes import message_codes, refused
from tests.marketplace.conftest import PASSWORD
from tests.marketplace.prolific import (
    arrive,
    begun,
    came,
    hand_in,
    numbers,
    session_of,
    statuses,
    take_over,
    work,
)
from tests.marketplace.recruiting.conftest import OTHER_PID, PID
from tests.marketplace.test_worker_site import text_of
from work.models import Job


def home(study):
    return f"/requester-console/{study.requester.public_id}/channels/{study.token}/"


@pytest.fixture
def asked(fake, posted):
    submission = hand_in(fake, posted)
    assert fetch_demographics(study=posted) == 1
    return submission


@pytest.fixture
def rita(requester):
    user = User.objects.create_user("rita", password=PASSWORD)
    let_act_for(requester=requester, username="rita", is_owner=True)
    browser = Client()
    browser.force_login(user)
    return browser


def test_they_are_kept_encrypted_and_exported_by_worker_id(fake, posted, asked, rita):
    row = SessionDemographics.objects.get()
    assert "United Kingdom" not in row.encrypted_answers
    assert "demographics.csv" in text_of(rita.get(home(posted)))
    content = text_of(rita.post(f"{home(posted)}demographics.csv"))
    assert not any(each in content for each in (asked.id, asked.participant, asked.entered_code))
    (line,) = csv.DictReader(io.StringIO(content))
    assert line["worker_id"] == Session.objects.get().worker.worker_id
    assert set(line) == {"worker_id", "Age", "Sex", "Country of residence"}
    assert line["Country of residence"] == "United Kingdom"
    assert AuditEntry.objects.get(action="study.export_demographics").user.username == "rita"
    rita.post(f"{home(posted)}demographics/")
    assert Job.objects.filter(kind="fetch_demographics").exists()


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


def test_columns_that_lead_to_somebody_are_left_out():
    content = (
        "Submission id,Participant id,Status,Reviewed at,Age,Total approvals,Who\n"
        "s1,p1,APPROVED,2026-01-01,30,7,p1\n"
    )
    assert dict(demographics_of(content)) == {"s1": {"Age": "30", "Total approvals": "7"}}


def test_closing_a_posted_study_stops_it_at_its_recruiter(fake, posted, rita):
    rita.post(f"{home(posted)}close/")
    posted.refresh_from_db()
    assert (posted.state, posted.action) == ("active", "stop")
    perform_action(posted.pk, posted.action_number)
    posted.refresh_from_db()
    there = fake.world.studies[posted.external_id]
    assert (posted.state, there.status) == ("stopped", "COMPLETED")


def test_a_posted_study_whose_token_is_gone_stays_open_and_that_is_said(posted, connection, rita):
    disconnect(connection=connection)
    assert message_codes(rita.post(f"{home(posted)}close/", follow=True)) == ["disconnected"]
    assert RecruitedStudy.objects.get().state == "active"


def test_of_a_recruiter_that_is_asked_itself_no_file_is_taken(panel):
    type(panel.connection).objects.update(encrypted_token="x")
    panel.connection.refresh_from_db()
    with refused(InvalidStatusFile, "asked_by_api"):
        take_over(panel, "submission_id,status\n")


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


def test_who_came_twice_needs_the_submission(done):
    Session.objects.filter(submission_id="x2").update(
        worker=Session.objects.get(submission_id="x1").worker
    )
    with refused(InvalidStatusFile, "ambiguous_participant"):
        take_over(done, f"participant_id,status\n{PID},approved\n")
    take_over(done, f"participant_id,submission_id,status\n{PID},x1,approved\n")
    assert Session.objects.get(submission_id="x1").state == "approved"


def test_our_own_file_is_read_with_its_signs_against_formulas(panel):
    work(came(panel, PID, "%2Bx"), times=2)
    user = User.objects.create_user("rita", password=PASSWORD)
    panel.requester.users.add(user)
    panel.requester.owners.add(user)
    browser = Client()
    browser.force_login(user)
    home = f"/requester-console/{panel.requester.public_id}/channels/{panel.token}/"
    ours = text_of(browser.post(f"{home}join.csv"))
    assert "'+x," in ours
    decided = ours.replace(",finished,", ",approved,")
    wrong = SimpleUploadedFile("p.csv", b"a,b\n")
    page = text_of(browser.post(f"{home}statuses/", {"statuses-file": wrong}))
    assert "p.csv" in page
    assert Session.objects.get().state == "finished"
    file = SimpleUploadedFile("p.csv", decided.encode())
    browser.post(f"{home}statuses/", {"statuses-file": file})
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
