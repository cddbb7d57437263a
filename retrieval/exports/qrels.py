"""Judgments and labels of a study as TREC qrels: `topic 0 docno grade`.

A topic is an item, a document a candidate. What annotators said that they cannot judge, or nobody
was asked, is pooled and not judged: left out, or -1.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from django.db.models import F, QuerySet

from annotation.bulk import batched
from annotation.exceptions import StudyUnfit
from annotation.exports import item_stretches
from annotation.models import Candidate, Judgment, Label, LabelSet, Study
from presentation.files import write_whole
from presentation.numbers import group_values
from presentation.row_files import Kind, RowFile
from retrieval.exports.grades import GRADE, RULES, CollectionSizes, Scale, is_graded, scale_of
from retrieval.trec_layouts import iteration_of
from stats.libraries import np, pd

QREL_KINDS: dict[str, Kind] = {"topic": "text", "docno": "text", "relevance": "integer"}
# Python's white space, which not every database's \s has.
BLANK = re.compile(
    r"[\s\u001c-\u001f\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
)
UNJUDGED = -1


@dataclass(frozen=True)
class Source:
    """What qrels are made of: judgments of a round by a rule, or the labels of a set.

    `with_unjudged` adds what was pooled and not judged, in topics of which anything was judged.
    """

    study: Study
    scale: Scale
    rule: str
    round: int
    label_set: LabelSet | None = None
    with_unjudged: bool = False

    @property
    def is_of_labels(self) -> bool:
        return self.label_set is not None

    def rows(self) -> QuerySet[Any]:
        if self.label_set is not None:
            return Label.objects.filter(label_set=self.label_set)
        return (
            Judgment.objects.of(self.study)
            .accepted()
            .filter(submission__round=self.round, candidate__isnull=False)
            .filter(question__name=self.scale.question)
        )

    @cached_property
    def is_simulated(self) -> bool:
        of_round = (
            Judgment.objects.of(self.study)
            .accepted()
            .filter(submission__round=self.round, submission__is_simulated=True)
        )
        return of_round.filter(question__name=self.scale.question).exists()

    def merge(self, values: Sequence[float]) -> int | None:
        if self.is_of_labels:
            [value] = values
            return self.scale.grade_of_label(value)
        grades = [grade for value in values if (grade := self.scale.grade(value)) is not None]
        return GRADE[self.rule](grades) if grades else None


class Pair(NamedTuple):
    topic: str
    docno: str
    grade: int | None
    item: int
    candidate: int


@dataclass(frozen=True)
class Qrels:
    """Relevance by topic and docno, with how several annotators were made one.

    `table` has the columns topic, docno and relevance, which is -1 where pooled and not judged.
    """

    rule: str
    round: int
    table: pd.DataFrame
    scale: Scale = field(default_factory=lambda: Scale(""))
    is_simulated: bool = False

    @property
    def n_topics(self) -> int:
        return int(self.table["topic"].nunique())

    @property
    def n_lines(self) -> int:
        return len(self.table)

    @property
    def n_relevant(self) -> int:
        return int((self.table["relevance"] > 0).sum())

    @property
    def n_unjudged(self) -> int:
        return int((self.table["relevance"] < 0).sum())

    @property
    def grades(self) -> dict[int, int]:
        return dict(sorted(Counter(self.table["relevance"].tolist()).items()))

    @property
    def sizes(self) -> CollectionSizes:
        codes, names = pd.factorize(self.table["topic"])
        grade = self.table["relevance"].to_numpy()
        counts = (
            np.bincount(codes[mask], minlength=len(names)) for mask in (grade >= 0, grade > 0)
        )
        return CollectionSizes(*counts)

    def lines(self) -> Iterator[str]:
        iteration = iteration_of(self.is_simulated)
        for row in self.table.itertuples(index=False):
            yield f"{row.topic} {iteration} {row.docno} {row.relevance}\n"

    def write(self, path: Path) -> None:
        write_whole(path, "".join(self.lines()))

    def record(self) -> dict[str, Any]:
        return {
            "rule": self.rule,
            "round": self.round,
            "question": self.scale.question,
            "answers": dict(self.scale.names),
            "zero": self.scale.zero,
            "simulated": self.is_simulated,
            "n_topics": self.n_topics,
            "n_lines": self.n_lines,
            "n_relevant": self.n_relevant,
            "n_unjudged": self.n_unjudged,
            "grades": {str(grade): n for grade, n in self.grades.items()},
            "sizes": self.sizes.record(),
        }


def has_qrels(study: Study) -> bool:
    """Whether qrels are offered of a study: of alternatives, and where documents that are no
    system's responses are graded under the first question."""
    if study.kind == Study.Kind.ALTERNATIVES:
        return True
    question = study.questions.order_by("position", "pk").first()
    if question is None or not is_graded(question):
        return False
    # A system's response is named after it; a document has a name of its own.
    return not Candidate.objects.filter(item__study=study, key=F("system")).exists()


