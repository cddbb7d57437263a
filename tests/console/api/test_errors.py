from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from accounts import models, roles
from accounts.teams import set_role
from annotation.models import Study
from console.api.operations import delete_old_answers
from console.models import StoredAnswer
from hits.models import Assignment
from tests.console.api.conftest import program_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]
WHERE = "/api/v1/studies/mine/"


def test_an_error_is_json_also_of_a_body_that_cannot_be_read(study, program, monkeypatch):
    for body in ("", "{", "[]", "3", '{"title": {}}', '{"title": "a", "b": 1}'):
        answer = program.patch(WHERE, body, content_type="application/json")
        assert answer.status_code == 400
        assert answer.json()["code"] in ("invalid", "parse_error"), body
    answer = program.send("patch", WHERE, {"title": "x" * 129, "colour": "red"})
    assert answer.json()["errors"].keys() == {"colour"}
    answer = program.patch(WHERE, "title=x", content_type="application/x-www-form-urlencoded")
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")
    for method, where, status, code in (
        ("get", "/api/v1/nothing/", 404, "not_found"),
        ("get", "/api/nothing/", 404, "not_found"),
        ("get", "/api/v1/studies/nothing/", 404, "not_found"),
        ("put", "/api/v1/studies/", 405, "method_not_allowed"),
        ("options", "/api/v1/studies/", 405, "method_not_allowed"),
        ("get", "/api/v1/studies/?kind=other", 400, "invalid"),
        ("get", "/api/v1/studies/?q=%00", 400, "invalid"),
        ("get", f"{WHERE}disputes/?threshold=2", 400, "invalid"),
        ("get", f"{WHERE}jobs/{'9' * 30}/", 404, "not_found"),
    ):
        answer = getattr(program, method)(where)
        assert answer["Content-Type"] == "application/json"
        assert (answer.status_code, answer.json()["code"]) == (status, code), where
        assert answer.json()["detail"]
    # Nothing of an answer is stored on the way.
    assert program.get(WHERE)["Cache-Control"] == "private, no-store"
    answer = Client(headers={"host": "elsewhere.example"}).get("/api/v1/")
    assert (answer.status_code, answer["Content-Type"]) == (400, "application/json")

    def fail(*args, **kwargs):
        raise RuntimeError

    monkeypatch.setattr("hits.api.studies.rename_study", fail)
    program.raise_request_exception = False
    answer = program.send("patch", WHERE, {"title": "x"})
    assert (answer.status_code, answer.json()["code"]) == (500, "internal_server_error")


