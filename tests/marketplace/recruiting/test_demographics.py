"""What participants told their recruiter: by Worker ID for the requester, and for nobody longer
than the participant is known."""

import csv
import io

import pytest
from cryptography.fernet import Fernet
from django.core.management import call_command
from django.test import Client

from accounts.models import User
from marketplace.exceptions import InvalidParameter
from marketplace.models import (
    Assignment,
    AuditEntry,
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
from tests.codes import message_codes
from tests.marketplace.conftest import PASSWORD
from tests.marketplace.prolific import arrive, begun, hand_in, session_of
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
