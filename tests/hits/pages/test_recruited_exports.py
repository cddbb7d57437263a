"""A study that participants of a recruiter judged: no file of the console says who they were, the
owners of the requester alone get the join, and erasing a participant drops it and no judgment."""

import csv
import io
import json
import re
from dataclasses import asdict
from decimal import Decimal

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import AuditEntry as ConsoleEntry, Role, User
from accounts.teams import set_role
from annotation import frames, study_files
from annotation.models import Submission
from hits.collect import collect_batch
from hits.models import Hit
from marketplace import models
from marketplace.people.enrolment import issue_access_key, let_act_for
from marketplace.people.erasure import erase_worker
from marketplace.recruiting.studies import PROLIFIC, StudyValues, open_study
from tests.boto_clients import in_process_client
from tests.hits import samples, work
from tests.marketplace.conftest import PASSWORD

PIDS = ("5b96601d3400a939f7c18c1f", "5c96601d3400a939f7c18c2e")
SUBMISSIONS = ("60d9aadeb86739de712faee0", "61d9aadeb86739de712faee1")


@pytest.fixture
def client(db):
    return in_process_client(asdict(issue_access_key(name="Lab", deposit_usd=Decimal(10))))


@pytest.fixture
def study(client, researcher):
    made = samples.lab_study(researcher)
    batch = work.published_batch(made, client, max_assignments=2)
    values = StudyValues(name="Three", kind="panel", items_per_session=3, **PROLIFIC)
    requester, hit_type = models.Requester.objects.get(), models.HitType.objects.get()
    recruited = open_study(requester=requester, hit_type=hit_type, values=values)
    for pid, submission in zip(PIDS, SUBMISSIONS, strict=True):
        participate(recruited, pid, submission)
    for assignment in models.Assignment.objects.all():
        client.approve_assignment(AssignmentId=assignment.public_id)
    collect_batch(batch=batch, client=client)
    assert Submission.objects.count() == 6
    return made


def participate(recruited, pid, submission):
    browser = Client()
    query = f"?PROLIFIC_PID={pid}&STUDY_ID=S1&SESSION_ID={submission}"
    browser.post(f"/join/{recruited.token}/{query}")
    for _ in range(3):
        page = browser.get("/worker/study/", follow=True).content.decode()
        held = re.search("/worker/assignments/([A-Z0-9]+)/", page)[1]
        hit = Hit.objects.get(hit_id=models.Assignment.objects.get(public_id=held).hit.public_id)
        answer = json.dumps(work.answer_to(hit, {"alpha": 70, "beta": 20}))
        fields = {"assignmentId": held, "answer": answer}
        assert Client().post("/mturk/externalSubmit", fields).status_code == 200


def login(requester, name):
    user = User.objects.create_user(name, password=PASSWORD)
    let_act_for(requester=requester, username=name)
    browser = Client()
    browser.force_login(user)
    return browser


@pytest.mark.slow
def test_no_file_of_an_analyst_says_who_a_participant_is(study, colleague, researcher, signed_in):
    set_role(team=study.team, user=colleague, role=Role.ANALYST, actor=researcher)
    carl, theirs = signed_in(colleague), (*PIDS, *SUBMISSIONS)
    read = set()
    for name in study_files.file_names(study):
        if study_files.study_download(name).result:
            continue  # computed from the same frame, by a job
        answer = carl.get(reverse("console:download", args=[study.slug, name]))
        if answer.status_code != 200:
            continue
        content = b"".join(answer.streaming_content)
        assert not any(each.encode() in content for each in theirs), name
        read.add(name)
    assert {"judgments.csv"} <= read
    assert ConsoleEntry.objects.filter(action="export", subject=study.slug).count() == len(read)
    workers = models.WorkerAccount.objects.values_list("worker_id", flat=True)
    assert not any(each in frames.judgment_frame(study).to_csv() for each in workers)


@pytest.mark.slow
def test_the_join_is_the_owners_and_written_down_and_dropped_with_who_is_erased(study):
    requester = models.Requester.objects.get()
    owner, member = login(requester, "owner"), login(requester, "member")
    recruited = requester.recruited_studies.get()
    home = f"/requester-console/{requester.public_id}/channels/{recruited.token}/"
    assert "join.csv" in owner.get(home).content.decode()
    assert "join.csv" not in member.get(home).content.decode()
    assert member.post(f"{home}join.csv").status_code == 403
    assert owner.get(f"{home}join.csv").status_code == 405
    assert not models.AuditEntry.objects.filter(action="study.export_join").exists()
    content = owner.post(f"{home}join.csv").content.decode()
    rows = {row["participant_id"]: row for row in csv.DictReader(io.StringIO(content))}
    assert set(rows) == set(PIDS)
    assert {row["submission_id"] for row in rows.values()} == set(SUBMISSIONS)
    workers = {row["worker_id"] for row in rows.values()}
    content = member.post(f"{home}participants.csv").content.decode()
    assert not any(each in content for each in (*PIDS, *SUBMISSIONS))
    assert {row["worker_id"] for row in csv.DictReader(io.StringIO(content))} == workers
    notes = models.AuditEntry.objects.filter(action__startswith="study.export")
    noted = {("study.export_join", "owner"), ("study.export_participants", "member")}
    assert set(notes.values_list("action", "user__username")) == noted
    # Erasing a participant drops the join, and no judgment.
    before = frames.judgment_frame(study).to_csv(index=False)
    erase_worker(models.Session.objects.get(submission_id=SUBMISSIONS[0]).worker)
    assert frames.judgment_frame(study).to_csv(index=False) == before
    assert models.Session.objects.count() == models.Participant.objects.count() == 1
    content = owner.post(f"{home}join.csv").content.decode()
    assert [pid in content for pid in PIDS] == [False, True]
