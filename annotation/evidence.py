"""What speaks against a submission, in numbers: its time, its repetition, its distance from others.

Each flag says what was measured, what others did, and how many submissions by careful workers it
would hit as well. There is no score of quality.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean, median
from typing import Any, NamedTuple

from django.db.models import F, Max, Sum
from django.db.models.functions import Coalesce, Length

from annotation.effort import Effort, read_events, server_times
from annotation.models import Judgment, Question, Study, Submission, WrittenAnswer

FAST, SAME, FAR, PASTED = "fast", "same", "far", "pasted"
CONTRADICTORY = "contradictory"
# The strongest kind first.
SUBMISSION_FLAGS = (CONTRADICTORY, FAST, SAME, FAR, PASTED)
FAST_SHARE = 1 / 3
"""Of the median time, below which a submission is flagged."""
SAME_SHARE = 0.9
FAR_SHARE = 0.3
EFFORT_COLUMNS = (
    *("seconds", "active_seconds", "events", "justification"),
    *("is_simulated", "has_unproved_mark"),
)
LEAST_VALUES = 4
"""Fewer ratings on a page are the same too easily."""


@dataclass(frozen=True)
class Measures:
    annotator: int
    seconds: float | None
    same_share: float | None
    distance: float | None
    is_pasted: bool
    is_contradictory: bool = False


@dataclass(frozen=True)
class Flag:
    """What was measured, the same of the middle submission, and who else it would hit."""

    name: str
    value: float
    typical: float
    n_careful_hit: int
    n_careful: int


@dataclass(frozen=True)
class Evidence:
    measures: Mapping[int, Measures]
    typical: Mapping[str, float]
    careful: frozenset[int]
    """Annotators who agree with others at least as well as the middle one, and are no faster than
    half the median."""

    def flag_names(self, measured: Measures) -> list[str]:
        limit_seconds = self.typical.get(FAST, 0) * FAST_SHARE
        checks = {
            CONTRADICTORY: measured.is_contradictory,
            FAST: measured.seconds is not None and measured.seconds < limit_seconds,
            SAME: (measured.same_share or 0) >= SAME_SHARE,
            FAR: (measured.distance or 0) >= FAR_SHARE,
            PASTED: measured.is_pasted,
        }
        return [name for name in SUBMISSION_FLAGS if checks[name]]

    @cached_property
    def careful_hits(self) -> Counter[str]:
        """How many submissions by careful workers each flag hits, and of how many."""
        hits: Counter[str] = Counter()
        for one in self.measures.values():
            if one.annotator in self.careful:
                hits.update(["all", *self.flag_names(one)])
        return hits


def _value(name: str, measured: Measures) -> float | None:
    values = {FAST: measured.seconds, SAME: measured.same_share, FAR: measured.distance}
    return values[name]


def measured_evidence(study: Study, efforts: Mapping[int, Effort] | None = None) -> Evidence:
    """Read every judgment of a study once, and measure its submissions; `efforts` are those of
    `measured_efforts`, if they were read."""
    questions = {question.pk: question for question in study.questions.all()}
    values = _values_by_submission(study)
    distances = _distances(values, questions)
    rows = Submission.objects.of(study).accepted().values_list("pk", "annotator", "pasted")
    efforts = measured_efforts(study) if efforts is None else efforts
    measures = {
        pk: Measures(
            annotator=annotator,
            seconds=efforts[pk].seconds,
            same_share=_same_share(values.get(pk, []), questions),
            distance=distances.get(pk),
            is_pasted=bool(pasted),
            is_contradictory=efforts[pk].is_contradictory,
        )
        for pk, annotator, pasted in rows
        if pk in efforts  # else it came meanwhile
    }
    typical = _typical(measures.values())
    return Evidence(measures, typical, _careful(measures.values(), typical))


def measured_efforts(study: Study, **filters: Any) -> dict[int, Effort]:
    """The effort of each submission of a study by its key. A rejected one counts as the previous
    submission of the next."""
    times = Submission.objects.of(study).filter(**filters)
    columns = ("pk", "annotator", "accepted_at", "submitted_at", "seconds")
    server_seconds = server_times(times.values(*columns))
    judged = Judgment.objects.filter(submission__in=times).order_by()
    latest = dict(judged.values_list("submission").annotate(Max("seconds")))
    written = WrittenAnswer.objects.filter(submission__in=times).order_by()
    lengths = dict(written.values_list("submission").annotate(n=Sum(Length("text"))))
    rows = times.values_list("pk", *EFFORT_COLUMNS)
    efforts = {}
    for pk, total, active, events, text, is_simulated, has_unproved_mark in rows.iterator():
        read = read_events(events)
        reported = [latest.get(pk), *(row[0] for row in read)]
        efforts[pk] = Effort(
            total_seconds=total,
            server_seconds=server_seconds.get(pk, total),
            active_seconds=active,
            reported_seconds=max((one for one in reported if one is not None), default=None),
            events=read,
            n_characters=len(text) + lengths.get(pk, 0),
            is_simulated=is_simulated,
            has_unproved_mark=has_unproved_mark,
        )
    return efforts


class _Value(NamedTuple):
    unit: tuple[int, int, int]
    """Candidate (or minus the item, where it is judged as a whole), question and round."""
    value: float


def _values_by_submission(study: Study) -> dict[int, list[_Value]]:
    rows = Judgment.objects.of(study).accepted().order_by()
    values: dict[int, list[_Value]] = defaultdict(list)
    rows = rows.annotate(about=Coalesce("candidate_id", -F("submission__item_id")))
    fields = ("submission", "about", "question", "submission__round", "value")
    for submission, candidate, question, round, value in rows.values_list(*fields).iterator():
        values[submission].append(_Value((candidate, question, round), value))
    return values


def _same_share(values: list[_Value], questions: Mapping[int, Question]) -> float | None:
    """How many of the ratings are the most frequent one; categories may well be all the same."""
    ratings = [one.value for one in values if not questions[one.unit[1]].categories]
    if len(ratings) < LEAST_VALUES:
        return None
    return Counter(ratings).most_common(1)[0][1] / len(ratings)


def _distances(
    values: Mapping[int, list[_Value]], questions: Mapping[int, Question]
) -> dict[int, float]:
    """The mean distance of a submission from the mean of the others, as a share of the scale."""
    sums: dict[tuple[int, int, int], float] = defaultdict(float)
    numbers: Counter[tuple[int, int, int]] = Counter()
    for one in (value for own_values in values.values() for value in own_values):
        if one.value > questions[one.unit[1]].highest:
            continue  # it says that nothing can be said, which is not far from anything
        sums[one.unit] += one.value
        numbers[one.unit] += 1
    distances = {}
    for submission, own_values in values.items():
        apart = []
        for one in own_values:
            question = questions[one.unit[1]]
            if one.value <= question.highest and (n_others := numbers[one.unit] - 1) > 0:
                others = (sums[one.unit] - one.value) / n_others
                apart.append(abs(one.value - others) / (question.highest - question.scale_min))
        if apart:
            distances[submission] = fmean(apart)
    return distances


def _typical(measures: Iterable[Measures]) -> dict[str, float]:
    typical = {}
    for name in (FAST, SAME, FAR):
        values = [value for one in measures if (value := _value(name, one)) is not None]
        if values:
            typical[name] = median(values)
    return typical


def _careful(measures: Iterable[Measures], typical: Mapping[str, float]) -> frozenset[int]:
    distances: dict[int, list[float]] = defaultdict(list)
    seconds: dict[int, list[float]] = defaultdict(list)
    for one in measures:
        if one.distance is not None:
            distances[one.annotator].append(one.distance)
        if one.seconds is not None:
            seconds[one.annotator].append(one.seconds)
    means = {annotator: fmean(values) for annotator, values in distances.items()}
    if not means:
        return frozenset()
    limit, least = median(means.values()), typical.get(FAST, 0) / 2
    return frozenset(
        annotator
        for annotator, mean in means.items()
        if mean <= limit and median(seconds.get(annotator, [least])) >= least
    )
