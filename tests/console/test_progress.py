import pytest

from annotation.models import Study
from hits.progress import StudyProgress, progress_counts, unreadable_assignments
from tests.annotation.studies import rating_study
from tests.console.filled import add_assignment, add_batch

pytestmark = pytest.mark.django_db


def numbers(study):
    counts = Study.objects.filter(pk=study.pk).values(**progress_counts()).get()
    progress = StudyProgress(**counts)
    return (
        progress.n_hits,
        progress.n_published,
        progress.n_offered,
        progress.n_collected,
        progress.n_unreadable,
    )


def test_progress_counts_hits_offers_answers_and_unreadable_answers():
    study, other = rating_study(), rating_study("other")
    add_assignment(add_batch(other).hits.first(), problem="It is empty.")
    assert numbers(study) == (0, 0, 0, 0, 0)
    add_batch(study, n_published=0)  # unpublished HITs want no assignments
    assert numbers(study) == (3, 0, 0, 0, 0)
    first = add_batch(study, n_published=3, max_assignments=2, round=2)
    second = add_batch(study, n_published=1, max_assignments=5, round=3)
    for worker in ("A1", "A2"):
        add_assignment(first.hits.first(), worker)
    add_assignment(second.hits.first(), "A1")
    assert numbers(study) == (9, 4, 3 * 2 + 5, 3, 0)
    assignment = add_assignment(second.hits.first(), "A2", problem="It is empty.")
    assert numbers(study) == (9, 4, 11, 4, 1)
    assert list(unreadable_assignments(study)) == [assignment]
