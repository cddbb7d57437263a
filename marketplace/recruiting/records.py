"""What is said between the marketplace and its recruiters, whichever recruiter it is."""

from dataclasses import dataclass, field
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal
from enum import Enum

from error_codes import CodedError
from marketplace.money.amounts import CENT

# What can go wrong between the marketplace and a recruiter.
#
# The difference that matters is whether anything may have changed over there: after `Refused` and
# `Unreachable` nothing has, after `Uncertain` nobody knows.


class RecruiterProblem(CodedError):
    """What a recruiter did not do; the text is for people and holds no secret."""

    # Seconds that were waited for what failed, where more was done than that.
    waited: float | None = None


class Refused(RecruiterProblem):
    """They read the request and said no: nothing has changed over there."""

    def __init__(self, message: str, *, status: int = 0, remote_code: str = "") -> None:
        super().__init__(message)
        # The HTTP status and the error code of the recruiter.
        self.status, self.remote_code = status, remote_code


class NotAuthorized(Refused):
    """The token is wrong, or has no right to this."""


class NotFound(Refused):
    """There is no such thing over there, or the token may not see it."""


class Unreachable(RecruiterProblem):
    """The request never left, or was turned away unread: repeat it later without fear."""

    def __init__(self, message: str, *, retry_after: float | None = None, code: str = "") -> None:
        super().__init__(message, code=code)
        self.retry_after = retry_after


class Uncertain(RecruiterProblem):
    """The request left and no answer says what became of it: look before repeating."""


class Unreadable(RecruiterProblem):
    """They answered what is none of their words: nothing is done by it."""


class NotVerified(RecruiterProblem):
    """An arrival or an event that its recruiter did not send."""


class StudyState(Enum):
    DRAFT = "draft"
    SCHEDULED = "scheduled"
    PUBLISHING = "publishing"
    ACTIVE = "active"
    PAUSED = "paused"
    AWAITING_REVIEW = "awaiting_review"  # all places in; more places revive it
    STOPPED = "stopped"
    UNKNOWN = "unknown"  # a word we do not know is no news


class SubmissionState(Enum):
    RESERVED = "reserved"
    ACTIVE = "active"
    AWAITING_REVIEW = "awaiting_review"
    APPROVED = "approved"
    REJECTED = "rejected"
    RETURNED = "returned"
    TIMED_OUT = "timed_out"  # not final: late codes are taken, researchers may approve
    SCREENED_OUT = "screened_out"
    PROCESSING = "processing"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Filter:
    filter_id: str
    values: tuple[str, ...] = ()
    lower: Decimal | None = None
    upper: Decimal | None = None


@dataclass(frozen=True)
class PostedStudy:
    id: str
    state: StudyState
    places: int
    token: str = ""
    # Of a participation; and of whom is screened out what each is paid and how many are at most.
    # None where they cannot be read.
    reward: Decimal | None = None
    screen_outs: tuple[tuple[Decimal, int], ...] | None = None


@dataclass(frozen=True)
class Cost:
    """What they say it will cost, fees and taxes included; never computed here."""

    total: Decimal
    currency: str

    @property
    def displayed(self) -> Decimal:
        """The total as pages show it, and as it is typed back: it may have fractions of a cent."""
        return self.total.quantize(CENT, rounding=ROUND_HALF_UP)


@dataclass(frozen=True)
class Account:
    name: str
    currency: str
    available: Decimal
    project: str = ""  # for new studies, where none is chosen
    projects: tuple[str, ...] = ()


@dataclass(frozen=True)
class Submission:
    """One participant's place in a study. `participant` is an identity: keep it encrypted."""

    id: str
    study: str
    participant: str = field(repr=False)
    state: SubmissionState
    code: str = ""
    started_at: datetime | None = None
    completed_at: datetime | None = None
    # Those paid, in any order; known only of one asked for alone, None where they cannot be read.
    bonuses: tuple[Decimal, ...] | None = ()


# In place of one whose row cannot be read, so that nobody takes the list for whole.
UNREADABLE_SUBMISSION = Submission("", "", "", SubmissionState.UNKNOWN)


def paid_bonuses_of(submission: Submission) -> tuple[Decimal, ...]:
    # Without knowing them, no other bonus is paid.
    if submission.bonuses is None:
        raise Unreadable("The bonuses of a submission cannot be read.")
    return submission.bonuses


class RejectionCategory(Enum):
    TOO_QUICKLY = "TOO_QUICKLY"
    TOO_SLOWLY = "TOO_SLOWLY"
    FAILED_INSTRUCTIONS = "FAILED_INSTRUCTIONS"
    INCOMPLETE_LONGITUDINAL = "INCOMP_LONGITUDINAL"
    FAILED_CHECK = "FAILED_CHECK"
    LOW_EFFORT = "LOW_EFFORT"
    MALINGERING = "MALINGERING"
    NO_CODE = "NO_CODE"
    BAD_CODE = "BAD_CODE"
    NO_DATA = "NO_DATA"
    UNSUPPORTED_DEVICE = "UNSUPP_DEVICE"
    OTHER = "OTHER"


@dataclass(frozen=True)
class PreparedBonus:
    """A payment set up and not paid: `total` is what it will take, with fees, to type back."""

    id: str
    total: Decimal
    currency: str


@dataclass(frozen=True)
class Arrival:
    study: str
    submission: str
    participant: str = field(repr=False)


@dataclass(frozen=True)
class Event:
    """News that something changed: a hint only, the truth is asked for. `id` stays over retries."""

    id: str
    kind: str
    submission: str = ""
    study: str = ""
