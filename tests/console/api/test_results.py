"""What programs read of results: the same rows and sentences as the pages have."""

import pytest

from console.human_results_view import HumanResultsView
from tests.console import pages
from tests.console.filled import add_scores
from validation.analysis.records import CorrelationRecord
from validation.models import HumanResults, HumanResultsSystem, ValidationVersion
from validation.rows import StoredResults

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]
MINE = "/api/v1/studies/mine/"


@pytest.mark.slow
def test_results_are_those_of_the_page(study, program, rosa):
    content = program.get(f"{MINE}results/").json()
    version = HumanResults.objects.get()
    view = HumanResultsView.from_query(version, {})
    assert (content["number"], content["fingerprint"]) == (version.number, version.fingerprint)
    [question] = content["questions"]
    assert (question["question"], question["answer"]) == (view.question, view.answer)
    whole = [row for row in content["systems"] if row["scope"] == "all"]
    stored = [(row.record.system, row.record.mean) for row in view.rows]
    assert [(row["system"], row["mean"]) for row in whole] == stored
    assert len(content["pairs"]) == len(view.standing.pairs) == 1
    assert sum(row["n"] for row in content["distributions"]) == question["n_judgments"]
    text = pages.words_of(rosa.get("/studies/mine/results/").content.decode())
    assert question["answer"] in text
    assert set(view.verdict.sentences) <= set(question["advice"])


@pytest.mark.slow
def test_results_are_stored_once_and_not_computed_by_a_read(study, program):
    for _ in range(3):
        assert program.get(f"{MINE}results/").status_code == 200
    assert HumanResults.objects.get().number == 1


def test_results_of_one_question_are_asked_for_by_name(study, program):
    name = study.questions.get().name
    content = program.get(f"{MINE}results/?question={name}").json()
    assert {row["question"] for row in content["systems"]} == {name}
    assert len(content["systems"]) == HumanResultsSystem.objects.count()
    answer = program.get(f"{MINE}results/?question=none")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


def test_while_results_are_computed_they_are_asked_for_again(study, program, settings):
    settings.TASKS = {"default": {"BACKEND": "django_tasks_db.DatabaseBackend", "QUEUES": []}}
    answer = program.get(f"{MINE}results/")
    assert (answer.status_code, answer["Retry-After"]) == (202, "2")


def test_a_study_without_judgments_has_no_results(study, program):
    body = {"title": "Empty", "template": "preference"}
    program.send("post", "/api/v1/studies/", body)
    answer = program.get("/api/v1/studies/empty/results/")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


@pytest.mark.slow
def test_the_best_metrics_are_those_of_the_page(study, program, rosa):
    add_scores(study, "other")
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


def test_records_of_the_validation_are_read_by_kind(study, program):
    content = program.get(f"{MINE}validation/correlations/").json()
    version = ValidationVersion.objects.of(study).last()
    stored = StoredResults(version, with_variants=True).rows(CorrelationRecord)
    assert [row["value"] for row in content["rows"]] == [row.value for row in stored]
    assert content["report"] == version.number
    for kind in ("comparisons", "ceilings", "systems", "disagreements", "worst", "sensitivity"):
        assert program.get(f"{MINE}validation/{kind}/").json()["kind"] == kind
    answer = program.get(f"{MINE}validation/other/")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
