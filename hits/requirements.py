import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from math import ceil
from typing import Any

import pycountry
from django.db.models import Count, QuerySet
from django.utils.translation import gettext as _

from accounts.models import User
from annotation.access import record_in
from annotation.models import Study
from annotation.protocols.records import Qualifications
from annotation.protocols.validation import is_language
from annotation.protocols.versions import current_document
from hits.calls import create_type, grant_qualification
from hits.endpoints import MTurkClient, QualificationRequirementTypeDef, translated_errors
from hits.exceptions import BatchUnfit, MarketplaceRefused, require
from hits.limits import earning
from hits.models import Assignment, Batch, DeliveryState, Exclusion, Worker, WorkerClearance
from hits.practice import practice_requirements
from hits.qualification_tests import requirements_of_tests

Reason = Exclusion.Reason
WORKER_ID = re.compile(r"[A-Z0-9]{1,64}")
MOST_NAMED = 5
DESCRIPTION = "Held by workers for whom a group of HITs has no more work."


def worker_id_errors(ids: Iterable[str]) -> list[str]:
    wrong = [each for each in ids if not WORKER_ID.fullmatch(each)]
    text = _("“%(id)s” is not a WorkerId: capitals and digits, at most 64.")
    return [text % {"id": each[:80]} for each in wrong[:MOST_NAMED]]


def exclude_workers(
    *, batch: Batch, worker_ids: Iterable[str], reason: Exclusion.Reason = Reason.LISTED
) -> None:
    marketplace = batch.connection.marketplace
    ids = list(dict.fromkeys(worker_ids))
    if errors := worker_id_errors(ids):
        raise BatchUnfit(" ".join(errors), code="worker_ids")
    Worker.objects.bulk_create(
        (Worker(marketplace=marketplace, worker_id=each) for each in ids), ignore_conflicts=True
    )
    _write(batch, Worker.objects.filter(marketplace=marketplace, worker_id__in=ids), reason)


def listed_workers(batch: Batch) -> list[str]:
    return list(
        Exclusion.objects.of(batch)
        .filter(reason=Reason.LISTED)
        .values_list("worker__worker_id", flat=True)
    )


def _write(batch: Batch, workers: QuerySet[Worker], reason: Exclusion.Reason) -> None:
    Exclusion.objects.bulk_create(
        [
            Exclusion(batch=batch, worker=worker, reason=reason)
            for worker in workers.exclude(pk__in=Exclusion.objects.of(batch).values("worker"))
        ],
        ignore_conflicts=True,
    )


# One QualificationType a batch, granted silently, serves all reasons: no worker who has it may take
# the batch's HITs.
def excludes_workers(batch: Batch) -> bool:
    return (
        bool(batch.excluded_rounds or batch.max_per_worker)
        or bool(_rules(batch).hold_after_hits or _rules(batch).excluded_studies)
        or batch.n_waves > 1
        or (batch.pk is not None and Exclusion.objects.of(batch).exists())
    )


def _rules(batch: Batch) -> Qualifications:
    return batch.document.qualifications


def send_exclusions(*, batch: Batch, client: MTurkClient, wave: int = 0) -> int:
    """Exclude at the marketplace all who are to be excluded by now; return how many. With
    `wave`, also those who worked in earlier waves. Nothing is sent twice."""
    if not excludes_workers(batch):
        return 0
    _require_type(batch, client)
    _end_holds(batch, client)
    _write_due(batch, wave)
    n_sent = 0
    unsent = list(Exclusion.objects.of(batch).unsent().select_related("worker"))
    for exclusion in earning()(unsent, len(unsent)):
        n_sent += _send(client, batch, exclusion)
    return n_sent


