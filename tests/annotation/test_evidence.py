"""What speaks against a submission, in numbers."""

import pytest

from annotation.evidence import FAR, FAST, PASTED, SAME
from annotation.flags import count_judgments_change, flags_of, store_evidence
from annotation.models import EvidenceVersion, Judgment, Submission, SubmissionEvidence
from tests.annotation.studies import rate, rating_study

SYSTEMS = ("a", "b", "c", "d")

pytestmark = pytest.mark.django_db


@pytest.fixture
def study():
    """Ann and Bob agree on two items and take their time."""
    study = rating_study(n_items=2, systems=SYSTEMS)
    for person in ("Ann", "Bob"):
        for item in ("d0", "d1"):
            add(study, person, item, (10, 30, 60, 90), seconds=120)
    return study


def add(study, person, item, values, *, seconds, **fields):
    submission = rate(study, person, item, dict(zip(SYSTEMS, values, strict=True)))
    Submission.objects.filter(pk=submission.pk).update(seconds=seconds, **fields)
    study.refresh_from_db()
    return submission.pk


def flags(study, submission):
    """As they are stored."""
    store_evidence(study)
    return flags_of(Submission.objects.select_related("evidence__version").get(pk=submission))


def names(study, submission):
    return [flag.name for flag in flags(study, submission)]


def test_careful_or_lone_work_has_no_flag(study):
    for submission in Submission.objects.all():
        assert names(study, submission.pk) == []
    other = rating_study("lone", systems=SYSTEMS)
    assert names(other, add(other, "Ann", "d0", (10, 30, 60, 90), seconds=5)) == []


def test_a_submission_far_faster_than_the_median_is_flagged_with_both_times(study):
    quick = add(study, "Eve", "d0", (10, 30, 60, 90), seconds=31)
    [flag] = flags(study, quick)
    assert (flag.name, flag.value, flag.typical) == (FAST, 31, 120)
    assert flag.n_careful_hit == 0
    assert flag.n_careful >= 4
    # The time in sight counts where it was measured.
    idle = add(study, "Fay", "d0", (10, 30, 60, 90), seconds=900, active_seconds=20)
    assert names(study, idle) == [FAST]


def test_answers_unlike_those_of_others_are_flagged(study):
    flat = add(study, "Eve", "d0", (50, 50, 50, 50), seconds=120)
    [flag] = [one for one in flags(study, flat) if one.name == SAME]
    assert (flag.value, flag.typical) == (1, 0.25)
    Submission.objects.filter(pk=flat).delete()
    pasted = add(study, "Gus", "d0", (10, 30, 60, 90), seconds=120, pasted=True)
    assert names(study, pasted) == [PASTED]
    Submission.objects.filter(pk=pasted).delete()
    reverse = add(study, "Fay", "d0", (90, 60, 30, 10), seconds=120)
    [flag] = flags(study, reverse)
    assert flag.name == FAR
    assert flag.value == pytest.approx((80 + 30 + 30 + 80) / 400)


def test_a_later_version_replaces_the_one_before(study):
    first = store_evidence(study)
    add(study, "Eve", "d0", (50, 50, 50, 50), seconds=31)
    count_judgments_change(study_ids=[study.pk])
    second = store_evidence(study)
    assert (first.version, second.version) == (1, 2)
    assert EvidenceVersion.objects.get() == second
    assert (second.n_submissions, second.typical_seconds) == (5, 120)
    assert SubmissionEvidence.objects.filter(is_flagged=True).count() == 1
    # What was measured of an earlier state does not replace a later one.
    EvidenceVersion.objects.update(judgments_version=study.judgments_version + 2)
    assert store_evidence(study).version == 2


def test_judgments_of_an_item_as_a_whole_are_compared_within_the_item():
    study = rating_study(n_items=2, systems=SYSTEMS)
    question = study.questions.get()
    for annotator in ("Ann", "Bob"):
        for item, value in (("d0", 0), ("d1", 100)):
            submission = rate(study, annotator, item, {})
            Judgment.objects.create(submission=submission, question=question, value=value)
    store_evidence(study)
    assert set(SubmissionEvidence.objects.values_list("distance", flat=True)) == {0}
