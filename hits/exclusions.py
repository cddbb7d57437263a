"""Keeping workers away from a batch, by a qualification that they are granted silently.

One QualificationType a batch, which no worker may hold who takes its HITs, serves all reasons:
a list, an earlier round or wave, another study, a maximum per worker, and first HITs that nobody
has looked at yet.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from django.db.models import Count, QuerySet
from django.utils.translation import gettext as _

from accounts.models import User
from annotation.access import record_in
from annotation.models import Study
from annotation.protocols.records import Qualifications
from hits.calls import create_type
from hits.endpoints import translated_errors
from hits.exceptions import BatchUnfit, MarketplaceRefused
from hits.limits import earning
from hits.models import Assignment, Batch, DeliveryState, Exclusion, Worker, WorkerClearance

if TYPE_CHECKING:
    from mypy_boto3_mturk.client import MTurkClient

Reason = Exclusion.Reason
WORKER_ID = re.compile(r"[A-Z0-9]{1,64}")
MOST_NAMED = 5
DESCRIPTION = "Held by workers for whom a group of HITs has no more work."


def worker_id_errors(ids: Iterable[str]) -> list[str]:
    """What is wrong with ids that no worker could have; of the first few."""
    wrong = [each for each in ids if not WORKER_ID.fullmatch(each)]
    text = _("“%(id)s” is not a WorkerId: capitals and digits, at most 64.")
    return [text % {"id": each[:80]} for each in wrong[:MOST_NAMED]]


def exclude_workers(
    *, batch: Batch, worker_ids: Iterable[str], reason: Exclusion.Reason = Reason.LISTED
) -> None:
    """Write down that a batch admits these workers no more; the marketplace is told later."""
    marketplace = batch.connection.marketplace
    ids = list(dict.fromkeys(worker_ids))
    if errors := worker_id_errors(ids):
        raise BatchUnfit(" ".join(errors), code="worker_ids")
    Worker.objects.bulk_create(
        (Worker(marketplace=marketplace, worker_id=each) for each in ids), ignore_conflicts=True
    )
    workers = Worker.objects.filter(marketplace=marketplace, worker_id__in=ids)
    _write(batch, workers, reason)


def listed_workers(batch: Batch) -> list[str]:
    rows = Exclusion.objects.of(batch).filter(reason=Reason.LISTED)
    return list(rows.values_list("worker__worker_id", flat=True))


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
        or bool(_rules(batch).hold_after_hits or _rules(batch).excluded_studies)
        or batch.n_waves > 1
        or (batch.pk is not None and Exclusion.objects.of(batch).exists())
    )


def _rules(batch: Batch) -> Qualifications:
    return batch.document.qualifications


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
    _require_type(batch, client)
    _end_holds(batch, client)
    _write_due(batch, wave)
    n_sent = 0
    unsent = list(Exclusion.objects.of(batch).unsent().select_related("worker"))
    for exclusion in earning()(unsent, len(unsent)):
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
        full = of_round.annotate(n=Count("*")).filter(n__gte=batch.max_per_worker)
        _write(batch, Worker.objects.filter(pk__in=full.values("worker")), Reason.LIMIT)

    _write(batch, _workers_of_excluded_studies(batch), Reason.STUDY)
    if n_first := _rules(batch).hold_after_hits:
        _write(batch, workers_to_hold(batch.study, _marketplace(batch), n_first), Reason.HELD)


def _workers_of_excluded_studies(batch: Batch) -> QuerySet[Worker]:
    """Of studies of the same team, since others' workers are no business of this one."""
    slugs = _rules(batch).excluded_studies
    rows = Assignment.objects.filter(
        hit__batch__study__slug__in=slugs,
        hit__batch__study__team=batch.study.team_id,
        hit__batch__connection__marketplace=_marketplace(batch),
    )
    return Worker.objects.filter(pk__in=rows.order_by().values("worker"))


def workers_to_hold(study: Study, marketplace: str, n_first: int) -> QuerySet[Worker]:
    """Who did so many HITs of a study, and nobody has looked at them."""
    rows = Assignment.objects.filter(
        hit__batch__study=study, hit__batch__connection__marketplace=marketplace
    )
    counts = rows.order_by().values("worker").annotate(n=Count("*")).filter(n__gte=n_first)
    cleared = WorkerClearance.objects.filter(study=study).values("worker")
    return Worker.objects.filter(pk__in=counts.values("worker")).exclude(pk__in=cleared)


def clear_workers(*, study: Study, workers: Iterable[Worker], cleared_by: User | None) -> int:
    """Let workers go on whose first HITs somebody has looked at; return how many were not yet.

    The marketplace is told with the next collection.
    """
    known = {row.worker_id for row in WorkerClearance.objects.filter(study=study)}
    new = [worker for worker in workers if worker.pk not in known]
    WorkerClearance.objects.bulk_create(
        [WorkerClearance(study=study, worker=worker, cleared_by=cleared_by) for worker in new],
        ignore_conflicts=True,
    )
    details = {"workers": len(new)}
    if new:
        record_in(study, actor=cleared_by, action="workers.clear", details=details)
    return len(new)


def _end_holds(batch: Batch, client: MTurkClient) -> None:
    """Take the qualification back from held workers who were cleared since."""
    cleared = WorkerClearance.objects.filter(study=batch.study_id).values("worker")
    held = Exclusion.objects.of(batch).filter(reason=Reason.HELD, worker__in=cleared)
    for exclusion in held.select_related("worker"):
        try:
            with translated_errors():
                client.disassociate_qualification_from_worker(
                    QualificationTypeId=batch.exclusion_type_id,
                    WorkerId=exclusion.worker.worker_id,
                )
        except MarketplaceRefused as refusal:
            # Not granted, or taken back before: what is wanted is so.
            if not refusal.code.startswith("AWS.MechanicalTurk."):
                raise
        exclusion.delete()


def _marketplace(batch: Batch) -> str:
    return batch.connection.marketplace


def _require_type(batch: Batch, client: MTurkClient) -> None:
    """The batch's qualification type: made, or the one that an attempt made whose answer was
    lost."""
    if batch.exclusion_type_id:
        return
    name = f"Assay {batch.key}: no more HITs"
    batch.exclusion_type_id = create_type(client, name=name, description=DESCRIPTION)
    Batch.objects.filter(pk=batch.pk).update(exclusion_type_id=batch.exclusion_type_id)


def _send(client: MTurkClient, batch: Batch, exclusion: Exclusion) -> bool:
    """Grant the qualification, which may be repeated; True unless the worker is unknown there."""
    state, problem = DeliveryState.CONFIRMED, ""
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
        state, problem = DeliveryState.REFUSED, refusal.message
    Exclusion.objects.filter(pk=exclusion.pk).update(state=state, problem=problem)
    return state is DeliveryState.CONFIRMED
