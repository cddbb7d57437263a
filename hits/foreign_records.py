"""What a marketplace says, checked before any of it is stored: it may be another team's own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from django.utils.translation import gettext as _

from hits.exceptions import MarketplaceFault
from hits.models import Assignment, Hit, PracticeHit

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
    """One of a HIT's assignments; MarketplaceFault where it is another's, or none at all."""
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
    rows = content.get("appeals")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise MarketplaceFault(_("it sent no list of appeals"), code="not_a_list")
    return [
        {
            "assignment_id": identifier(row, "assignment_id"),
            "reason": text_of(row, "reason", most=LONGEST_TEXT),
            "appealed_at": time_of(row.get("appealed_at"), "appealed_at"),
            "answer": text_of(row, "answer", most=LONGEST_TEXT),
        }
        for row in rows
    ]


def identifier(content: Mapping[str, Any], name: str) -> str:
    value = text_of(content, name, most=LONGEST_ID)
    if not value:
        raise MarketplaceFault(_("{name} is missing").format(name=name), code="missing")
    return value


def amount_usd(value: Any, name: str) -> Decimal:
    """An amount of money in whole cents; a balance may lie below nothing."""
    try:
        amount = Decimal(str(value))
    except InvalidOperation:
        amount = Decimal("NaN")
    if not amount.is_finite() or abs(amount) > MOST_USD:
        raise MarketplaceFault(
            _("{name} is not an amount of dollars").format(name=name), code="not_an_amount"
        )
    return amount.quantize(CENT)


def count(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST_COUNTED:
        raise MarketplaceFault(
            _("{name} is not a number of things").format(name=name), code="not_a_number"
        )
    return value


def text_of(content: Mapping[str, Any], name: str, *, most: int | None = None) -> str:
    """A text that a marketplace gave, of so many characters at most."""
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
    if not EARLIEST <= at <= LATEST:
        raise MarketplaceFault(
            _("{name} is not a time of this century").format(name=name), code="not_a_time"
        )
    return at
