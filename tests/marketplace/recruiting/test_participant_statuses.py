"""A recruiter's CSV of what became of its participants: checked whole, taken over once."""

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.test import Client

from accounts.models import User
from marketplace.exceptions import InvalidStatusFile
from marketplace.models import Assignment, AuditEntry, Intent, LedgerTransaction, Session
from tests.codes import refused
from tests.marketplace.conftest import PASSWORD
from tests.marketplace.prolific import came, numbers, statuses, take_over, work
from tests.marketplace.recruiting.conftest import OTHER_PID, PID
from tests.marketplace.test_worker_site import text_of


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
