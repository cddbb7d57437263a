from decimal import Decimal

import pytest
import yaml
from django.core.files.uploadedfile import SimpleUploadedFile

from accounts.models import AuditEntry, Membership, Team
from accounts.roles import Role, Scope
from annotation import models
from tests.console.api.conftest import program_of
from work.models import Job

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]
STUDIES = "/api/v1/studies/"
MINE = f"{STUDIES}mine/"
TABLE = b"item,context,system,response\nx1,Hello,alpha,Hi\nx1,Hello,beta,Yo\nx2,Bye,alpha,So long\n"


def done(answer, status=200):
    assert answer.status_code == status, answer.content
    return answer.json() if answer.content else None


def test_a_study_is_copied_or_made_by_a_teams_token(study, program, team_program):
    answer = program.send("post", STUDIES, {"title": "Copy", "copy_of": "mine"})
    content = done(answer, 201)
    assert answer["Location"].endswith("/api/v1/studies/copy/")
    assert done(program.get(answer["Location"]))["title"] == "Copy"
    assert (content["n_items"], content["n_judgments"]) == (study.items.count(), 0)
    assert content["team"] is None
    program = team_program(Role.RESEARCHER, "write")
    content = done(
        program.send("post", STUDIES, {"title": "Nightly", "template": "preference"}), 201
    )
    assert content["team"] == "lab"
    assert AuditEntry.objects.filter(actor_name__startswith="lab-token-").exists()
    assert program.send("post", "/api/v1/teams/", {"name": "Another"}).status_code == 403


def test_what_makes_no_study_is_refused(study, program, users):
    for body in (
        {"title": "x"},
        {"title": "x", "template": "preference", "copy_of": "mine"},
        {"title": "x", "template": "../../etc/passwd"},
        {"title": "", "template": "preference"},
        {"title": "a\u202eb", "template": "preference"},
    ):
        assert program.send("post", STUDIES, body).status_code == 400, body
    assert models.Study.objects.count() == 1
    body = {"title": "x", "template": "preference", "team": "lab"}
    for person, status in (("analyst", 403), ("other_team", 404)):
        program = program_of(users[person], *Scope)
        assert program.send("post", STUDIES, body).status_code == status
    reader = program_of(users["owner"], "identities")
    for team in (None, "lab"):
        assert reader.send("post", STUDIES, body | {"team": team}).status_code == 403


def send_file(program, **more):
    file = SimpleUploadedFile("items.csv", TABLE, content_type="text/csv")
    return program.post("/api/v1/uploads/", {"file": file, **more})


def test_a_file_is_sent_mapped_and_imported_or_added_to_a_study(study, program):
    upload = done(send_file(program, title="From a file", team="lab"), 201)
    assert (upload["n_rows"], upload["preview"]["n_items"]) == (3, 2)
    assert upload["mapping"]["uses"]["system"] == "system"
    where = f"/api/v1/uploads/{upload['token']}/"
    mapping = {"uses": upload["mapping"]["uses"] | {"context": "reference"}}
    changed = done(program.send("put", f"{where}mapping/", mapping))
    assert changed["mapping"]["uses"]["context"] == "reference"
    imported = done(program.send("post", f"{where}import/", {}), 202)
    assert imported["job"]["state"] == "done"
    made = models.Study.objects.get(slug=imported["study"])
    assert (made.items.count(), made.items.first().reference, made.team.slug) == (2, "Hello", "lab")
    assert program.send("post", f"{where}import/", {}).status_code == 409
    upload = done(send_file(program, study="mine"), 201)
    where = f"/api/v1/uploads/{upload['token']}/import/"
    n_before = study.items.count()
    done(program.send("post", where, {}), 202)
    assert study.items.count() == n_before + 2


def test_a_file_waits_with_its_fault_and_is_stored_once_under_a_key(study, program):
    key = {"headers": {"Idempotency-Key": "file"}}
    answers = []
    for _ in range(2):
        file = SimpleUploadedFile("items.csv", TABLE, content_type="text/csv")
        form = {"file": file, "title": "x"}
        answers.append(done(program.post("/api/v1/uploads/", form, **key), 201))
    assert answers[0] == answers[1]
    assert models.Upload.objects.count() == 1
    other = SimpleUploadedFile("items.csv", TABLE + b"d3,So,beta,Ah\n", content_type="text/csv")
    answer = program.post("/api/v1/uploads/", {"file": other, "title": "x"}, **key)
    assert answer.status_code == 422
    file = SimpleUploadedFile("items.jsonl", b'{"item": "x1", "response": "Hi"}\n{"item": "x2",\n')
    answer = program.post("/api/v1/uploads/", {"file": file, "title": "x"})
    [fault] = done(answer, 201)["faults"]
    assert fault["line"] == 2
    file = SimpleUploadedFile("items.zip", b"PK\x03\x04 and no more")
    upload = done(program.post("/api/v1/uploads/", {"file": file, "title": "x"}), 201)
    assert (upload["n_rows"], upload["n_faults"]) == (None, 1)
    assert upload["mapping"] == {"uses": {}, "systems": {}}
    answer = program.send("post", f"/api/v1/uploads/{upload['token']}/import/", {})
    assert answer.status_code == 409


