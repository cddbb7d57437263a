"""Workers who shared a device: what an Assay marketplace counts, stored for the review desk.

Other marketplaces say nothing of devices.
"""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from hits import requester_api
from hits.exceptions import MarketplaceFault
from hits.foreign_records import count, identifier
from hits.models import Assignment, Batch, SharedDevice, Worker

MOST_ROWS = 10_000
MOST_OTHERS = 10


def fetch_shared_devices(*, batch: Batch) -> int:
    """Store anew which of a batch's workers shared a device; return how many."""
    prefix = {"annotation_prefix": f"assay:{batch.key}:"}
    answer = requester_api.post(batch.connection, "/devices", prefix)
    if answer is None:
        return 0
    listed = answer.get("shared_devices")
    if not isinstance(listed, list) or not all(isinstance(row, dict) for row in listed):
        raise MarketplaceFault(_("it sent no list of shared devices"), code="not_a_list")
    workers = _workers_of(batch)
    pseudonyms = _pseudonyms_of(batch)
    rows = [_row(batch, row, workers, pseudonyms) for row in listed[:MOST_ROWS]]
    known = [row for row in rows if row is not None]
    with transaction.atomic():
        SharedDevice.objects.filter(batch=batch).delete()
        SharedDevice.objects.bulk_create(known, ignore_conflicts=True)
    return len(known)


def _row(
    batch: Batch, row: dict[str, Any], workers: dict[str, Worker], pseudonyms: dict[str, str]
) -> SharedDevice | None:
    """One worker's; None of a worker of whom nothing is collected yet."""
    worker = workers.get(identifier(row, "worker_id"))
    others = row.get("others")
    if not isinstance(others, list) or not all(isinstance(each, str) for each in others):
        raise MarketplaceFault(
            _("the other workers of a device are not a list of ids"), code="not_ids"
        )
    if worker is None:
        return None
    return SharedDevice(
        batch=batch,
        worker=worker,
        n_shared=count(row.get("n_shared"), "n_shared"),
        n=count(row.get("n"), "n"),
        n_others=count(row.get("n_others"), "n_others"),
        others=[pseudonyms[each] for each in others[:MOST_OTHERS] if each in pseudonyms],
    )


def _workers_of(batch: Batch) -> dict[str, Worker]:
    rows = Worker.objects.filter(assignments__hit__batch=batch).distinct()
    return {worker.worker_id: worker for worker in rows}


def _pseudonyms_of(batch: Batch) -> dict[str, str]:
    read = Assignment.objects.of(batch).exclude(submission=None).order_by()
    return dict(read.values_list("worker__worker_id", "submission__annotator__pseudonym"))
