from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from functools import cached_property, partial
from typing import Any, TypeVar

from django.utils.translation import gettext as _, gettext_lazy

from annotation.agreement import judged_protocols, rounds_of
from annotation.frames import judgment_frame
from annotation.models import Question, Study, Submission
from annotation.models.judgments import SubmissionQuerySet
from annotation.protocols.versions import numbered_version
from annotation.result_kinds.base import StudyKind
from annotation.study_facts import RESULTS
from annotation.units import wins
from results.kinds import Computed, Given, register_kind
from results.models import Result
from results.tables import Count, Estimate, PValue, Table, Text
from stats.libraries import pd
from validation.analysis.human_results import (
    ALL,
    CONDITION,
    PREFERRED,
    PROTOCOL,
    UNFLAGGED,
    QuestionRecord,
    QuestionResult,
    QuestionScale,
    question_result,
)
from validation.analysis.records import RatedPairRecord, RatedSystemRecord

MOST_PARTS = 12
JudgedPart = tuple[str, str, "pd.DataFrame"]
Part = tuple[str, str, str]
R = TypeVar("R", RatedSystemRecord, RatedPairRecord)
QUESTION = Text(gettext_lazy("Question"))
PART = {
    "question": QUESTION,
    "scope": Text(
        gettext_lazy("Judgments"),
        {
            ALL: gettext_lazy("all"),
            UNFLAGGED: gettext_lazy("without flagged submissions"),
            CONDITION: gettext_lazy("of a condition"),
            PROTOCOL: gettext_lazy("of a version of the protocol"),
        },
    ),
    "by": Text(gettext_lazy("Condition or version")),
}


@register_kind
class HumanResultsKind(StudyKind):
    """What people's judgments say by themselves."""

    name = "human_results"
    page = RESULTS
    title = gettext_lazy("Results")
    form = 6
    tables = {
        "questions": Table(
            gettext_lazy("Questions"),
            {
                "question": QUESTION,
                "measure": Text(gettext_lazy("Measure")),
                "n_judgments": Count(gettext_lazy("Judgments")),
                "n_items": Count(gettext_lazy("Items")),
                "n_annotators": Count(gettext_lazy("Annotators")),
            },
        ),
        "systems": Table(
            gettext_lazy("Systems by question"),
            PART
            | {
                "system": Text(gettext_lazy("System")),
                "mean": Estimate(gettext_lazy("Mean")),
                "rank_low": Count(gettext_lazy("Best rank")),
                "rank_high": Count(gettext_lazy("Worst rank")),
                "n_ratings": Count(gettext_lazy("Ratings")),
            },
        ),
        "pairs": Table(
            gettext_lazy("Differences of systems"),
            PART
            | {
                "a": Text(gettext_lazy("System")),
                "b": Text(gettext_lazy("Other system")),
                "delta": Estimate(gettext_lazy("Difference")),
                "p_adjusted": PValue(gettext_lazy("p, Holm")),
            },
        ),
        "bins": Table(
            gettext_lazy("Values"),
            {
                "question": QUESTION,
                "system": Text(gettext_lazy("System")),
                "label": Text(gettext_lazy("Value")),
                "n": Count(gettext_lazy("Judgments")),
            },
        ),
        "lowest": Table(
            gettext_lazy("Lowest rated candidates"),
            {
                "question": QUESTION,
                "system": Text(gettext_lazy("System")),
                "item": Text(gettext_lazy("Item")),
                "candidate": Text(gettext_lazy("Candidate")),
                "mean": Estimate(gettext_lazy("Mean")),
                "n": Count(gettext_lazy("Judgments")),
            },
        ),
    }

    def compute(self, given: Given[Study]) -> Computed:
        study = given.subject
        round = next(iter(rounds_of(study)), 1)
        frame = _of_round(judgment_frame(study), round)
        parts = list(_parts(study, frame, round))
        judged = [one for one in study.questions.all() if (frame["question"] == one.name).any()]
        progress = given.progress(_("question"))
        results = [_result(one, frame, parts) for one in progress(judged, len(judged))]
        return Computed(
            record={
                "round": round,
                "n_flagged": _flagged(study, round).count(),
                "questions": [asdict(one.summary) for one in results],
                "systems": list(_part_rows(results, "systems")),
                "pairs": list(_part_rows(results, "pairs")),
                "bins": [asdict(row) for one in results for row in one.bins],
                "lowest": [asdict(row) for one in results for row in one.lowest],
            }
        )