@pytest.mark.parametrize("depth", [102, 100_000])
@pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": "deep"}])
def test_a_body_that_is_nested_too_deep_is_a_400(study, program, depth, headers):
    for opening, ending in (("[", "]"), ('{"title":', "}")):
        body = opening * depth + "1" + ending * depth
        answer = program.patch(WHERE, body, content_type="application/json", headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (400, "parse_error")
        assert " 100 " in answer.json()["detail"]


def test_too_many_requests_wait(study, program, settings):
    settings.API_READS_PER_MINUTE, settings.API_WRITES_PER_MINUTE = 2, 1
    statuses = [program.get("/api/v1/me/").status_code for _ in range(4)]
    # A new minute may begin in between.
    assert statuses in ([200, 200, 429, 429], [200, 200, 200, 429], [200, 200, 429, 200])
    program.send("patch", WHERE, {"title": "x"})
    answer = program.send("patch", WHERE, {"title": "x"})
    if answer.status_code == 429:
        assert int(answer["Retry-After"]) <= 60


# A write under one key is done once, and answered alike.


KEY = {"Idempotency-Key": "one"}


def renames():
    return models.AuditEntry.objects.filter(action="study.rename").count()


@pytest.mark.slow
def test_the_first_answer_is_kept_and_given_again(study, program):
    first = program.send("patch", WHERE, {"title": "One"}, **KEY)
    Study.objects.update(title="Changed meanwhile")
    again = program.send("patch", WHERE, {"title": "One"}, **KEY)
    assert (first.status_code, first.json()) == (again.status_code, again.json())
    assert again["Idempotency-Replayed"] == "true"
    assert "Idempotency-Replayed" not in first
    assert renames() == 1
    assert Study.objects.get().title == "Changed meanwhile"


def test_a_key_is_of_one_request_one_holder_and_one_address(study, program, researcher):
    program.send("patch", WHERE, {"title": "One"}, **KEY)
    answer = program.send("patch", WHERE, {"title": "Two"}, **KEY)
    assert (answer.status_code, answer.json()["code"]) == (422, "idempotency_key_reused")
    assert Study.objects.get().title == "One"
    for title in ("Two", "Three"):
        program.send("patch", WHERE, {"title": title})
    assert renames() == 3
    assert program.send("put", f"{WHERE}archive/", **KEY).status_code != 422
    answer = program_of(researcher, "write").send("patch", WHERE, {"title": "Two"}, **KEY)
    assert answer.json()["title"] == "Two"


def test_a_key_is_a_short_word_forgotten_after_a_day_or_a_refused_write(study, program):
    for key in ("", "x" * 256, "ключ"):
        answer = program.send("patch", WHERE, {"title": "One"}, **{"Idempotency-Key": key})
        assert (answer.status_code, list(answer.json()["errors"])) == (400, ["Idempotency-Key"])
    answer = program.send("patch", WHERE, {"title": ""}, **KEY)
    assert (answer.status_code, list(answer.json()["errors"])) == (400, ["title"])
    assert not StoredAnswer.objects.exists()
    assert program.send("patch", WHERE, {"title": "One"}, **KEY).status_code == 200
    StoredAnswer.objects.update(created_at=timezone.now() - timedelta(hours=25))
    assert program.send("patch", WHERE, {"title": "Two"}, **KEY).json()["title"] == "Two"
    StoredAnswer.objects.update(created_at=timezone.now() - timedelta(hours=25))
    assert (delete_old_answers(), StoredAnswer.objects.count()) == (1, 0)


def invite_once(sender):
    body = {"email": "new@example.org", "role": "analyst"}
    return sender.send("post", "/api/v1/teams/lab/invitations/", body, **KEY)


def test_an_answer_is_not_given_again_to_who_lost_the_role_or_the_scope(study, users):
    """It may hold what is stored nowhere else, such as an invitation's link."""
    manager = program_of(users["manager"], "manage")
    assert "link" in invite_once(manager).json()
    models.ApiToken.objects.update(scopes=["read"])
    assert invite_once(manager).status_code == 403
    models.ApiToken.objects.update(scopes=["read", "manage"])
    assert invite_once(manager).status_code == 201
    set_role(team=study.team, user=users["manager"], role=roles.Role.ANALYST, actor=users["owner"])
    answer = invite_once(manager)
    assert answer.status_code == 403
    assert "link" not in answer.json()
    models.Membership.objects.filter(user=users["manager"]).delete()
    assert invite_once(manager).status_code == 404
    body = {"assignments": [Assignment.objects.get(status="Submitted").pk], "action": "approve"}
    owner = program_of(users["owner"], "review", "money")
    answers = [owner.send("post", f"{WHERE}drafts/", body, **KEY)]
    models.ApiToken.objects.update(scopes=["read", "review"])
    answers.append(owner.send("post", f"{WHERE}drafts/", body, **KEY))
    assert [answer.status_code for answer in answers] == [201, 403]
    assert "total_usd" not in answers[1].json()
    owner = program_of(users["owner"], "write", "manage")
    body = {"title": "Gone", "template": "preference", "team": "lab"}
    owner.send("post", "/api/v1/studies/", body)
    for _ in range(2):
        assert owner.send("delete", "/api/v1/studies/gone/", **KEY).status_code == 204
