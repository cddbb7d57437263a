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
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, TypeVar

from botocore.exceptions import PaginationError
from django.conf import settings
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from hits.endpoints import MTurkClient, translated_errors
from hits.exceptions import MarketplaceFault, MarketplaceRefused, require
from hits.limits import require_time_left
from hits.models import Assignment, Batch, DeliveryState, Hit, PracticeHit

Argument = TypeVar("Argument")
Result = TypeVar("Result")
# Calls that wait for a thread, so that none idles while the caller prepares the next.
AHEAD = 3


def calls_at_once(
    call: Callable[[Argument], Result], arguments: Iterable[Argument]
) -> Iterator[tuple[Argument, Result]]:
    """Yield each argument with its result, in order. After an error nothing more is called, and
    the results that came before it are yielded first."""
    if settings.MARKETPLACE_REQUESTS_AT_ONCE == 1:
        yield from ((argument, call(argument)) for argument in arguments)
        return
    pool = ThreadPoolExecutor(settings.MARKETPLACE_REQUESTS_AT_ONCE, "marketplace")
    waiting: deque[tuple[Argument, Future[Result]]] = deque()
    try:
        for argument in arguments:
            # With the time that the caller's calls have left (hits.limits).
            waiting.append((argument, pool.submit(copy_context().run, call, argument)))
            if len(waiting) >= AHEAD * settings.MARKETPLACE_REQUESTS_AT_ONCE:
                yield _first(waiting)
        while waiting:
            yield _first(waiting)
    except Exception:
        for argument, future in [each for each in waiting if not each[1].cancel()]:
            if future.exception() is None:
                yield argument, future.result()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _first(waiting: deque[tuple[Argument, Future[Result]]]) -> tuple[Argument, Result]:
    argument, future = waiting.popleft()
    return argument, future.result()


PAGE_SIZE = 100
# Pages in a row that may bring nothing new: a marketplace may leave out of a page what it filters.
MOST_EMPTY_PAGES = 10
# What boto3 raises of an answer whose values are not what the API says they are.
UNREADABLE = (ArithmeticError, AttributeError, KeyError, RuntimeError, TypeError, ValueError)


