"""What speaks against a submission, in numbers: its time, its repetition, its distance from others.

Each flag says what was measured, what others did, and how many submissions by careful workers it
would hit as well. There is no score of quality. The page's clock and its events are the
annotator's to invent: they can speak against a submission, and never for it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from statistics import fmean, median
from typing import Any, NamedTuple, cast

from django.db.models import F, Max, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce, Length

from annotation.models import ROUNDING_SECONDS, Judgment, Question, Study, Submission, WrittenAnswer
from presentation.numbers import group_values

FAST, SAME, FAR, PASTED = "fast", "same", "far", "pasted"
CONTRADICTORY = "contradictory"
# The strongest kind first.
SUBMISSION_FLAGS = (CONTRADICTORY, FAST, SAME, FAR, PASTED)
# Of the median time, below which a submission is flagged.
FAST_SHARE = 1 / 3
SAME_SHARE = 0.9
FAR_SHARE = 0.3
# Fewer ratings on a page are the same too easily.
LEAST_VALUES = 4


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
    name: str
    value: float
    typical: float
    n_careful_hit: int
    n_careful: int


@dataclass(frozen=True)
class Evidence:
    measures: Mapping[int, Measures]
    typical: Mapping[str, float]
    # Annotators who agree with others at least as well as the middle one, and are no faster than
    # half the median.
    careful: frozenset[int]

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
        hits: Counter[str] = Counter()
        for one in self.measures.values():
            if one.annotator in self.careful:
                hits.update(["all", *self.flag_names(one)])
        return hits


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
    judged, written = (
        model.objects.filter(submission=OuterRef("pk")).order_by().values("submission")
        for model in (Judgment, WrittenAnswer)
    )
    rows = (
        Submission.objects.of(study)
        .filter(**filters)
        .values(
            "pk",
            *("annotator", "accepted_at", "submitted_at", "seconds", "active_seconds"),
            *("events", "justification", "is_simulated", "has_unproved_mark"),
        )
        .annotate(
            latest=Subquery(judged.annotate(latest=Max("seconds")).values("latest")),
            n_written=Subquery(written.annotate(n=Sum(Length("text"))).values("n")),
        )
    )
    times, efforts = [], {}
    for row in rows.iterator():
        read = read_events(row.pop("events"))
        reported = [row["latest"], *(event[0] for event in read)]
        efforts[row["pk"]] = Effort(
            total_seconds=row["seconds"],
            server_seconds=row["seconds"],
            active_seconds=row["active_seconds"],
            reported_seconds=max((one for one in reported if one is not None), default=None),
            events=read,
            n_characters=len(row.pop("justification")) + (row["n_written"] or 0),
            is_simulated=row["is_simulated"],
            has_unproved_mark=row["has_unproved_mark"],
        )
        times.append(row)
    return efforts | {
        pk: replace(efforts[pk], server_seconds=seconds)
        for pk, seconds in server_times(times).items()
    }


def with_preceding(submission: Submission) -> QuerySet[Any]:
    """Keys of a submission and of its annotator's one before, which bounds its server's time."""
    own = Submission.objects.filter(annotator=submission.annotator_id)
    at = submission.submitted_at
    if at is None:
        return own.filter(pk=submission.pk).values("pk")
    earlier = Q(submitted_at__lt=at) | Q(submitted_at=at, pk__lte=submission.pk)
    return own.filter(earlier).order_by("-submitted_at", "-pk").values("pk")[:2]


class _Value(NamedTuple):
    # Candidate (or minus the item, where it is judged as a whole), question and round.
    unit: tuple[int, int, int]
    value: float


def _values_by_submission(study: Study) -> dict[int, list[_Value]]:
    rows = Judgment.objects.of(study).accepted().order_by()
    rows = rows.annotate(about=Coalesce("candidate_id", -F("submission__item_id")))
    fields = ("submission", "about", "question", "submission__round", "value")
    return group_values(
        (submission, _Value((candidate, question, round), value))
        for submission, candidate, question, round, value in rows.values_list(*fields).iterator()
    )


def _same_share(values: list[_Value], questions: Mapping[int, Question]) -> float | None:
    ratings = [one.value for one in values if not questions[one.unit[1]].categories]
    if len(ratings) < LEAST_VALUES:
        return None
    return Counter(ratings).most_common(1)[0][1] / len(ratings)


def _distances(
    values: Mapping[int, list[_Value]], questions: Mapping[int, Question]
) -> dict[int, float]:
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
    for name, attribute in ((FAST, "seconds"), (SAME, "same_share"), (FAR, "distance")):
        values = [value for one in measures if (value := getattr(one, attribute)) is not None]
        if values:
            typical[name] = median(values)
    return typical


def _careful(measures: Iterable[Measures], typical: Mapping[str, float]) -> frozenset[int]:
    distances = group_values(
        (one.annotator, one.distance) for one in measures if one.distance is not None
    )
    seconds = group_values(
        (one.annotator, one.seconds) for one in measures if one.seconds is not None
    )
    means = {annotator: fmean(values) for annotator, values in distances.items()}
    if not means:
        return frozenset()
    limit, least = median(means.values()), typical.get(FAST, 0) / 2
    return frozenset(
        annotator
        for annotator, mean in means.items()
        if mean <= limit and median(seconds.get(annotator, [least])) >= least
    )


# What the work page records (templates/worker_page/events.js), each row [seconds, kind, numbers…].
INPUT, HIDE, SHOW, BLUR, FOCUS = "input", "hide", "show", "blur", "focus"
PASTE, SEEN, TYPING = "paste", "seen", "typing"
N_NUMBERS = {INPUT: 0, HIDE: 0, SHOW: 0, BLUR: 0, FOCUS: 0, PASTE: 1, SEEN: 2, TYPING: 4}
MOST_EVENTS, GREATEST_NUMBER = 300, 10**8
# Two or three windows side by side are all in sight at once. From more time in sight than so many
# times the time since the previous submission, the page was not worked on when it says it was.
OVERLAP = 3
# Signs of `Effort.signs`.
NO_INPUT, UNTYPED, FAST_TYPING, UNSEEN, MOSTLY_HIDDEN = (
    *("no_input", "untyped", "fast_typing", "unseen"),
    "mostly_hidden",
)
# Characters: shorter texts may be chosen from what a keyboard suggests.
LEAST_TEXT = 20
# Between two characters. Few of 168,000 typists reached 120 words per minute, which is 100 ms
# (Dhakal et al. 2018, doi:10.1145/3173574.3174220).
FASTEST_TYPING_MS = 25

Event = tuple[Any, ...]


def read_events(content: object) -> list[Event]:
    rows = content[:MOST_EVENTS] if isinstance(content, list) else []
    return [tuple(row) for row in rows if _is_event(row)]


def _is_event(row: object) -> bool:
    if not isinstance(row, list) or len(row) < 2 or not isinstance(row[1], str):
        return False
    at, kind, *numbers = row
    return len(numbers) == N_NUMBERS.get(kind) and all(map(_is_number, (at, *numbers)))


def _is_number(value: object) -> bool:
    return type(value) in (int, float) and 0 <= cast(float, value) <= GREATEST_NUMBER


@dataclass(frozen=True)
class Effort:
    """The times and events of one submission.

    `server_seconds` is the time since the annotator accepted the page, or since their previous
    submission if that came later; None if nobody measured it. `total_seconds` is always the time
    since accepting. `reported_seconds` is the greatest time that the answer contains.
    """

    total_seconds: float | None
    server_seconds: float | None
    active_seconds: float | None
    reported_seconds: float | None = None
    events: Sequence[Event] = ()
    n_characters: int = 0
    is_simulated: bool = False
    has_unproved_mark: bool = False

    @property
    def seconds(self) -> float | None:
        """The time that flags use. The page's own time counts only if it is shorter; simulated
        annotators have no other."""
        if self.is_exempt and self.active_seconds is not None:
            return self.active_seconds
        times = [one for one in (self.server_seconds, self.active_seconds) if one is not None]
        return min(times, default=None)

    @property
    def is_exempt(self) -> bool:
        """Whether its times mean nothing: this site's simulated crowd made it, or its owners
        uploaded it as simulated. An annotator cannot claim that."""
        return self.is_simulated and not self.has_unproved_mark

    @property
    def is_contradictory(self) -> bool:
        if self.is_exempt:
            return False
        if self.has_unproved_mark:
            return True
        if self.total_seconds is None or self.server_seconds is None:
            return False
        reported = max(self.reported_seconds or 0, self.active_seconds or 0)
        is_overlapping = self.server_seconds < self.total_seconds
        limit = OVERLAP * (self.server_seconds + ROUNDING_SECONDS)
        return reported > self.total_seconds + ROUNDING_SECONDS or (
            is_overlapping and (self.active_seconds or 0) > limit
        )

    @property
    def counts(self) -> Counter[str]:
        return Counter(row[1] for row in self.events)

    @property
    def first_input_seconds(self) -> float | None:
        return next((row[0] for row in self.events if row[1] == INPUT), None)

    @property
    def hidden_spans(self) -> list[tuple[float, float]]:
        """From when until when the page was hidden, in seconds."""
        spans, since = [], None
        for at, kind, *_numbers in self.events:
            if kind == HIDE and since is None:
                since = at
            elif kind == SHOW and since is not None:
                spans.append((since, max(at, since)))
                since = None
        return spans

    @property
    def hidden_seconds(self) -> float:
        return sum(until - since for since, until in self.hidden_spans)

    @property
    def n_pasted(self) -> int:
        return int(sum(row[2] for row in self.events if row[1] == PASTE))

    @property
    def n_typed(self) -> int:
        return int(sum(row[2] for row in self.events if row[1] == TYPING))

    @property
    def typing_ms(self) -> tuple[int, int] | None:
        """The median and the interquartile range of the time between two characters, if so many
        were typed that these say something."""
        rows = [row for row in self.events if row[1] == TYPING and row[3] >= LEAST_TEXT]
        longest = max(rows, key=lambda row: row[3], default=None)
        return (int(longest[4]), int(longest[5])) if longest else None

    @property
    def seen(self) -> tuple[int, int] | None:
        rows = [row for row in self.events if row[1] == SEEN]
        return max(((int(row[2]), int(row[3])) for row in rows), default=None)

    @property
    def signs(self) -> list[str]:
        """What is unusual in the events: reasons to look, not flags. None without events."""
        if not self.events:
            return []
        n_entered, seen, typing = self.n_typed + self.n_pasted, self.seen, self.typing_ms
        signs = {
            NO_INPUT: self.first_input_seconds is None,
            UNTYPED: self.n_characters >= LEAST_TEXT and 2 * n_entered < self.n_characters,
            FAST_TYPING: typing is not None and typing[0] < FASTEST_TYPING_MS,
            UNSEEN: seen is not None and seen[0] < seen[1],
            MOSTLY_HIDDEN: bool(self.total_seconds)
            and 2 * self.hidden_seconds > (self.total_seconds or 0),
        }
        return [name for name, is_there in signs.items() if is_there]


def server_times(rows: Iterable[Mapping[str, Any]]) -> dict[int, float | None]:
    """The server's time of each submission by its key: `Effort.server_seconds`.

    `rows` are all submissions of a study, with `pk`, `annotator`, `accepted_at`, `submitted_at` and
    `seconds`. Who accepts ten pages and submits all of them a minute later has worked a minute on
    the first, and seconds on each of the others, as far as anyone measured.
    """
    times: dict[int, float | None] = {}
    previous: dict[int, datetime] = {}
    dated = [row for row in rows if row["submitted_at"] is not None]
    for row in sorted(dated, key=lambda row: (row["submitted_at"], row["pk"])):
        last = previous.get(row["annotator"])
        accepted_at: datetime | None = row["accepted_at"]
        seconds: float | None = row["seconds"]
        if seconds is not None and last is not None and accepted_at is not None:
            since_last = (row["submitted_at"] - last).total_seconds()
            seconds = min(seconds, since_last) if last > accepted_at else seconds
        times[row["pk"]] = seconds
        previous[row["annotator"]] = row["submitted_at"]
    return times