def _write_due(batch: Batch, wave: int) -> None:
    same = Assignment.objects.filter(
        hit__batch__study=batch.study_id,
        hit__batch__connection__marketplace=batch.connection.marketplace,
    ).order_by()
    earlier = same.filter(hit__batch__round__in=batch.excluded_rounds)
    _write(batch, Worker.objects.filter(pk__in=earlier.values("worker")), Reason.EARLIER_ROUND)
    if wave > 1:
        waves = Assignment.objects.of(batch).filter(hit__wave__lt=wave).order_by()
        _write(batch, Worker.objects.filter(pk__in=waves.values("worker")), Reason.EARLIER_WAVE)
    if batch.max_per_worker:
        full = (
            same.filter(hit__batch__round=batch.round)
            .values("worker")
            .annotate(n=Count("*"))
            .filter(n__gte=batch.max_per_worker)
        )
        _write(batch, Worker.objects.filter(pk__in=full.values("worker")), Reason.LIMIT)

    _write(batch, _workers_of_excluded_studies(batch), Reason.STUDY)
    if n_first := _rules(batch).hold_after_hits:
        _write(
            batch, workers_to_hold(batch.study, batch.connection.marketplace, n_first), Reason.HELD
        )


def _workers_of_excluded_studies(batch: Batch) -> QuerySet[Worker]:
    # Only studies of the same team: workers of others are none of its business.
    return Worker.objects.filter(
        pk__in=Assignment.objects.filter(
            hit__batch__study__slug__in=_rules(batch).excluded_studies,
            hit__batch__study__team=batch.study.team_id,
            hit__batch__connection__marketplace=batch.connection.marketplace,
        )
        .order_by()
        .values("worker")
    )


def workers_to_hold(study: Study, marketplace: str, n_first: int) -> QuerySet[Worker]:
    return Worker.objects.filter(
        pk__in=Assignment.objects.filter(
            hit__batch__study=study, hit__batch__connection__marketplace=marketplace
        )
        .order_by()
        .values("worker")
        .annotate(n=Count("*"))
        .filter(n__gte=n_first)
        .values("worker")
    ).exclude(pk__in=WorkerClearance.objects.filter(study=study).values("worker"))


def clear_workers(*, study: Study, workers: Iterable[Worker], cleared_by: User | None) -> int:
    # The marketplace is told with the next collection.
    known = {row.worker_id for row in WorkerClearance.objects.filter(study=study)}
    new = [worker for worker in workers if worker.pk not in known]
    WorkerClearance.objects.bulk_create(
        [WorkerClearance(study=study, worker=worker, cleared_by=cleared_by) for worker in new],
        ignore_conflicts=True,
    )
    details = {"workers": len(new)}
    if new:
        record_in(study, actor=cleared_by, action="workers.clear", details=details)
    return len(new)


def _end_holds(batch: Batch, client: MTurkClient) -> None:
    held = Exclusion.objects.of(batch).filter(
        reason=Reason.HELD,
        worker__in=WorkerClearance.objects.filter(study=batch.study_id).values("worker"),
    )
    for exclusion in held.select_related("worker"):
        try:
            with translated_errors():
                client.disassociate_qualification_from_worker(
                    QualificationTypeId=batch.exclusion_type_id,
                    WorkerId=exclusion.worker.worker_id,
                )
        except MarketplaceRefused as refusal:
            # Not granted, or taken back before: what is wanted is so.
            if not refusal.code.startswith("AWS.MechanicalTurk."):
                raise
        exclusion.delete()


def _require_type(batch: Batch, client: MTurkClient) -> None:
    if batch.exclusion_type_id:
        return
    batch.exclusion_type_id = create_type(
        client, name=f"Assay {batch.key}: no more HITs", description=DESCRIPTION
    )
    Batch.objects.filter(pk=batch.pk).update(exclusion_type_id=batch.exclusion_type_id)


def _send(client: MTurkClient, batch: Batch, exclusion: Exclusion) -> bool:
    outcome = grant_qualification(client, batch.exclusion_type_id, exclusion.worker.worker_id, 1)
    Exclusion.objects.filter(pk=exclusion.pk).update(**outcome)
    return outcome["state"] == DeliveryState.CONFIRMED