def listed(
    client: MTurkClient, operation: str, member: str, key: str = "", **arguments: Any
) -> Iterator[Mapping[str, Any]]:
    """Yield each row of a list operation once; `key` names its identifier, if it has one.
    MarketplaceFault if page after page brings nothing new."""
    paginator: Any = client.get_paginator(operation)  # type: ignore[call-overload]
    seen: set[str] = set()
    n_empty = 0
    pages = iter(paginator.paginate(**arguments, PaginationConfig={"PageSize": PAGE_SIZE}))
    while (page := _next_page(pages)) is not None:
        fresh = [each for each in page[member] if not key or each[key] not in seen]
        yield from fresh
        seen.update(each[key] for each in fresh if key)
        n_empty = 0 if fresh else n_empty + 1
        require(
            n_empty <= MOST_EMPTY_PAGES,
            MarketplaceFault(
                _(
                    "its answer to {operation} has no end: {n} pages in a row held nothing new"
                ).format(operation=operation, n=n_empty),
                code="endless",
            ),
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
    rest: list[Hit | PracticeHit] = list(
        Hit.objects.of(batch).unpublished().select_related("batch")
    )
    rest += PracticeHit.objects.of(batch).unpublished().select_related("batch")
    by_annotation = {hit.requester_annotation: hit for hit in rest}
    n_matches = 0
    # The newest first.
    for there in listed(client, "list_hits", "HITs", "HITId") if by_annotation else ():
        if (hit := by_annotation.get(there.get("RequesterAnnotation", ""))) is not None:
            type(hit).objects.filter(pk=hit.pk, hit_id="").update(hit_id=identifier(there, "HITId"))
            n_matches += 1
    return n_matches


EXISTS = "QualificationTypeAlreadyExists"


def create_type(
    client: MTurkClient, *, name: str, description: str, key: str = "", **values: Any
) -> str:
    """The type with this name and key. Another with the name and another key gets the next number,
    so that workers read names without keys."""
    values |= {"Keywords": key} if key else {}
    numbered, number = name, 1
    while True:
        try:
            with translated_errors():
                there: Mapping[str, Any] = client.create_qualification_type(
                    Name=numbered,
                    Description=description,
                    QualificationTypeStatus="Active",
                    **values,
                ).get("QualificationType", {})
        except MarketplaceRefused as refusal:
            found = _type_of_name(client, numbered) if refusal.has_code(EXISTS) else None
            if found is None:
                raise
            there = found
            if found.get("Keywords", "") != key:
                number += 1
                numbered = f"{name} ({number})"
                continue
        return identifier(there, "QualificationTypeId")


def grant_qualification(
    client: MTurkClient, type_id: str, worker_id: str, value: int, *, is_told: bool = False
) -> dict[str, str]:
    """Return the state and the problem to store; granting can be repeated."""
    try:
        with translated_errors():
            client.associate_qualification_with_worker(
                QualificationTypeId=type_id,
                WorkerId=worker_id,
                IntegerValue=value,
                SendNotification=is_told,
            )
    except MarketplaceRefused as refusal:
        if not refusal.code.startswith("AWS.MechanicalTurk."):
            raise
        return {"state": DeliveryState.REFUSED, "problem": refusal.message}
    return {"state": DeliveryState.CONFIRMED, "problem": ""}


def _type_of_name(client: MTurkClient, name: str) -> Mapping[str, Any] | None:
    types = listed(
        client,
        "list_qualification_types",
        "QualificationTypes",
        "QualificationTypeId",
        Query=name,
        MustBeRequestable=False,
        MustBeOwnedByCaller=True,
    )
    return next((each for each in types if each.get("Name") == name), None)


# A killed publisher is waited for no longer than this after its last HIT.
SILENT_FOR = timedelta(seconds=settings.WORK_LEASE_SECONDS)
RENEWED_EVERY = SILENT_FOR / 6
LOOK_AGAIN_SECONDS = 0.25

# Called once, where somebody else is publishing the batch.
WaitCallback = Callable[[Batch], None]


class Publisher:
    def __init__(self, batch: Batch) -> None:
        self.batch, self.name = batch, secrets.token_hex(8)
        self.renewed_at = timezone.now()

    def claim(self) -> bool:
        now = timezone.now()
        return self._note(
            Q(publisher="") | Q(publisher_seen_at__lt=now - SILENT_FOR), self.name, now
        )

    def renew(self) -> None:
        now = timezone.now()
        if now - self.renewed_at >= RENEWED_EVERY:
            self._note(Q(publisher=self.name), self.name, now)

    def release(self) -> None:
        self._note(Q(publisher=self.name), "", None)

    def _note(self, condition: Q, name: str, seen_at: datetime | None) -> bool:
        is_noted = (
            Batch.objects.filter(condition, pk=self.batch.pk).update(
                publisher=name, publisher_seen_at=seen_at
            )
            > 0
        )
        self.renewed_at = seen_at or self.renewed_at
        return is_noted


@contextmanager
def sole_publisher(batch: Batch, on_wait: WaitCallback | None = None) -> Iterator[Publisher]:
    publisher = Publisher(batch)
    if not publisher.claim():
        if on_wait is not None:
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
    records: list[AssignmentRecord]
    is_complete: bool


def fetch_answers(client: MTurkClient, hit: Hit | PracticeHit) -> HitAnswers:
    # In this order: what was handed in between is among the assignments.
    is_complete = _may_be_closed(hit) and _status_there(client, hit) in CLOSED
    return HitAnswers(list(_assignments(client, hit)), is_complete)


def _may_be_closed(hit: Hit | PracticeHit) -> bool:
    # Until its HITs expire, no HIT of a batch that is short of answers is complete.
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
    if n_records > hit.n_assignments:
        # More may have been asked for since the HIT was read.
        hit.refresh_from_db(fields=["max_assignments"])
        require(n_records <= hit.n_assignments, _too_many(hit))


def _too_many(hit: Hit | PracticeHit) -> MarketplaceFault:
    return MarketplaceFault(
        _("HIT {hit_id} has {n} assignments, and it sent more").format(
            hit_id=hit.hit_id, n=hit.n_assignments
        )
    )


LONGEST_ID = 64
LONGEST_TEXT = 100_000
MOST_COUNTED = 2_000_000_000
MOST_USD = Decimal("9999999999.99")
CENT = Decimal("0.01")
UNKEPT = re.compile("[\x00\ud800-\udfff]")
EARLIEST, LATEST = datetime(2000, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class AssignmentRecord:
    assignment_id: str
    worker_id: str
    status: Assignment.Status
    answer_xml: str
    accepted_at: datetime
    submitted_at: datetime


def assignment_record(hit: Hit | PracticeHit, content: Mapping[str, Any]) -> AssignmentRecord:
    if content.get("HITId", hit.hit_id) != hit.hit_id:
        raise MarketplaceFault(
            _("asked for HIT {hit_id}, it sent an assignment of another").format(hit_id=hit.hit_id),
            code="other_hit",
        )
    return AssignmentRecord(
        assignment_id=identifier(content, "AssignmentId"),
        worker_id=identifier(content, "WorkerId"),
        status=assignment_status(content),
        answer_xml=text_of(content, "Answer"),
        accepted_at=time_of(content.get("AcceptTime"), "AcceptTime"),
        submitted_at=time_of(content.get("SubmitTime"), "SubmitTime"),
    )


def assignment_status(content: Mapping[str, Any]) -> Assignment.Status:
    try:
        return Assignment.Status(str(content.get("AssignmentStatus")))
    except ValueError:
        raise MarketplaceFault(
            _("an assignment has a status that does not exist"), code="unknown_status"
        ) from None


def appeal_records(content: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "assignment_id": identifier(row, "assignment_id"),
            "reason": text_of(row, "reason", most=LONGEST_TEXT),
            "appealed_at": time_of(row.get("appealed_at"), "appealed_at"),
            "answer": text_of(row, "answer", most=LONGEST_TEXT),
        }
        for row in _rows(content, "appeals")
    ]


def inquiry_records(content: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "number": count(row.get("number"), "number"),
            "hit_id": identifier(row, "hit_id"),
            "worker_id": identifier(row, "worker_id"),
            "text": text_of(row, "text", most=LONGEST_TEXT),
            "sent_at": time_of(row.get("sent_at"), "sent_at"),
            "is_accepted": row.get("is_accepted") is not False,
        }
        for row in _rows(content, "messages")
    ]


