from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from django.db.models import Exists, OuterRef

from annotation.bulk import batched
from annotation.exceptions import ImportRefused
from annotation.models import Judgment, Submission, WrittenAnswer
from annotation.readers.report import ReadingReport
from annotation.readers.tables import each_row
from presentation.records import plain_records
from presentation.row_files import Kind, RowFile
from retrieval.exceptions import TermsUnfit
from retrieval.exports.qrels import Source
from stats.quality.reasons import reason_terms

if TYPE_CHECKING:
    import pandas as pd


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
    rows = reason_texts(source) if texts is None else texts
    for part in batched(rows, SUBMISSIONS_AT_ONCE):
        yield from _reasons(source, part)


def _reasons(source: Source, texts: Sequence[ReasonText]) -> Iterator[Reason]:
    keys = {row.submission for row in texts}
    pages = Submission.objects.filter(pk__in=keys).select_related("item", "annotator")
    submissions = pages.in_bulk()
    written = WrittenAnswer.objects.filter(pk__in=[row.written for row in texts])
    answers = written.select_related("candidate").in_bulk()
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