def test_a_protocol_is_drafted_published_taken_away_as_a_file_and_brought_back(study, program):
    models.Protocol.objects.all().delete()
    draft = done(program.send("put", f"{MINE}protocols/draft/", {"template": "style_ratings"}))
    assert (draft["number"], draft["is_draft"]) == (1, True)
    document = draft["document"] | {"title": "Changed"}
    changed = done(program.send("put", f"{MINE}protocols/draft/", {"document": document}))
    assert changed["document"]["title"] == "Changed"
    published = program.send("post", f"{MINE}protocols/publish/")
    assert published.status_code in (200, 400)
    if published.status_code == 400:
        assert published.json()["code"] == "protocol_invalid"
    faulty = program.send("put", f"{MINE}protocols/draft/", {"document": {"questions": 3}})
    assert (faulty.status_code, list(faulty.json()["errors"])) == (400, ["document"])
    faulty = program.send("put", f"{MINE}protocols/draft/", {"yaml": "a: *b"})
    assert (faulty.status_code, list(faulty.json()["errors"])) == (400, ["yaml"])
    draft = done(program.send("put", f"{MINE}protocols/draft/", {"template": "style_ratings"}))
    text = draft["yaml"].replace("Judge", "Look at and judge")
    checked = done(program.send("post", f"{MINE}protocols/check/", {"yaml": text}))
    assert checked == {"faults": [], "freezing_faults": draft["faults"]}
    changed = done(program.send("put", f"{MINE}protocols/draft/", {"yaml": text}))
    # A database may keep the keys of an object in an order of its own.
    assert yaml.safe_load(changed["yaml"]) == yaml.safe_load(text)
    wrong = {"document": draft["document"] | {"questions": 3}}
    faults = done(program.send("post", f"{MINE}protocols/check/", wrong))["faults"]
    assert any(fault.startswith("questions") for fault in faults)
    kept = done(program.get(f"{MINE}protocols/{draft['number']}/"))["yaml"]
    assert yaml.safe_load(kept) == yaml.safe_load(text)


@pytest.mark.slow
def test_results_scores_and_labels_are_jobs(study, program):
    Job.objects.all().delete()
    for where, body in (
        ("results/", {"result": "agreement"}),
        ("scores/", {"metrics": ["rouge1"]}),
        ("label-sets/", {"question": study.questions.get().name, "method": "median"}),
    ):
        answer = program.send("post", f"{MINE}{where}", body)
        job = done(answer, 202)
        assert answer["Location"].endswith(f"/api/v1/studies/mine/jobs/{job['id']}/")
        assert done(program.get(answer["Location"]))["state"] == "done", job
    assert models.LabelSet.objects.count() == 2


def test_what_cannot_be_computed_is_refused_and_a_doubled_job_done_once(study, program, settings):
    n_before = Job.objects.count()
    for where, body, field in (
        ("scores/", {"metrics": ["judge"]}, "metrics"),
        ("scores/", {"metrics": []}, "metrics"),
        ("results/", {"result": "other"}, "result"),
        ("label-sets/", {"question": "appropriateness", "method": "mace"}, "method"),
    ):
        answer = program.send("post", f"{MINE}{where}", body)
        assert (answer.status_code, list(answer.json()["errors"])) == (400, [field])
    assert Job.objects.count() == n_before
    settings.TASKS = {"default": {"BACKEND": "django_tasks_db.DatabaseBackend", "QUEUES": []}}
    Job.objects.all().delete()
    key = {"Idempotency-Key": "one"}
    ids = {
        done(program.send("post", f"{MINE}scores/", {"metrics": ["rouge1"]}, **key), 202)["id"]
        for _ in range(2)
    }
    assert len(ids) == Job.objects.count() == 1


