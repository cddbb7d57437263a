"""The protocol that a study without one amounts to: what its questions and settings say."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from annotation.models import Question, Study
from annotation.protocols.records import ProtocolDocument, ProtocolQuestion, Reason


def document_of_rows(study: Study, questions: Iterable[Question]) -> ProtocolDocument:
    """What annotators of the study saw before it had a protocol.

    Labels that a study never had stay empty: today's rules for a new version do not change what
    was done.
    """
    is_pool = study.kind == Study.Kind.ALTERNATIVES
    least = study.justification_min_length
    return ProtocolDocument(
        title=study.title,
        instructions=study.instructions,
        questions=tuple(_question_record(question, is_pool) for question in questions),
        reason=Reason(rule="page" if least or is_pool else "none", least_length=least),
    )


def _question_record(question: Question, is_pool: bool) -> ProtocolQuestion:
    record = partial(ProtocolQuestion, name=question.name, wording=question.wording)
    if is_pool:
        return record(kind="selection")
    if question.categories:
        level = "ordinal" if question.level == "ordinal" else ""
        return record(kind="category", categories=tuple(question.categories), level=level)
    return record(
        kind="line",
        low_label=question.low_label,
        high_label=question.high_label,
        minimum=_unless(question.scale_min, 0),
        maximum=_unless(question.scale_max, 100),
        level=question.level if question.level in ("ordinal", "ratio") else "",
    )


def _unless(value: float, usual: float) -> float | None:
    whole = int(value) if float(value).is_integer() else value
    return None if whole == usual else whole
