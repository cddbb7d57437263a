"""Judgments of an alternatives study as TREC qrels: `topic 0 docno rel`."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from django.db.models import Avg, QuerySet

from annotation.exceptions import StudyUnfit
from annotation.exports import CANDIDATE_ORDER, item_stretches
from annotation.frames import judgment_frame, label_frame
from annotation.models import Judgment, Label, LabelSet, Study
from presentation.files import write_whole
from presentation.row_files import Kind, RowFile

# Whether the share of a candidate's annotators who ticked it makes it relevant.
RELEVANCE: dict[str, Callable[[Any], Any]] = {
    "majority": lambda share: share > 0.5,
    "any": lambda share: share > 0,
    "all": lambda share: share >= 1,
}
RULES = tuple(RELEVANCE)
QREL_KINDS: dict[str, Kind] = {"topic": "text", "docno": "text", "relevance": "integer"}
BLANK = re.compile(r"\s")


@dataclass(frozen=True)
class Qrels:
    """Relevance by topic and docno, with how several annotators were made one."""

    rule: str
    round: int
    table: pd.DataFrame

    @property
    def n_topics(self) -> int:
        return int(self.table["topic"].nunique())

    @property
    def n_lines(self) -> int:
        return len(self.table)

    @property
    def n_relevant(self) -> int:
        return int((self.table["relevance"] > 0).sum())

    def lines(self) -> Iterator[str]:
        """The four TREC columns, one judged pair a line."""
        for row in self.table.itertuples(index=False):
            yield f"{row.topic} 0 {row.docno} {row.relevance}\n"

    def write(self, path: Path) -> None:
        """Write the lines to a file, replacing it whole."""
        write_whole(path, "".join(self.lines()))


def study_qrels(study: Study, *, rule: str = "majority", round: int = 1) -> Qrels:
    """The judged pairs of one round under the study's first question; a pair that no annotator
    judged is absent.

    A candidate is relevant if more than half of its annotators ticked it (`majority`),
    or any, or all of them did.
    """
    if rule not in RULES:
        raise ValueError(f"rule must be one of {', '.join(RULES)}, not {rule!r}")
    _require_alternatives(study)
    frame = judgment_frame(study)
    question = study.questions.first()
    is_first_question = frame["question"] == (question.name if question else "")
    frame = frame[is_first_question & (frame["round"] == round)]
    if frame.empty:
        raise StudyUnfit(f"Study '{study.slug}' has no judgments in round {round}.")
    shares = frame.groupby(["item", "candidate"], observed=True, sort=False)["value"].mean()
    relevant = RELEVANCE[rule](shares)
    return Qrels(rule=rule, round=round, table=_table(relevant.rename("relevance").reset_index()))


def label_qrels(label_set: LabelSet) -> Qrels:
    """The candidates of a label set; one is relevant if its label is above a half."""
    _require_alternatives(label_set.study)
    labels = label_frame(label_set)
    relevant = labels[["item", "candidate"]].assign(relevance=labels["value"] > 0.5)
    rule = f"labels {label_set.version}, {label_set.method}"
    return Qrels(rule=rule, round=label_set.round, table=_table(relevant))


def stream_qrels(study: Study, *, rule: str = "majority", round: int = 1) -> Iterator[str]:
    """The lines of `study_qrels` as they are read, in stretches of items; what cannot be written
    is refused before the first of them."""
    _require_alternatives(study)
    judgments = Judgment.objects.of(study).accepted().filter(submission__round=round)
    judged = judgments.filter(question=study.questions.first())
    if not judged.exists():
        raise StudyUnfit(f"Study '{study.slug}' has no judgments in round {round}.")
    _require_no_blank_keys(judged)
    return _streamed(study, judged, rule)


def stream_label_qrels(label_set: LabelSet) -> Iterator[str]:
    """The lines of `label_qrels` as they are read, in stretches of items."""
    _require_alternatives(label_set.study)
    labels = Label.objects.filter(label_set=label_set)
    _require_no_blank_keys(labels)
    return _streamed(label_set.study, labels, "majority")


def qrel_rows(study: Study, *, rule: str = "majority", round: int = 1) -> RowFile:
    """The same as `stream_qrels`, as rows of topic, docno and relevance."""
    lines = stream_qrels(study, rule=rule, round=round)
    pairs = (line.split() for part in lines for line in part.splitlines())
    return RowFile(QREL_KINDS, ((topic, docno, int(rel)) for topic, _, docno, rel in pairs))


def _streamed(study: Study, rows: QuerySet[Any], rule: str) -> Iterator[str]:
    """A line for each candidate of the rows, by the mean of their values."""
    columns = ("candidate__item__key", "candidate__key", *CANDIDATE_ORDER, "candidate")
    is_relevant = RELEVANCE[rule]
    for items in item_stretches(study):
        means = rows.filter(candidate__item__in=items).order_by(*CANDIDATE_ORDER, "candidate")
        read = means.values_list(*columns).annotate(mean=Avg("value"))
        yield "".join(f"{row[0]} 0 {row[1]} {int(is_relevant(row[-1]))}\n" for row in read)


def _require_no_blank_keys(rows: QuerySet[Any]) -> None:
    """Refuse before the first line what `_require_no_blanks` would refuse of the whole."""
    for column, field in (("topic", "candidate__item__key"), ("docno", "candidate__key")):
        first = rows.filter(**{f"{field}__regex": r"\s"}).values_list(field, flat=True).first()
        if first is not None:
            raise _blank(column, first)


def _require_alternatives(study: Study) -> None:
    if study.kind != Study.Kind.ALTERNATIVES:
        raise StudyUnfit(
            f"Study '{study.slug}' is a study of {study.kind}; qrels are made of alternatives."
        )


def _table(relevant: pd.DataFrame) -> pd.DataFrame:
    """Item, candidate and whether it is relevant, as topic, docno and relevance."""
    table = relevant.set_axis(["topic", "docno", "relevance"], axis="columns")
    _require_no_blanks(table)
    return table.assign(relevance=table["relevance"].astype(int))


def _require_no_blanks(table: pd.DataFrame) -> None:
    for column in ("topic", "docno"):
        for key in table[column].unique():
            if BLANK.search(key):
                raise _blank(column, key)


def _blank(column: str, key: str) -> StudyUnfit:
    return StudyUnfit(
        f"The {column} '{key}' has a space in it, and qrels are separated by spaces. "
        "Import the study with keys that have none."
    )
