import json

import pytest

from annotation.exceptions import StudyUnknown
from metrics.exceptions import MetricUnknown, NothingToScore
from metrics.models import Score, ScoringRun
from tests.annotation.importing import command_output
from tests.annotation.studies import rating_study

pytestmark = pytest.mark.django_db


def test_the_command_scores_a_study_with_each_metric_named():
    rating_study(n_items=2)
    lines = command_output(
        "score_study", "ratings", "--metric=rouge1", "--metric=chrf"
    ).splitlines()
    assert lines[0].startswith("rouge1: 4 candidates scored (rouge|")
    assert lines[1].startswith("chrf: 4 candidates scored (chrF2|")
    assert Score.objects.filter(run__metric="rouge1").count() == 4


def test_the_command_says_what_was_scored_before():
    rating_study(n_items=2)
    command_output("score_study", "ratings", "--metric=rouge1")
    output = command_output("score_study", "ratings", "--metric=rouge1")
    assert "rouge1: 0 candidates scored, 4 were scored already" in output


def test_an_unknown_metric_stops_the_command_before_anything_is_scored():
    rating_study()
    with pytest.raises(MetricUnknown, match="bleurt"):
        command_output("score_study", "ratings", "--metric=rouge1", "--metric=bleurt")
    assert not ScoringRun.objects.exists()


def test_an_unknown_study_is_reported_with_those_there_are():
    with pytest.raises(StudyUnknown, match=r"no study 'ratings'. Studies: none yet"):
        command_output("score_study", "ratings", "--metric=rouge1")


def test_a_study_without_candidates_is_not_scored():
    rating_study(n_items=0)
    with pytest.raises(NothingToScore):
        command_output("score_study", "ratings", "--metric=rouge1")


def test_a_dry_run_says_what_would_be_computed_and_writes_nothing():
    rating_study(n_items=2)
    output = command_output("score_study", "ratings", "--metric=rouge1", "--dry-run")
    assert output.startswith(
        "rouge1: 4 texts to compute for 4 candidates, of which 0 are scored already and 0 have"
    )
    assert not ScoringRun.objects.exists()


def test_a_program_may_read_what_was_scored():
    rating_study(n_items=2)
    command_output("score_study", "ratings", "--metric=rouge1")
    [scored, _] = json.loads(
        command_output("score_study", "ratings", "--metric=rouge1", "--metric=chrf", "--json")
    )
    assert (scored["metric"], scored["n_scored"], scored["n_known"]) == ("rouge1", 0, 4)
    [plan] = json.loads(
        command_output("score_study", "ratings", "--metric=ter", "--dry-run", "--json")
    )
    assert (plan["metric"], plan["examples"], plan["n_candidates"]) == ("ter", 4, 4)


def test_parameters_are_part_of_the_signature_that_is_scored():
    rating_study(n_items=1)
    command_output("score_study", "ratings", "--metric=rouge1", "--set=rouge1.tokenizer=unicode")
    assert "tokenizer:unicode" in ScoringRun.objects.first().signature


def test_each_output_has_its_own_better_direction():
    rating_study(n_items=1)
    command_output("score_study", "ratings", "--metric=rouge1", "--metric=ter")
    lower = set(ScoringRun.objects.filter(higher_is_better=False).values_list("metric", flat=True))
    assert "ter" in lower
    assert "rouge1" not in lower


def test_a_dry_run_of_a_judge_estimates_what_it_would_cost(settings):
    settings.JUDGE = {"JUDGE_MODEL": "tiny"}
    rating_study(n_items=2)
    [plan] = json.loads(
        command_output("score_study", "ratings", "--metric=judge", "--dry-run", "--json")
    )
    assert plan["estimate"]["requests"] == 4
    assert plan["estimate"]["prompt_tokens"] > 4 * 10
    assert float(plan["estimate"]["usd"]) == 0
    output = command_output("score_study", "ratings", "--metric=judge", "--dry-run")
    assert "Estimated: 4 requests, about " in output


def test_a_metric_without_an_endpoint_has_no_estimate():
    rating_study(n_items=1)
    [plan] = json.loads(
        command_output("score_study", "ratings", "--metric=rouge1", "--dry-run", "--json")
    )
    assert plan["estimate"] is None
