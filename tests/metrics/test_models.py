import pytest
from django.db import IntegrityError

from annotation.models import Candidate
from metrics.models import Score, ScoringRun
from tests.annotation.studies import rating_study

pytestmark = pytest.mark.django_db


@pytest.fixture
def run():
    return ScoringRun.objects.create(study=rating_study(), metric="nll", signature="nll|v:1")


@pytest.mark.parametrize("values", [[None], [1, 2]])
def test_a_candidate_has_one_score_in_a_run_with_a_value_or_a_reason(run, values):
    candidate = Candidate.objects.first()
    *before, last = values
    for value in before:
        Score.objects.create(run=run, candidate=candidate, value=value)
    with pytest.raises(IntegrityError):
        Score.objects.create(run=run, candidate=candidate, value=last)


def test_a_score_of_zero_needs_no_reason(run):
    score = Score.objects.create(run=run, candidate=Candidate.objects.first(), value=0)
    assert str(score).endswith("= 0")


def test_a_study_has_one_run_of_a_metric_and_signature(run):
    with pytest.raises(IntegrityError):
        ScoringRun.objects.create(study=run.study, metric=run.metric, signature=run.signature)


def test_runs_are_those_of_the_study_asked_for_and_counted_as_zero_without_scores(run):
    assert [str(stored) for stored in ScoringRun.objects.of(run.study)] == ["nll"]
    assert not ScoringRun.objects.of(rating_study("other")).exists()
    [counted] = ScoringRun.objects.of(run.study).counted()
    assert (counted.n_scores, counted.n_undefined) == (0, 0)


def test_scores_go_with_their_study(run):
    Score.objects.create(run=run, candidate=Candidate.objects.first(), value=1)
    run.study.delete()
    assert not Score.objects.exists()
