"""Whether answers depend on the position at which candidates were shown."""

import pytest

from annotation.agreement_versions import agreement_records, compute_agreement
from annotation.flags import store_evidence
from annotation.models import Submission
from tests.annotation.preferences import prefer, preferences, turns
from tests.annotation.studies import rate, rating_study

pytestmark = pytest.mark.django_db


def test_a_worker_who_always_picks_the_first_is_flagged_though_nobody_else_answers() -> None:
    study = preferences()
    prefer(study, "Ann", [(first, first) for first in turns(10)])
    [flag] = store_evidence(study).annotator_flags.all()
    assert (flag.name, flag.n, flag.n_hits) == ("position", 10, 10)
    assert (flag.expected, flag.value) == (5, 1)
    assert not Submission.objects.filter(evidence__is_flagged=False).exists()

    fixed = preferences(policy="fixed", slug="fixed")
    prefer(fixed, "Ann", [(first, first) for first in turns(10)])
    assert not store_evidence(fixed).annotator_flags.exists()


def test_a_study_reports_what_being_shown_first_adds_with_its_interval() -> None:
    study = preferences()
    # Of ten pages each, Ann chooses the first shown on seven and Bob on six.
    for person, n_first in (("Ann", 7), ("Bob", 6)):
        chosen = [
            (first, first if number < n_first else {"alpha": "beta", "beta": "alpha"}[first])
            for number, first in enumerate(turns(10))
        ]
        prefer(study, person, chosen)

    rows = agreement_records(compute_agreement(study))["positions"]

    every, ann, bob = rows
    assert [row["annotator"] for row in rows] == ["", "Ann", "Bob"]
    assert (every["n_pages"], every["n_annotators"], every["question"]) == (20, 2, "better")
    assert every["first"] == pytest.approx(13 / 20)
    assert every["last"] == pytest.approx(7 / 20)
    assert every["value"] == pytest.approx(6 / 20)
    assert every["ci_low"] < 0 < every["ci_high"]
    assert (ann["value"], bob["value"]) == (pytest.approx(0.4), pytest.approx(0.2))


def test_there_is_no_position_effect_of_answers_in_a_fixed_or_unknown_order() -> None:
    study = preferences(policy="fixed")
    prefer(study, "Ann", [(first, first) for first in turns(10)])
    assert agreement_records(compute_agreement(study))["positions"] == []
    uploaded = rating_study("uploaded")
    rate(uploaded, "Ann", "d0", {"alpha": 80, "beta": 20})
    assert agreement_records(compute_agreement(uploaded))["positions"] == []
