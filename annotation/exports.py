"""A study's items, judgments and labels as files that other programs read.

They are read in stretches of items, so that a file of a million rows begins at once and is
never in memory whole. Each is an iterator over its text.
"""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from django.db.models import Q

from annotation.models import (
    Candidate,
    CheckAnswer,
    DisputeComment,
    Item,
    Judgment,
    Label,
    LabelSet,
    MissingAnswer,
    Study,
    Submission,
    WrittenAnswer,
)
from annotation.study_facts import has_simulated
from presentation.files import write_whole
from presentation.row_files import Kind, RowFile, csv_parts, json_chunks

# Few at first: the first byte waits for them.
FIRST_ITEMS, ITEMS_AT_ONCE = 20, 200
JUDGMENT_COLUMNS = {
    "study": "question__study__slug",
    "round": "submission__round",
    "item": "submission__item__key",
    "condition": "submission__item__condition",
    # Both empty in a judgment of an item as a whole.
    "candidate": "candidate__key",
    "system": "candidate__system",
    "question": "question__name",
    "annotator": "submission__annotator__pseudonym",
    "value": "value",
    "position": "position",
    "seconds": "seconds",
    "simulated": "submission__is_simulated",
}
JUDGMENT_KINDS: dict[str, Kind] = {
    **dict.fromkeys(JUDGMENT_COLUMNS, "text"),
    "round": "integer",
    **dict.fromkeys(("value", "position", "seconds"), "number"),
    "simulated": "boolean",
}
ITEM_COLUMNS = {
    "study": "item__study__slug",
    "item": "item__key",
    "condition": "item__condition",
    "context": "item__context",
    "reference": "item__reference",
    "candidate": "key",
    "system": "system",
    "response": "text",
    # Pictures are named by their content, as in the addresses of their pages.
    "item_picture": "item__picture__sha256",
    "candidate_picture": "picture__sha256",
    "extra": "extra",
}
LABEL_KINDS: dict[str, Kind] = {
    **dict.fromkeys(("study", "question"), "text"),
    "version": "integer",
    "method": "text",
    **dict.fromkeys(("item", "condition", "candidate", "system"), "text"),
    "value": "number",
    "category": "text",
    **dict.fromkeys(("probability", "se"), "number"),
    "n_judgments": "integer",
    **dict.fromkeys(("is_tied", "is_adjudicated", "simulated"), "boolean"),
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
CANDIDATE_ORDER = ("candidate__item__position", "candidate__item", "candidate__position")
JUDGMENT_ORDER = (
    *("submission__item__position", "submission__item", "candidate__position", "candidate"),
    "submission__round",
)

WRITTEN_KINDS: dict[str, Kind] = {
    "study": "text",
    "round": "integer",
    **dict.fromkeys(("item", "candidate", "question", "annotator", "text"), "text"),
    "seconds": "number",
    **dict.fromkeys(("pasted", "simulated"), "boolean"),
}
MISSING_COLUMNS = {
    "study": "submission__item__study__slug",
    "round": "submission__round",
    "item": "submission__item__key",
    "candidate": "candidate__key",
    "question": "question",
    "annotator": "submission__annotator__pseudonym",
    "reason": "reason",
    "seconds": "seconds",
    "simulated": "submission__is_simulated",
}
MISSING_KINDS: dict[str, Kind] = {
    **dict.fromkeys(MISSING_COLUMNS, "text"),
    "round": "integer",
    "seconds": "number",
    "simulated": "boolean",
}
CHECK_COLUMNS = {
    "study": "submission__item__study__slug",
    "round": "submission__round",
    "item": "submission__item__key",
    "check": "placed__number",
    "kind": "placed__kind",
    "question": "placed__question",
    "annotator": "submission__annotator__pseudonym",
    "value": "value",
    "compared_value": "compared_value",
    "expected": "placed__expected",
    "tolerance": "placed__tolerance",
    "failed": "is_failed",
    "position": "position",
    "seconds": "seconds",
    "seed": "placed__seed",
    "protocol": "placed__protocol__number",
    "simulated": "submission__is_simulated",
}
CHECK_KINDS: dict[str, Kind] = {
    **dict.fromkeys(CHECK_COLUMNS, "text"),
    **dict.fromkeys(("round", "check", "position", "seed", "protocol"), "integer"),
    **dict.fromkeys(("value", "compared_value", "expected", "tolerance", "seconds"), "number"),
    **dict.fromkeys(("failed", "simulated"), "boolean"),
}


def item_stretches(study: Study) -> Iterator[list[int]]:
    items, size = Item.objects.filter(study=study).order_by("position", "pk"), FIRST_ITEMS
    rest = items
    while stretch := list(rest.values_list("position", "pk")[:size]):
        yield [pk for _, pk in stretch]
        position, pk = stretch[-1]
        rest = items.filter(Q(position__gt=position) | Q(position=position, pk__gt=pk))
        size = ITEMS_AT_ONCE


def judgment_rows(study: Study) -> RowFile:
    """Every judgment of every submission that was not rejected, in the order of the frame."""
    return RowFile(JUDGMENT_KINDS, chain.from_iterable(_judgments(study)))


def item_rows(study: Study) -> RowFile:
    return RowFile(dict.fromkeys(ITEM_COLUMNS, "text"), chain.from_iterable(_candidates(study)))


def written_rows(study: Study) -> RowFile:
    """Every answer in words of every submission that was not rejected: answers to questions for
    words, reasons for single candidates, and the reason of a page under `justification`."""
    return RowFile(WRITTEN_KINDS, chain(_pages_reasons(study), _text_answers(study)))


def label_rows(study: Study) -> RowFile:
    sets = LabelSet.objects.of(study).select_related("study", "question").order_by("version")
    return RowFile(LABEL_KINDS, chain.from_iterable(map(_labels_of_set, sets)))


def _pages_reasons(study: Study) -> Iterator[tuple[Any, ...]]:
    rows = Submission.objects.of(study).accepted().exclude(justification="")
    names = (
        *("round", "item__key", "annotator__pseudonym", "justification", "pasted"),
        "is_simulated",
    )
    in_order = rows.order_by("item__position", "item", "round", "annotator__pseudonym")
    for round, item, annotator, text, *marks in in_order.values_list(*names).iterator():
        yield study.slug, round, item, "", "justification", annotator, text, None, *marks


def _text_answers(study: Study) -> Iterator[tuple[Any, ...]]:
    rows = WrittenAnswer.objects.filter(submission__item__study=study)
    rows = rows.exclude(submission__status=Submission.Status.REJECTED)
    names = (
        *("submission__round", "submission__item__key", "candidate__key", "question"),
        *("submission__annotator__pseudonym", "text", "seconds", "pasted"),
        "submission__is_simulated",
    )
    in_order = rows.order_by("submission__item__position", "submission__item", "submission", "pk")
    for round, item, candidate, *rest in in_order.values_list(*names).iterator():
        yield study.slug, round, item, candidate or "", *rest


def missing_rows(study: Study) -> RowFile:
    return RowFile(
        MISSING_KINDS,
        MissingAnswer.objects.filter(submission__item__study=study)
        .exclude(submission__status=Submission.Status.REJECTED)
        .order_by("submission__item__position", "submission__item", "submission", "pk")
        .values_list(*MISSING_COLUMNS.values())
        .iterator(),
    )


def check_rows(study: Study) -> RowFile:
    return RowFile(
        CHECK_KINDS,
        CheckAnswer.objects.filter(submission__item__study=study)
        .order_by("submission__item__position", "submission__item", "submission", "pk")
        .values_list(*CHECK_COLUMNS.values())
        .iterator(),
    )


def _candidates(study: Study) -> Iterator[list[tuple[Any, ...]]]:
    for items in item_stretches(study):
        yield list(
            Candidate.objects.filter(item__in=items)
            .order_by("item__position", "item", "position", "pk")
            .values_list(*ITEM_COLUMNS.values())
        )


def _judgments(study: Study) -> Iterator[list[tuple[Any, ...]]]:
    position, annotator = (list(JUDGMENT_COLUMNS).index(c) for c in ("position", "annotator"))
    for question in study.questions.order_by("position", "pk"):
        accepted = Judgment.objects.filter(question=question).accepted()
        for items in item_stretches(study):
            read = (
                accepted.filter(submission__item__in=items)
                .order_by(*JUDGMENT_ORDER, "pk")
                .values_list(*JUDGMENT_COLUMNS.values(), *JUDGMENT_ORDER, "pk")
            )
            # Annotators by Python's order: a database may have a language's own.
            n = len(JUDGMENT_COLUMNS)
            ordered = sorted(read, key=lambda row: (*row[n:-1], row[annotator], row[-1]))
            yield [_with_float(row[:n], position) for row in ordered]


def _with_float(row: tuple[Any, ...], index: int) -> tuple[Any, ...]:
    return row if row[index] is None else (*row[:index], float(row[index]), *row[index + 1 :])


COMMENT_COLUMNS = {
    "study": "question__study__slug",
    "round": "round",
    "item": "candidate__item__key",
    "candidate": "candidate__key",
    "question": "question__name",
    "text": "text",
    "written_by": "written_by__username",
    "written_at": "written_at",
    "edited_at": "edited_at",
}
COMMENT_KINDS: dict[str, Kind] = {
    **dict.fromkeys(COMMENT_COLUMNS, "text"),
    "round": "integer",
    **dict.fromkeys(("written_at", "edited_at"), "time"),
}


def comment_rows(study: Study) -> RowFile:
    rows = DisputeComment.objects.of(study).values_list(*COMMENT_COLUMNS.values())
    return RowFile(COMMENT_KINDS, rows.iterator(chunk_size=1000))


def labels_csv(label_set: LabelSet) -> Iterator[str]:
    rows = chain.from_iterable(_labels(label_set))
    is_simulated = has_simulated(label_set.study)
    values = ([*row.values(), is_simulated] for row in rows)
    return csv_parts([*_label_columns(label_set), "simulated"], values)


def labels_json(label_set: LabelSet) -> Iterator[str]:
    return json_chunks(label_set_record(label_set), "labels", _labels(label_set))


def _label_columns(label_set: LabelSet) -> list[str]:
    columns = list(LABEL_COLUMNS)
    if label_set.question.categories:
        columns.insert(columns.index("value") + 1, "category")
    return columns


def _labels(label_set: LabelSet) -> Iterator[list[dict[str, Any]]]:
    columns, categories = _label_columns(label_set), label_set.question.categories
    labels = Label.objects.filter(label_set=label_set)
    for items in item_stretches(label_set.study):
        ordered = labels.filter(candidate__item__in=items).order_by(*CANDIDATE_ORDER, "pk")
        rows = []
        for values in ordered.values_list(*LABEL_COLUMNS.values()):
            row = dict(zip(LABEL_COLUMNS, values, strict=True))
            if categories:
                row["category"] = categories[int(row["value"])]
            rows.append({name: row[name] for name in columns})
        yield rows


def label_set_rows(label_set: LabelSet) -> RowFile:
    return RowFile(LABEL_KINDS, _labels_of_set(label_set))


def _labels_of_set(label_set: LabelSet) -> Iterator[tuple[Any, ...]]:
    of_all = {
        "study": label_set.study.slug,
        "question": label_set.question.name,
        "version": label_set.version,
        "method": label_set.method,
        "simulated": has_simulated(label_set.study),
    }
    for records in _labels(label_set):
        for record in records:
            row = of_all | record
            yield tuple(row.get(name) for name in LABEL_KINDS)


def label_set_record(label_set: LabelSet) -> dict[str, object]:
    return {
        "study": label_set.study.slug,
        "question": label_set.question.name,
        "version": label_set.version,
        "round": label_set.round,
        "method": label_set.method,
        "parameters": label_set.parameters,
        "with_flagged": label_set.with_flagged,
        "with_adjudications": label_set.with_adjudications,
        "converged": label_set.converged,
        "iterations": label_set.iterations,
        "warnings": label_set.warnings,
        "signature": label_set.signature,
        "simulated": has_simulated(label_set.study),
        "made_at": label_set.created_at.isoformat(),
    }


def write_labels(label_set: LabelSet, path: Path) -> None:
    content = labels_json if path.suffix.lower() == ".json" else labels_csv
    write_whole(path, "".join(content(label_set)))
