"""Doubting submissions: what speaks against them and their annotators, and flags with a reason.

Flagged submissions count on, and agreement is shown both ways.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from statistics import median
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.db.models import Count, F

from annotation.access import record_in
from annotation.disagreement import random_positions
from annotation.evidence import (
    CONTRADICTORY,
    FAR,
    FAST,
    SAME,
    SUBMISSION_FLAGS,
    Effort,
    Evidence,
    Flag,
    measured_efforts,
    measured_evidence,
)
from annotation.exceptions import AnnotationError, require
from annotation.frames import judgment_frame
from annotation.models import (
    AnnotatorFlag,
    Candidate,
    CheckAnswer,
    Protocol,
    Study,
    Submission,
    SubmissionEvidence,
    SubmissionQuerySet,
    WrittenAnswer,
)
from annotation.protocols.documents import read_document
from annotation.protocols.records import ProtocolDocument
from annotation.units import COMPARED
from presentation.numbers import group_values
from results.computing import create_result, lock_subject
from results.kinds import Computed
from results.models import Result, ResultQuerySet
from stats.libraries import pd
from stats.quality import Evidence as QualityEvidence, annotator_flags, count_words

LONGEST_REASON = Submission._meta.get_field("flag_reason").max_length or 0


@transaction.atomic
def flag_submissions(
    *, submissions: SubmissionQuerySet, reason: str, actor: AbstractBaseUser | None = None
) -> int:
    """Mark submissions as doubted, and return how many; a second reason replaces the first."""
    reason = reason.strip()
    require(
        0 < len(reason) <= LONGEST_REASON,
        AnnotationError(
            f"Say why a submission is flagged, in 1 to {LONGEST_REASON} characters.",
            code="reason_length",
        ),
    )
    return _set_reason(submissions, reason, actor)


@transaction.atomic
def unflag_submissions(
    *, submissions: SubmissionQuerySet, actor: AbstractBaseUser | None = None
) -> int:
    return _set_reason(submissions.flagged(), "", actor)


def _set_reason(
    submissions: SubmissionQuerySet, reason: str, actor: AbstractBaseUser | None
) -> int:
    # Before the update, after which the filters may match others.
    counts = dict(submissions.order_by().values_list("item__study").annotate(n=Count("*")))
    n_changed = submissions.update(flag_reason=reason)
    count_judgments_change(study_ids=set(counts))
    action = "submission.flag" if reason else "submission.unflag"
    for study in Study.objects.filter(pk__in=counts).order_by("pk"):
        record_in(
            study,
            actor=actor,
            action=action,
            details={"n_submissions": counts[study.pk], "reason": reason},
        )
    return n_changed


def count_judgments_change(*, study_ids: Collection[int]) -> None:
    """Call this after adding or removing judgments, or changing the state of submissions."""
    Study.objects.filter(pk__in=study_ids).update(judgments_version=F("judgments_version") + 1)


def count_scores_change(*, study_id: int) -> None:
    Study.objects.filter(pk=study_id).update(scores_version=F("scores_version") + 1)


EVIDENCE = "evidence"
ROWS_AT_ONCE = 1000
TYPICAL = {FAST: "typical_seconds", SAME: "typical_same_share", FAR: "typical_distance"}


def list_evidence(study: Study) -> ResultQuerySet:
    return Result.objects.of(study, EVIDENCE)


def store_evidence(study: Study) -> Result:
    """Measure the submissions and keep that in place of the version before.

    What another process measured of a later state meanwhile stays.
    """
    # Loaded first: what changes meanwhile makes the version out of date, and never wrong.
    study = Study.objects.get(pk=study.pk)
    efforts = measured_efforts(study)
    return _store(study, measured_evidence(study, efforts), quality_evidence(study, efforts))


@transaction.atomic
def _store(study: Study, evidence: Evidence, quality: QualityEvidence) -> Result:
    lock_subject(study)
    last = list_evidence(study).first()
    if last is not None and last.facts["judgments_version"] > study.judgments_version:
        return last
    hits = evidence.careful_hits
    timed = Submission.objects.of(study).accepted().plausibly_timed().order_by()
    times = group_values(timed.values_list("annotator", "seconds"))
    facts = {
        "judgments_version": study.judgments_version,
        "n_submissions": len(evidence.measures),
        "n_careful": hits["all"],
        **{name: evidence.typical.get(flag) for flag, name in TYPICAL.items()},
        **{f"n_careful_{flag}": hits[flag] for flag in SUBMISSION_FLAGS},
        "n_checks": len(quality.checks),
        "n_failed_checks": int(quality.checks["is_failed"].sum()),
        "seconds_by_annotator": sorted(
            round(median(filter(None, each)), 1) for each in times.values()
        ),
    }
    version = create_result(
        subject=study, kind=EVIDENCE, form=1, fingerprint="", computed=Computed(facts=facts)
    )
    # First, as a submission has one row at most.
    list_evidence(study).exclude(pk=version.pk).delete()
    flags = flag_rows(study, version, quality)
    AnnotatorFlag.objects.bulk_create(flags, batch_size=ROWS_AT_ONCE)
    rows = _rows(study, version, evidence, flags)
    SubmissionEvidence.objects.bulk_create(rows, batch_size=ROWS_AT_ONCE)
    version.facts["n_flagged"] = sum(row.is_flagged for row in rows)
    version.save(update_fields=["facts"])
    return version


def _rows(
    study: Study, version: Result, evidence: Evidence, flags: Sequence[AnnotatorFlag]
) -> list[SubmissionEvidence]:
    rows = []
    of_annotator = group_values((flag.annotator_id, flag.name) for flag in flags)
    failed = group_values(
        CheckAnswer.objects.filter(submission__item__study=study, is_failed=True)
        .order_by()
        .values_list("submission", "placed__number")
    )
    protocols = _protocols(study)
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
                    document is not None and is_held(document, against, failed.get(submission, ()))
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
    return any(check.holds_work for n, check in enumerate(document.all_checks) if n in failed)


def _protocols(study: Study) -> dict[int, ProtocolDocument]:
    versions = {row.pk: read_document(row.document) for row in Protocol.objects.of(study)}
    holding = {pk for pk, one in versions.items() if one.holding_flags or one.all_checks}
    rows = Submission.objects.of(study).filter(protocol__in=holding).order_by()
    return {pk: versions[of] for pk, of in rows.values_list("pk", "protocol") if of is not None}


def flags_of(submission: Submission) -> list[Flag]:
    row: SubmissionEvidence | None = getattr(submission, "evidence", None)
    if row is None:
        return []
    return [_flag(name, row) for name in SUBMISSION_FLAGS if getattr(row, f"is_{name}")]


def _flag(name: str, row: SubmissionEvidence) -> Flag:
    facts = row.version.facts
    return Flag(
        name,
        value=row.measures.get(name, 1.0) or 0.0,
        typical=facts.get(TYPICAL.get(name)) or 0.0,
        n_careful_hit=facts[f"n_careful_{name}"],
        n_careful=facts["n_careful"],
    )


REJECTED = {"submission__status": Submission.Status.REJECTED}


def quality_evidence(study: Study, efforts: Mapping[int, Effort] | None = None) -> QualityEvidence:
    frame = judgment_frame(study)
    frame = frame.assign(position=random_positions(study, frame))
    return QualityEvidence(
        checks=_checks(study),
        ratings=_ratings(study, frame),
        choices=_choices(study, frame),
        pages=_pages(study, measured_efforts(study) if efforts is None else efforts),
        reasons=_reasons(study),
    )


def flag_rows(study: Study, version: Result, evidence: QualityEvidence) -> list[AnnotatorFlag]:
    ids = dict(study.annotators.values_list("pseudonym", "pk"))
    return [
        AnnotatorFlag(
            version=version,
            annotator_id=ids[row["annotator"]],
            name=row["flag"],
            n=row["n"],
            n_hits=row["n_hits"],
            expected=None if pd.isna(row["expected"]) else row["expected"],
            value=None if pd.isna(row["value"]) else row["value"],
            p_value=row["p_value"],
            other_id=ids[row["other"]] if row["other"] else None,
        )
        for row in annotator_flags(evidence).to_dict("records")
    ]


def _checks(study: Study) -> pd.DataFrame:
    rows = CheckAnswer.objects.filter(submission__item__study=study).exclude(**REJECTED)
    columns = ("submission__annotator__pseudonym", "placed", "is_failed")
    return _frame(rows.order_by("pk").values_list(*columns), ["annotator", "check", "is_failed"])


def _ratings(study: Study, frame: pd.DataFrame) -> pd.DataFrame:
    """Values as shares of their scales. Those among three categories and more are left out, since
    they are neither near each other nor apart."""
    scales = {
        question.name: (question.scale_min, question.scale_max - question.scale_min)
        for question in study.questions.all()
        if len(question.categories) <= 2
    }
    compared = study.questions.filter(kind__in=COMPARED).values_list("name", flat=True)
    frame = frame[frame["question"].isin(list(scales))]
    if frame.empty:
        return QualityEvidence().ratings
    names = frame["question"].astype(str)
    low, width = (names.map({name: each[n] for name, each in scales.items()}) for n in (0, 1))
    order = _order(study)
    pairs = zip(frame["annotator"], frame["item"], frame["round"], strict=True)
    return pd.DataFrame(
        {
            "annotator": frame["annotator"].astype(object),
            "page": frame.groupby(["round", "item"], observed=True).ngroup(),
            "question": frame.groupby(["round", "question"], observed=True).ngroup(),
            "unit": _units(frame),
            "value": (frame["value"] - low.astype(float)) / width.astype(float),
            "order": [order[pair] for pair in pairs],
            "position": frame["position"],
            "is_compared": names.isin(list(compared)),
        }
    )


def _choices(study: Study, frame: pd.DataFrame) -> pd.DataFrame:
    names = [question.name for question in study.questions.all() if len(question.categories) > 2]
    frame = frame[frame["question"].isin(names)]
    if frame.empty:
        return QualityEvidence().choices
    return frame[["annotator", "value"]].assign(
        annotator=frame["annotator"].astype(object),
        question=frame.groupby(["round", "question"], observed=True).ngroup(),
        unit=_units(frame),
    )


def _units(frame: pd.DataFrame) -> pd.Series:
    keys = [frame[name] for name in ("round", "question", "item", "candidate")]
    return frame.groupby(keys, observed=True).ngroup()


def _order(study: Study) -> dict[tuple[str, str, int], float]:
    return {
        (annotator, item, round): at.timestamp() if at else float(pk)
        for annotator, item, round, at, pk in Submission.objects.of(study)
        .accepted()
        .order_by("pk")
        .values_list("annotator__pseudonym", "item__key", "round", "submitted_at", "pk")
    }


def _pages(study: Study, efforts: Mapping[int, Effort]) -> pd.DataFrame:
    items = study.items.values_list("pk", "context")
    # An item may come between the statements, with its texts.
    words = Counter({pk: count_words(context) for pk, context in items})
    texts = Candidate.objects.filter(item__study=study).order_by().values_list("item", "text")
    for item, text in texts.iterator():
        words[item] += count_words(text)
    records = [
        (annotator, item, efforts[pk].seconds, words[item], efforts[pk].is_contradictory)
        for pk, annotator, item in Submission.objects.of(study)
        .accepted()
        .order_by("pk")
        .values_list("pk", "annotator__pseudonym", "item")
        if pk in efforts  # else it came meanwhile
    ]
    frame = _frame(records, ["annotator", "page", "seconds", "words", "is_contradictory"])
    return frame.assign(seconds=frame["seconds"].astype("float64"))


def _reasons(study: Study) -> pd.DataFrame:
    pages = Submission.objects.of(study).accepted().exclude(justification="").order_by("pk")
    return _frame(
        [
            *pages.values_list("annotator__pseudonym", "justification"),
            *WrittenAnswer.objects.filter(submission__item__study=study)
            .exclude(**REJECTED)
            .order_by("pk")
            .values_list("submission__annotator__pseudonym", "text"),
        ],
        ["annotator", "text"],
    )


def _frame(rows: Any, columns: list[str]) -> pd.DataFrame:
    return pd.DataFrame.from_records(list(rows), columns=columns)
