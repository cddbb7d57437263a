"""The door from the database to pandas: one long frame, a row per judgment."""

from typing import Any

import pandas as pd
from django.db.models import QuerySet

from annotation.models import Candidate, Judgment, Label, LabelSet, Question, Study

COLUMNS = {
    "study": "question__study__slug",
    "round": "submission__round",
    "item": "candidate__item__key",
    "condition": "candidate__item__condition",
    "candidate": "candidate__key",
    "system": "candidate__system",
    "question": "question__name",
    "annotator": "submission__annotator__pseudonym",
    "value": "value",
    "position": "position",
    "seconds": "seconds",
}
TEXTS = ("study", "item", "condition", "candidate", "system", "question", "annotator")
CANDIDATE_COLUMNS = {
    "candidate_id": "pk",
    "item": "item__key",
    "condition": "item__condition",
    "candidate": "key",
    "system": "system",
    "context": "item__context",
    "response": "text",
    "reference": "item__reference",
}

LABEL_COLUMNS = {
    "item": "candidate__item__key",
    "condition": "candidate__item__condition",
    "candidate": "candidate__key",
    "system": "candidate__system",
    "value": "value",
    "probability": "probability",
    "se": "se",
    "n_judgments": "n_judgments",
    "is_tied": "is_tied",
    "is_adjudicated": "is_adjudicated",
}


def judgment_frame(
    study: Study,
    *,
    question: Question | None = None,
    accepted: bool = True,
    with_flagged: bool = True,
) -> pd.DataFrame:
    """Every judgment of a study, in a fixed order: under one question where one is named, and
    those not rejected, unless told otherwise."""
    rows = Judgment.objects.of(study)
    rows = rows if question is None else rows.filter(question=question)
    rows = rows.accepted() if accepted else rows
    rows = rows if with_flagged else rows.unflagged()
    ordered = rows.order_by(
        "question__position",
        "candidate__item__position",
        "candidate__position",
        "submission__round",
        "submission__annotator__pseudonym",
        "pk",
    )
    frame = _frame(ordered, COLUMNS)
    texts = {name: frame[name].astype("category") for name in TEXTS}
    numbers = {name: frame[name].astype("float64") for name in ("value", "position", "seconds")}
    return frame.assign(**texts, **numbers, round=frame["round"].astype("int64"))


def candidate_frame(study: Study) -> pd.DataFrame:
    """Every candidate of a study with the texts a metric may need."""
    candidates = Candidate.objects.filter(item__study=study)
    return _frame(candidates.order_by("item__position", "position", "pk"), CANDIDATE_COLUMNS)


def label_frame(label_set: LabelSet) -> pd.DataFrame:
    """Every label of a set, in the order of the study, with its category where it names one."""
    labels = Label.objects.filter(label_set=label_set)
    ordered = labels.order_by("candidate__item__position", "candidate__position", "pk")
    frame = _frame(ordered, LABEL_COLUMNS)
    numbers = {name: frame[name].astype("float64") for name in ("value", "probability", "se")}
    frame = frame.assign(**numbers)
    if named := label_set.question.categories:
        frame.insert(5, "category", [named[int(value)] for value in frame["value"]])
    return frame


def _frame(rows: QuerySet[Any], columns: dict[str, str]) -> pd.DataFrame:
    values = rows.values_list(*columns.values()).iterator(chunk_size=10_000)
    return pd.DataFrame.from_records(list(values), columns=list(columns))
