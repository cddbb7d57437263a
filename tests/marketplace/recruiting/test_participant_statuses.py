"""A recruiter's CSV of what became of its participants: checked whole, taken over once."""

import io
import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.test import Client

from accounts.models import User
from marketplace.exceptions import InvalidStatusFile
from marketplace.models import Assignment, AuditEntry, HitType, Intent, LedgerTransaction, Session
from marketplace.recruiting.statuses import import_statuses, read_statuses
from marketplace.recruiting.studies import PROLIFIC, StudyValues, open_study
from tests.marketplace.conftest import HIT, PASSWORD
from tests.marketplace.test_worker_site import text_of
from tests.marketplace.prolific import came, work

PID = "5b96601d3400a939f7c18c1f"
OTHER = "5b96601d3400a939f7c18c20"


@pytest.fixture
def study(mturk, requester):
    for _ in range(2):
        created = mturk.create_hit(**HIT, MaxAssignments=3)["HIT"]
    hit_type = HitType.objects.get(public_id=created["HITTypeId"])
    values = StudyValues(name="Two", kind="panel", items_per_session=2, **PROLIFIC)
    return open_study(requester=requester, hit_type=hit_type, values=values)


def test_of_a_recruiter_that_is_asked_itself_no_file_is_taken(study):
    type(study.connection).objects.update(encrypted_token="x")
    study.connection.refresh_from_db()
    with pytest.raises(InvalidStatusFile, match="is asked each minute"):
        read_statuses(study, io.StringIO("submission_id,status\n"), name="x.csv")


@pytest.fixture
def done(study):
    """A participant who has finished, and one who holds two HITs."""
    work(came(study, PID, "x1"), times=2)
    came(study, OTHER, "x2")
    return study


def take_over(study, text):
    rows = read_statuses(study, io.StringIO(text), name="panel.csv")
    return import_statuses(study, rows)


def statuses():
    return sorted(Assignment.objects.values_list("status", flat=True))


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
    assert "x1: it is approved here" in result.contradictions[0]
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
    take_over(done, f"PROLIFIC_PID,status\n{OTHER},{status}\n")
    session = Session.objects.get(submission_id="x2")
    assert (session.state, session.outcome) == (state, outcome)


@pytest.mark.parametrize(
    ("lines", "error"),
    [
        ("x9,,approved", "line 2: nobody came to this study as submission x9"),
        (f"x1,{OTHER},approved", "line 2: nobody came"),
        (",,approved", "line 2: neither submission_id nor participant_id"),
        ("x1,,paid", "line 2: 'paid' is not a known status"),
        ("x1,,approved\nx1,,rejected", "line 3: line 2 says approved"),
    ],
)
def test_a_file_with_an_error_changes_nothing(done, lines, error):
    text = f"submission_id,participant_id,status\n{lines}\nx2,,returned\n"
    with pytest.raises(InvalidStatusFile, match=f"panel.csv, {error}"):
        take_over(done, text)
    assert statuses() == ["Accepted", "Accepted", "Submitted", "Submitted"]


def test_who_came_twice_needs_the_submission(done):
    Session.objects.filter(submission_id="x2").update(
        worker=Session.objects.get(submission_id="x1").worker
    )
    with pytest.raises(InvalidStatusFile, match="line 2: this participant came more than once"):
        take_over(done, f"participant_id,status\n{PID},approved\n")
    take_over(done, f"participant_id,submission_id,status\n{PID},x1,approved\n")
    assert Session.objects.get(submission_id="x1").state == "approved"


def test_our_own_file_is_read_with_its_signs_against_formulas(study):
    work(came(study, PID, "%2Bx"), times=2)
    user = User.objects.create_user("rita", password=PASSWORD)
    study.requester.users.add(user)
    study.requester.owners.add(user)
    browser = Client()
    browser.force_login(user)
    home = f"/requester-console/{study.requester.public_id}/channels/{study.token}/"
    ours = text_of(browser.post(f"{home}join.csv"))
    assert "'+x," in ours
    decided = ours.replace(",finished,", ",approved,")
    wrong = SimpleUploadedFile("p.csv", b"a,b\n")
    page = text_of(browser.post(f"{home}statuses/", {"statuses-file": wrong}))
    assert "p.csv, line 1: the header needs the columns" in page
    file = SimpleUploadedFile("p.csv", decided.encode())
    page = browser.post(f"{home}statuses/", {"statuses-file": file}, follow=True)
    assert "1 participation changed." in text_of(page)
    assert Session.objects.get().state == "approved"


def test_the_command_says_what_it_did(done, tmp_path, capsys):
    path = tmp_path / "panel.csv"
    path.write_text("submission_id,status\nx1,approved\n")
    call_command("import_participant_statuses", done.token, str(path), "--dry-run")
    assert "submitted" in "".join(statuses()).lower()
    call_command("import_participant_statuses", done.token, str(path), "--json")
    said = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert said == {"n_changed": 1, "n_unchanged": 0, "contradictions": []}
    with pytest.raises(CommandError, match="no study with the link"):
        call_command("import_participant_statuses", "nothing", str(path))
