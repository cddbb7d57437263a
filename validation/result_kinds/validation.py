from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from typing import Any, TypeVar

from django.utils.translation import gettext as _, gettext_lazy

from accounts.models import User
from annotation.agreement import judged_protocols, rounds_of
from annotation.frames import judgment_frame
from annotation.models import Question, Study, Submission
from annotation.models.judgments import SubmissionQuerySet
from annotation.protocols.versions import numbered_version
from annotation.result_kinds.base import StudyKind
from annotation.study_facts import RESULTS, VALIDATION
from annotation.units import wins
from metrics.exceptions import NothingToValidate
from results.computing import ComputedMeanwhile, compute_once
from results.kinds import (
    Computed,
    Count,
    Estimate,
    Given,
    PValue,
    Record,
    Table,
    Text,
    Value,
    register_kind,
)
from results.models import Result
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
from validation.analysis.records import RatedPairRecord, RatedSystemRecord, plain
from validation.analysis.settings import Settings
from validation.results import FORM, KINDS
from validation.versions import compute_validation, find_last, unpack_table

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
    form = 8
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
            },
            facts={
                "n_submissions": Submission.objects.of(study).count(),
                "lead": next(_leads(results), None),
            },
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


def _leads(results: Sequence[QuestionResult]) -> Iterator[dict[str, Any]]:
    """The first and the second system with their difference, of each question with an order."""
    for result in results:
        whole = result.parts[0]
        first, second, *_others = [*whole.systems, None, None]
        if first is not None and second is not None and first.mean is not None:
            two = {first.system, second.system}
            yield {
                "question": asdict(result.summary),
                "systems": [asdict(first), asdict(second)],
                "pairs": [asdict(pair) for pair in whole.pairs if {pair.a, pair.b} == two],
            }


def _part_rows(results: Sequence[QuestionResult], name: str) -> Iterator[dict[str, Any]]:
    for result in results:
        for part in result.parts:
            for row in getattr(part, name):
                yield {"scope": part.scope, "by": part.by} | asdict(row)


MEASURE = {
    "question": Text(gettext_lazy("Question")),
    "scope": Text(gettext_lazy("Conditions")),
    "by": Text(gettext_lazy("Condition")),
    "level": Text(gettext_lazy("Level")),
    "coefficient": Text(gettext_lazy("Coefficient")),
}


@register_kind
class ValidationKind(StudyKind):
    """How well metrics agree with people: a numbered version for other judgments or scores.

    A result without record has the reason why there is nothing to validate among its facts.
    """

    name = page = VALIDATION
    title = gettext_lazy("Metrics")
    form = FORM
    depends_on = ("judgments_version", "scores_version")
    tables = {
        "correlations": Table(
            gettext_lazy("Metrics by agreement with people"),
            MEASURE
            | {
                "metric": Text(gettext_lazy("Metric")),
                "value": Estimate(gettext_lazy("Value")),
                "rank": Value(gettext_lazy("Rank"), digits=1),
                "n_used": Count(gettext_lazy("Groups")),
            },
        ),
        "comparisons": Table(
            gettext_lazy("Differences of metrics"),
            MEASURE
            | {
                "metric_a": Text(gettext_lazy("Metric")),
                "metric_b": Text(gettext_lazy("Other metric")),
                "delta": Estimate(gettext_lazy("Difference")),
                "p_holm": PValue(gettext_lazy("p, Holm"), reason="reason"),
            },
        ),
        "ceilings": Table(
            gettext_lazy("Ceilings"),
            MEASURE
            | {
                "attainable": Estimate(
                    gettext_lazy("Attainable"), low="attainable_low", high="attainable_high"
                ),
                "leave_one_out": Value(gettext_lazy("One more annotator")),
            },
        ),
    }

    def list_variants(
        self, subject: Study, settings: Mapping[str, Any]
    ) -> Sequence[Mapping[str, Any]]:
        """Each version of the protocol by itself, if there are several."""
        numbers = judged_protocols(subject, round=Settings().round)
        return [{"protocol": number} for number in numbers] if len(numbers) > 1 else []

    def compute(self, given: Given[Study]) -> Computed:
        study, settings = given.subject, Settings.of(given.settings)
        fingerprint = self.fingerprint(study, given.settings)
        results = self.list_results(study)
        # Not needed any longer, so that versions are numbered without gaps.
        empty = results.filter(packed_record=None)
        (empty.exclude(fingerprint=self.fingerprint(study)) if given.settings else empty).delete()
        same = list(results.filter(fingerprint=fingerprint).values_list("pk", flat=True))
        before = find_last(study, settings)
        try:
            computed = compute_validation(study, settings, before)
        except NothingToValidate as nothing:
            facts = {"reason": str(nothing), "code": nothing.code}
            computed = Computed(settings=settings.content(), facts=facts)
        # Computed again although the study counted no change: a batch was launched, for example.
        Result.objects.filter(pk__in=same).update(fingerprint="")
        if computed is None and before is not None:
            Result.objects.filter(pk=before.pk).update(fingerprint=fingerprint)
            before.fingerprint = fingerprint
            raise ComputedMeanwhile(before)
        assert computed is not None
        return computed

    def finish(self, subject: Study, inputs: Sequence[Any]) -> None:
        """Older versions are kept."""

    def read_record(self, result: Result) -> Record:
        parts = result.parts.filter(name__in=self.tables).values_list("name", "content")
        return {
            name: [plain(row) for row in unpack_table(KINDS[name], bytes(content))]
            for name, content in parts
        }


def current_version(study: Study) -> Result | None:
    """None if it is not computed yet, or there is nothing to validate."""
    result = ValidationKind().find_current(study)
    return None if result is None or "reason" in result.facts else result


@dataclass(frozen=True)
class StoredVersion:
    version: Result
    is_new: bool


def make_validation(
    *, study: Study, settings: Settings | None = None, created_by: User | None = None
) -> StoredVersion:
    """Store a new version if judgments, scores or settings changed. Changes are counted from the
    last version with the same settings, otherwise from the last version.

    Raises NothingToValidate.
    """
    study = Study.objects.get(pk=study.pk)
    changes = (settings or Settings()).changes()
    kind = ValidationKind()
    result, is_new = compute_once(kind, study, (), changes, actor=created_by, is_repeated=True)
    if "reason" in result.facts:
        raise NothingToValidate(result.facts["reason"], code=result.facts["code"])
    return StoredVersion(result, is_new)
