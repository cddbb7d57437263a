"""What metrics say of golden answers that nobody has rated: page, charts, files and report."""

import json

import pytest
from django.test import Client

from metrics.result_kinds.scores import ScoresKind
from metrics.scorers import registry
from metrics.study_scores import score_study
from tests.annotation.importing import command_output
from tests.codes import codes_on
from tests.metrics.golden import golden_study

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]
ADDRESS = "/studies/golden/"


@pytest.fixture
def study(researcher):
    study = golden_study()
    command_output("assign_owner", "golden", researcher.username)
    study.refresh_from_db()
    score_study(study=study, scorer=registry.build("rouge1"))
    return study


@pytest.fixture
def as_researcher(researcher):
    client = Client()
    client.force_login(researcher)
    return client


def test_prompts_and_metrics_are_compared_without_human_ratings(study, as_researcher):
    page = as_researcher.get(f"{ADDRESS}scores/").text
    assert "higher" in codes_on(page)
    compared = json.loads(command_output("compare_prompts", "golden", "--json"))
    shown = as_researcher.get(f"{ADDRESS}tables/scores/all.json").json()["tables"]
    assert [row["mean"] for row in shown["prompts"]] == [r["mean"] for r in compared["prompts"]]
    assert [row["mean"] for row in shown["systems"]] == [r["mean"] for r in compared["systems"]]
    f, precision = (
        {(row["system"], row["question"]): row["value"] for row in bars(as_researcher, at)}
        for at in (0, 1)
    )
    assert len(f) == len(precision) == 60
    assert f != precision
    pairs = {(row["first"], row["second"]): row["r_squared"] for row in shown["metrics"]}
    assert pairs["rouge1_precision", "rouge1_hallucination"] == pytest.approx(1)
    assert len(pairs) == 6


def bars(client, at):
    spec = client.get(f"{ADDRESS}scores/bars-{at}-1.json/picture/").json()
    [rows] = spec["datasets"].values()
    return rows


def test_the_report_of_a_study_without_ratings_has_its_scores(study, as_researcher, tmp_path):
    as_researcher.get(f"{ADDRESS}report/")
    report = as_researcher.get(f"{ADDRESS}report/report.json").json()
    assert {"prompts", "systems", "metrics"} <= report.keys()
    command_output("report", "golden", "--output", tmp_path, "--format", "latex")
    assert len(list(tmp_path.glob("figures/points-*.pdf"))) == 2


def test_scores_are_computed_after_scoring_and_nothing_without_any(study, as_researcher):
    assert not ScoresKind().is_stored(study)
    as_researcher.post(f"{ADDRESS}score/", {"metric": ["chrf"]})
    study.refresh_from_db()
    assert ScoresKind().is_stored(study)
    study.scoring_runs.all().delete()
    assert as_researcher.get(f"{ADDRESS}report/report.json").status_code == 404
