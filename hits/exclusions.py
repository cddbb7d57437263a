"""Keeping workers away from a batch, by a qualification that they are granted silently.

One QualificationType a batch, which no worker may hold who takes its HITs, serves all reasons:
a list, an earlier round, an earlier wave, a maximum per worker.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from django.db.models import Count, QuerySet

from hits.endpoints import translated_errors
from hits.exceptions import MarketplaceRefused
from hits.models import Assignment, Batch, Exclusion, Sending, Worker

if TYPE_CHECKING:
    from mypy_boto3_mturk.client import MTurkClient

Reason = Exclusion.Reason
EXISTS = "QualificationTypeAlreadyExists"
DESCRIPTION = "Held by workers for whom a group of HITs has no more work."


def exclude_workers(
    *, batch: Batch, worker_ids: Iterable[str], reason: Exclusion.Reason = Reason.LISTED
) -> None:
    """Write down that a batch admits these workers no more; the marketplace is told later."""
    marketplace = batch.connection.marketplace
    ids = list(dict.fromkeys(worker_ids))
    Worker.objects.bulk_create(
        (Worker(marketplace=marketplace, worker_id=each) for each in ids), ignore_conflicts=True
    )
    workers = Worker.objects.filter(marketplace=marketplace, worker_id__in=ids)
    _write(batch, workers, reason)


def _write(batch: Batch, workers: QuerySet[Worker], reason: Exclusion.Reason) -> None:
    new = workers.exclude(pk__in=Exclusion.objects.of(batch).values("worker"))
    Exclusion.objects.bulk_create(
        [Exclusion(batch=batch, worker=worker, reason=reason) for worker in new],
        ignore_conflicts=True,
    )


def excludes_workers(batch: Batch) -> bool:
    """Whether a batch needs its qualification of exclusion, now or later."""
    return (
        bool(batch.excluded_rounds or batch.max_per_worker)
        or len(batch.hit_sizes) > 1
        or (batch.pk is not None and Exclusion.objects.of(batch).exists())
    )


def exclusion_requirement(batch: Batch) -> dict[str, Any]:
    """What a batch's HITs require: not to hold its qualification of exclusion."""
    return {
        "QualificationTypeId": batch.exclusion_type_id,
        "Comparator": "DoesNotExist",
        "ActionsGuarded": "DiscoverPreviewAndAccept",
    }


def send_exclusions(*, batch: Batch, client: MTurkClient, wave: int = 0) -> int:
    """Exclude whoever is to be excluded by now, on the marketplace too; return how many.

    With `wave`, those too who worked in the waves before it. What was sent is not sent again.
    """
    if not excludes_workers(batch):
        return 0
    _write_due(batch, wave)
    _require_type(batch, client)
    n_sent = 0
    for exclusion in Exclusion.objects.of(batch).unsent().select_related("worker"):
        n_sent += _send(client, batch, exclusion)
    return n_sent


def _write_due(batch: Batch, wave: int) -> None:
    same = Assignment.objects.filter(
        hit__batch__study=batch.study_id, hit__batch__connection__marketplace=_marketplace(batch)
    ).order_by()
    earlier = same.filter(hit__batch__round__in=batch.excluded_rounds)
    _write(batch, Worker.objects.filter(pk__in=earlier.values("worker")), Reason.EARLIER_ROUND)
    if wave > 1:
        waves = Assignment.objects.of(batch).filter(hit__wave__lt=wave).order_by()
        _write(batch, Worker.objects.filter(pk__in=waves.values("worker")), Reason.EARLIER_WAVE)
    if batch.max_per_worker:
        of_round = same.filter(hit__batch__round=batch.round).values("worker")
        full = of_round.annotate(n=Count("pk")).filter(n__gte=batch.max_per_worker)
        _write(batch, Worker.objects.filter(pk__in=full.values("worker")), Reason.LIMIT)


def _marketplace(batch: Batch) -> str:
    return batch.connection.marketplace


def _require_type(batch: Batch, client: MTurkClient) -> None:
    """The batch's qualification type: made, or the one that an attempt made whose answer was
    lost."""
    if batch.exclusion_type_id:
        return
    batch.exclusion_type_id = _created_type(batch, client)
    Batch.objects.filter(pk=batch.pk).update(exclusion_type_id=batch.exclusion_type_id)


def _created_type(batch: Batch, client: MTurkClient) -> str:
    name = f"Assay {batch.key}: no more HITs"
    try:
        with translated_errors():
            answer = client.create_qualification_type(
                Name=name, Description=DESCRIPTION, QualificationTypeStatus="Active"
            )
    except MarketplaceRefused as refusal:
        existing = _type_named(client, name) if refusal.says(EXISTS) else None
        if existing is None:
            raise
        return existing
    return answer["QualificationType"]["QualificationTypeId"]


def _type_named(client: MTurkClient, name: str) -> str | None:
    with translated_errors():
        pages = client.get_paginator("list_qualification_types").paginate(
            Query=name, MustBeRequestable=False, MustBeOwnedByCaller=True
        )
        for page in pages:
            for each in page["QualificationTypes"]:
                if each["Name"] == name:
                    return each["QualificationTypeId"]
    return None


def _send(client: MTurkClient, batch: Batch, exclusion: Exclusion) -> bool:
    """Grant the qualification, which may be repeated; True unless the worker is unknown there."""
    state, problem = Sending.CONFIRMED, ""
    try:
        with translated_errors():
            client.associate_qualification_with_worker(
                QualificationTypeId=batch.exclusion_type_id,
                WorkerId=exclusion.worker.worker_id,
                IntegerValue=1,
                SendNotification=False,
            )
    except MarketplaceRefused as refusal:
        if not refusal.code.startswith("AWS.MechanicalTurk."):
            raise
        state, problem = Sending.REFUSED, refusal.message
    Exclusion.objects.filter(pk=exclusion.pk).update(state=state, problem=problem)
    return state is Sending.CONFIRMED
