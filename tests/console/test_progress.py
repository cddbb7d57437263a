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


def test_a_study_without_batches_has_zeros():
    assert numbers(rating_study()) == (0, 0, 0, 0, 0)


def test_unpublished_hits_want_no_assignments():
    study = rating_study()
    add_batch(study, n_published=0)
    assert numbers(study) == (3, 0, 0, 0, 0)


def test_batches_are_added_up_each_with_its_number_of_workers():
    study = rating_study()
    first = add_batch(study, n_published=3, max_assignments=2)
    second = add_batch(study, n_published=1, max_assignments=5, round=2)
    for worker in ("A1", "A2"):
        add_assignment(first.hits.first(), worker)
    add_assignment(second.hits.first(), "A1")
    assert numbers(study) == (6, 4, 3 * 2 + 5, 3, 0)


def test_an_assignment_that_waits_to_be_read_is_not_unreadable():
    study = rating_study()
    hit = add_batch(study).hits.first()
    add_assignment(hit, "A1")
    assignment = add_assignment(hit, "A2", problem="It is empty.")
    assert numbers(study) == (3, 1, 3, 2, 1)
    assert list(unreadable_assignments(study)) == [assignment]


def test_other_studies_do_not_count():
    study, other = rating_study(), rating_study("other")
    add_assignment(add_batch(other).hits.first(), problem="It is empty.")
    assert numbers(study) == (0, 0, 0, 0, 0)
