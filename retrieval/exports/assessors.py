"""Each assessor's own grades, and what each line of qrels was made of.

Machine labels never come here: judges' scores are no judgments.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from django.db.models import Exists, OuterRef

from annotation.bulk import batched
from annotation.exceptions import ImportRefused, StudyUnfit
from annotation.models import Adjudication, Judgment, Submission, WrittenAnswer
from annotation.readers.drafts import ReadingReport
from annotation.readers.tables import each_row
from presentation.numbers import group_values, plain_records
from presentation.row_files import Kind, RowFile
from retrieval.exceptions import TermsUnfit
from retrieval.exports.qrels import BLANK, UNJUDGED, Source, pairs_of
from retrieval.trec_layouts import assessor_name
from stats.libraries import pd
from stats.quality.reasons import reason_terms

PAIRS_AT_ONCE = 2000


class MarketplaceIds(NamedTuple):
    """Under which names a marketplace knows a submission; empty where none does."""

    hit: str = ""
    assignment: str = ""


# Finds the marketplaces' ids of submissions, by the submissions' keys.
FindIds = Callable[[Collection[int]], Mapping[int, tuple[str, str]]]
PROVENANCE_KINDS: dict[str, Kind] = {
    "line": "integer",
    **dict.fromkeys(("topic", "docno"), "text"),
    "grade": "integer",
    "source": "text",
    "round": "integer",
    "assessor": "text",
    "value": "number",
    "assessor_grade": "integer",
    "status": "text",
    "protocol": "integer",
    "submission": "integer",
    "hit_id": "text",
    "assignment_id": "text",
    "simulated": "boolean",
}


def no_ids(submissions: Collection[int]) -> Mapping[int, tuple[str, str]]:
    return {}


def assessor_lines(source: Source) -> Iterator[str]:
    """`topic assessor docno grade`, as trec_eval reads it with `-R qrels_jg`: every judgment of
    every round; column 2 is the assessor's pseudonym, with `.2` in round 2, and so on. What cannot
    be written is refused before the first line."""
    _require_names(source)
    return _assessor_lines(source)


def _assessor_lines(source: Source) -> Iterator[str]:
    for pairs in batched(pairs_of(source), PAIRS_AT_ONCE):
        judged = _judgments(source, [pair.candidate for pair in pairs], every_round=True)
        lines = []
        for pair in pairs:
            for row in judged[pair.candidate]:
                if (grade := source.scale.grade(row["value"])) is not None:
                    lines.append((pair.topic, _group(row), pair.docno, grade))
                elif source.with_unjudged:
                    lines.append((pair.topic, _group(row), pair.docno, UNJUDGED))
        yield "".join(f"{topic} {group} {docno} {grade}\n" for topic, group, docno, grade in lines)


def provenance_rows(source: Source, *, find_ids: FindIds = no_ids) -> RowFile:
    """A row for each judgment or decision that a line of the qrels was made of; lines of what was
    pooled and not judged have one without either, or the answers that it cannot be judged."""
    return RowFile(PROVENANCE_KINDS, _provenance(source, find_ids))


def _provenance(source: Source, find_ids: FindIds) -> Iterator[tuple[Any, ...]]:
    number = 0
    for pairs in batched(pairs_of(source), PAIRS_AT_ONCE):
        keys = [pair.candidate for pair in pairs]
        judged, decided = _judgments(source, keys), _decisions(source, keys)
        ids = ids_of([row["submission"] for rows in judged.values() for row in rows], find_ids)
        for pair in pairs:
            number += 1
            grade = UNJUDGED if pair.grade is None else pair.grade
            line = (number, pair.topic, pair.docno, grade)
            for value in decided.get(pair.candidate, ()):
                yield (*line, "decision", source.round, None, value, None, *[None] * 6)
            for row in judged[pair.candidate]:
                yield (*line, *_judgment_cells(source, row, ids))
            if not judged[pair.candidate] and pair.candidate not in decided:
                yield (*line, "pooled", *[None] * 10)


def _judgment_cells(
    source: Source, row: Mapping[str, Any], ids: Mapping[int, MarketplaceIds]
) -> tuple[Any, ...]:
    return (
        "judgment",
        row["submission__round"],
        row["submission__annotator__pseudonym"],
        row["value"],
        source.scale.grade(row["value"]),
        row["submission__status"],
        row["submission__protocol__number"],
        row["submission"],
        *ids.get(row["submission"], MarketplaceIds()),
        row["submission__is_simulated"],
    )


def _judgments(
    source: Source, candidates: Sequence[int], *, every_round: bool = False
) -> dict[int, list[dict[str, Any]]]:
    rows = Judgment.objects.of(source.study).accepted().filter(candidate__in=candidates)
    rows = rows.filter(question__name=source.scale.question)
    rows = rows if every_round else rows.filter(submission__round=source.round)
    if source.label_set is not None and not source.label_set.with_flagged:
        rows = rows.unflagged()
    columns = (
        *("candidate", "value", "submission", "submission__round", "submission__status"),
        *("submission__annotator__pseudonym", "submission__protocol__number"),
        "submission__is_simulated",
    )
    read = rows.order_by("pk").values(*columns)
    by_candidate = group_values((row["candidate"], row) for row in read)
    for judged in by_candidate.values():
        judged.sort(key=lambda row: (row["submission__round"], _pseudonym(row)))
    return by_candidate


def _decisions(source: Source, candidates: Sequence[int]) -> dict[int, list[float]]:
    if source.label_set is None or not source.label_set.with_adjudications:
        return {}
    # A label set never changes, and decisions made after it are none of its own.
    of_set = Adjudication.objects.filter(
        question=source.label_set.question,
        round=source.round,
        candidate__in=candidates,
        candidate__labels__label_set=source.label_set,
        candidate__labels__is_adjudicated=True,
        decided_at__lte=source.label_set.created_at,
    )
    last = dict(of_set.order_by("pk").values_list("candidate", "value"))
    return {candidate: [value] for candidate, value in last.items()}


def ids_of(submissions: Sequence[int], find_ids: FindIds) -> dict[int, MarketplaceIds]:
    known = {pk: MarketplaceIds(*ids) for pk, ids in find_ids(set(submissions)).items()}
    rest = Submission.objects.filter(pk__in=set(submissions) - known.keys())
    for pk, raw in rest.values_list("pk", "raw").iterator():
        if '"HITId"' in raw and isinstance(fields := json.loads(raw), dict):
            ids = (str(fields.get(name) or "") for name in ("HITId", "AssignmentId"))
            known[pk] = MarketplaceIds(*ids)
    return known


def _pseudonym(row: Mapping[str, Any]) -> str:
    return str(row["submission__annotator__pseudonym"])


def _group(row: Mapping[str, Any]) -> str:
    round = row["submission__round"]
    name = _pseudonym(row) if round == 1 else f"{_pseudonym(row)}.{round}"
    return assessor_name(name, row["submission__is_simulated"])


def _require_names(source: Source) -> None:
    for name in source.study.annotators.values_list("pseudonym", flat=True):
        if BLANK.search(name):
            raise StudyUnfit(
                f"The assessor '{name}' has a space in their name, and qrels are separated by "
                "spaces. Import the study with names that have none.",
                code="space_in_name",
            )


TERMS = Path(__file__).with_name("reason_terms.csv")
REASON_KINDS: dict[str, Kind] = {
    **dict.fromkeys(("topic", "docno"), "text"),
    "round": "integer",
    **dict.fromkeys(("assessor", "question", "reason"), "text"),
    "grade": "integer",
    "relevant_documents": "text",
}
MOST_TERMS = 2000
SUBMISSIONS_AT_ONCE = 500


@dataclass(frozen=True)
class Reason:
    """What an annotator wrote: about one document, or with an empty `docno` about a page.

    `grade` is the annotator's own of the document; `relevant` those that they found relevant on
    the page; `is_relevant` whether it is about one of these: the document, or any on the page.
    """

    topic: str
    docno: str
    round: int
    assessor: str
    question: str
    text: str
    grade: int | None
    relevant: tuple[str, ...]
    item: int
    is_relevant: bool


@dataclass(frozen=True)
class TermCounts:
    table: pd.DataFrame
    n_reasons: int
    n_relevant: int

    @property
    def n_other(self) -> int:
        return self.n_reasons - self.n_relevant

    def record(self) -> dict[str, Any]:
        return {
            "n_reasons": self.n_reasons,
            "n_relevant": self.n_relevant,
            "n_other": self.n_other,
            "terms": plain_records(self.table),
        }


class ReasonText(NamedTuple):
    """A reason alone: `written` is None where it is of a page, in the order of the study."""

    position: int
    submission: int
    written: int
    text: str
    is_relevant: bool


def reason_texts(source: Source, *, most: int | None = None) -> list[ReasonText]:
    """The texts of a round, those of a page before its documents', and whether each is about
    something that its writer found relevant."""
    submissions = Submission.objects.of(source.study).accepted().filter(round=source.round)
    pages = submissions.exclude(justification="").annotate(
        is_relevant=_has_relevant(source, submission=OuterRef("pk"))
    )
    order = ("item__position", "pk")
    rows = [
        ReasonText(position, pk, 0, text, is_relevant)
        for position, pk, text, is_relevant in pages.order_by(*order).values_list(
            *order, "justification", "is_relevant"
        )[:most]
    ]
    written = WrittenAnswer.objects.filter(submission__in=submissions).annotate(
        about_relevant=_has_relevant(
            source, submission=OuterRef("submission"), candidate=OuterRef("candidate")
        ),
        on_page_of_relevant=_has_relevant(source, submission=OuterRef("submission")),
    )
    columns = ("submission__item__position", "submission", "pk")
    of_documents = written.order_by(*columns).values_list(
        *columns, "text", "candidate", "about_relevant", "on_page_of_relevant"
    )
    for position, submission, pk, text, candidate, about_relevant, on_page in of_documents[:most]:
        is_relevant = on_page if candidate is None else about_relevant
        rows.append(ReasonText(position, submission, pk, text, is_relevant))
    return sorted(rows)[:most]


def _has_relevant(source: Source, **about: OuterRef) -> Exists:
    judged = Judgment.objects.filter(question__name=source.scale.question, **about)
    return Exists(judged.filter(source.scale.relevant_values).order_by())


def reasons_of(source: Source, texts: Sequence[ReasonText] | None = None) -> Iterator[Reason]:
    for part in batched(reason_texts(source) if texts is None else texts, SUBMISSIONS_AT_ONCE):
        yield from _reasons(source, part)


def _reasons(source: Source, texts: Sequence[ReasonText]) -> Iterator[Reason]:
    keys = {row.submission for row in texts}
    submissions = (
        Submission.objects.filter(pk__in=keys).select_related("item", "annotator").in_bulk()
    )
    answers = (
        WrittenAnswer.objects.filter(pk__in=[row.written for row in texts])
        .select_related("candidate")
        .in_bulk()
    )
    graded = _grades(source, keys)
    for row in texts:
        page, answer = submissions[row.submission], answers.get(row.written)
        grades = graded.get(row.submission, {})
        docno = answer.candidate.key if answer and answer.candidate else ""
        yield Reason(
            topic=page.item.key,
            docno=docno,
            round=source.round,
            assessor=page.annotator.pseudonym,
            question=answer.question if answer else "justification",
            text=row.text,
            grade=grades.get(docno),
            relevant=tuple(docno for docno, grade in grades.items() if grade),
            item=page.item_id,
            is_relevant=row.is_relevant,
        )


def _grades(source: Source, submissions: Collection[int]) -> dict[int, dict[str, int | None]]:
    rows = Judgment.objects.filter(
        submission__in=submissions, question__name=source.scale.question, candidate__isnull=False
    )
    grades: dict[int, dict[str, int | None]] = defaultdict(dict)
    columns = ("submission", "candidate__key", "value")
    for submission, docno, value in rows.order_by("candidate__position").values_list(*columns):
        grades[submission][docno] = source.scale.grade(value)
    return grades


def reason_rows(source: Source) -> RowFile:
    rows = (
        (
            *(one.topic, one.docno, one.round, one.assessor, one.question, one.text),
            *(one.grade, " ".join(one.relevant)),
        )
        for one in reasons_of(source)
    )
    return RowFile(REASON_KINDS, rows)


def count_terms(
    source: Source, terms: Mapping[str, list[str]] | None = None, *, confidence: float = 0.95
) -> TermCounts:
    return count_terms_of(reason_texts(source), terms, confidence=confidence)


def count_terms_of(
    texts: Sequence[ReasonText],
    terms: Mapping[str, list[str]] | None = None,
    *,
    confidence: float = 0.95,
) -> TermCounts:
    is_relevant = [one.is_relevant for one in texts]
    table = reason_terms(
        [one.text for one in texts], is_relevant, terms or read_terms(), confidence=confidence
    )
    return TermCounts(table, len(texts), sum(is_relevant))


def read_terms(path: Path = TERMS, *, report: ReadingReport | None = None) -> dict[str, list[str]]:
    """A list of terms: columns term and word, a word per row; `*` stands for any letters."""
    terms: dict[str, list[str]] = defaultdict(list)
    try:
        for row in each_row(path, ("term", "word"), report=report):
            if not row.required("word").strip(" *"):
                raise row.refuse("the word has no letters.", "word", code="empty")
            terms[row.required("term")].append(row.optional("word"))
    except ImportRefused as refused:
        raise TermsUnfit(refused.statement, code=refused.code) from None
    if sum(map(len, terms.values())) > MOST_TERMS:
        raise TermsUnfit(f"{path.name}: a list has at most {MOST_TERMS:,} words.")
    return dict(terms)
