import json
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from django.db import connection
from django.urls import reverse

from accounts.models import AuditEntry
from accounts.teams import create_team
from annotation import agreement, flags, models
from console.models import StoredAnswer
from tests.annotation.studies import rate, rated_study, rating_study, ticked_study
from tests.console.api.conftest import Program, program_of
from tests.console.filled import add_scores, scored_study
from validation.analysis.records import plain as plain_record
from validation.study_validation import study_report
from work.models import Job

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]


@pytest.fixture
def get_json(rosa):
    def get(name, *slug, **query):
        answer = rosa.get(reverse(f"console:{name}", args=slug), query)
        assert answer["Content-Type"] == "application/json"
        return answer.status_code, json.loads(answer.content)

    return get


def plain(records):
    return json.loads(json.dumps(records, allow_nan=False))


@pytest.mark.slow
def test_a_former_address_may_end_in_json(rosa, researcher):
    study = rated_study(owner=researcher)
    for where in (
        "/api/studies",
        f"/api/studies/{study.slug}",
        f"/api/studies/{study.slug}/agreement",
    ):
        plain, suffixed = rosa.get(f"{where}/"), rosa.get(f"{where}.json")
        assert plain.status_code == suffixed.status_code == 200
        assert plain.json() == suffixed.json()


def test_studies_come_in_pages_each_with_its_questions_and_sizes(get_json, researcher):
    for number in range(3):
        rating_study(f"study-{number}", owner=researcher)
    status, content = get_json("api-study-list", limit=2)
    assert (status, content["count"]) == (200, 3)
    assert [study["slug"] for study in content["results"]] == ["study-2", "study-1"]
    assert content["next"].endswith("?limit=2&offset=2")
    for page in ({"limit": "9" * 30}, {"offset": "9" * 30}, {"limit": "-1"}):
        status, content = get_json("api-study-list", **page)
        assert (status, content["count"]) == (200, 3)
    study = rated_study(owner=researcher, questions=("appropriateness", "style"))
    status, content = get_json("api-study-detail", study.slug)
    assert status == 200
    assert content.pop("created_at").endswith("Z")
    question = {"level": "interval", "scale_min": 0, "scale_max": 100, "categories": []}
    assert content.pop("archived_at") is None
    assert "own" in content.pop("may")
    assert content == {
        "slug": "rated",
        "title": "Rated",
        "kind": "rating",
        "team": None,
        "questions": [
            {"name": "appropriateness", "wording": "appropriateness?", **question},
            {"name": "style", "wording": "style?", **question},
        ],
        "n_items": 3,
        "n_submissions": 6,
        "n_judgments": 24,
    }


def test_agreement_is_that_of_the_report_and_follows_a_rejection(get_json, researcher):
    study = ticked_study(owner=researcher)
    status, content = get_json("api-study-agreement", study.slug)
    assert status == 200
    records = plain(agreement.study_agreement(study).records())
    # Whose answers they are stands beside what is reported of them.
    records = [record | {"simulated": False} for record in records]
    assert content == [{name: record[name] for name in content[0]} for record in records]
    assert {"question", "by", "value", "ci_low", "ci_method", "n_items", "reason"} <= set(
        content[0]
    )
    study = rated_study(owner=researcher)
    _, [before] = get_json("api-study-agreement", study.slug)
    models.Submission.objects.filter(annotator__pseudonym="Bob").update(status="rejected")
    flags.count_judgments_change(study_ids=[study.pk])
    _, [after] = get_json("api-study-agreement", study.slug)
    assert before["value"] > 0.9
    assert (after["value"], after["reason"]) == (None, "one_annotator")
    status, [content] = get_json("api-study-agreement", rating_study(owner=researcher).slug)
    assert (status, content["value"], content["reason"]) == (200, None, "no_labels")


def test_what_is_not_computed_yet_is_asked_for_once_and_promised(rosa, researcher, settings):
    settings.TASKS = {"default": {"BACKEND": "django_tasks_db.DatabaseBackend", "QUEUES": []}}
    study = scored_study(owner=researcher)
    for name in ("agreement", "validation"):
        for _ in range(2):
            answer = rosa.get(reverse(f"console:api-study-{name}", args=[study.slug]))
            assert (answer.status_code, answer["Retry-After"]) == (202, "2")
    assert [job.arguments["kind"] for job in Job.objects.all()] == ["validation", "agreement"]


@pytest.mark.slow
def test_validation_is_that_of_the_report(get_json, researcher):
    study = scored_study(owner=researcher, conditions=("calm", "angry"), metrics=("nll", "bleu"))
    status, content = get_json("api-study-validation", study.slug)
    assert status == 200

    def key_of(record):
        return [record[name] for name in ("by", "metric", "level", "coefficient")]

    rows = study_report(study).correlations
    records = [plain_record(row) for row in rows if row.scope != "mean_of_conditions"]
    assert len(content) == len(records) == 3 * 2 * 9
    records = [record | {"simulated": False} for record in records]
    expected = [{name: record[name] for name in content[0]} for record in records]
    assert sorted(content, key=key_of) == sorted(expected, key=key_of)
    assert {"value", "ci_low", "ci_method", "seed", "n_missing", "signature"} <= set(content[0])


def test_undefined_correlations_are_null_with_a_reason(get_json, researcher):
    study = rating_study(owner=researcher)
    for position in range(3):
        rate(study, "Ann", f"d{position}", {"alpha": 50, "beta": 50})
    add_scores(study)
    status, content = get_json("api-study-validation", study.slug)
    assert status == 200
    assert {(row["value"], row["reason"]) for row in content} == {
        (None, "constant_human"),
        (None, "no_defined_item"),
    }
    status, content = get_json("api-study-validation", rated_study(owner=researcher).slug)
    assert (status, content["code"]) == (404, "not_found")
    assert content.keys() == {"detail", "code"}


@pytest.mark.slow
def test_the_schema_is_the_same_whatever_version_the_address_names(rosa):
    schema = rosa.get(reverse("console:schema"))
    assert b"/api/v1/studies/{slug}/validation/" in schema.content
    odd = rosa.get(reverse("console:schema"), {"version": "\x00"})
    assert dict(odd.headers) | {"X-Request-Id": ""} == dict(schema.headers) | {"X-Request-Id": ""}
    assert odd.content == schema.content


AT_ONCE = 4
BODY = {"title": "Copy", "copy_of": "mine", "team": "lab"}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_same", [True, False])
def test_a_key_is_used_once_however_many_send_it(researcher, is_same):
    rating_study("mine", owner=researcher, team=create_team(name="Lab", owner=researcher))
    text = program_of(researcher, "write").defaults["HTTP_AUTHORIZATION"].removeprefix("Bearer ")
    barrier = threading.Barrier(AT_ONCE)

    def send(number):
        with closing(connection):
            program = Program(text)
            body = BODY if is_same else BODY | {"title": f"Copy {number}"}
            barrier.wait(timeout=30)
            answer = program.send("post", "/api/v1/studies/", body, **{"Idempotency-Key": "one"})
            return answer.status_code, answer.content

    with ThreadPoolExecutor(AT_ONCE) as pool:
        answers = list(pool.map(send, range(AT_ONCE)))
    statuses = sorted(status for status, _ in answers)
    assert statuses == ([201] * AT_ONCE if is_same else [201] + [422] * (AT_ONCE - 1))
    assert len({content for status, content in answers if status == 201}) == 1
    assert models.Study.objects.count() == 2
    assert StoredAnswer.objects.count() == 1
    assert AuditEntry.objects.filter(action="study.create").count() == 1
