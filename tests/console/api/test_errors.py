"""Whatever goes wrong under /api/, the answer is JSON of one form."""

import pytest
from django.test import Client

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]
WHERE = "/api/v1/studies/mine/"


@pytest.mark.parametrize(
    ("method", "where", "status", "code"),
    [
        ("get", "/api/v1/nothing/", 404, "not_found"),
        ("get", "/api/nothing/", 404, "not_found"),
        ("get", "/api/v1/studies/nothing/", 404, "not_found"),
        ("put", "/api/v1/studies/", 405, "method_not_allowed"),
        ("options", "/api/v1/studies/", 405, "method_not_allowed"),
        ("get", "/api/v1/studies/?kind=other", 400, "invalid"),
        ("get", "/api/v1/studies/?q=%00", 400, "invalid"),
        ("get", f"{WHERE}disputes/?threshold=2", 400, "invalid"),
        ("get", f"{WHERE}jobs/{'9' * 30}/", 404, "not_found"),
    ],
)
def test_an_error_is_json(study, program, method, where, status, code):
    answer = getattr(program, method)(where)
    assert answer["Content-Type"] == "application/json"
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert answer.json()["detail"]


@pytest.mark.parametrize("body", ["", "{", "[]", "3", '{"title": {}}', '{"title": "a", "b": 1}'])
def test_a_body_that_cannot_be_read_is_a_400(study, program, body):
    answer = program.patch(WHERE, body, content_type="application/json")
    assert answer.status_code == 400
    assert answer.json()["code"] in ("invalid", "parse_error")


@pytest.mark.parametrize("depth", [102, 100_000])
@pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": "deep"}])
def test_a_body_that_is_nested_too_deep_is_a_400(study, program, depth, headers):
    for opening, closing in (("[", "]"), ('{"title":', "}")):
        body = opening * depth + "1" + closing * depth
        answer = program.patch(WHERE, body, content_type="application/json", headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (400, "parse_error")
        assert " 100 " in answer.json()["detail"]


def test_a_field_at_fault_is_named(study, program):
    answer = program.send("patch", WHERE, {"title": "x" * 129, "colour": "red"})
    assert answer.json()["errors"].keys() == {"colour"}


def test_another_type_of_content_is_a_415(study, program):
    answer = program.patch(WHERE, "title=x", content_type="application/x-www-form-urlencoded")
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")


def test_what_nobody_expected_is_json_too(study, program, monkeypatch):
    def fail(*args, **kwargs):
        raise RuntimeError

    monkeypatch.setattr("console.api.studies.rename_study", fail)
    program.raise_request_exception = False
    answer = program.send("patch", WHERE, {"title": "x"})
    assert (answer.status_code, answer.json()["code"]) == (500, "internal_server_error")


def test_an_unknown_host_hears_json(settings):
    answer = Client(headers={"host": "elsewhere.example"}).get("/api/v1/")
    assert (answer.status_code, answer["Content-Type"]) == (400, "application/json")


def test_too_many_requests_wait(study, program, settings):
    settings.API_READS_PER_MINUTE, settings.API_WRITES_PER_MINUTE = 2, 1
    statuses = [program.get("/api/v1/me/").status_code for _ in range(4)]
    # A new minute may begin in between.
    assert statuses in ([200, 200, 429, 429], [200, 200, 200, 429], [200, 200, 429, 200])
    program.send("patch", WHERE, {"title": "x"})
    answer = program.send("patch", WHERE, {"title": "x"})
    if answer.status_code == 429:
        assert int(answer["Retry-After"]) <= 60


def test_nothing_of_it_is_stored_on_the_way(study, program):
    assert program.get(WHERE)["Cache-Control"] == "private, no-store"
