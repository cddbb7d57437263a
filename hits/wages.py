"""Pay per hour: estimated from what a page holds, then measured on submissions.

The estimate is a plain sum (docs/launch.md): opening the page, reading its words, answering. It
is a range, since people differ more than pages do.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_UP, Decimal
from statistics import median, quantiles
from typing import Any

from django.core.cache import cache
from django.db.models import Count, Max, Sum
from django.db.models.functions import Length
from django.utils.translation import gettext as _

from annotation.models import (
    PLAUSIBLY_TIMED,
    Candidate,
    Question,
    Study,
    Submission,
    SubmissionQuerySet,
)
from annotation.protocols.fields import ITEM, KINDS
from annotation.protocols.records import Practice, ProtocolDocument, ProtocolQuestion
from annotation.protocols.versions import current_document
from hits.models import Batch


@dataclass(frozen=True)
class StudyTexts:
    study: Study
    of_items: dict[str, Any]
    of_candidates: dict[str, Any]
    questions: list[Question]


def study_texts(study: Study) -> StudyTexts:
    same = {"n": Count("*"), "last": Max("pk"), "n_pictures": Count("picture")}
    return StudyTexts(
        study,
        study.items.aggregate(**same, n_characters=Sum(Length("context"))),
        Candidate.objects.filter(item__study=study.pk).aggregate(
            **same, n_characters=Sum(Length("text"))
        ),
        sorted(study.questions.all(), key=lambda one: one.pk),
    )


CENT = Decimal("0.01")
# The hourly pay that a reward is suggested for if the team has no minimum.
SUGGESTED_HOURLY_USD = Decimal(12)
# A word in six characters: five and the space, as typists count.
CHARACTERS_A_WORD = 6
UNKNOWN: Any = object()
# Fewer submissions say too little of how long the work takes.
FEWEST_MEASURED = 5
# The newest of a large study say what one needs.
MOST_MEASURED = 5000


@dataclass(frozen=True)
class Pace:
    """How fast somebody works. 238 words a minute is the mean of silent reading (Brysbaert 2019,
    doi:10.1016/j.jml.2019.104047); the quick and the slow are its ends among adults."""

    opening_seconds: float
    words_a_minute: float
    answer_seconds: float
    choice_seconds: float
    typed_characters_a_minute: float
    reads_instructions: bool


QUICK = Pace(5, 350, 3, 1, 300, reads_instructions=False)
TYPICAL = Pace(10, 238, 6, 2, 200, reads_instructions=False)
SLOW = Pace(20, 150, 10, 4, 120, reads_instructions=True)


@dataclass(frozen=True)
class PageSize:
    n_words: float
    n_instruction_words: float
    n_answers: float
    n_ticks: float
    n_typed_characters: int

    @property
    def n_given(self) -> float:
        return self.n_answers + self.n_ticks

    def seconds(self, pace: Pace) -> float:
        n_words = self.n_words + (self.n_instruction_words if pace.reads_instructions else 0)
        answering_seconds = (
            self.n_answers * pace.answer_seconds + self.n_ticks * pace.choice_seconds
        )
        typing_seconds = 60 * self.n_typed_characters / pace.typed_characters_a_minute
        reading_seconds = 60 * n_words / pace.words_a_minute
        return pace.opening_seconds + reading_seconds + answering_seconds + typing_seconds


@dataclass(frozen=True)
class Duration:
    # Measured on `n` submissions, or estimated by the author of the protocol or by its length.

    typical_seconds: float
    quick_seconds: float
    slow_seconds: float
    n: int = 0
    page: PageSize | None = None
    is_of_protocol: bool = False

    @property
    def is_measured(self) -> bool:
        return self.n > 0


@dataclass(frozen=True)
class Wage:
    typical_usd: Decimal
    least_usd: Decimal
    most_usd: Decimal


def page_size(texts: StudyTexts, document: ProtocolDocument | None = None) -> PageSize:
    """`document` is a draft that is not stored; otherwise it is the newest version."""
    document = document or current_document(texts.study)
    own, of_candidates = texts.of_items, texts.of_candidates
    n_items = own["n"] or 1
    n_candidates = of_candidates["n"] / n_items
    characters = (own["n_characters"] or 0) + (of_candidates["n_characters"] or 0)
    characters /= n_items
    characters += sum(len(question.wording) for question in document.questions)
    n_ticks = n_candidates * sum(each.kind == "selection" for each in document.questions)
    return PageSize(
        n_words=characters / CHARACTERS_A_WORD,
        n_instruction_words=len(document.instructions) / CHARACTERS_A_WORD,
        n_answers=sum(_n_answers(each, n_candidates) for each in document.questions) - n_ticks,
        n_ticks=n_ticks,
        n_typed_characters=document.reason.least_length,
    )


def _n_answers(question: ProtocolQuestion, n_candidates: float) -> float:
    if question.kind == "best_worst":
        return 2
    is_one = question.kind == "preference" or (
        question.about == ITEM and not KINDS[question.kind].is_comparison
    )
    if question.check is not None:
        return question.check.share
    return 1 if is_one else n_candidates


def estimated_duration(texts: StudyTexts, document: ProtocolDocument | None = None) -> Duration:
    document = document or current_document(texts.study)
    page = page_size(texts, document)
    typical, quick, slow = (page.seconds(pace) for pace in (TYPICAL, QUICK, SLOW))
    stated = document.time.estimate_seconds
    # What was written down is the typical time; the length says how far people part from it.
    scale = stated / typical if stated else 1
    return Duration(
        typical * scale, quick * scale, slow * scale, page=page, is_of_protocol=bool(stated)
    )


def practice_duration(practice: Practice, duration: Duration) -> Duration:
    texts = [text for item in practice.items for text in item.feedback.values()]
    for candidate in (each for item in practice.items for each in item.candidates):
        texts += candidate.feedback.values()
    n_words = sum(map(len, texts)) / max(len(practice.items), 1) / CHARACTERS_A_WORD
    return Duration(
        duration.typical_seconds + 60 * n_words / TYPICAL.words_a_minute,
        duration.quick_seconds + 60 * n_words / QUICK.words_a_minute,
        duration.slow_seconds + 60 * n_words / SLOW.words_a_minute,
    )


def with_duration(document: ProtocolDocument, duration: Duration) -> ProtocolDocument:
    """The document whose pages state the duration to annotators."""
    seconds = round(duration.typical_seconds)
    return replace(document, time=replace(document.time, estimate_seconds=seconds))


def measured_duration(seconds: Sequence[float]) -> Duration | None:
    if len(seconds) < FEWEST_MEASURED:
        return None
    tenths = quantiles(seconds, n=10, method="inclusive")
    return Duration(median(seconds), tenths[0], tenths[-1], n=len(seconds))


def duration_of(
    study: Study, texts: StudyTexts | None = None, document: ProtocolDocument | None = None
) -> Duration:
    """Measured from accepting to submitting if there are submissions, else estimated. Cached per
    version of the judgments."""
    key = f"duration:{study.pk}:{study.judgments_version}"
    measured: Duration | None = cache.get(key, UNKNOWN)
    if measured is UNKNOWN:
        measured = _duration_of(Submission.objects.filter(item__study=study.pk))
        cache.set(key, measured)
    return measured or estimated_duration(texts or study_texts(study), document)


def durations_of_batches(batches: Sequence[tuple[Batch, Study]]) -> dict[int, Duration]:
    name = "batch-duration:{}:{}"
    keys = {name.format(batch.pk, study.judgments_version): batch for batch, study in batches}
    cached: dict[str, Duration | None] = cache.get_many(keys)
    for key, batch in keys.items():
        if key not in cached:
            cached[key] = _duration_of(Submission.objects.filter(assignment__hit__batch=batch))
            cache.set(key, cached[key])
    return {keys[key].pk: each for key, each in cached.items() if each is not None}


def _duration_of(submissions: SubmissionQuerySet) -> Duration | None:
    return measured_duration(
        [
            each
            for each in submissions.accepted()
            .plausibly_timed()
            .order_by("-pk")
            .values_list("seconds", flat=True)[:MOST_MEASURED]
            if each is not None
        ]
    )


def n_implausible(study: Study) -> int:
    key = f"implausible:{study.pk}:{study.judgments_version}"
    n: int | None = cache.get(key)
    if n is None:
        n = Submission.objects.of(study).accepted().timed().exclude(PLAUSIBLY_TIMED).count()
        cache.set(key, n)
    return n


def wage_of(reward_usd: Decimal, duration: Duration) -> Wage:
    return Wage(
        _hourly(reward_usd, duration.typical_seconds),
        _hourly(reward_usd, duration.slow_seconds),
        _hourly(reward_usd, duration.quick_seconds),
    )


def stated_hourly(batch: Batch) -> Decimal | None:
    """What annotators read until times are measured, if the protocol states the time."""
    seconds = batch.document.time.estimate_seconds if batch.protocol else None
    return _hourly(batch.reward_usd, seconds) if seconds else None


def _hourly(reward_usd: Decimal, seconds: float) -> Decimal:
    # Of whole seconds, as pages state them to annotators.
    return (reward_usd * 3600 / max(round(seconds), 1)).quantize(CENT)


def reward_for(hourly_usd: Decimal, duration: Duration) -> Decimal:
    return (hourly_usd * Decimal(duration.typical_seconds) / 3600).quantize(CENT, ROUND_UP)


def duration_words(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    if not minutes:
        return _("%(s)s s") % {"s": rest}
    return _("%(m)s min %(s)s s") % {"m": minutes, "s": rest}
