"""Holds after the first HITs, and what a protocol keeps back from a rule's approval."""

import json

from accounts.models import User
from annotation.protocols.records import (
    Completion,
    ProtocolDocument,
    ProtocolQuestion,
    Qualifications,
)
from annotation.protocols.versions import save_draft
from console.launch_form import second_round
from console.worker_records import record_of
from hits.collect import collect_batch
from hits.exclusions import clear_workers
from hits.models import Assignment, Exclusion, Hit, Worker
from hits.review_rules import unflagged_assignments
from marketplace.exceptions import MarketplaceError
from tests.annotation.importing import command_output
from tests.annotation.studies import rating_study
from tests.hits.test_quality_checks import CHECKS, answer, careful, checked_study
from tests.hits.work import hand_in, hit_on, published_batch
from tests.marketplace.conftest import submit

LINE = ProtocolQuestion("appropriateness", "line", "How good?", low_label="bad", high_label="good")
VALUES = {"alpha": 10, "beta": 20}


def is_held(worker, study) -> bool:
    """Whether the review desk says so."""
    reader = User.objects.get_or_create(username="reader")[0]
    assignment = Assignment.objects.filter(worker=worker).first()
    return record_of(assignment, study, reader).is_held


def may_work(worker, hit) -> bool:
    try:
        hand_in(worker, hit, VALUES)
    except MarketplaceError:
        return False
    return True


def test_a_worker_waits_after_the_first_hits_until_someone_has_looked(client, ann, bob):
    study = rating_study(n_items=5)
    rules = Qualifications(hold_after_hits=2)
    save_draft(study=study, document=ProtocolDocument((LINE,), title="Rate", qualifications=rules))
    batch = published_batch(study, client, max_assignments=2)
    assert may_work(ann, hit_on(batch, "d0"))
    assert may_work(ann, hit_on(batch, "d1"))
    collect_batch(batch=batch, client=client)

    assert not may_work(ann, hit_on(batch, "d2"))
    assert may_work(bob, hit_on(batch, "d2"))  # who did none yet
    [held] = Exclusion.objects.of(batch)
    assert (held.worker.worker_id, held.reason) == (ann.worker_id, Exclusion.Reason.HELD)
    assert is_held(held.worker, study)

    assert clear_workers(study=study, workers=[held.worker], cleared_by=None) == 1
    assert not is_held(held.worker, study)
    collect_batch(batch=batch, client=client)
    assert may_work(ann, hit_on(batch, "d2"))
    assert may_work(ann, hit_on(batch, "d3"))
    collect_batch(batch=batch, client=client)
    assert may_work(ann, hit_on(batch, "d4"))  # once looked at, not held again
    assert not Exclusion.objects.of(batch).exists()


def test_workers_of_an_excluded_study_may_not_take_part(client, ann, bob):
    first, second = rating_study("first", n_items=1), rating_study("second", n_items=1)
    earlier = published_batch(first, client)
    hand_in(ann, hit_on(earlier, "d0"), VALUES)
    collect_batch(batch=earlier, client=client)
    rules = Qualifications(excluded_studies=("first",))
    save_draft(study=second, document=ProtocolDocument((LINE,), title="Rate", qualifications=rules))
    batch = published_batch(second, client, max_assignments=2)

    assert not may_work(ann, hit_on(batch, "d0"))
    assert may_work(bob, hit_on(batch, "d0"))
    assert Exclusion.objects.of(batch).get().worker == Worker.objects.get(worker_id=ann.worker_id)


def preview(study, **options):
    text = command_output("approve_study", study.slug, dry_run=True, json=True, **options)
    return json.loads(text)["batches"]


def test_held_work_is_approved_by_no_rule(client, ann, bob):
    study = checked_study(*CHECKS, n_items=4)
    batch = published_batch(study, client, max_assignments=2)
    for hit in Hit.objects.of(batch):
        submit(ann, hit.hit_id, answer=answer(hit, careful))
        submit(bob, hit.hit_id, answer=answer(hit, lambda each: 50))
    collect_batch(batch=batch, client=client)

    [outcome] = preview(study)
    assert (outcome["would_approve"], outcome["held"]) == (6, 2)  # two degraded ones failed
    [whole] = preview(study, with_held=True)
    assert whole["would_approve"] == 8
    held = set(Assignment.objects.held().values_list("pk", flat=True))
    taken = {one.pk for one in unflagged_assignments(study, hours=-1)}
    assert len(held) == 2
    assert taken
    assert not held & taken


def test_the_second_round_begins_with_the_protocols_share(client):
    study = rating_study(n_items=20)
    save_draft(
        study=study,
        document=ProtocolDocument(
            (LINE,), title="Rate", completion=Completion(second_round_share=0.1)
        ),
    )
    batch = published_batch(study, client)
    content = second_round(batch, [batch], 20)
    assert (content["n_items"], content["round"], content["of_round"]) == (2, 2, 1)
    assert content["excluded_rounds"] == "1"
