"""What metrics say of golden answers that nobody has rated: page, charts, files and report."""

import json

import pytest

from metrics.result_kinds.scores import ScoresKind
from metrics.scorers import registry
from metrics.study_scores import score_study
from tests.annotation.importing import command_output
from tests.codes import codes_on
from tests.metrics.golden import golden_study

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]


@pytest.fixture
def study(researcher, client):
    client.force_login(researcher)
    golden = golden_study()
    command_output("assign_owner", "golden", researcher.username)
    score_study(study=golden, scorer=registry.build("rouge1"))
    return golden


def test_prompts_and_metrics_are_compared_without_human_ratings(study, client):
    assert "higher" in codes_on(client.get("/studies/golden/scores/").text)
    compared = json.loads(command_output("compare_prompts", "golden", "--json"))
    shown = client.get("/studies/golden/tables/scores/all.json").json()["tables"]
    for table in ("prompts", "systems"):
        assert [row["mean"] for row in shown[table]] == [row["mean"] for row in compared[table]]
    pairs = {(row["first"], row["second"]): row["r_squared"] for row in shown["metrics"]}
    assert pairs["rouge1_precision", "rouge1_hallucination"] == pytest.approx(1)
    spec = client.get("/studies/golden/scores/bars-0-1.json/picture/").json()
    assert [len(rows) for rows in spec["datasets"].values()] == [60]


def test_the_report_of_a_study_without_ratings_has_its_scores(study, client, tmp_path):
    client.get("/studies/golden/report/")
    report = client.get("/studies/golden/report/report.json").json()
    assert {"prompts", "systems", "metrics"} <= report.keys()
    command_output("report", "golden", "--output", tmp_path, "--format", "latex")
    assert len(list(tmp_path.glob("figures/points-*.pdf"))) == 2


def test_scores_are_computed_after_scoring(study, client):
    client.post("/studies/golden/score/", {"metric": ["chrf"]})
    study.refresh_from_db()
    assert ScoresKind().is_stored(study)
