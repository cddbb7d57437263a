"""The qualifications that the marketplace computes itself, under Amazon's ids.

Masters are appointed: this marketplace has no way to find them out, so an operator says who
is one (`WorkerAccount.master_since`). Both of Amazon's ids mean them, sandbox and production.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from operator import eq, ge, gt, le, lt
from typing import NamedTuple

from django.db.models import Count, Q

from marketplace.models import Assignment, WorkerAccount
from marketplace.people.locations import code_of_three_letters, language_name, three_letters

# Whether a qualification's value meets a requirement.


class Locale(NamedTuple):
    country: str
    subdivision: str = ""

    def includes(self, other: "Locale") -> bool:
        return self.country == other.country and self.subdivision in ("", other.subdivision)

    def __str__(self) -> str:
        return f"{self.country}-{self.subdivision}" if self.subdivision else self.country


ORDERS: dict[str, Callable[[int, int], bool]] = {
    "LessThan": lt,
    "LessThanOrEqualTo": le,
    "GreaterThan": gt,
    "GreaterThanOrEqualTo": ge,
    "EqualTo": eq,
}
NEGATIONS = {"NotEqualTo": "EqualTo", "NotIn": "In"}


def meets_integer(comparator: str, value: int | None, required: Sequence[int]) -> bool:
    if comparator in NEGATIONS:
        return not meets_integer(NEGATIONS[comparator], value, required)
    if value is None:
        return False
    if comparator == "In":
        return value in required
    return ORDERS[comparator](value, required[0])


def meets_locale(comparator: str, value: Locale | None, required: Sequence[Locale]) -> bool:
    if comparator in NEGATIONS:
        return not meets_locale(NEGATIONS[comparator], value, required)
    return value is not None and any(locale.includes(value) for locale in required)


def meets(
    comparator: str,
    *,
    is_held: bool,
    value: int | Locale | None,
    required: Sequence[int] | Sequence[Locale],
) -> bool:
    """Whether a worker with or without the qualification meets the requirement. Without it only
    DoesNotExist is met."""
    if comparator == "DoesNotExist":
        return not is_held
    if comparator == "Exists" or not is_held:
        return is_held
    if value is None:
        return False
    locales = [locale for locale in required if isinstance(locale, Locale)]
    if isinstance(value, Locale):
        return meets_locale(comparator, value, locales)
    return meets_integer(comparator, value, [each for each in required if isinstance(each, int)])


Value = int | Locale | None
# Until a worker has submitted so many, the approval rate says nothing and is 100.
RATED_FROM = 100
SINCE = datetime(2017, 1, 17, tzinfo=UTC)


class Record:
    def __init__(self, worker: WorkerAccount) -> None:
        self.worker = worker

    @cached_property
    def counts(self) -> dict[str, int]:
        status = Assignment.Status
        counted: dict[str, int] = Assignment.objects.by(self.worker).aggregate(
            submitted=Count("pk", filter=Q(status__in=Assignment.HANDED_IN_STATUSES)),
            approved=Count("pk", filter=Q(status=status.APPROVED)),
            rejected=Count("pk", filter=Q(status=status.REJECTED)),
        )
        return counted

    @property
    def percent_approved(self) -> int:
        """Share of decided assignments, rounded down; undecided ones do not count."""
        decided = self.counts["approved"] + self.counts["rejected"]
        if self.counts["submitted"] < RATED_FROM or not decided:
            return 100
        return 100 * self.counts["approved"] // decided

    @property
    def locale(self) -> Locale | None:
        country = self.worker.country
        return Locale(country, self.worker.subdivision) if country else None


@dataclass(frozen=True)
class SystemQualification:
    """`value_of` returns None for a worker without it."""

    public_id: str
    name: str
    description: str
    value_of: Callable[[Record], Value]


MASTERS_IDS = ("2F1QJWKUDD8XADTFD2Q0G6UTO95ALH", "2ARFPLSP75KLA8M8DH1HTEQVJT3SY6")
LOCALE_ID = "00000000000000000071"
ADULT_ID = "00000000000000000060"
# What a worker gives in the profile.
DECLARED_IDS = (LOCALE_ID, ADULT_ID)
ALL = (
    *(
        SystemQualification(
            public_id,
            "Masters",
            "Workers whom the operator of this marketplace counts among the best.",
            lambda record: 1 if record.worker.master_since else None,
        )
        for public_id in MASTERS_IDS
    ),
    SystemQualification(
        "00000000000000000040",
        "Worker_NumberHITsApproved",
        "The number of the worker's assignments that were approved.",
        lambda record: record.counts["approved"],
    ),
    SystemQualification(
        LOCALE_ID,
        "Worker_Locale",
        "Where the worker is, as the worker says.",
        lambda record: record.locale,
    ),
    SystemQualification(
        ADULT_ID,
        "Worker_Adult",
        "1 where the worker has confirmed to be of age and willing to see adult content.",
        lambda record: 1 if record.worker.adult_confirmed_at else 0,
    ),
    SystemQualification(
        "000000000000000000L0",
        "Worker_PercentAssignmentsApproved",
        "The percentage of the worker's decided assignments that were approved; 100 until the "
        "worker has submitted 100.",
        lambda record: record.percent_approved,
    ),
)
SYSTEM_QUALIFICATIONS = {each.public_id: each for each in ALL}
# Before three letters of ISO 639-3. Amazon has no such qualifications.
LANGUAGE_PREFIX = "ASSAYLANGUAGE"


def find_system(public_id: str) -> SystemQualification | None:
    if not public_id.startswith(LANGUAGE_PREFIX):
        return SYSTEM_QUALIFICATIONS.get(public_id)
    code = code_of_three_letters(public_id.removeprefix(LANGUAGE_PREFIX))
    return None if code is None else _language(code)


def is_declared(public_id: str) -> bool:
    return public_id in DECLARED_IDS or public_id.startswith(LANGUAGE_PREFIX)


def languages_of(worker: WorkerAccount) -> list[SystemQualification]:
    return [_language(code) for code in worker.languages]


def _language(code: str) -> SystemQualification:
    name = language_name(code)
    return SystemQualification(
        f"{LANGUAGE_PREFIX}{three_letters(code)}",
        f"Worker_Language {name}",
        f"1 where the worker says to know {name}.",
        lambda record: 1 if code in record.worker.languages else None,
    )
