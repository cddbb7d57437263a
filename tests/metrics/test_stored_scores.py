import math
from importlib import import_module
from types import SimpleNamespace

import pytest
from django.apps import apps
from django.db import IntegrityError, connection

from annotation.models import Candidate
from metrics.file_scores import score_file
from metrics.frames import COLUMNS, score_frame
from metrics.models import Score, ScoringRun
from metrics.score_files import read_scores
from metrics.score_plans import plan_scoring
from metrics.scorers.registry import build
from metrics.stored_scores import write_scores
from metrics.study_scores import score_study
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


def test_a_study_has_one_run_of_a_metric_and_signature(run):
    with pytest.raises(IntegrityError):
        ScoringRun.objects.create(study=run.study, metric=run.metric, signature=run.signature)


def test_runs_and_scores_are_of_their_study(run):
    assert [str(stored) for stored in ScoringRun.objects.of(run.study)] == ["nll"]
    assert not ScoringRun.objects.of(rating_study("other")).exists()
    [counted] = ScoringRun.objects.of(run.study).counted()
    assert (counted.n_scores, counted.n_undefined) == (0, 0)
    score = Score.objects.create(run=run, candidate=Candidate.objects.first(), value=0)
    assert str(score).endswith("= 0")
    run.study.delete()
    assert not Score.objects.exists()


def test_rows_follow_the_runs_then_the_items_then_the_candidates():
    study = rating_study(n_items=2)
    candidates = [("d1", "beta"), ("d0", "beta"), ("d0", "alpha"), ("d1", "alpha")]
    for metric in ("zeta", "eta"):
        values = {key: float(number) for number, key in enumerate(candidates)}
        write_scores(study=study, metric=metric, signature=f"{metric}|v:1", values=values)
    frame = score_frame(study)
    assert list(frame["metric"]) == ["zeta"] * 4 + ["eta"] * 4
    assert list(frame["item"][:4]) == ["d0", "d0", "d1", "d1"]
    assert list(frame["candidate"][:4]) == ["alpha", "beta", "alpha", "beta"]
    assert list(frame["value"][:4]) == [2, 1, 3, 0]


def test_an_undefined_score_is_nan_beside_its_reason():
    study = rating_study(n_items=1)
    assert list(score_frame(study).columns) == list(COLUMNS)
    assert score_frame(study).dtypes["value"] == "float64"
    values = {("d0", "alpha"): math.nan, ("d0", "beta"): 0.0}
    write_scores(study=study, metric="nll", signature="nll|v:1", values=values)
    undefined, zero = score_frame(study).itertuples()
    assert math.isnan(undefined.value)
    assert undefined.reason
    assert (zero.value, zero.reason) == (0, "")


def test_reading_takes_one_query_however_many_scores(django_assert_num_queries):
    study = rating_study(n_items=9)
    values = {(f"d{number}", "alpha"): float(number) for number in range(9)}
    write_scores(study=study, metric="nll", signature="nll|v:1", values=values)
    with django_assert_num_queries(1):
        assert len(score_frame(study)) == 9


WORDS = "length|unit:words|tokenizer:unicode|version:1"
CHARACTERS = "length|unit:characters|version:1"


def signatures(study):
    return dict(ScoringRun.objects.of(study).values_list("metric", "signature"))


def test_lengths_in_words_and_in_characters_are_signed_apart_and_both_reused():
    study, other = rating_study("one"), rating_study("two")
    assert f"({WORDS})" in str(score_study(study=study, scorer=build("length")))
    assert signatures(study) == {"length": WORDS, "length_characters": CHARACTERS}
    plan = plan_scoring(study=other, scorer=build("length"))
    assert plan.n_reusable == plan.n_candidates > 0
    score_study(study=other, scorer=build("length"))
    counts = {
        metric: Score.objects.filter(run__study=other, run__metric=metric).count()
        for metric in signatures(other)
    }
    assert counts == dict.fromkeys(("length", "length_characters"), plan.n_candidates)


def test_lengths_that_were_stored_under_the_signature_of_words_are_signed_anew():
    study = rating_study("one")
    score_study(study=study, scorer=build("length"))
    ScoringRun.objects.update(signature=WORDS)  # as both were
    migration = import_module("metrics.migrations.0004_signatures_of_characters")
    migration.sign_characters(apps, SimpleNamespace(connection=connection))
    assert signatures(study) == {"length": WORDS, "length_characters": CHARACTERS}


def test_a_file_of_scores_signs_each_output(tmp_path):
    items, output = tmp_path / "items.jsonl", tmp_path / "scores.csv"
    items.write_text('{"item": "1", "system": "a", "response": "So it is."}\n')
    score_file(path=items, scorers=[build("length")], output=output)
    stored = {row.metric: (row.signature, row.value) for row in read_scores(output)}
    assert stored == {"length": (WORDS, 3.0), "length_characters": (CHARACTERS, 9.0)}
    again = score_file(path=items, scorers=[build("length")], output=output)
    assert [one.n_computed for one in again.outputs] == [0, 0]
    assert [one.signature for one in again.outputs] == [WORDS, CHARACTERS]
