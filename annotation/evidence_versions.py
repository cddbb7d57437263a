"""Measuring a study's submissions once for a state of its judgments, and reading what is stored."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from django.db import transaction

from annotation.annotator_flags import flag_rows, quality_evidence
from annotation.evidence import (
    CONTRADICTORY,
    FAR,
    FAST,
    SAME,
    SUBMISSION_FLAGS,
    Evidence,
    Flag,
    measured_efforts,
    measured_evidence,
)
from annotation.models import (
    AnnotatorFlag,
    CheckAnswer,
    EvidenceVersion,
    Protocol,
    Study,
    Submission,
    SubmissionEvidence,
)
from annotation.protocols.documents import read_document
from annotation.protocols.records import ProtocolDocument

if TYPE_CHECKING:
    from stats.quality import Evidence as QualityEvidence

ROWS_AT_ONCE = 1000
TYPICAL = {FAST: "typical_seconds", SAME: "typical_same_share", FAR: "typical_distance"}


def store_evidence(study: Study) -> EvidenceVersion:
    """Measure the submissions and keep that in place of the version before.

    What another process measured of a later state meanwhile stays.
    """
    # Loaded first: what changes meanwhile makes the version out of date, and never wrong.
    study = Study.objects.get(pk=study.pk)
    efforts = measured_efforts(study)
    return _store(study, measured_evidence(study, efforts), quality_evidence(study, efforts))


@transaction.atomic
def _store(study: Study, evidence: Evidence, quality: QualityEvidence) -> EvidenceVersion:
    Study.objects.select_for_update().get(pk=study.pk)
    last = EvidenceVersion.objects.of(study).newest()
    if last is not None and last.judgments_version > study.judgments_version:
        return last
    SubmissionEvidence.objects.filter(version__study=study).delete()
    EvidenceVersion.objects.of(study).delete()
    hits = evidence.careful_hits
    version = EvidenceVersion.objects.create(
        study=study,
        version=last.version + 1 if last else 1,
        judgments_version=study.judgments_version,
        n_submissions=len(evidence.measures),
        n_careful=hits["all"],
        **{name: evidence.typical.get(flag) for flag, name in TYPICAL.items()},
        **{f"n_careful_{flag}": hits[flag] for flag in SUBMISSION_FLAGS},
    )
    flags = flag_rows(version, quality)
    AnnotatorFlag.objects.bulk_create(flags, batch_size=ROWS_AT_ONCE)
    rows = _rows(version, evidence, flags)
    SubmissionEvidence.objects.bulk_create(rows, batch_size=ROWS_AT_ONCE)
    return version


def _rows(
    version: EvidenceVersion, evidence: Evidence, flags: Sequence[AnnotatorFlag]
) -> list[SubmissionEvidence]:
    rows = []
    of_annotator: defaultdict[int, set[str]] = defaultdict(set)
    for flag in flags:
        of_annotator[flag.annotator_id].add(flag.name)
    failed = _failed_checks(version.study)
    protocols = _protocols(version.study)
    for submission, measures in evidence.measures.items():
        names = evidence.flag_names(measures)
        against = of_annotator[measures.annotator]
        document = protocols.get(submission)
        rows.append(
            SubmissionEvidence(
                version=version,
                submission_id=submission,
                seconds=measures.seconds,
                same_share=measures.same_share,
                distance=measures.distance,
                has_failed_check=submission in failed,
                is_flagged=bool(names or against or submission in failed),
                is_held=CONTRADICTORY in names
                or (
                    document is not None
                    and is_held(document, against, failed.get(submission, set()))
                ),
                **{f"is_{name}": name in names for name in SUBMISSION_FLAGS},
            )
        )
    return rows


def is_held(document: ProtocolDocument, flags: Collection[str], failed: Collection[int]) -> bool:
    """Whether the protocol holds the work of an annotator with these flags, who failed these of
    its checks on the page, until a person has looked."""
    if set(document.holding_flags) & set(flags):
        return True
    return any(check.holds_work for n, check in enumerate(document.checks) if n in failed)


def _failed_checks(study: Study) -> dict[int, set[int]]:
    failed: defaultdict[int, set[int]] = defaultdict(set)
    rows = CheckAnswer.objects.filter(submission__item__study=study, is_failed=True).order_by()
    for submission, number in rows.values_list("submission", "placed__number"):
        failed[submission].add(number)
    return failed


def _protocols(study: Study) -> dict[int, ProtocolDocument]:
    """The version that each submission was made under, where it holds anything."""
    versions = {row.pk: read_document(row.document) for row in Protocol.objects.of(study)}
    holding = {pk for pk, one in versions.items() if one.holding_flags or one.checks}
    rows = Submission.objects.of(study).filter(protocol__in=holding).order_by()
    return {pk: versions[of] for pk, of in rows.values_list("pk", "protocol") if of is not None}


def flags_of(submission: Submission) -> list[Flag]:
    """The stored flags of a submission, the strongest kind first; none before it was measured."""
    row: SubmissionEvidence | None = getattr(submission, "evidence", None)
    if row is None:
        return []
    return [_flag(name, row) for name in SUBMISSION_FLAGS if getattr(row, f"is_{name}")]


def _flag(name: str, row: SubmissionEvidence) -> Flag:
    version = row.version
    value, typical = row.measures.get(name, 1.0), getattr(version, TYPICAL.get(name, ""), 0.0)
    return Flag(
        name,
        value=value or 0.0,
        typical=typical or 0.0,
        n_careful_hit=getattr(version, f"n_careful_{name}"),
        n_careful=version.n_careful,
    )
