"""Wherever results are, it is said that answers are simulated: on pages, in files, by the API."""

import json
from html import escape

import pytest
from django.urls import reverse

from annotation.label_sets import Rule, make_label_set
from annotation.models import Submission
from annotation.simulated_answers import simulation_notice
from console.results import AGREEMENT, RESULTS, compute
from tests.console.filled import scored_study, store_validation

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]


def computed_study(researcher, slug, *, is_simulated):
    study = scored_study(slug, owner=researcher)
    Submission.objects.of(study).update(is_simulated=is_simulated)
    store_validation(study)
    for name in (AGREEMENT, RESULTS):
        compute(study, name)
    make_label_set(question=study.questions.first(), rule=Rule("mean"))
    return study


@pytest.fixture
def simulated(researcher):
    return computed_study(researcher, "simulated", is_simulated=True)


@pytest.fixture
def human(researcher):
    return computed_study(researcher, "human", is_simulated=False)


def read(browser, name, study, *parts):
    return browser.get(reverse(f"console:{name}", args=[study.slug, *parts]))


@pytest.mark.parametrize(
    "name",
    [
        *("study", "results", "agreement", "annotators", "disagreement", "adjudication"),
        *("labels", "validation", "downloads"),
    ],
)
def test_each_page_of_results_says_once_that_answers_are_simulated(rosa, simulated, human, name):
    for study, n in ((simulated, 1), (human, 0)):
        answer = read(rosa, name, study)
        assert answer.status_code == 200
        assert answer.content.decode().count(escape(simulation_notice(simulated))) == n


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("download", ["agreement.json"]),
        ("download", ["validation.json"]),
        ("label-set", [1, "json"]),
    ],
)
def test_files_say_whether_answers_are_simulated(rosa, simulated, human, name, parts):
    for study, is_simulated in ((simulated, True), (human, False)):
        content = json.loads(read(rosa, name, study, *parts).getvalue())
        assert content["simulated"] is is_simulated


@pytest.mark.parametrize(
    "path",
    [
        *("agreement", "validation", "validation/best", "validation/correlations"),
        *("results", "disputes", "label-sets", "label-sets/1"),
    ],
)
def test_the_api_says_whether_answers_are_simulated(rosa, simulated, human, path):
    for study, is_simulated in ((simulated, True), (human, False)):
        answer = rosa.get(f"/api/v1/studies/{study.slug}/{path}/")
        assert answer.status_code == 200, answer.content
        content = answer.json()
        rows = content if isinstance(content, list) else content.get("results", [content])
        assert rows
        assert {row["simulated"] for row in rows} == {is_simulated}