def _rows(content: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    rows = content.get(name)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise MarketplaceFault(_("it sent no list of {name}").format(name=name), code="not_a_list")
    return rows


def identifier(content: Mapping[str, Any], name: str) -> str:
    value = text_of(content, name, most=LONGEST_ID)
    require(value, MarketplaceFault(_("{name} is missing").format(name=name), code="missing"))
    return value


def amount_usd(value: Any, name: str) -> Decimal:
    try:
        amount = Decimal(str(value))
    except InvalidOperation:
        amount = Decimal("NaN")
    require(
        amount.is_finite() and abs(amount) <= MOST_USD,
        MarketplaceFault(
            _("{name} is not an amount of dollars").format(name=name), code="not_an_amount"
        ),
    )
    return amount.quantize(CENT)


def count(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST_COUNTED:
        raise MarketplaceFault(
            _("{name} is not a number of things").format(name=name), code="not_a_number"
        )
    return value


def text_of(content: Mapping[str, Any], name: str, *, most: int | None = None) -> str:
    value = content.get(name)
    # No database keeps a NUL or half of a sign in a text, and no XML has one.
    if not isinstance(value, str) or UNKEPT.search(value) or len(value) > (most or len(value)):
        raise MarketplaceFault(
            _("{name} is not a text, or too long a one").format(name=name), code="not_a_text"
        )
    return value


def time_of(value: Any, name: str) -> datetime:
    try:
        at = value if isinstance(value, datetime) else datetime.fromisoformat(value)
        at = at.astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        raise MarketplaceFault(
            _("{name} is not a time").format(name=name), code="not_a_time"
        ) from None
    require(
        EARLIEST <= at <= LATEST,
        MarketplaceFault(
            _("{name} is not a time of this century").format(name=name), code="not_a_time"
        ),
    )
    return at
