"""Answers to the quality checks of a page, held against what is right."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from annotation.models import Candidate, PlacedCheck
from annotation.protocols.records import ProtocolDocument
from annotation.protocols.scales import range_of
from hits.answer_values import JudgmentValue
from stats.quality import band_failed, degraded_failed, repeat_failed


@dataclass(frozen=True)
class CheckedValue:
    """What was answered to one check; `compared_value` is of what it repeats or was made of."""

    placed: PlacedCheck
    value: float
    compared_value: float | None
    is_failed: bool
    position: int
    seconds: float | None


def is_check(candidate: Candidate | PlacedCheck | None) -> bool:
    return isinstance(candidate, PlacedCheck)


def checked_values(
    checks: Sequence[PlacedCheck], judged: Iterable[JudgmentValue], document: ProtocolDocument
) -> tuple[CheckedValue, ...]:
    """The checks that were answered; a question that was left out or did not appear says nothing
    about whether one was failed."""
    if not checks:
        return ()
    answers = {
        (each.candidate.blind_key, each.question.name): each for each in judged if each.candidate
    }
    values = []
    for placed in checks:
        own = answers.get((placed.blind_key, placed.question))
        other = placed.compared and answers.get((placed.compared.blind_key, placed.question))
        if own is None or own.position is None or (placed.compared and not other):
            continue
        compared = other.value if other else None
        is_failed = _is_failed(placed, own.value, compared, document)
        values.append(
            CheckedValue(placed, own.value, compared, is_failed, own.position, own.seconds)
        )
    return tuple(values)


def _is_failed(
    placed: PlacedCheck, value: float, compared: float | None, document: ProtocolDocument
) -> bool:
    if compared is None:
        return placed.expected is not None and band_failed(value, placed.expected, placed.tolerance)
    if placed.kind == "repeat":
        return repeat_failed(compared, value, placed.tolerance)
    question = document.question(placed.question)
    lowest = range_of(question)[0] if question else 0.0
    return degraded_failed(value, compared, lowest=lowest, tolerance=placed.tolerance)
