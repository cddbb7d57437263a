from collections import Counter

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from annotation.models import Judgment, Submission
from metrics.models import Score
from tests.annotation.studies import rate, rating_study
from tests.console import filled, pages
from tests.console.api.conftest import program_of
from tests.console.api.operations import OF_A_STUDY, address
from tests.console.team_study import ASSIGNMENT_ID, WORKER_ID
from tests.hits.pages.test_costs import MOST_REPEATS, MOST_STATEMENTS
from validation.analysis.records import CorrelationRecord
from validation.pages.human_results import view_questions
from validation.result_kinds.validation import HumanResultsKind
from validation.versions import StoredResults, list_validations

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]
MINE = "/api/v1/studies/mine/"


def everything(program, where):
    rows = []
    while where:
        content = program.get(where).json()
        rows += content["results"]
        where = content["next"]
    return rows


@pytest.mark.slow
def test_long_tables_are_read_stretch_by_stretch(study, program):
    for limit in (1, 7, 1000):
        rows = everything(program, f"{MINE}judgments/?limit={limit}")
        ids = [row["id"] for row in rows]
        assert ids == list(Judgment.objects.of(study).order_by("pk").values_list("pk", flat=True))
    assert {"round", "item", "system", "annotator", "value"} <= rows[0].keys()


def test_items_submissions_scores_and_labels_are_read(study, program, users):
    rows = everything(program, f"{MINE}items/?limit=2")
    assert [row["key"] for row in rows] == [item.key for item in study.items.order_by("pk")]
    assert {each["system"] for each in rows[0]["candidates"]} == {"alpha", "beta"}
    [found] = everything(program, f"{MINE}items/?key={rows[1]['key']}")
    assert found == rows[1] == program.get(f"{MINE}items/{found['id']}/").json()
    Submission.objects.of(study).order_by("pk").filter(pk__gt=2).update(flag_reason="fast")
    all_rows = everything(program, f"{MINE}submissions/")
    flagged = everything(program, f"{MINE}submissions/?flagged=true")
    assert [row for row in all_rows if row["flag_reason"]] == flagged
    name = all_rows[0]["annotator"]
    of_one = everything(program, f"{MINE}submissions/?annotator={name}")
    assert of_one == [row for row in all_rows if row["annotator"] == name]
    [run, *_] = program.get(f"{MINE}scores/").json()["results"]
    rows = everything(program, f"{MINE}scores/{run['id']}/?limit=2")
    assert len(rows) == Score.objects.filter(run=run["id"]).count() == run["n_scores"]
    [labels] = program.get(f"{MINE}label-sets/").json()["results"]
    rows = everything(program, f"{MINE}label-sets/{labels['version']}/labels/?limit=4")
    assert len(rows) == labels["n_labels"]
    row = next(row for row in everything(program, f"{MINE}submissions/") if row["worker_id"])
    assert (row["worker_id"], row["assignment_id"]) == (WORKER_ID, ASSIGNMENT_ID)
    for other in (program_of(users["owner"]), program_of(users["analyst"], "identities")):
        rows = everything(other, f"{MINE}submissions/")
        for name in ("worker_id", "assignment_id", "hit_id", "comment"):
            assert {row[name] for row in rows} == {None}


@pytest.mark.slow
def test_files_are_listed_with_links_that_a_token_opens(study, program, users):
    files = program.get(f"{MINE}files/").json()
    names = {file["name"] for file in files}
    assert {"judgments.csv", "submissions.parquet", "agreement.json"} <= names
    for file in files:
        if file["is_computed"]:
            answer = program.get(file["url"])
            assert answer["Content-Type"] == file["content_type"]
            assert b"".join(answer.streaming_content)
    analyst = program_of(users["analyst"]).get(f"{MINE}files/").json()
    assert not any(file["name"].startswith("submissions") for file in analyst)
    assert program_of(users["analyst"]).get(f"{MINE}files/submissions.csv").status_code == 404


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(name for name, method in OF_A_STUDY if method == "get"))
def test_a_read_costs_a_bounded_number_of_statements(study, program, name):
    where = address(name, "mine")
    program.get(where)
    with CaptureQueriesContext(connection) as captured:
        answer = program.get(where)
        if answer.streaming:
            b"".join(answer.streaming_content)
    statements = [each["sql"] for each in captured.captured_queries]
    # A file is read in stretches, and the audit log says who took it.
    assert len(statements) <= MOST_STATEMENTS + (5 if name == "file" else 0)
    assert not [sql for sql, n in Counter(statements).items() if n > MOST_REPEATS]


