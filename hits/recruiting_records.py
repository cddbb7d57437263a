"""What a marketplace says of recruiting, as its answers are read (hits.recruiter_api)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal


@dataclass(frozen=True)
class RecruiterRecord:
    """An account at a recruiter, as the marketplace describes it."""

    public_id: str
    name: str
    is_connected: bool
    is_being_tried: bool
    account: str
    currency: str
    workspace: str
    project: str
    problem: str


@dataclass(frozen=True)
class StudyRecord:
    """A study at a recruiter, as the marketplace describes it."""

    public_id: str
    key: str
    state: str
    is_posted: bool
    action: str
    problem: str
    places: int
    quoted_places: int | None
    quoted_cost: Decimal | None
    sessions: Mapping[str, int]
    outcomes: Mapping[str, int]
    n_waiting: int
    charges: Mapping[str, Decimal]
    # Of the sessions those whose decision the recruiter has not got yet, by state, and of those at
    # work who has entered a code there.
    unsent: Mapping[str, int]
    n_entered: int
    free: int | None = None
    needed: int | None = None
    # A bonus, and what it costs with the recruiter's fees.
    quoted_bonus: Decimal | None = None
    quoted_bonus_cost: Decimal | None = None
    # What it pays at the recruiter, where both can be changed by hand; marketplaces of earlier
    # versions tell neither.
    reward_there: Decimal | None = None
    screen_out_reward_there: Decimal | None = None


@dataclass(frozen=True)
class CallRecord:
    """A call that a person is to look after."""

    number: int
    study: str
    kind: str
    is_uncertain: bool
    amount: Decimal | None
    currency: str
    worker_id: str
    submission_id: str
    problem: str
    shows_by: datetime | None
    # By which a bonus was requested; marketplaces of earlier versions do not tell it.
    request_token: str = ""


@dataclass(frozen=True)
class RefusedBonus:
    """One that the recruiter would not pay, as for want of money."""

    worker_id: str
    request_token: str
    problem: str


@dataclass(frozen=True)
class ParticipationRecord:
    """How a participant stands at the recruiter whose work waits for a decision."""

    study: str
    worker_id: str
    state: str
    outcome: str
    reported: str
    arrived_at: datetime | None


@dataclass(frozen=True)
class Standing:
    recruiters: tuple[RecruiterRecord, ...]
    studies: tuple[StudyRecord, ...]
    calls: tuple[CallRecord, ...]
    # Assignments whose answers were taken back by their participants.
    withdrawn: tuple[str, ...] = ()
    participations: tuple[ParticipationRecord, ...] = ()
    refused_bonuses: tuple[RefusedBonus, ...] = ()
    # It says nothing of what was sent since.
    asked_at: datetime | None = None
