"""The report of a rehearsal on the study: counts, and findings with a code."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from statistics import median
from typing import Any

from django.db import transaction

from annotation.models import (
    Annotator,
    Candidate,
    CheckAnswer,
    Judgment,
    Study,
    Submission,
    WrittenAnswer,
)
from annotation.protocols.scales import scales_of
from annotation.protocols.versions import current_document
from hits.crowd.similarity import Qualities
from hits.models import Assignment, Hit
from hits.wages import TYPICAL, page_size, study_texts
from results.computing import create_result
from results.kinds import Computed
from results.models import Result

KIND, FORM = "rehearsal", 1
# What fits on a screen of a laptop.
LONG_PAGE_WORDS = 350


def rehearsal_report(rehearsal: Study) -> Result | None:
    return Result.objects.of(rehearsal, KIND).last()


@transaction.atomic
def make_report(rehearsal: Study, qualities: Qualities, chosen: dict[str, Any]) -> Result:
    words = _page_words(rehearsal)
    facts = {
        "n_annotators": Annotator.objects.filter(study=rehearsal).count(),
        "n_items": rehearsal.items.count(),
        "n_planned": Hit.objects.filter(batch__study=rehearsal).count()
        * current_document(rehearsal).completion.assignments_per_item,
        "n_submitted": Submission.objects.of(rehearsal).count(),
        "n_checks": CheckAnswer.objects.filter(submission__item__study=rehearsal).count(),
        "n_rows": Judgment.objects.of(rehearsal).count(),
        "shown_first": _shown_first(rehearsal),
        "typical_seconds": _typical_seconds(rehearsal, words),
    }
    findings = list(_findings(rehearsal, qualities, words))
    Result.objects.of(rehearsal, KIND).delete()
    return create_result(
        subject=rehearsal,
        kind=KIND,
        form=FORM,
        fingerprint="",
        computed=Computed(
            record={"findings": findings}, facts=facts, settings=chosen, seed=chosen["seed"]
        ),
    )


def _shown_first(rehearsal: Study) -> list[int]:
    """How often the response of each system was shown first: the least and the most; empty if
    candidates are of no systems."""
    systems = {
        (item, key): system
        for item, key, system in Candidate.objects.filter(item__study=rehearsal)
        .exclude(system="")
        .values_list("item", "key", "system")
    }
    if not systems:
        return []
    counts = Counter(dict.fromkeys(systems.values(), 0))
    counts.update(
        systems[item, order[0]]
        for item, order in Submission.objects.of(rehearsal).values_list("item", "shown_order")
        if order and (item, order[0]) in systems
    )
    return [min(counts.values()), max(counts.values())]


def _page_words(rehearsal: Study) -> dict[str, int]:
    display = current_document(rehearsal).display
    words = {}
    for item in rehearsal.items.prefetch_related("candidates"):
        shown = [item.context if display.context else ""]
        shown.append(item.reference if display.reference else "")
        texts = [*shown, *(candidate.text for candidate in item.candidates.all())]
        words[item.key] = sum(len(text.split()) for text in texts)
    return words


def _typical_seconds(rehearsal: Study, words: dict[str, int]) -> float:
    page = page_size(study_texts(rehearsal))
    return median(replace(page, n_words=n).seconds(TYPICAL) for n in words.values())


def _findings(
    rehearsal: Study, qualities: Qualities, words: dict[str, int]
) -> Iterator[dict[str, Any]]:
    yield from _unanswered(rehearsal)
    unreadable = Assignment.objects.filter(hit__batch__study=rehearsal).unreadable()
    if n := unreadable.count():
        yield {"code": "unreadable", "n": n, "problem": unreadable[0].problem[:200]}
    long_pages = {key: n for key, n in words.items() if n > LONG_PAGE_WORDS}
    if long_pages:
        yield {"code": "long_pages", "items": list(long_pages), "words": max(long_pages.values())}
    if without := _items_without_pictures(rehearsal):
        yield {"code": "missing_pictures", "items": without}
    assert rehearsal.rehearsal_of is not None
    people = current_document(rehearsal.rehearsal_of).qualifications
    if skipped := [name for name in ("tests", "practice") if getattr(people, name)]:
        yield {"code": "skipped", "parts": skipped}
    yield {"code": "basis", "basis": qualities.basis}


def _unanswered(rehearsal: Study) -> Iterator[dict[str, Any]]:
    answered = set(Judgment.objects.of(rehearsal).values_list("question__name", flat=True)) | set(
        WrittenAnswer.objects.filter(submission__item__study=rehearsal).values_list(
            "question", flat=True
        )
    )
    unanswered = [
        question.name
        for question in current_document(rehearsal).study_questions
        if not answered & {question.name, *(scale.name for scale in scales_of(question))}
    ]
    if unanswered:
        yield {"code": "unanswered", "questions": unanswered}
    else:
        yield {"code": "answered"}


def _items_without_pictures(rehearsal: Study) -> list[str]:
    candidates = Candidate.objects.filter(item__study=rehearsal)
    without = candidates.filter(picture=None)
    # Where few have pictures, they are not meant to.
    if without.count() * 2 > candidates.count():
        return []
    keys = without.order_by("item__position", "item").values_list("item__key", flat=True)
    return list(dict.fromkeys(keys))
