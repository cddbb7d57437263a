import pytest
from django.db import IntegrityError

from annotation.models import Candidate
from metrics.models import Score, ScoringRun
from tests.annotation.studies import rating_study

pytestmark = pytest.mark.django_db


@pytest.fixture
def run():
    return ScoringRun.objects.create(study=rating_study(), metric="nll", signature="nll|v:1")


def test_a_score_without_a_value_must_have_a_reason(run):
    candidate = Candidate.objects.first()
    with pytest.raises(IntegrityError, match="undefined_has_a_reason"):
        Score.objects.create(run=run, candidate=candidate)


def test_a_score_of_zero_needs_no_reason(run):
    score = Score.objects.create(run=run, candidate=Candidate.objects.first(), value=0)
    assert str(score).endswith("= 0")


def test_a_candidate_has_one_score_in_a_run(run):
    candidate = Candidate.objects.first()
    Score.objects.create(run=run, candidate=candidate, value=1)
    with pytest.raises(IntegrityError):
        Score.objects.create(run=run, candidate=candidate, value=2)


def test_a_study_has_one_run_of_a_metric_and_signature(run):
    with pytest.raises(IntegrityError):
        ScoringRun.objects.create(study=run.study, metric=run.metric, signature=run.signature)


def test_runs_are_those_of_the_study_asked_for(run):
    assert [str(stored) for stored in ScoringRun.objects.of(run.study)] == ["nll"]
    assert not ScoringRun.objects.of(rating_study("other")).exists()


def test_counting_a_run_without_scores_gives_zeros(run):
    [counted] = ScoringRun.objects.of(run.study).counted()
    assert (counted.n_scores, counted.n_undefined) == (0, 0)


def test_scores_go_with_their_study(run):
    Score.objects.create(run=run, candidate=Candidate.objects.first(), value=1)
    run.study.delete()
    assert not Score.objects.exists()
