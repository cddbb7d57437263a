"""The way from the database to pandas: one long frame, a row per judgment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from django.db.models import F, QuerySet
from django.db.models.functions import Coalesce

from annotation.bulk import batched
from annotation.models import Candidate, Judgment, Protocol, Question, Study

if TYPE_CHECKING:
    import pandas as pd


COLUMNS = (
    *("study", "round", "item", "condition", "candidate", "system"),
    *("question", "annotator", "value", "position", "seconds"),
)
# What is read of a judgment; its texts are looked up once for all judgments of a candidate.
CODES = (
    *("pk", "question_id", "about", "submission__annotator_id", "submission__round"),
    *("value", "position", "seconds"),
)
READ_AT_ONCE = 10_000
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


def judgment_frame(
    study: Study,
    *,
    question: Question | None = None,
    accepted: bool = True,
    with_flagged: bool = True,
    protocol: Protocol | None = None,
) -> pd.DataFrame:
    """Every judgment of a study, in a fixed order: under one question where one is named, and
    those not rejected, unless requested otherwise; of submissions under one version of the
    protocol where one is named. An answer to an ordered question that says that nothing can be
    said is no judgment."""
    rows = Judgment.objects.of(study)
    rows = rows if protocol is None else rows.filter(submission__protocol=protocol)
    rows = rows if question is None else rows.filter(question=question)
    rows = rows.accepted() if accepted else rows
    rows = rows if with_flagged else rows.unflagged()
    return _judgment_frame(study, _columns_of(rows))


def _columns_of(rows: QuerySet[Judgment]) -> dict[str, np.ndarray[Any, Any]]:
    """The numbers of all judgments, a column each: a few megabytes a chunk, never all as rows."""
    # A judgment of an item as a whole has no candidate: minus the item's id stands for it.
    rows = rows.annotate(about=Coalesce("candidate_id", -F("submission__item_id")))
    read = rows.order_by().values_list(*CODES).iterator(chunk_size=READ_AT_ONCE)
    parts = [np.array(chunk, dtype="float64") for chunk in batched(read, READ_AT_ONCE)]
    matrix = np.concatenate(parts) if parts else np.empty((0, len(CODES)))
    return {
        name: column.astype("int64") if index < CODES.index("value") else column
        for index, (name, column) in enumerate(zip(CODES, matrix.T, strict=True))
    }


def _judgment_frame(study: Study, columns: dict[str, np.ndarray[Any, Any]]) -> pd.DataFrame:
    """The columns with their texts, by question, item, candidate, round and annotator."""
    import pandas as pd

    questions = list(study.questions.order_by("position", "pk"))
    columns = _on_the_scale(questions, columns)
    candidates = Candidate.objects.filter(item__study=study)
    ordered = candidates.order_by("item__position", "item_id", "position", "pk")
    texts = list(ordered.values_list("pk", "item__key", "item__condition", "key", "system"))
    texts += _whole_items(study, columns["about"])
    candidate = _positions(columns["about"], [pk for pk, *_ in texts])
    question = _positions(columns["question_id"], [one.pk for one in questions])
    annotators = sorted(study.annotators.values_list("pseudonym", "pk"))
    annotator = _positions(columns["submission__annotator_id"], [pk for _, pk in annotators])
    round = columns["submission__round"]
    order = np.lexsort((columns["pk"], annotator, round, candidate, question))
    of_candidate = candidate[order]
    frame = pd.DataFrame(
        {
            "study": _category(np.zeros_like(of_candidate), [study.slug]),
            "round": round[order],
            "item": _category(of_candidate, [text[1] for text in texts]),
            "condition": _category(of_candidate, [text[2] for text in texts]),
            "candidate": _category(of_candidate, [text[3] for text in texts]),
            "system": _category(of_candidate, [text[4] for text in texts]),
            "question": _category(question[order], [one.name for one in questions]),
            "annotator": _category(annotator[order], [name for name, _ in annotators]),
            **{name: columns[name][order] for name in ("value", "position", "seconds")},
        }
    )
    return frame[list(COLUMNS)]


def _on_the_scale(
    questions: list[Question], columns: dict[str, np.ndarray[Any, Any]]
) -> dict[str, np.ndarray[Any, Any]]:
    """Without the answers to ordered questions that say that nothing can be said: they have no
    place in the order."""
    kept = np.ones(len(columns["value"]), dtype=bool)
    for one in questions:
        if one.highest < one.scale_max:
            kept &= (columns["question_id"] != one.pk) | (columns["value"] <= one.highest)
    return {name: column[kept] for name, column in columns.items()}


def _whole_items(study: Study, about: np.ndarray[Any, Any]) -> list[tuple[int, str, str, str, str]]:
    """Texts of the items that were judged as a whole, which have no candidate and no system."""
    if not (about < 0).any():
        return []
    rows = study.items.order_by("position", "pk").values_list("pk", "key", "condition")
    return [(-pk, key, condition, "", "") for pk, key, condition in rows]


def _positions(keys: np.ndarray[Any, Any], known: list[int]) -> np.ndarray[Any, Any]:
    import pandas as pd

    return pd.Index(known, dtype="int64").get_indexer(pd.Index(keys))


def _category(positions: np.ndarray[Any, Any], texts: list[str]) -> pd.Categorical:
    """The texts at these positions, as the sorted categories of those that are there."""
    import pandas as pd

    present = np.zeros(len(texts), dtype=bool)
    present[positions] = True
    there = [text for text, is_there in zip(texts, present, strict=True) if is_there]
    categories = pd.Index(sorted(set(there)), dtype=object)
    codes = categories.get_indexer(pd.Index(texts, dtype=object))
    return pd.Categorical.from_codes(codes[positions], categories=categories)


def candidate_frame(study: Study) -> pd.DataFrame:
    candidates = Candidate.objects.filter(item__study=study)
    return _frame(candidates.order_by("item__position", "position", "pk"), CANDIDATE_COLUMNS)


def _frame(rows: QuerySet[Any], columns: dict[str, str]) -> pd.DataFrame:
    import pandas as pd

    values = rows.values_list(*columns.values()).iterator(chunk_size=10_000)
    return pd.DataFrame.from_records(list(values), columns=list(columns))
