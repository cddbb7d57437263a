"""What is known of a study: how it was made, who gave its answers, and its jobs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from functools import cached_property
from typing import Any

from django.contrib.auth.base_user import AbstractBaseUser
from django.core.cache import cache
from django.db.models import Avg, Count, IntegerField, Max, Min, OuterRef, Q, Subquery
from django.db.models.functions import Cast
from django.utils.translation import gettext as _, gettext_noop

from annotation.models import (
    Candidate,
    CheckAnswer,
    Judgment,
    Protocol,
    Study,
    Submission,
)
from annotation.protocols.documents import read_document
from annotation.protocols.records import ProtocolDocument
from annotation.protocols.versions import current_document
from console.registrations import load_registrations
from results.models import Result
from work.execution import RunningJob
from work.models import Job, JobQuerySet
from work.registry import job_kind
from work.tasks import request_job


@dataclass(frozen=True)
class SystemMean:
    question: str
    system: str
    mean: float
    n_judgments: int
    n_annotators: int
    n_items: int


@dataclass(frozen=True)
class CollectionFacts:
    list_batches: Callable[[Study], list[tuple[Any, Any]]]
    list_recruitments: Callable[[Study], list[Any]]


_collections: list[CollectionFacts] = []


def register_collection_facts(facts: CollectionFacts) -> None:
    _collections.append(facts)


@dataclass(frozen=True)
class StudyFacts:
    study: Study

    @cached_property
    def version(self) -> Protocol | None:
        return Protocol.objects.of(self.study).frozen().order_by("-number").first()

    @cached_property
    def protocol(self) -> ProtocolDocument:
        if self.version is None:
            return current_document(self.study)
        return read_document(self.version.document)

    @cached_property
    def counts(self) -> dict[str, Any]:
        status = Submission.Status
        return Submission.objects.of(self.study).aggregate(
            n_submissions=Count("pk"),
            n_approved=Count("pk", filter=Q(status=status.APPROVED)),
            n_rejected=Count("pk", filter=Q(status=status.REJECTED)),
            n_flagged=Count("pk", filter=~Q(flag_reason="")),
            n_simulated=Count("pk", filter=Q(is_simulated=True)),
            n_measured=Count("evidence"),
            n_flags_measured=Count("pk", filter=Q(evidence__is_flagged=True)),
            n_consents=Count("pk", filter=Q(consented_at__isnull=False)),
            n_annotators=Count("annotator", distinct=True),
            n_items=Count("item", distinct=True),
            first=Min("submitted_at"),
            last=Max("submitted_at"),
        )

    @property
    def dates(self) -> tuple[datetime, datetime] | None:
        first, last = self.counts["first"], self.counts["last"]
        return None if first is None or last is None else (first, last)

    @cached_property
    def n_judgments(self) -> int:
        return Judgment.objects.of(self.study).accepted().count()

    @cached_property
    def n_failed_checks(self) -> int:
        return (
            CheckAnswer.objects.filter(submission__item__study=self.study)
            .filter(is_failed=True)
            .count()
        )

    @cached_property
    def outputs_of_systems(self) -> list[tuple[str, int]]:
        counts = (
            Judgment.objects.of(self.study)
            .accepted()
            .filter(candidate__isnull=False)
            .order_by()
            .values("candidate__system")
            .annotate(n=Count("candidate", distinct=True))
        )
        return sorted((row["candidate__system"], row["n"]) for row in counts)

    @cached_property
    def most_candidates(self) -> int:
        of_items = Candidate.objects.filter(item__study=self.study).order_by().values("item")
        return max((row["n"] for row in of_items.annotate(n=Count("pk"))), default=0)

    @cached_property
    def batches(self) -> list[tuple[Any, Any]]:
        load_registrations()
        return [row for facts in _collections for row in facts.list_batches(self.study)]

    @cached_property
    def recruitments(self) -> list[Any]:
        load_registrations()
        return [row for facts in _collections for row in facts.list_recruitments(self.study)]

    @property
    def n_dropouts(self) -> int | None:
        """Assignments returned or abandoned; None where no marketplace has said so."""
        statements = [report.statement for _batch, report in self.batches]
        known = [one for one in statements if one is not None]
        return None if not known else int(sum(one.n_returned + one.n_abandoned for one in known))

    @cached_property
    def system_means(self) -> list[SystemMean]:
        """By question in its order, the highest mean first; systems without a name are left out,
        and so are questions whose values are codes of categories."""
        return [
            SystemMean(*row[1:])
            for row in sorted(
                Judgment.objects.of(self.study)
                .accepted()
                .filter(submission__round=1)
                .exclude(candidate__system="")
                .exclude(question__level="nominal")
                .filter(question__categories=[])
                .order_by()
                .values_list("question__position", "question__name", "candidate__system")
                .annotate(
                    mean=Avg("value"),
                    n=Count("pk"),
                    n_annotators=Count("submission__annotator", distinct=True),
                    n_items=Count("submission__item", distinct=True),
                ),
                key=lambda row: (row[0], row[1], -row[3], row[2]),
            )
        ]


# Pages that show results of a study; requests of the API name them too.
AGREEMENT, VALIDATION, REPORT, RESULTS = "agreement", "validation", "report", "results"
SCORES = "scores"


def newest_fact(kind: str, name: str) -> Subquery:
    """The number of that name in the facts of a study's newest result of a kind."""
    return Subquery(
        Result.objects.filter(study=OuterRef("pk"), kind=kind)
        .order_by("-number")
        .values(fact=Cast(f"facts__{name}", IntegerField()))[:1]
    )


