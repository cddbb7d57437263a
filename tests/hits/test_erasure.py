"""A worker's data are erased: the study that the worker judged for keeps every digit."""

import pytest

from annotation.agreement import study_agreement
from annotation.frames import judgment_frame
from annotation.label_sets import Rule, make_label_set
from annotation.models import Submission
from hits.collect import collect_batch
from hits.models import Assignment
from marketplace.models import PayoutBatch, WorkerAccount
from marketplace.money import payouts
from marketplace.money.reconciliation import audit
from marketplace.people.erasure import erase_worker
from retrieval.exports.qrels import stream_label_qrels, stream_qrels
from tests.annotation.studies import alternatives_study
from tests.hits.work import hand_in, hit_on, published_batch

TICKS = {
    "ann": {"clog": 1, "pump": 0, "flat": 1},
    "bob": {"clog": 1, "pump": 0, "flat": 0},
    "cleo": {"clog": 0, "pump": 0, "flat": 1},
}


@pytest.fixture
def judged(client, make_worker):
    """A study that three workers judged, were paid for, and that was collected."""
    study = alternatives_study()
    batch = published_batch(study, client, max_assignments=3)
    for name, ticks in TICKS.items():
        answer = hand_in(make_worker(name), hit_on(batch, "boot"), ticks)
        client.approve_assignment(AssignmentId=answer)
    collect_batch(batch=batch, client=client)
    payouts.make_batch()
    payouts.mark_paid(PayoutBatch.objects.get().payouts.all())
    return study, batch


def numbers(study):
    """All that is computed of the judgments, each float by all of its digits."""
    rule = Rule(method="majority")
    label_set = make_label_set(question=study.questions.get(), rule=rule).label_set
    return {
        "judgments": judgment_frame(study).to_csv(index=False),
        "agreement": repr(study_agreement(study)),
        "qrels": "".join(stream_qrels(study)).splitlines(),
        "labels": "".join(stream_label_qrels(label_set)).splitlines(),
    }


@pytest.mark.slow
def test_agreement_labels_and_qrels_are_unchanged_to_the_last_digit(judged, client):
    study, batch = judged
    before = numbers(study)
    assert len(before["qrels"]) == 3
    [coefficient] = [
        each
        for each in study_agreement(study).questions[0].coefficients
        if each.name == "krippendorff_alpha"
    ]
    assert 0 < coefficient.value < 1
    for worker in WorkerAccount.objects.all():
        erase_worker(worker)
        assert numbers(study) == before
    # What is lost and collected again is the same: the marketplace keeps it by the pseudonym.
    Assignment.objects.all().delete()
    Submission.objects.all().delete()
    collect_batch(batch=batch, client=client)
    again = numbers(study)
    assert again == before
    assert audit() == []
