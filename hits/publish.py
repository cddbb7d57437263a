"""From a study's items to HITs on a marketplace, once each, however often it is tried."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from annotation.models import Study
from hits.connections import site_connection
from hits.costs import Estimate, estimate, price, require_funds
from hits.endpoints import translated_errors
from hits.exceptions import BatchUnfit, MarketplaceRefused
from hits.models import Batch, Connection, Hit
from hits.publishers import Waiting, sole_publisher, without_a_word
from hits.questions import html_question
from presentation.progress import Progress, silently

if TYPE_CHECKING:
    from mypy_boto3_mturk.client import MTurkClient

# A marketplace forgets a UniqueRequestToken after a day; past this we ask before we repeat. The
# four hours between are for an attempt that begins within it and takes long.
TOKEN_TRUSTED_FOR = timedelta(hours=20)
HIT_ID = re.compile(r"\b[A-Z0-9]{20,64}\b")
# Items with their pictures that are in memory at once.
CHUNK = 20


def draft_batch(
    *,
    study: Study,
    title: str,
    description: str,
    reward_usd: Decimal,
    connection: Connection | None = None,
    **settings: Any,
) -> Batch:
    """A batch of all the study's items as it would be, checked but not stored.

    Without a connection it is for the site's own, on this site's marketplace.
    """
    if not _is_in_cents(reward_usd):
        raise BatchUnfit(f"A reward of ${reward_usd} is not an amount in whole cents.")
    batch = Batch(
        study=study,
        title=title,
        description=description,
        reward_usd=reward_usd,
        connection=connection or site_connection(),
        **settings,
    )
    try:
        # Whether such a batch is there is for plan_batch to see, under a lock.
        batch.full_clean(validate_constraints=False)
    except ValidationError as problem:
        told = " ".join(f"{name}: {' '.join(said)}" for name, said in problem.message_dict.items())
        raise BatchUnfit(f"The batch cannot be published. {told}") from None
    _require_pages(study)
    return batch


def _is_in_cents(amount: Decimal) -> bool:
    exponent = amount.as_tuple().exponent
    return isinstance(exponent, int) and exponent >= -2 and amount >= 0


def _require_pages(study: Study) -> None:
    """Every item must make a page before money is spent on the first."""
    if not study.items.exists():
        raise BatchUnfit(f"Study '{study.slug}' has no items; import some first.")
    shown = study.items.select_related("study", "picture")
    shown = shown.prefetch_related("candidates__picture", "study__questions")
    for item in shown.iterator(chunk_size=CHUNK):
        try:
            html_question(item)
        except ValueError as problem:
            raise BatchUnfit(f"An item cannot be shown to workers: {problem}") from None


@dataclass(frozen=True)
class Plan:
    """A batch with a HIT for each item; `is_new` unless somebody planned it before."""

    batch: Batch
    is_new: bool


@transaction.atomic
def plan_batch(*, draft: Batch) -> Plan:
    """Store a drafted batch, or return the one of its study, round and marketplace.

    Whoever plans one at the same moment waits for the lock, and then finds the first one's.
    """
    Study.objects.select_for_update().get(pk=draft.study_id)
    planned = Batch.objects.planned_like(draft).select_related("study").first()
    if planned is not None:
        require_same_terms(
            planned, reward_usd=draft.reward_usd, max_assignments=draft.max_assignments
        )
        return Plan(planned, is_new=False)
    draft.save()
    add_hits(batch=draft)
    return Plan(draft, is_new=True)


def require_same_terms(batch: Batch, *, reward_usd: Decimal, max_assignments: int) -> None:
    """Refuse to go on with a batch under another price than the one it was planned with."""
    if (batch.reward_usd, batch.max_assignments) != (reward_usd, max_assignments):
        raise BatchUnfit(
            f"Round {batch.round} of study '{batch.study.slug}' is batch {batch.pk}, with --reward "
            f"{batch.reward_usd} and --assignments {batch.max_assignments}. Repeat those to go on "
            f"with it, or begin --round {batch.round + 1}."
        )


def add_hits(*, batch: Batch) -> None:
    """Give a HIT to every item that has none in the batch, such as one imported since."""
    bare = batch.study.items.exclude(pk__in=Hit.objects.of(batch).values("item"))
    Hit.objects.bulk_create(
        (Hit(batch=batch, item=item) for item in bare), batch_size=1000, ignore_conflicts=True
    )


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
    n_hits = 0
    with sole_publisher(batch, waiting) as publisher:
        add_hits(batch=batch)
        if is_checking_funds:
            require_funds(cost=estimate(batch), client=client)
        _start(batch, client)
        unpublished = list(Hit.objects.of(batch).unpublished().values_list("pk", flat=True))
        for hit in progress(_in_chunks(unpublished), len(unpublished)):
            hit_id = _create_hit(client, hit, html_question(hit.item))
            n_hits += Hit.objects.filter(pk=hit.pk, hit_id="").update(hit_id=hit_id)
            publisher.renew()
    return Publication(n_hits, price(batch, n_hits=n_hits))


def _in_chunks(keys: list[int]) -> Iterator[Hit]:
    """The HITs with all that their pages show, not all in memory at once."""
    shown = Hit.objects.select_related("batch__connection", "item__study", "item__picture")
    shown = shown.prefetch_related("item__candidates__picture", "item__study__questions")
    for start in range(0, len(keys), CHUNK):
        yield from shown.filter(pk__in=keys[start : start + CHUNK])


def _start(batch: Batch, client: MTurkClient) -> None:
    """Give the batch its HIT type, and find HITs of an earlier attempt that is long past."""
    now, started = timezone.now(), batch.publishing_started_at
    if started and now - started > TOKEN_TRUSTED_FOR:
        find_published(batch=batch, client=client)
        started = None
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
        )
    return answer["HITTypeId"]


def _create_hit(client: MTurkClient, hit: Hit, question: str) -> str:
    try:
        with translated_errors():
            answer = client.create_hit_with_hit_type(
                HITTypeId=hit.batch.hit_type_id,
                MaxAssignments=hit.batch.max_assignments,
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
