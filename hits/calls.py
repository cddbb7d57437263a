"""Calls to a marketplace: some at once, lists to their end, HITs and qualification types made once,
by one process at a time, and a HIT's answers.

Threads call, and do nothing else: whatever concerns the database stays with the caller's. That
nobody publishes a HIT twice rests on the request tokens alone: a publisher that was silent for too
long may be at work still. Taking turns is what keeps counts and costs exact."""

from __future__ import annotations

import re
import secrets
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from botocore.exceptions import PaginationError
from django.conf import settings
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from hits.endpoints import translated_errors
from hits.exceptions import MarketplaceFault, MarketplaceRefused
from hits.foreign_records import AssignmentRecord, assignment_record, identifier
from hits.limits import require_time_left
from hits.models import Batch, Hit, PracticeHit

if TYPE_CHECKING:
    from mypy_boto3_mturk.client import MTurkClient


Argument = TypeVar("Argument")
Result = TypeVar("Result")
# Calls that wait for a thread, so that none idles while the caller prepares the next.
AHEAD = 3


def calls_at_once(
    call: Callable[[Argument], Result], arguments: Iterable[Argument]
) -> Iterator[tuple[Argument, Result]]:
    """Each argument with what the call returned, in their order.

    After an error nothing more is called; what the others were answered by then comes before it.
    """
    if settings.MARKETPLACE_REQUESTS_AT_ONCE == 1:
        yield from ((argument, call(argument)) for argument in arguments)
        return
    pool = ThreadPoolExecutor(settings.MARKETPLACE_REQUESTS_AT_ONCE, "marketplace")
    waiting: deque[tuple[Argument, Future[Result]]] = deque()
    try:
        for argument in arguments:
            # With the time that the caller's calls have left (hits.limits).
            future = pool.submit(copy_context().run, call, argument)
            waiting.append((argument, future))
            if len(waiting) >= AHEAD * settings.MARKETPLACE_REQUESTS_AT_ONCE:
                yield _first(waiting)
        while waiting:
            yield _first(waiting)
    except Exception:
        yield from _answered(waiting)
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _first(waiting: deque[tuple[Argument, Future[Result]]]) -> tuple[Argument, Result]:
    argument, future = waiting.popleft()
    return argument, future.result()


def _answered(
    waiting: deque[tuple[Argument, Future[Result]]],
) -> Iterator[tuple[Argument, Result]]:
    begun = [each for each in waiting if not each[1].cancel()]
    for argument, future in begun:
        if future.exception() is None:
            yield argument, future.result()


PAGE_SIZE = 100
# Pages in a row that may bring nothing new: a marketplace may leave out of a page what it filters.
MOST_EMPTY_PAGES = 10
# What boto3 raises of an answer whose values are not what the API says they are.
UNREADABLE = (ArithmeticError, AttributeError, KeyError, RuntimeError, TypeError, ValueError)


def listed(
    client: MTurkClient, operation: str, member: str, key: str = "", **arguments: Any
) -> Iterator[Mapping[str, Any]]:
    """Each thing that a list operation brings, once; `key` names what tells them apart, if
    anything does.

    MarketplaceFault where page after page brings nothing new, or what comes cannot be read.
    """
    paginator: Any = client.get_paginator(operation)  # type: ignore[call-overload]
    seen: set[str] = set()
    n_empty = 0
    pages = iter(paginator.paginate(**arguments, PaginationConfig={"PageSize": PAGE_SIZE}))
    while (page := _next_page(pages)) is not None:
        fresh = [each for each in page[member] if not key or each[key] not in seen]
        yield from fresh
        seen.update(each[key] for each in fresh if key)
        n_empty = 0 if fresh else n_empty + 1
        if n_empty > MOST_EMPTY_PAGES:
            raise MarketplaceFault(
                _(
                    "its answer to {operation} has no end: {n} pages in a row held nothing new"
                ).format(operation=operation, n=n_empty),
                code="endless",
            )


def _next_page(pages: Iterator[dict[str, Any]]) -> dict[str, Any] | None:
    try:
        with translated_errors():
            return next(pages, None)
    except PaginationError as error:
        raise MarketplaceFault(
            _("its list does not go on: {error}").format(error=error), code="broken_list"
        ) from error
    except UNREADABLE as error:
        raise MarketplaceFault(
            _("it sent a value that cannot be read: {error}").format(error=error), code="unreadable"
        ) from error


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
    # The newest first.
    for there in listed(client, "list_hits", "HITs", "HITId") if by_annotation else ():
        if (hit := by_annotation.get(there.get("RequesterAnnotation", ""))) is not None:
            rows = type(hit).objects.filter(pk=hit.pk, hit_id="")
            rows.update(hit_id=identifier(there, "HITId"))
            n_matches += 1
    return n_matches


EXISTS = "QualificationTypeAlreadyExists"


def create_type(client: MTurkClient, *, name: str, description: str, **values: Any) -> str:
    """The id of the requester's type of this name: made, or the one that an attempt made whose
    answer was lost."""
    try:
        with translated_errors():
            answer = client.create_qualification_type(
                Name=name, Description=description, QualificationTypeStatus="Active", **values
            )
    except MarketplaceRefused as refusal:
        type_id = _type_of_name(client, name) if refusal.has_code(EXISTS) else None
        if type_id is None:
            raise
        return type_id
    return identifier(answer.get("QualificationType", {}), "QualificationTypeId")


