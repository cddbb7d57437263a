"""What the database knows of how a study was made, for datasheets and reports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from django.db.models import Avg, Count, Max, Min, Q

from annotation.agreement_versions import agreement_records, current_agreement
from annotation.models import Candidate, CheckAnswer, Judgment, Protocol, Study, Submission
from annotation.protocols.documents import read_document
from annotation.protocols.records import ProtocolDocument
from annotation.protocols.versions import current_document
from console.registrations import load_registrations

ALPHA = "krippendorff_alpha"


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
    """How an app above collected a study's answers: its batches and studies at recruiters."""

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
        """Submissions by what became of them, their first and last time, and their annotators."""
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
        answers = CheckAnswer.objects.filter(submission__item__study=self.study)
        return answers.filter(is_failed=True).count()

    @cached_property
    def outputs_of_systems(self) -> list[tuple[str, int]]:
        """How many candidates of each system anyone judged."""
        judged = Judgment.objects.of(self.study).accepted().filter(candidate__isnull=False)
        rows = judged.order_by().values("candidate__system")
        counts = rows.annotate(n=Count("candidate", distinct=True))
        return sorted((row["candidate__system"], row["n"]) for row in counts)

    @cached_property
    def most_candidates(self) -> int:
        """The most that an annotator saw on one page."""
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
        if not known:
            return None
        return int(sum(one.n_returned + one.n_abandoned for one in known))

    @cached_property
    def alphas(self) -> list[dict[str, Any]]:
        version = current_agreement(self.study)
        if version is None:
            return []
        return [
            row
            for row in agreement_records(version)["coefficients"]
            if row["name"] == ALPHA and not row["by"] and row["with_flagged"]
        ]

    @cached_property
    def system_means(self) -> list[SystemMean]:
        """By question in its order, the highest mean first; systems without a name are left out,
        and so are questions whose values are codes of categories."""
        rows = (
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
            )
        )
        ordered = sorted(rows, key=lambda row: (row[0], row[1], -row[3], row[2]))
        return [SystemMean(*row[1:]) for row in ordered]