def current_human_results(study: Study) -> Result | None:
    """None if the results of the study as loaded are not computed yet."""
    return HumanResultsKind().find_current(study)


class StoredHumanResults:
    def __init__(self, study: Study, version: Result) -> None:
        self.study, self.version, self.record = study, version, version.record

    @cached_property
    def questions(self) -> list[QuestionRecord]:
        return [QuestionRecord(**row) for row in self.record["questions"]]

    @cached_property
    def systems(self) -> dict[Part, list[RatedSystemRecord]]:
        return _group_by_part(RatedSystemRecord, self.record["systems"])

    @cached_property
    def pairs(self) -> dict[Part, list[RatedPairRecord]]:
        return _group_by_part(RatedPairRecord, self.record["pairs"])


def _group_by_part(kind: type[R], rows: Iterable[dict[str, Any]]) -> dict[Part, list[R]]:
    parts: dict[Part, list[R]] = {}
    for row in rows:
        values = {name: value for name, value in row.items() if name not in ("scope", "by")}
        parts.setdefault((row["question"], row["scope"], row["by"]), []).append(kind(**values))
    return parts


def _flagged(study: Study, round: int) -> SubmissionQuerySet:
    return Submission.objects.of(study).accepted().flagged().filter(round=round)


def _result(question: Question, frame: pd.DataFrame, parts: Sequence[JudgedPart]) -> QuestionResult:
    scale = QuestionScale(
        question.name,
        question.kind,
        question.level,
        question.scale_min,
        question.scale_max,
        tuple(question.categories),
    )
    of_parts = [(scope, by, _under(question, rows)) for scope, by, rows in parts]
    who_won = partial(wins, question) if scale.measure == PREFERRED else None
    return question_result(scale, _under(question, frame), of_parts, who_won)


def _under(question: Question, frame: pd.DataFrame) -> pd.DataFrame:
    return frame[(frame["question"] == question.name) & frame["value"].notna()]


def _of_round(frame: pd.DataFrame, round: int) -> pd.DataFrame:
    return frame[frame["round"] == round]


def _parts(study: Study, frame: pd.DataFrame, round: int) -> Iterator[JudgedPart]:
    """Without flagged work; by condition and protocol version, if there are several."""
    names = list(_flagged(study, round).values_list("annotator__pseudonym", "item__key"))
    if names:
        passes = pd.MultiIndex.from_frame(frame[["annotator", "item"]].astype(str))
        yield UNFLAGGED, "", frame[~passes.isin(pd.MultiIndex.from_tuples(names))]
    conditions = sorted(map(str, frame["condition"].unique()))
    if 1 < len(conditions) <= MOST_PARTS:
        for name in conditions:
            yield CONDITION, name, frame[frame["condition"] == name]
    numbers = judged_protocols(study, round=round)
    if len(numbers) > 1:
        for number in numbers[-MOST_PARTS:]:
            of_version = judgment_frame(study, protocol=numbered_version(study, number))
            yield PROTOCOL, str(number), _of_round(of_version, round)


def _part_rows(results: Sequence[QuestionResult], name: str) -> Iterator[dict[str, Any]]:
    for result in results:
        for part in result.parts:
            for row in getattr(part, name):
                yield {"scope": part.scope, "by": part.by} | asdict(row)