def judgment_source(
    study: Study,
    *,
    rule: str = "majority",
    round: int = 1,
    question: str = "",
    cannot_judge: Sequence[str] = (),
    zero: float | None = None,
    with_unjudged: bool = False,
) -> Source:
    if rule not in RULES:
        raise ValueError(f"rule must be one of {', '.join(RULES)}, not {rule!r}")
    scale = scale_of(study.question(question), cannot_judge=cannot_judge, zero=zero)
    source = Source(study, scale, rule, round, with_unjudged=with_unjudged)
    if not source.rows().exists():
        raise StudyUnfit(
            f"Study '{study.slug}' has no judgments in round {round}.", code="no_judgments"
        )
    return _writable(source)


def label_source(
    label_set: LabelSet,
    *,
    cannot_judge: Sequence[str] = (),
    zero: float | None = None,
    with_unjudged: bool = False,
) -> Source:
    scale = scale_of(label_set.question, cannot_judge=cannot_judge, zero=zero)
    rule = f"labels {label_set.version}, {label_set.method}"
    return _writable(
        Source(label_set.study, scale, rule, label_set.round, label_set, with_unjudged)
    )


def qrels_of(source: Source) -> Qrels:
    rows = [(pair.topic, pair.docno, _written_grade(pair.grade)) for pair in pairs_of(source)]
    table = pd.DataFrame(rows, columns=list(QREL_KINDS))
    return Qrels(source.rule, source.round, table, source.scale, source.is_simulated)


def study_qrels(study: Study, *, rule: str = "majority", round: int = 1) -> Qrels:
    """The judged pairs of one round under the study's first question; a pair that no annotator
    judged is absent."""
    return qrels_of(judgment_source(study, rule=rule, round=round))


def stream_qrels(study: Study, *, rule: str = "majority", round: int = 1) -> Iterator[str]:
    """The lines of `study_qrels` as they are read, in stretches of items; what cannot be written
    is refused before the first of them."""
    return _lines(judgment_source(study, rule=rule, round=round))


def stream_label_qrels(label_set: LabelSet) -> Iterator[str]:
    return _lines(label_source(label_set))


def qrel_rows(study: Study, *, rule: str = "majority", round: int = 1) -> RowFile:
    source = judgment_source(study, rule=rule, round=round)
    is_simulated = source.is_simulated
    rows = (
        (pair.topic, pair.docno, _written_grade(pair.grade), is_simulated)
        for pair in pairs_of(source)
    )
    return RowFile({**QREL_KINDS, "simulated": "boolean"}, rows)


def sizes_of(source: Source) -> CollectionSizes:
    judged: dict[str, int] = defaultdict(int)
    relevant: dict[str, int] = defaultdict(int)
    for pair in pairs_of(source):
        judged[pair.topic] += pair.grade is not None
        relevant[pair.topic] += (pair.grade or 0) > 0
    counts = (np.array(list(of.values()), dtype=np.intp) for of in (judged, relevant))
    return CollectionSizes(*counts)


def pairs_of(source: Source) -> Iterator[Pair]:
    for items in item_stretches(source.study):
        yield from _pairs_in(source, items)


def _pairs_in(source: Source, items: Sequence[int]) -> Iterator[Pair]:
    candidates = list(
        Candidate.objects.filter(item__in=items)
        .order_by("item__position", "item", "position", "pk")
        .values_list("pk", "item", "item__key", "key")
    )
    # By candidate, which an index finds, and not through all judgments of the question.
    values = group_values(
        source.rows()
        .filter(candidate__in=[pk for pk, *_ in candidates])
        .order_by()
        .values_list("candidate", "value")
    )
    topics: dict[int, list[Pair]] = defaultdict(list)
    for pk, item, topic, docno in candidates:
        grade = source.merge(values[pk]) if pk in values else None
        topics[item].append(Pair(topic, docno, grade, item, pk))
    for pairs in topics.values():
        if any(pair.grade is not None for pair in pairs):
            yield from (pair for pair in pairs if source.with_unjudged or pair.grade is not None)


def _written_grade(grade: int | None) -> int:
    return UNJUDGED if grade is None else grade


def _lines(source: Source) -> Iterator[str]:
    iteration = iteration_of(source.is_simulated)
    for pairs in batched(pairs_of(source), 1000):
        yield "".join(
            f"{pair.topic} {iteration} {pair.docno} {_written_grade(pair.grade)}\n"
            for pair in pairs
        )


def _writable(source: Source) -> Source:
    """The source, if its names and values can stand in qrels: refused before the first line."""
    pooled = Candidate.objects.filter(item__study=source.study).order_by()
    for column, name in (("topic", "item__key"), ("docno", "key")):
        unfit = pooled.filter(**{f"{name}__regex": BLANK.pattern})
        if not unfit.exists():
            continue
        if not source.with_unjudged:
            unfit = unfit.filter(pk__in=source.rows().values("candidate"))
        if (first := unfit.values_list(name, flat=True).first()) is not None:
            raise StudyUnfit(
                f"The {column} '{first}' has a space in it, and qrels are separated by spaces. "
                "Import the study with keys that have none.",
                code="space_in_name",
            )
    if source.is_of_labels or not source.scale.names:
        for value in source.rows().order_by().values_list("value", flat=True).distinct():
            source.merge([value])
    return source