def _type_of_name(client: MTurkClient, name: str) -> str | None:
    types = listed(
        client,
        "list_qualification_types",
        "QualificationTypes",
        "QualificationTypeId",
        Query=name,
        MustBeRequestable=False,
        MustBeOwnedByCaller=True,
    )
    matches = (
        identifier(each, "QualificationTypeId") for each in types if each.get("Name") == name
    )
    return next(matches, None)


# A killed publisher is waited for no longer than this after its last HIT.
SILENT_FOR = timedelta(seconds=settings.WORK_LEASE_SECONDS)
RENEWED_EVERY = SILENT_FOR / 6
LOOK_AGAIN_SECONDS = 0.25

WaitCallback = Callable[[Batch], None]
"""Called once, where somebody else is publishing the batch."""


def without_a_word(batch: Batch) -> None:
    """Wait silently."""


class Publisher:
    def __init__(self, batch: Batch) -> None:
        self.batch, self.name = batch, secrets.token_hex(8)
        self.renewed_at = timezone.now()

    def claim(self) -> bool:
        """Become the batch's publisher, unless another one is at work; True if it worked."""
        now = timezone.now()
        is_free = Q(publisher="") | Q(publisher_seen_at__lt=now - SILENT_FOR)
        return self._note(is_free, self.name, now)

    def renew(self) -> None:
        """Be heard of, once in a while."""
        now = timezone.now()
        if now - self.renewed_at >= RENEWED_EVERY:
            self._note(Q(publisher=self.name), self.name, now)

    def release(self) -> None:
        self._note(Q(publisher=self.name), "", None)

    def _note(self, condition: Q, name: str, seen_at: datetime | None) -> bool:
        row = Batch.objects.filter(condition, pk=self.batch.pk)
        is_noted = row.update(publisher=name, publisher_seen_at=seen_at) > 0
        self.renewed_at = seen_at or self.renewed_at
        return is_noted


@contextmanager
def sole_publisher(batch: Batch, on_wait: WaitCallback = without_a_word) -> Iterator[Publisher]:
    """Be the batch's only publisher, once whoever is it now is done or has fallen silent."""
    publisher = Publisher(batch)
    if not publisher.claim():
        on_wait(batch)
        while not publisher.claim():
            # Whoever publishes may be held up by the marketplace for as long as it likes.
            require_time_left()
            time.sleep(LOOK_AGAIN_SECONDS)
    try:
        batch.refresh_from_db(fields=["hit_type_id", "publishing_started_at", "closed_at"])
        yield publisher
    finally:
        publisher.release()


# What a HIT is once nobody can hand in any more work for it.
CLOSED = ("Reviewable", "Reviewing", "Disposed")


@dataclass(frozen=True)
class HitAnswers:
    """What the marketplace has of a HIT; complete once no more can be handed in."""

    records: list[AssignmentRecord]
    is_complete: bool


def fetch_answers(client: MTurkClient, hit: Hit | PracticeHit) -> HitAnswers:
    # In this order: what was handed in between is among the assignments.
    is_complete = _may_be_closed(hit) and _status_there(client, hit) in CLOSED
    return HitAnswers(list(_assignments(client, hit)), is_complete)


def _may_be_closed(hit: Hit | PracticeHit) -> bool:
    """Whether it is worth asking; until its HITs expire, no short HIT of a batch is complete."""
    if isinstance(hit, PracticeHit) and hit.ended_at is not None:
        return True
    batch = hit.batch
    return batch.publishing_started_at is not None and timezone.now() > batch.offered_until


def _status_there(client: MTurkClient, hit: Hit | PracticeHit) -> str:
    with translated_errors():
        return client.get_hit(HITId=hit.hit_id)["HIT"]["HITStatus"]


def _assignments(client: MTurkClient, hit: Hit | PracticeHit) -> Iterator[AssignmentRecord]:
    rows = listed(
        client, "list_assignments_for_hit", "Assignments", "AssignmentId", HITId=hit.hit_id
    )
    # A page more than there can be says enough of a marketplace that never comes to an end.
    for n_read, row in enumerate(rows):
        if n_read > hit.n_assignments + PAGE_SIZE:
            raise _too_many(hit)
        yield assignment_record(hit, row)


def require_possible(hit: Hit | PracticeHit, n_records: int) -> None:
    """MarketplaceFault, where more came in for a HIT than it ever had on offer."""
    if n_records > hit.n_assignments:
        # More may have been asked for since the HIT was read.
        hit.refresh_from_db(fields=["max_assignments"])
        if n_records > hit.n_assignments:
            raise _too_many(hit)


def _too_many(hit: Hit | PracticeHit) -> MarketplaceFault:
    return MarketplaceFault(
        _("HIT {hit_id} has {n} assignments, and it sent more").format(
            hit_id=hit.hit_id, n=hit.n_assignments
        )
    )