# Mechanical Turk's own ids, which every compatible marketplace has.
LOCALE = "00000000000000000071"
PERCENT_APPROVED = "000000000000000000L0"
NUMBER_APPROVED = "00000000000000000040"
# Before three letters of ISO 639-3: Assay's marketplaces have one for each language.
LANGUAGE_PREFIX = "ASSAYLANGUAGE"
ANY_LANGUAGE = f"{LANGUAGE_PREFIX}ENG"
MASTERS = "2F1QJWKUDD8XADTFD2Q0G6UTO95ALH"
MOST_REQUIREMENTS = 10
MOST_COUNTRIES = 30
# The greatest IntegerValue of the protocol.
MOST_APPROVED = 2**31 - 1
# What people write for codes that ISO 3166-1 gives other letters.
MISTAKEN = {"UK": "GB", "EL": "GR"}


def requirements(
    *,
    countries: Sequence[str] = (),
    languages: Sequence[str] = (),
    min_approval_percent: int | None = None,
    min_approved: int | None = None,
) -> list[dict[str, Any]]:
    countries = list(dict.fromkeys(countries))
    problems = [*countries_errors(countries), *languages_errors(languages)]
    if min_approval_percent is not None and not 0 <= min_approval_percent <= 100:
        problems.append(
            _("An approval rate is from 0 to 100 percent, not {n}.").format(n=min_approval_percent)
        )
    if min_approved is not None and not 0 <= min_approved <= MOST_APPROVED:
        problems.append(
            _("A number of approved HITs is from 0 to {most}, not {n}.").format(
                most=MOST_APPROVED, n=min_approved
            )
        )
    require(not problems, BatchUnfit(" ".join(problems)))
    rows: list[dict[str, Any]] = []
    if countries:
        comparator = "EqualTo" if len(countries) == 1 else "In"
        rows.append(
            _requirement(LOCALE, comparator, LocaleValues=[{"Country": code} for code in countries])
        )
    rows += [_requirement(language_type_id(code), "Exists") for code in dict.fromkeys(languages)]
    if min_approval_percent:
        rows.append(_at_least(PERCENT_APPROVED, min_approval_percent))
    if min_approved:
        rows.append(_at_least(NUMBER_APPROVED, min_approved))
    return rows


@dataclass(frozen=True)
class WhoMayWork:
    countries: list[str]
    languages: list[str]
    min_approval_percent: int | None
    min_approved: int | None


def who_may_work(batch: Batch) -> WhoMayWork:
    rows = {row["QualificationTypeId"]: row for row in batch.requirements}
    locales = rows.get(LOCALE, {}).get("LocaleValues", [])
    least = {each: row["IntegerValues"][0] for each, row in rows.items() if "IntegerValues" in row}
    return WhoMayWork(
        countries=[locale["Country"] for locale in locales],
        languages=[
            type_id.removeprefix(LANGUAGE_PREFIX).lower()
            for type_id in rows
            if type_id.startswith(LANGUAGE_PREFIX)
        ],
        min_approval_percent=least.get(PERCENT_APPROVED),
        min_approved=least.get(NUMBER_APPROVED),
    )


# Where nothing says how long a HIT may take: workers pause, and come back to what they accepted.
MINUTES_OF_A_HIT = 60


@dataclass(frozen=True)
class ProtocolTerms(WhoMayWork):
    max_per_worker: int | None
    max_assignments: int
    allowed_seconds: int | None

    @property
    def minutes(self) -> int:
        return ceil(self.allowed_seconds / 60) if self.allowed_seconds else MINUTES_OF_A_HIT


