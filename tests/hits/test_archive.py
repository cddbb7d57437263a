"""Studies put out of the way: when, and what of them then stays undone."""

from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.models import AuditEntry
from annotation.models import Study
from hits.archive import archive_study, restore_study, unfinished_work
from hits.changes import expire_batch
from hits.exceptions import BatchUnfit, ChangeUnfit, StudyUnfinished
from hits.launch_plans import add_hits
from hits.models import Assignment, Batch, Hit
from tests.annotation.studies import rating_study
from tests.codes import codes_of, refused
from tests.console.filled import add_assignment, add_batch
from tests.hits.work import batch_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def study():
    return rating_study("mine")


@pytest.fixture
def batch(study):
    batch = add_batch(study, n_published=1)
    Batch.objects.update(publishing_started_at=timezone.now())
    return batch


def test_a_study_without_batches_goes_in_and_out_and_both_are_logged(study):
    archive_study(study=study, actor=None)
    assert list(Study.objects.archived()) == [study]
    archive_study(study=study, actor=None)
    restore_study(study=study, actor=None)
    assert list(Study.objects.current()) == [study]
    actions = AuditEntry.objects.order_by("pk").values_list("action", flat=True)
    assert list(actions) == ["study.archive", "study.restore"]


def test_what_is_on_offer_or_waits_for_a_decision_holds_it_back(study, batch):
    add_assignment(Hit.objects.of(batch).first())
    assert codes_of(unfinished_work(study)) == ["open_batches", "undecided_work"]
    with pytest.raises(StudyUnfinished):
        archive_study(study=study, actor=None)
    Batch.objects.update(expires_at=timezone.now() - timedelta(minutes=1))
    assert codes_of(unfinished_work(study)) == ["undecided_work"]
    Assignment.objects.update(status=Assignment.Status.APPROVED)
    archive_study(study=study, actor=None)
    assert Study.objects.archived().exists()


def test_nothing_of_an_archived_study_is_launched_or_changed(study, batch):
    Study.objects.update(archived_at=timezone.now())
    with refused(BatchUnfit, "archived"):
        batch_of(study, round=2)
    with refused(BatchUnfit, "archived"):
        add_hits(batch=batch)
    with refused(ChangeUnfit, "archived"):
        expire_batch(batch=batch, actor=None)
