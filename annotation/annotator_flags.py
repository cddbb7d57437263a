"""What speaks against a study's annotators, by stats/quality, read from the rows at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from annotation.comparisons import COMPARED
from annotation.effort import Effort
from annotation.evidence import measured_efforts
from annotation.frames import judgment_frame
from annotation.models import (
    AnnotatorFlag,
    Candidate,
    CheckAnswer,
    EvidenceVersion,
    Study,
    Submission,
    WrittenAnswer,
)
from annotation.positions import random_positions
from stats.quality import Evidence as QualityEvidence
from stats.quality import annotator_flags, count_words

if TYPE_CHECKING:
    import pandas as pd


REJECTED = {"submission__status": Submission.Status.REJECTED}


def quality_evidence(study: Study, efforts: Mapping[int, Effort] | None = None) -> QualityEvidence:
    """All that annotators did in a study, as far as it was not rejected; `efforts` are those of
    `measured_efforts`, if they were read."""
    frame = judgment_frame(study)
    frame = frame.assign(position=random_positions(study, frame))
    return QualityEvidence(
        checks=_checks(study),
        ratings=_ratings(study, frame),
        choices=_choices(study, frame),
        pages=_pages(study, measured_efforts(study) if efforts is None else efforts),
        reasons=_reasons(study),
    )


def flag_rows(version: EvidenceVersion, evidence: QualityEvidence) -> list[AnnotatorFlag]:
    import pandas as pd

    ids = dict(version.study.annotators.values_list("pseudonym", "pk"))
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
    import pandas as pd

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
    """When each submission came; those without a time by the order of their rows."""
    rows = Submission.objects.of(study).accepted().order_by("pk")
    columns = ("annotator__pseudonym", "item__key", "round", "submitted_at", "pk")
    return {
        (annotator, item, round): at.timestamp() if at else float(pk)
        for annotator, item, round, at, pk in rows.values_list(*columns)
    }


def _pages(study: Study, efforts: Mapping[int, Effort]) -> pd.DataFrame:
    words: defaultdict[int, int] = defaultdict(int)
    for pk, context in study.items.values_list("pk", "context"):
        words[pk] += count_words(context)
    texts = Candidate.objects.filter(item__study=study).order_by().values_list("item", "text")
    for item, text in texts.iterator():
        words[item] += count_words(text)
    rows = Submission.objects.of(study).accepted().order_by("pk")
    records = [
        (annotator, item, efforts[pk].seconds, words[item], efforts[pk].is_contradictory)
        for pk, annotator, item in rows.values_list("pk", "annotator__pseudonym", "item")
        if pk in efforts  # else it came meanwhile
    ]
    frame = _frame(records, ["annotator", "page", "seconds", "words", "is_contradictory"])
    return frame.assign(seconds=frame["seconds"].astype("float64"))


def _reasons(study: Study) -> pd.DataFrame:
    pages = Submission.objects.of(study).accepted().exclude(justification="").order_by("pk")
    single = WrittenAnswer.objects.filter(submission__item__study=study).exclude(**REJECTED)
    records = [
        *pages.values_list("annotator__pseudonym", "justification"),
        *single.order_by("pk").values_list("submission__annotator__pseudonym", "text"),
    ]
    return _frame(records, ["annotator", "text"])


def _frame(rows: Any, columns: list[str]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame.from_records(list(rows), columns=columns)