@pytest.mark.slow
def test_a_long_list_costs_as_much_as_a_short_one(study, researcher, program):
    large = rating_study("large", owner=researcher, n_items=40)
    for position in range(40):
        rate(large, "Ann", f"d{position}", {"alpha": 50, "beta": 60})
    filled.add_scores(large)
    for name in ("items", "submissions", "judgments", "adjudications"):
        counts = set()
        for slug in ("mine", "large"):
            program.get(f"/api/v1/studies/{slug}/{name}/")
            with CaptureQueriesContext(connection) as captured:
                program.get(f"/api/v1/studies/{slug}/{name}/")
            counts.add(len(captured))
        assert len(counts) == 1, name


# Results: the same rows and sentences as on the pages.


@pytest.mark.slow
def test_results_are_those_of_the_page(study, program, rosa):
    content = program.get(f"{MINE}results/").json()
    version = HumanResultsKind().list_results(study).get()
    [view] = view_questions(study, version).values()
    assert (content["number"], content["fingerprint"]) == (version.number, version.fingerprint)
    [question] = content["questions"]
    assert (question["question"], question["answer"]) == (view.question, view.answer)
    whole = [row for row in content["systems"] if row["scope"] == "all"]
    stored = [(row.record.system, row.record.mean) for row in view.rows]
    assert [(row["system"], row["mean"]) for row in whole] == stored
    assert len(content["pairs"]) == len(view.standing.pairs) == 1
    assert sum(row["n"] for row in content["distributions"]) == question["n_judgments"]
    assert program.get(f"{MINE}results/").json() == content
    assert HumanResultsKind().list_results(study).get().number == 1  # it is stored once
    assert question["answer"] in pages.words_of(rosa.get("/studies/mine/results/").content.decode())
    assert set(view.verdict.sentences) <= set(question["advice"])


@pytest.mark.slow
def test_the_best_metrics_are_those_of_the_page(study, program, rosa):
    filled.add_scores(study, "other")
    content = program.get(f"{MINE}validation/best/").json()
    names = {row["metric"] for row in [*content["top"], *content["behind"]]}
    assert names == {"nll", "other"}
    text = pages.words_of(rosa.get("/studies/mine/validation/").content.decode())
    assert content["answer"] in text
    assert content["ceiling_text"] in text
    # Both have the same scores, and so the same value.
    [other] = names - {content["top"][0]["metric"]}
    assert other in content["estimate"]
    answer = program.get(f"{MINE}validation/best/?level=word")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


def test_results_are_of_one_question_and_of_studies_with_judgments(study, program):
    content = program.get(f"{MINE}validation/correlations/").json()
    version = list_validations(study).first()
    stored = StoredResults(version, with_variants=True).rows(CorrelationRecord)
    assert [row["value"] for row in content["rows"]] == [row.value for row in stored]
    assert content["report"] == version.number
    for kind in ("comparisons", "ceilings", "systems", "disagreements", "worst", "sensitivity"):
        assert program.get(f"{MINE}validation/{kind}/").json()["kind"] == kind
    answer = program.get(f"{MINE}validation/other/")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    name = study.questions.get().name
    content = program.get(f"{MINE}results/?question={name}").json()
    assert {row["question"] for row in content["systems"]} == {name}
    assert content["systems"] == program.get(f"{MINE}results/").json()["systems"]
    answer = program.get(f"{MINE}results/?question=none")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    program.send("post", "/api/v1/studies/", {"title": "Empty", "template": "preference"})
    answer = program.get("/api/v1/studies/empty/results/")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    answer = program.get(f"{MINE}files/dataset.zip?license=no such license")
    assert (answer.status_code, answer.json()["code"]) == (400, "license_unknown")


def test_while_results_are_computed_they_are_asked_for_again(study, program, settings):
    settings.TASKS = {"default": {"BACKEND": "django_tasks_db.DatabaseBackend", "QUEUES": []}}
    answer = program.get(f"{MINE}results/")
    assert (answer.status_code, answer["Retry-After"]) == (202, "2")
