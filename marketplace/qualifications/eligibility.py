"""Whether a worker meets what a HIT type requires, and in words what is missing.

`qualifies` is about one HIT type, `unmet_by_hit_type` about a page of them, and
`visible_groups` is the list of those that may be shown; each asks the database a fixed
number of times, however many HIT types there are.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.conf import settings
from django.db.models import Exists, F, OuterRef, QuerySet
from django.utils.translation import gettext as _, gettext_lazy

from error_codes import CodedText
from marketplace import clock
from marketplace.exceptions import NotQualified
from marketplace.models import (
    Hit,
    HitType,
    PaidBy,
    Qualification,
    QualificationRequirement,
    QualificationType,
    WorkerAccount,
    WorkerBlock,
)
from marketplace.people.locations import place_name
from marketplace.people.messages import mail_address
from marketplace.qualifications.system import (
    LOCALE_ID,
    NEGATIONS,
    Locale,
    Record,
    find_system,
    is_declared,
    meets,
)

# Qualifications that are given for work and on no request: some HITs of their requester are for
# workers without them, and are what leads to them.


def is_earned(qualification_type: QualificationType) -> bool:
    return _entrances().filter(qualification_type=qualification_type).exists()


def not_earned(types: QuerySet[QualificationType]) -> QuerySet[QualificationType]:
    return types.exclude(pk__in=_entrances().order_by().values("qualification_type"))


def work_towards(
    worker: WorkerAccount, types: Iterable[int], now: datetime
) -> Mapping[int, list[HitType]]:
    rows = _entrances().filter(qualification_type__in=types).order_by()
    types_by_hit_type: dict[int, set[int]] = defaultdict(set)
    for hit_type, each in rows.values_list("hit_type", "qualification_type"):
        types_by_hit_type[hit_type].add(each or 0)
    work: dict[int, list[HitType]] = defaultdict(list)
    on_offer = HitType.objects.open_to(worker, now).filter(pk__in=types_by_hit_type)
    for row in on_offer.order_by("pk") if types_by_hit_type else ():
        for each in types_by_hit_type[row.pk]:
            work[each].append(row)
    return work


def _entrances() -> QuerySet[QualificationRequirement]:
    """Requirements of HITs for workers without a qualification of the same requester. Tests and
    automatic grants are requested instead."""
    return QualificationRequirement.objects.filter(
        comparator=QualificationRequirement.Comparator.DOES_NOT_EXIST,
        qualification_type__requester=F("hit_type__requester"),
        qualification_type__test="",
        qualification_type__auto_granted=False,
    )


# Why a worker can't do HITs that are for people of some place, in words that need no code.


def place_reason(comparator: str, places: Sequence[Locale], own: Locale | None) -> CodedText:
    if comparator in NEGATIONS:
        reason, code = _("You must not be in %(places)s."), "excluded_place"
    elif own is None:
        reason, code = _("You must be in %(places)s."), "not_stated"
    else:
        reason = _("You must be in %(places)s; by your profile you are in %(own)s.")
        code = "elsewhere"
    named = {"places": _any_of(places), "own": place_name(*own) if own else ""}
    return CodedText(reason % named, code)


def _any_of(places: Sequence[Locale]) -> str:
    *first, last = [place_name(*place) for place in places]
    if not first:
        return last
    return _("%(names)s or %(last)s") % {"names": ", ".join(first), "last": last}


Guard = QualificationRequirement.Guard
PHRASES = {
    "LessThan": gettext_lazy("less than {}"),
    "LessThanOrEqualTo": gettext_lazy("at most {}"),
    "GreaterThan": gettext_lazy("more than {}"),
    "GreaterThanOrEqualTo": gettext_lazy("at least {}"),
    "EqualTo": "{}",
    "NotEqualTo": gettext_lazy("not {}"),
    "In": gettext_lazy("one of {}"),
    "NotIn": gettext_lazy("none of {}"),
}


@dataclass(frozen=True)
class Unmet:
    """An unmet requirement and its reason. `qualification_type` is set if the worker may request
    it, `is_undeclared` if the profile lacks it, `is_of_place` for a country. `earned` is set if
    it is given only for work; `work` is the work that leads to it."""

    guard: Guard
    reason: str
    qualification_type: QualificationType | None = None
    is_undeclared: bool = False
    is_of_place: bool = False
    earned: QualificationType | None = None
    is_tried: bool = False
    work: tuple[HitType, ...] = ()
    code: str = "unmet"

    @property
    def forbids_preview(self) -> bool:
        return self.guard != Guard.ACCEPT


def qualifies(worker: WorkerAccount, hit_type: HitType) -> tuple[Unmet, ...]:
    """The unmet requirements of a HIT type. Blocked workers may preview but not accept."""
    return unmet_by_hit_type(worker, [hit_type])[hit_type.pk]


def require_preview(worker: WorkerAccount, hit_type: HitType) -> None:
    _refuse(unmet for unmet in qualifies(worker, hit_type) if unmet.forbids_preview)


def require_acceptance(worker: WorkerAccount, hit_type: HitType) -> None:
    _refuse(qualifies(worker, hit_type))


def _refuse(unmet: Iterable[Unmet]) -> None:
    if reasons := list(unmet):
        raise NotQualified(" ".join(each.reason for each in reasons), code=reasons[0].code)


def unmet_by_hit_type(
    worker: WorkerAccount, hit_types: Iterable[HitType]
) -> dict[int, tuple[Unmet, ...]]:
    hit_types = list(hit_types)
    lacking = _with_work(
        worker, _lacking(worker, QualificationRequirement.objects.filter(hit_type__in=hit_types))
    )
    blocking = set(
        WorkerBlock.objects.filter(
            worker=worker, requester__in={hit_type.requester_id for hit_type in hit_types}
        ).values_list("requester_id", flat=True)
    )
    reason = _("This requester has chosen not to receive work from you.")
    blocked = (Unmet(Guard.ACCEPT, reason, code="blocked"),)
    unreachable = _address_refusal(worker)
    return {
        hit_type.pk: _payers_refusal(worker, hit_type)
        + unreachable
        + (blocked if hit_type.requester_id in blocking else ())
        + tuple(lacking.get(hit_type.pk, ()))
        for hit_type in hit_types
    }


def _payers_refusal(worker: WorkerAccount, hit_type: HitType) -> tuple[Unmet, ...]:
    # Only a recruiter's participants do what it pays for.
    if worker.paid_by == hit_type.paid_by:
        return ()
    if hit_type.paid_by == PaidBy.RECRUITER:
        reason = _("These HITs are for participants whom a recruiter sends.")
    else:
        reason = _("You take part in a study of a recruiter's, and can do its HITs only.")
    return (Unmet(Guard.DISCOVER_PREVIEW_AND_ACCEPT, reason, code="other_payer"),)


def _address_refusal(worker: WorkerAccount) -> tuple[Unmet, ...]:
    # One person has few confirmed addresses.
    if not settings.MARKETPLACE_CONFIRMED_MAIL or worker.paid_by == PaidBy.RECRUITER:
        return ()
    if mail_address(worker) is not None:
        return ()
    reason = _("This marketplace asks its workers for an e-mail address that they have confirmed.")
    return (Unmet(Guard.ACCEPT, reason, is_undeclared=True, code="unconfirmed_address"),)


def visible_groups(worker: WorkerAccount, now: datetime) -> QuerySet[HitType]:
    hiding = QualificationRequirement.objects.filter(
        actions_guarded=Guard.DISCOVER_PREVIEW_AND_ACCEPT,
        hit_type__hits__status=Hit.Status.ASSIGNABLE,
    ).distinct()
    groups = HitType.objects.open_to(worker, now).filter(paid_by=worker.paid_by)
    return groups.exclude(pk__in=_lacking(worker, hiding))


def _lacking(
    worker: WorkerAccount, requirements: QuerySet[QualificationRequirement]
) -> Mapping[int, list[Unmet]]:
    unmet_by_type: dict[int, list[Unmet]] = defaultdict(list)
    same = _entrances().order_by().filter(qualification_type=OuterRef("qualification_type"))
    rows = list(requirements.annotate(is_earned=Exists(same)).select_related("qualification_type"))
    if not rows:
        return unmet_by_type
    record = Record(worker)
    granted = Qualification.objects.filter(worker=worker, status=Qualification.Status.GRANTED)
    qualifications = {each.qualification_type_id: each for each in granted}
    for row in rows:
        unmet = _compare(row, record, qualifications, is_earned=row.is_earned)
        if unmet is not None:
            unmet_by_type[row.hit_type_id].append(unmet)
    return unmet_by_type


def _with_work(
    worker: WorkerAccount, lacking: Mapping[int, list[Unmet]]
) -> Mapping[int, list[Unmet]]:
    rows = [unmet for each in lacking.values() for unmet in each]
    untried = {each.earned.pk for each in rows if each.earned and not each.is_tried}
    if not untried:
        return lacking
    work = work_towards(worker, untried, clock.now())
    return {
        pk: [
            replace(each, work=tuple(work.get(each.earned.pk, ()))) if each.earned else each
            for each in unmet
        ]
        for pk, unmet in lacking.items()
    }


def _compare(
    row: QualificationRequirement,
    record: Record,
    qualifications: Mapping[int, Qualification],
    *,
    is_earned: bool,
) -> Unmet | None:
    is_held, value = _value(row, record, qualifications)
    locales = [Locale(*locale) for locale in row.locale_values]
    if meets(row.comparator, is_held=is_held, value=value, required=locales or row.integer_values):
        return None
    if is_earned and row.comparator != "DoesNotExist":
        return _unearned(row, is_held)
    return Unmet(
        Guard(row.actions_guarded),
        _reason(row, is_held, value),
        _requestable(row, is_held),
        is_undeclared=is_declared(row.system_id) and not value,
        is_of_place=row.system_id == LOCALE_ID,
        code=_code(row, is_held, value),
    )


def _unearned(row: QualificationRequirement, is_held: bool) -> Unmet:
    if is_held:
        reason = _("“%(name)s” is needed, and your work for it did not pass.")
    else:
        reason = _("“%(name)s” is needed. It is given for other HITs.")
    return Unmet(
        Guard(row.actions_guarded),
        reason % {"name": _name(row)},
        earned=row.qualification_type,
        is_tried=is_held,
        code="not_passed" if is_held else "earned_by_work",
    )


def _requestable(row: QualificationRequirement, is_held: bool) -> QualificationType | None:
    asked = row.qualification_type
    if asked is None or asked.deleted_at or asked.status != "Active":
        return None
    is_decided = is_held and not asked.test and asked.retry_delay_seconds is None
    return None if is_decided or row.comparator == "DoesNotExist" else asked


def _value(
    row: QualificationRequirement, record: Record, qualifications: Mapping[int, Qualification]
) -> tuple[bool, int | Locale | None]:
    if system := find_system(row.system_id):
        value = system.value_of(record)
        return value is not None, value
    qualification = qualifications.get(row.qualification_type_id or 0)
    if qualification is None:
        return False, None
    if qualification.country:
        return True, Locale(qualification.country, qualification.subdivision)
    return True, qualification.integer_value


def _code(row: QualificationRequirement, is_held: bool, value: int | Locale | None) -> str:
    if row.comparator == "DoesNotExist":
        return "held"
    if not is_held:
        return "not_held"
    return "no_value" if value is None else "wrong_value"


def _reason(row: QualificationRequirement, is_held: bool, value: int | Locale | None) -> str:
    name = _name(row)
    if row.comparator == "Exists":
        return _("You don't have the qualification “%(name)s”.") % {"name": name}
    if row.comparator == "DoesNotExist":
        return _("You have the qualification “%(name)s”, and this is for those without it.") % {
            "name": name
        }
    places = [Locale(*locale) for locale in row.locale_values]
    if row.system_id == LOCALE_ID and places:
        return place_reason(row.comparator, places, value if isinstance(value, Locale) else None)
    phrase = str(PHRASES[row.comparator]).format(", ".join(map(str, places or row.integer_values)))
    if not is_held:
        reason = _("“%(name)s” must be %(phrase)s; you do not have it.")
    elif value is None:
        reason = _("“%(name)s” must be %(phrase)s; yours has no value.")
    else:
        reason = _("“%(name)s” must be %(phrase)s; yours is %(value)s.")
    return reason % {"name": name, "phrase": phrase, "value": value}


def _name(row: QualificationRequirement) -> str:
    if system := find_system(row.system_id):
        return system.name
    return row.qualification_type.name if row.qualification_type else row.type_id