def protocol_terms(study: Study) -> ProtocolTerms:
    document = current_document(study)
    who = document.qualifications
    return ProtocolTerms(
        countries=list(who.countries),
        languages=list(who.languages),
        min_approval_percent=who.least_approval_percent,
        min_approved=who.least_approved_hits,
        max_per_worker=who.most_hits_per_worker,
        max_assignments=document.completion.assignments_per_item,
        allowed_seconds=document.time.allowed_seconds,
    )


def _at_least(type_id: str, value: int) -> dict[str, Any]:
    return _requirement(type_id, "GreaterThanOrEqualTo", IntegerValues=[value])


def _requirement(type_id: str, comparator: str, **values: Any) -> dict[str, Any]:
    return {"QualificationTypeId": type_id, "Comparator": comparator, **values}


def requirements_of(batch: Batch) -> Sequence[QualificationRequirementTypeDef]:
    return [*requirements_to_practise(batch), *_typed(practice_requirements(batch))]


def requirements_to_practise(batch: Batch) -> list[QualificationRequirementTypeDef]:
    rows = list(batch.requirements)
    if batch.needs_masters:
        rows.append(_requirement(MASTERS, "Exists"))
    rows += requirements_of_tests(batch)
    if batch.exclusion_type_id:
        guarded = {"ActionsGuarded": "DiscoverPreviewAndAccept"}
        rows.append(_requirement(batch.exclusion_type_id, "DoesNotExist", **guarded))
    return _typed(rows)


def countries_of(batch: Batch) -> list[str]:
    return [
        str(locale["Country"])
        for row in batch.requirements
        if row["QualificationTypeId"] == LOCALE and row["Comparator"] in ("EqualTo", "In")
        for locale in row["LocaleValues"]
    ]


def _typed(rows: list[dict[str, Any]]) -> list[QualificationRequirementTypeDef]:
    return rows  # type: ignore[return-value]


def countries_errors(codes: Sequence[str]) -> list[str]:
    errors = [error for code in codes if (error := country_error(code))]
    if len(codes) > MOST_COUNTRIES:
        errors.append(_("A marketplace takes at most {n} countries.").format(n=MOST_COUNTRIES))
    return errors


def country_error(code: str) -> str | None:
    if code in _country_codes():
        return None
    correct = MISTAKEN.get(code.upper(), code.upper())
    if correct in _country_codes():
        sentence = _("“%(code)s” is not an ISO 3166 code of a country. Did you mean %(correct)s?")
        return sentence % {"code": code, "correct": correct}
    return _("“%(code)s” is not an ISO 3166 code of a country.") % {"code": code}


def country_name(code: str) -> str:
    country: Any = pycountry.countries.get(alpha_2=code)
    return code if country is None else str(getattr(country, "common_name", country.name))


def languages_errors(codes: Sequence[str]) -> list[str]:
    text = _("“%(code)s” is not an ISO 639 code of a language, such as de.")
    return [text % {"code": code[:40]} for code in codes if not is_language(code)]


def language_type_id(code: str) -> str:
    # By its code alone: En is the name of a language too, though not of English.
    field = "alpha_2" if len(code) == 2 else "alpha_3"
    language: Any = pycountry.languages.get(**{field: code})
    return f"{LANGUAGE_PREFIX}{language.alpha_3.upper()}"


def language_name(code: str) -> str:
    language: Any = pycountry.languages.get(**{"alpha_2" if len(code) == 2 else "alpha_3": code})
    return code if language is None else str(language.name)


def requires_languages(batch: Batch) -> bool:
    return any(
        str(row["QualificationTypeId"]).startswith(LANGUAGE_PREFIX) for row in batch.requirements
    )


def has_languages(client: MTurkClient) -> bool:
    try:
        with translated_errors():
            client.get_qualification_type(QualificationTypeId=ANY_LANGUAGE)
    except MarketplaceRefused as refusal:
        # A marketplace that is busy has said nothing of languages.
        if refusal.is_momentary:
            raise
        return False
    return True


@cache
def _country_codes() -> frozenset[str]:
    return frozenset(country.alpha_2 for country in pycountry.countries)