def test_a_submission_is_flagged_and_a_candidate_decided_and_commented_on(study, program, users):
    question = study.questions.get()
    candidate = study.items.first().candidates.first()
    body = {"candidate_id": candidate.pk, "question": question.name, "value": 40, "note": "Clear."}
    done(program.send("post", f"{MINE}adjudications/", body), 201)
    assert models.Adjudication.objects.get().decided_by.username == "rosa"
    refused = program.send("post", f"{MINE}adjudications/", body | {"value": 4000})
    assert (refused.status_code, refused.json()["code"]) == (400, "decision_refused")
    row = models.Submission.objects.of(study).first()
    where = f"{MINE}submissions/{row.pk}/flag/"
    assert done(program.send("put", where, {"reason": "too fast"}))["flag_reason"] == "too fast"
    assert done(program.send("delete", where))["flag_reason"] == ""
    adjudicator = program_of(users["adjudicator"], "write")
    body = {"candidate_id": candidate.pk, "question": question.name, "text": "Both are right."}
    comment = done(adjudicator.send("post", f"{MINE}comments/", body), 201)
    assert (comment["written_by"], comment["round"]) == ("adjudicator", 1)
    where = f"{MINE}comments/{comment['id']}/"
    owner = program_of(users["owner"], "write")
    assert owner.send("patch", where, {"text": "No."}).status_code == 404
    assert done(adjudicator.send("patch", where, {"text": "Neither is."}))["edited_at"]
    rows = done(owner.get(f"{MINE}comments/?candidate_id={candidate.pk}"))["results"]
    assert [row["text"] for row in rows] == ["Neither is."]
    assert done(owner.get(f"{MINE}comments/?candidate_id=999999"))["results"] == []
    done(adjudicator.send("delete", where), 204)
    assert done(owner.get(f"{MINE}comments/?candidate_id={candidate.pk}"))["results"] == []


def test_people_are_invited_and_removed_and_no_manager_appoints_an_owner(study, program, users):
    for where in (MINE, "/api/v1/teams/lab/"):
        body = {"email": "anna@example.org", "role": "analyst"}
        assert "/invited/" in done(program.send("post", f"{where}invitations/", body), 201)["link"]
        rows = done(program.get(f"{where}invitations/"))["results"]
        assert [row["email"] for row in rows].count("anna@example.org") == 1
        done(program.send("delete", f"{where}invitations/{rows[-1]['id']}/"), 204)
    assert models.Invitation.objects.exclude(revoked_at=None).count() == 2
    member = Membership.objects.get(user=users["analyst"])
    where = f"/api/v1/teams/lab/members/{member.pk}/"
    assert done(program.send("patch", where, {"role": "auditor"}))["role"] == "auditor"
    done(program.send("delete", where), 204)
    guest = models.StudyMembership.objects.get()
    where = f"{MINE}members/{guest.pk}/"
    assert done(program.send("patch", where, {"role": "researcher"}))["role"] == "researcher"
    done(program.send("delete", where), 204)
    program = program_of(users["manager"], "manage")
    body = {"email": "anna@example.org", "role": "owner"}
    answer = program.send("post", "/api/v1/teams/lab/invitations/", body)
    assert (answer.status_code, answer.json()["code"]) == (403, "role_too_small")


def test_amounts_are_bounded_and_connections_listed_without_their_keys_and_closed(study, program):
    for where in (MINE, "/api/v1/teams/lab/"):
        assert done(program.get(f"{where}budget/")) == {"cap_usd": None}
        answer = done(program.send("put", f"{where}budget/", {"cap_usd": "12.50"}))
        assert answer == done(program.get(f"{where}budget/")) == {"cap_usd": "12.50"}
        assert done(program.send("put", f"{where}budget/", {"cap_usd": None})) == {"cap_usd": None}
        large = program.send("put", f"{where}budget/", {"cap_usd": "100000000.00"})
        assert (large.status_code, list(large.json()["errors"])) == (400, ["cap_usd"])
    answer = program.send("patch", "/api/v1/teams/lab/", {"wage_floor_usd": "12.50"})
    assert done(answer)["wage_floor_usd"] == "12.50"
    assert Team.objects.get(slug="lab").wage_floor_usd == Decimal("12.50")
    for name in ("connections", "judges"):
        [row] = done(program.get(f"/api/v1/teams/lab/{name}/"))["results"]
        assert not {"access_key_id", "encrypted_secret", "secret", "encrypted_key", "key"} & {*row}
        where = f"/api/v1/teams/lab/{name}/{row['id']}/"
        assert done(program.send("delete", where))["closed_at"]


def test_a_study_is_archived_restored_and_deleted_and_the_log_says_so(study, program, researcher):
    program.send("patch", MINE, {"title": "Renamed"})
    [entry] = done(program.get("/api/v1/teams/lab/audit-log/?action=study.rename"))["results"]
    assert (entry["actor"], entry["details"]["to"]) == ("rosa", "Renamed")
    done(program.send("post", STUDIES, {"title": "Gone", "template": "preference"}), 201)
    where = f"{STUDIES}gone/"
    assert done(program.send("put", f"{where}archive/"))["archived_at"]
    assert done(program.send("delete", f"{where}archive/"))["archived_at"] is None
    done(program.send("delete", where), 204)
    assert program.get(where).status_code == 404
    answer = program.send("delete", MINE)
    assert (answer.status_code, answer.json()["code"]) == (400, "study_unfinished")
