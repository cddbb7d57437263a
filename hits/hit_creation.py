"""One HIT at a marketplace, however often it is tried; and those that an attempt long past made."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from hits.endpoints import translated_errors
from hits.exceptions import MarketplaceRefused
from hits.foreign_records import identifier
from hits.listings import listed
from hits.models import Batch, Hit, PracticeHit

if TYPE_CHECKING:
    from mypy_boto3_mturk.client import MTurkClient

HIT_ID = re.compile(r"\b[A-Z0-9]{20,64}\b")


def create_hit(client: MTurkClient, hit: Hit | PracticeHit, hit_type_id: str, question: str) -> str:
    """The id of a HIT of that type: made, or the one that an attempt with its token made."""
    try:
        with translated_errors():
            answer = client.create_hit_with_hit_type(
                HITTypeId=hit_type_id,
                MaxAssignments=hit.n_assignments,
                LifetimeInSeconds=hit.batch.lifetime_seconds,
                Question=question,
                RequesterAnnotation=hit.requester_annotation,
                UniqueRequestToken=hit.unique_request_token,
            )
    except MarketplaceRefused as refusal:
        match = HIT_ID.search(refusal.message)
        if refusal.has_code("HitAlreadyExists") and match:
            return match.group()
        raise
    return identifier(answer["HIT"], "HITId")


def match_published(*, batch: Batch, client: MTurkClient) -> int:
    """Look among the requester's HITs for those of this batch that our record lacks."""
    rest: list[Hit | PracticeHit] = list(
        Hit.objects.of(batch).unpublished().select_related("batch")
    )
    rest += PracticeHit.objects.of(batch).unpublished().select_related("batch")
    by_annotation = {hit.requester_annotation: hit for hit in rest}
    n_matches = 0
    for annotation, hit_id in _hits_there(client) if by_annotation else ():
        if (hit := by_annotation.get(annotation)) is not None:
            type(hit).objects.filter(pk=hit.pk, hit_id="").update(hit_id=hit_id)
            n_matches += 1
    return n_matches


def _hits_there(client: MTurkClient) -> Iterator[tuple[str, str]]:
    """Annotation and id of all the requester's HITs, the newest first."""
    for hit in listed(client, "list_hits", "HITs", "HITId"):
        yield hit.get("RequesterAnnotation", ""), identifier(hit, "HITId")
