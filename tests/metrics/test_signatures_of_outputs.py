"""Each output of a scorer is stored under what it depends on itself."""

from importlib import import_module
from types import SimpleNamespace

import pytest
from django.apps import apps
from django.db import connection

from metrics.file_scores import score_file
from metrics.models import Score, ScoringRun
from metrics.score_files import read_scores
from metrics.score_plans import plan_scoring
from metrics.scorers.registry import build
from metrics.study_scores import score_study
from tests.annotation.studies import rating_study

WORDS = "length|unit:words|tokenizer:unicode|version:1"
CHARACTERS = "length|unit:characters|version:1"


def signatures(study):
    return dict(ScoringRun.objects.of(study).values_list("metric", "signature"))


@pytest.mark.django_db
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


@pytest.mark.django_db
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
