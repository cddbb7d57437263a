import json

import pytest

from annotation.exceptions import StudyUnknown
from metrics.exceptions import MetricUnknown
from metrics.models import Score, ScoringRun
from tests.annotation.importing import command_output
from tests.annotation.studies import rating_study
from tests.codes import refused_naming

pytestmark = pytest.mark.django_db


def test_the_command_scores_a_study_with_each_metric_named():
    rating_study(n_items=2)
    command = ("score_study", "ratings", "--metric=rouge1", "--metric=ter")
    lines = command_output(*command, "--set=rouge1.tokenizer=unicode").splitlines()
    assert [line.partition(" candidates")[0] for line in lines] == ["rouge1: 4", "ter: 4"]
    assert Score.objects.filter(run__metric="rouge1").count() == 4
    runs = {run.metric: run for run in ScoringRun.objects.all()}
    assert "tokenizer:unicode" in runs["rouge1"].signature
    assert (runs["rouge1"].higher_is_better, runs["ter"].higher_is_better) == (True, False)


def test_an_unknown_study_or_metric_stops_the_command_before_anything_is_scored():
    with refused_naming(StudyUnknown, "ratings"):
        command_output("score_study", "ratings", "--metric=rouge1")
    rating_study()
    with refused_naming(MetricUnknown, "bleurt"):
        command_output("score_study", "ratings", "--metric=rouge1", "--metric=bleurt")
    assert not ScoringRun.objects.exists()


def test_a_program_may_read_what_was_and_what_would_be_scored():
    rating_study(n_items=2)
    command = ("score_study", "ratings", "--json", "--metric=rouge1")
    [plan] = json.loads(command_output(*command, "--dry-run"))
    assert (plan["metric"], plan["examples"], plan["n_candidates"]) == ("rouge1", 4, 4)
    assert plan["estimate"] is None  # it asks no endpoint
    assert not ScoringRun.objects.exists()
    assert command_output(*command[:2], "--metric=rouge1", "--dry-run").startswith("rouge1: 4 ")
    command_output(*command)
    [scored, _] = json.loads(command_output(*command, "--metric=chrf"))
    assert (scored["metric"], scored["n_scored"], scored["n_known"]) == ("rouge1", 0, 4)


def test_a_dry_run_of_a_judge_estimates_what_it_would_cost(settings):
    settings.JUDGE = {"JUDGE_MODEL": "tiny"}
    rating_study(n_items=2)
    [plan] = json.loads(
        command_output("score_study", "ratings", "--metric=judge", "--dry-run", "--json")
    )
    assert plan["estimate"]["requests"] == 4
    assert plan["estimate"]["prompt_tokens"] > 4 * 10
    assert float(plan["estimate"]["usd"]) == 0