class Raters(Enum):
    """Whose answers a result is of, as the subject of a sentence: each is a plural."""

    PEOPLE = "people"
    SIMULATED = "simulated"
    BOTH = "both"

    @property
    def subject(self) -> str:
        if self is Raters.BOTH:
            return _("People and simulated workers")
        return _("People") if self is Raters.PEOPLE else _("Simulated workers")

    @property
    def named(self) -> str:
        if self is Raters.BOTH:
            return _("people and simulated workers")
        return _("people") if self is Raters.PEOPLE else _("simulated workers")


def raters_of(study: Study) -> Raters:
    counts = _counts(study)
    if not counts["simulated"]:
        return Raters.PEOPLE
    return Raters.SIMULATED if counts["simulated"] == counts["all"] else Raters.BOTH


def has_simulated(study: Study) -> bool:
    return bool(_counts(study)["simulated"])


# In the captions of tables and figures.
SIMULATED = gettext_noop("with simulated answers")


def simulation_notice(study: Study) -> str:
    counts = _counts(study)
    if not counts["simulated"]:
        return ""
    if study.rehearsal_of_id is not None:
        return _(
            "Simulated annotators gave every answer of this rehearsal. The results say nothing "
            "about your systems or metrics."
        )
    if counts["simulated"] == counts["all"]:
        whose = _("Every answer of this study is simulated: the results are nobody's opinion.")
    else:
        whose = _(
            "%(simulated)s of the %(all)s submissions of this study are simulated: they are "
            "nobody's opinion."
        ) % {name: f"{n:,}" for name, n in counts.items()}
    circular = _(
        "Simulated workers go by the words that a candidate shares with its reference, so that "
        "metrics which count shared words agree with them whatever they are worth."
    )
    return f"{whose} {circular}"


def _counts(study: Study) -> dict[str, int]:
    key = f"simulated:{study.pk}:{study.judgments_version}"
    counts: dict[str, int] | None = cache.get(key)
    if counts is None:
        counts = Submission.objects.of(study).aggregate(
            all=Count("pk"), simulated=Count("pk", filter=Q(is_simulated=True))
        )
        cache.set(key, counts)
    return counts


COLLECT, SCORE, RESULT, LABEL = "collect", "score", "result", "label"
PUBLISH, CONNECT, CHECK_LAUNCH = "publish", "connect", "check_launch"
# Collecting by itself, beside the one that a person asks for.
COLLECT_NEW = "collect_new"
REVIEW = "review"
PLAN_SCORE = "plan_score"
MEASURE = "measure"
ANSWER_BY_CROWD = "answer_by_crowd"
REHEARSE, DELETE_REHEARSAL = "rehearse", "delete_rehearsal"
RECRUIT, CONNECT_RECRUITER = "recruit_participants", "connect_to_recruiter"
LINKS = "exchange_links"


def jobs_of(study: Study) -> JobQuerySet:
    return Job.objects.about(subject_of(study))


def request_study_job(
    *,
    study: Study,
    kind: str,
    names: Sequence[str] = (),
    arguments: Mapping[str, Any] | None = None,
    requested_by: AbstractBaseUser | None = None,
    basis: str = "",
) -> Job:
    return request_job(
        kind=kind,
        subject=subject_of(study),
        arguments=dict(arguments or {}) | {"study": study.pk, "names": list(names)},
        title=f"{job_kind(kind).label} {', '.join(names)}".strip(),
        basis=basis,
        requested_by=requested_by,
    )


def study_of(running: RunningJob) -> Study:
    return Study.objects.get(pk=running.arguments["study"])


def subject_of(study: Study) -> str:
    return f"study:{study.pk}"
