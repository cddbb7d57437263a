import pytest
from django.utils import timezone

from accounts.models import AuditEntry
from annotation import agreement, frames, label_sets
from annotation.models import Study, Submission
from hits import changes, collect, exceptions, models, plans, studies
from marketplace.models import PayoutBatch, WorkerAccount
from marketplace.money import reconciliation, transfers
from marketplace.people.erasure import erase_worker
from retrieval.exports.qrels import stream_label_qrels, stream_qrels
from tests.annotation.studies import alternatives_study, rating_study
from tests.codes import refused
from tests.console.filled import add_batch
from tests.hits.work import batch_of, hand_in, hit_on, published_batch

pytestmark = pytest.mark.django_db


@pytest.fixture
def study():
    return rating_study("mine")


@pytest.fixture
def batch(study):
    batch = add_batch(study, n_published=1)
    models.Batch.objects.update(publishing_started_at=timezone.now())
    return batch


def test_a_study_without_batches_goes_in_and_out_and_both_are_logged(study):
    studies.archive_study(study=study, actor=None)
    assert list(Study.objects.archived()) == [study]
    studies.archive_study(study=study, actor=None)
    studies.restore_study(study=study, actor=None)
    assert list(Study.objects.current()) == [study]
    actions = AuditEntry.objects.order_by("pk").values_list("action", flat=True)
    assert list(actions) == ["study.archive", "study.restore"]


def test_nothing_of_an_archived_study_is_launched_or_changed(study, batch):
    Study.objects.update(archived_at=timezone.now())
    with refused(exceptions.BatchUnfit, "archived"):
        batch_of(study, round=2)
    with refused(exceptions.BatchUnfit, "archived"):
        plans.add_hits(batch=batch)
    with refused(exceptions.ChangeUnfit, "archived"):
        changes.end_batch(batch=batch, actor=None)


@pytest.fixture
def judged(client, make_worker):
    study = alternatives_study()
    batch = published_batch(study, client, max_assignments=3)
    for name, clog, flat in (("ann", 1, 1), ("bob", 1, 0), ("cleo", 0, 1)):
        ticks = {"clog": clog, "pump": 0, "flat": flat}
        answer = hand_in(make_worker(name), hit_on(batch, "boot"), ticks)
        client.approve_assignment(AssignmentId=answer)
    collect.collect_batch(batch=batch, client=client)
    transfers.make_batch()
    transfers.mark_paid(PayoutBatch.objects.get().payouts.all())
    return study, batch


def numbers(study):
    rule = label_sets.Rule(method="majority")
    label_set = label_sets.make_label_set(question=study.questions.get(), rule=rule).label_set
    return {
        "judgments": frames.judgment_frame(study).to_csv(index=False),
        "agreement": repr(agreement.study_agreement(study)),
        "qrels": "".join(stream_qrels(study)).splitlines(),
        "labels": "".join(stream_label_qrels(label_set)).splitlines(),
    }


@pytest.mark.slow
def test_agreement_labels_and_qrels_are_unchanged_to_the_last_digit(judged, client):
    study, batch = judged
    before = numbers(study)
    assert len(before["qrels"]) == 3
    coefficients = agreement.study_agreement(study).questions[0].coefficients
    [alpha] = [each.value for each in coefficients if each.name == "krippendorff_alpha"]
    assert 0 < alpha < 1
    for worker in WorkerAccount.objects.all():
        erase_worker(worker)
        assert numbers(study) == before
    # What is lost and collected again is the same: the marketplace keeps it by the pseudonym.
    models.Assignment.objects.all().delete()
    Submission.objects.all().delete()
    collect.collect_batch(batch=batch, client=client)
    assert numbers(study) == before
    assert reconciliation.audit() == []
