"""From a study's items to HITs on a marketplace, once each, however often it is tried."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from django.utils import timezone

from hits.costs import Estimate, estimate, price_hits, require_funds
from hits.endpoints import translated_errors
from hits.exceptions import BatchUnfit, MarketplaceRefused
from hits.exclusions import send_exclusions
from hits.models import Batch, Connection, Hit
from hits.pages import CHUNK
from hits.planning import add_hits
from hits.publishers import Waiting, sole_publisher, without_a_word
from hits.qualifications import requirements_of
from hits.questions import html_question
from presentation.progress import Progress, silently

if TYPE_CHECKING:
    from mypy_boto3_mturk.client import MTurkClient

# A marketplace forgets a UniqueRequestToken after a day; past this we ask before we repeat. The
# four hours between are for an attempt that begins within it and takes long.
TOKEN_TRUSTED_FOR = timedelta(hours=20)
HIT_ID = re.compile(r"\b[A-Z0-9]{20,64}\b")


@dataclass(frozen=True)
class Publication:
    """What one run published of a batch, and what that may cost; others' work is not in it."""

    n_hits: int
    cost: Estimate


def publish_batch(
    *,
    batch: Batch,
    client: MTurkClient,
    progress: Progress = silently,
    is_checking_funds: bool = False,
    waiting: Waiting = without_a_word,
) -> Publication:
    """Publish what is unpublished of a batch, after whoever else is publishing it.

    It can be stopped anywhere and run again: a HIT has one request token for all
    attempts, so that the marketplace itself refuses a second one and names the first.
    """
    if batch.closed_at:
        raise BatchUnfit(f"Batch {batch.pk} is closed; launch another one.")
    _require_open(batch.connection)
    n_by_size: Counter[int] = Counter()
    with sole_publisher(batch, waiting) as publisher:
        if batch.is_of_all_items and batch.closed_at is None:
            add_hits(batch=batch)
        if is_checking_funds:
            require_funds(cost=estimate(batch), client=client)
        if (first := Hit.objects.due(batch).first()) is not None:
            _start(batch, client, wave=first.wave)
        # Less those of an earlier attempt, which starting has found.
        due = list(Hit.objects.due(batch).values_list("pk", flat=True))
        for hit in progress(_in_chunks(due), len(due)):
            hit_id = _create_hit(client, hit, html_question(hit.item))
            is_ours = Hit.objects.filter(pk=hit.pk, hit_id="").update(hit_id=hit_id)
            n_by_size[hit.n_assignments] += is_ours
            publisher.renew()
    return Publication(n_by_size.total(), price_hits(batch, n_by_size))


def _require_open(connection: Connection) -> None:
    if connection.closed_at is not None:
        raise BatchUnfit(
            f"Connection '{connection}' is closed, so nothing more is published over it. What is "
            "out is collected and paid all the same."
        )


def _in_chunks(keys: list[int]) -> Iterator[Hit]:
    """The HITs with all that their pages show, not all in memory at once."""
    shown = Hit.objects.select_related("batch__connection", "item__study", "item__picture")
    shown = shown.prefetch_related("item__candidates__picture", "item__study__questions")
    for start in range(0, len(keys), CHUNK):
        yield from shown.filter(pk__in=keys[start : start + CHUNK])


def _start(batch: Batch, client: MTurkClient, *, wave: int) -> None:
    """Exclude workers, give the batch its HIT type, find HITs of an attempt that is long past."""
    now, started = timezone.now(), batch.publishing_started_at
    if started and now - started > TOKEN_TRUSTED_FOR:
        find_published(batch=batch, client=client)
        started = None
    send_exclusions(batch=batch, client=client, wave=wave)
    batch.hit_type_id = _create_hit_type(client, batch)
    # The first attempt whose tokens we still rely on, and not the latest one.
    batch.publishing_started_at = started or now
    batch.save(update_fields=["hit_type_id", "publishing_started_at"])


def _create_hit_type(client: MTurkClient, batch: Batch) -> str:
    with translated_errors():
        answer = client.create_hit_type(
            Title=batch.title,
            Description=batch.description,
            Keywords=batch.keywords,
            Reward=str(batch.reward_usd),
            AssignmentDurationInSeconds=batch.assignment_duration_seconds,
            AutoApprovalDelayInSeconds=batch.auto_approval_delay_seconds,
            QualificationRequirements=requirements_of(batch),
        )
    return answer["HITTypeId"]


def _create_hit(client: MTurkClient, hit: Hit, question: str) -> str:
    try:
        with translated_errors():
            answer = client.create_hit_with_hit_type(
                HITTypeId=hit.batch.hit_type_id,
                MaxAssignments=hit.n_assignments,
                LifetimeInSeconds=hit.batch.lifetime_seconds,
                Question=question,
                RequesterAnnotation=hit.requester_annotation,
                UniqueRequestToken=hit.unique_request_token,
            )
    except MarketplaceRefused as refusal:
        existing = HIT_ID.search(refusal.message)
        if refusal.says("HitAlreadyExists") and existing:
            return existing.group()
        raise
    return answer["HIT"]["HITId"]


def find_published(*, batch: Batch, client: MTurkClient) -> int:
    """Look among the requester's HITs for those of this batch that our record lacks."""
    unpublished = Hit.objects.of(batch).unpublished().select_related("batch")
    lost = {hit.requester_annotation: hit.pk for hit in unpublished}
    found = 0
    for annotation, hit_id in _listed(client) if lost else ():
        if annotation in lost:
            Hit.objects.filter(pk=lost[annotation], hit_id="").update(hit_id=hit_id)
            found += 1
    return found


def _listed(client: MTurkClient) -> Iterator[tuple[str, str]]:
    """Annotation and id of all the requester's HITs, the newest first."""
    with translated_errors():
        for page in client.get_paginator("list_hits").paginate(PaginationConfig={"PageSize": 100}):
            for listed in page["HITs"]:
                yield listed.get("RequesterAnnotation", ""), listed["HITId"]
