from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from functools import cached_property, partial
from hashlib import sha256
from typing import Any, TypeVar

from django.db import transaction

from annotation.agreement import judged_protocols, rounds_of
from annotation.frames import judgment_frame
from annotation.models import Question, Study, Submission
from annotation.protocols.versions import numbered_version
from annotation.study_facts import REPORT, RESULTS, VALIDATION, StudyResult, register_result
from annotation.units import wins
from metrics.exceptions import NothingToValidate
from presentation.progress import Progress, silently
from results.computing import create_result, lock_subject
from results.kinds import Computed
from results.models import Result, ResultQuerySet
from stats.libraries import pd
from validation.analysis.human_results import (
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
from validation.analysis.settings import Settings
from validation.datasheet import whole_report
from validation.models import ValidationOutcome
from validation.study_report import REPORT_FILES
from validation.versions import make_validation

HUMAN_RESULTS = "human_results"
# Version of the record and of the computation; results of another form are out of date.
HUMAN_RESULTS_FORM = 6
MOST_PARTS = 12
JudgedPart = tuple[str, str, "pd.DataFrame"]
Part = tuple[str, str, str]
R = TypeVar("R", RatedSystemRecord, RatedPairRecord)


def human_results_fingerprint(study: Study) -> str:
    return sha256(
        repr(("results", HUMAN_RESULTS_FORM, study.pk, study.judgments_version)).encode()
    ).hexdigest()


def list_human_results(study: Study) -> ResultQuerySet:
    return Result.objects.of(study, HUMAN_RESULTS)


def current_human_results(study: Study) -> Result | None:
    """None if the results of the study as loaded are not computed yet."""
    current = list_human_results(study).filter(fingerprint=human_results_fingerprint(study))
    return current.defer(None).first()


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


def compute_human_results(study: Study, progress: Progress = silently) -> Result:
    # Loaded first: what changes meanwhile makes the version out of date, and never wrong.
    study = Study.objects.get(pk=study.pk)
    round = next(iter(rounds_of(study)), 1)
    frame = _of_round(judgment_frame(study), round)
    n_flagged = Submission.objects.of(study).accepted().filter(round=round).flagged().count()
    parts = list(_parts(study, frame, round))
    judged = [one for one in study.questions.all() if (frame["question"] == one.name).any()]
    results = [_result(one, frame, parts) for one in progress(judged, len(judged))]
    return _store_human_results(study, round, n_flagged, results)


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
    flagged = Submission.objects.of(study).accepted().flagged().filter(round=round)
    names = list(flagged.values_list("annotator__pseudonym", "item__key"))
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


@transaction.atomic
def _store_human_results(
    study: Study, round: int, n_flagged: int, results: Sequence[QuestionResult]
) -> Result:
    lock_subject(study)
    record = {
        "round": round,
        "n_flagged": n_flagged,
        "questions": [asdict(one.summary) for one in results],
        "systems": list(_part_rows(results, "systems")),
        "pairs": list(_part_rows(results, "pairs")),
        "bins": [asdict(row) for one in results for row in one.bins],
        "lowest": [asdict(row) for one in results for row in one.lowest],
    }
    version = create_result(
        subject=study,
        kind=HUMAN_RESULTS,
        form=HUMAN_RESULTS_FORM,
        fingerprint=human_results_fingerprint(study),
        computed=Computed(record=record),
    )
    list_human_results(study).exclude(pk=version.pk).delete()
    return version


def _part_rows(results: Sequence[QuestionResult], name: str) -> Iterator[dict[str, Any]]:
    for result in results:
        for part in result.parts:
            for row in getattr(part, name):
                yield {"scope": part.scope, "by": part.by} | asdict(row)


# What a report's files hold; another form makes those that are stored out of date.
FORM = 7
# Followed by the number of a version of the protocol, of whose judgments alone it is.
OF_PROTOCOL = "validation-protocol-"


def _fingerprint(study: Study) -> str:
    versions = (study.judgments_version, study.scores_version)
    return sha256(repr((FORM, study.pk, *versions)).encode()).hexdigest()


def outcome_of(study: Study, name: str) -> ValidationOutcome | None:
    """None if the outcome of the study as loaded is not computed yet."""
    outcomes = ValidationOutcome.objects.filter(study=study, name=name)
    outcome = outcomes.filter(fingerprint=_fingerprint(study)).select_related("version").first()
    if outcome is not None and outcome.version is not None:
        outcome.version.subject = study
    return outcome


def current_version(study: Study) -> Result | None:
    outcome = outcome_of(study, VALIDATION)
    return outcome.version if outcome else None


def require_validation(study: Study) -> ValidationOutcome:
    study = Study.objects.get(pk=study.pk)
    return outcome_of(study, VALIDATION) or _compute_validation(study, silently)


def _compute_validation(study: Study, progress: Progress) -> ValidationOutcome:
    """Validate all judgments, and those of each protocol version if there are several."""
    numbers = judged_protocols(study, round=Settings().round)
    parts: list[int | None] = [None, *(numbers if len(numbers) > 1 else ())]
    outcomes = []
    for number in progress(parts, len(parts)):
        name = VALIDATION if number is None else f"{OF_PROTOCOL}{number}"
        outcomes.append(_store(study, name, *_validate(study, Settings(protocol=number))))
    return outcomes[0]


def _compute_report(study: Study, progress: Progress) -> ValidationOutcome:
    version, reason = _validate(study)
    if version is not None:
        request = whole_report(study, version.number)
        for name in progress(REPORT_FILES, len(REPORT_FILES)):
            content = REPORT_FILES[name](request)
            version.parts.update_or_create(name=name, defaults={"content": content})
    return _store(study, REPORT, version, reason)


def _validate(study: Study, settings: Settings | None = None) -> tuple[Result | None, str]:
    try:
        return make_validation(study=study, settings=settings).version, ""
    except NothingToValidate as nothing:
        return None, str(nothing)


def _store(study: Study, name: str, version: Result | None, reason: str) -> ValidationOutcome:
    values = {"fingerprint": _fingerprint(study), "version": version, "reason": reason}
    return ValidationOutcome.objects.update_or_create(study=study, name=name, defaults=values)[0]


def _is_computed(name: str) -> Callable[[Study], bool]:
    return lambda study: outcome_of(study, name) is not None


register_result(
    RESULTS,
    StudyResult(
        human_results_fingerprint,
        lambda study: current_human_results(study) is not None,
        compute_human_results,
    ),
)
for name, compute in ((VALIDATION, _compute_validation), (REPORT, _compute_report)):
    register_result(name, StudyResult(_fingerprint, _is_computed(name), compute))
