"""Versions of a study's protocol, and its questions as rows of `Question`, which judgments name.

A study without a protocol has the one that its questions amount to. Somebody who may not see which
system a candidate is of gets no keys of candidates, which often are the systems' names.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _, ngettext

from annotation.access import record_in
from annotation.exceptions import DraftChanged, ProtocolInvalid, ProtocolUnknown
from annotation.models import Candidate, Judgment, Protocol, Question, Study
from annotation.pairs import set_pairs
from annotation.protocols.documents import (
    fingerprint,
    plain_document,
    read_document,
)
from annotation.protocols.faults import Fault
from annotation.protocols.fields import KINDS
from annotation.protocols.practice import practice_source_faults
from annotation.protocols.records import (
    CheckCase,
    Pairs,
    PracticeItem,
    ProtocolDocument,
    ProtocolQuestion,
    Reason,
)
from annotation.protocols.scales import Scale, scales_of
from annotation.protocols.validation import document_faults, source_faults


def newest_version(study: Study) -> Protocol | None:
    return Protocol.objects.of(study).order_by("-number").first()


def standing_version(study: Study) -> Protocol | None:
    """The frozen version that a launch now would be of; None where it would freeze another."""
    return standing_among(Protocol.objects.of(study))


def standing_among(versions: Iterable[Protocol]) -> Protocol | None:
    by_number = sorted(versions, key=lambda version: version.number)
    newest = by_number[-1] if by_number else None
    if newest is None or newest.frozen_at is not None:
        return newest
    before = by_number[-2] if by_number[1:] else None
    is_same = before is not None and before.fingerprint == fingerprint(newest.document)
    return before if is_same else None


def numbered_version(study: Study, number: int) -> Protocol:
    version = Protocol.objects.of(study).filter(number=number).first()
    if version is None:
        raise ProtocolUnknown(
            study.slug, number, list(Protocol.objects.of(study).values_list("number", flat=True))
        )
    return version


def current_document(study: Study) -> ProtocolDocument:
    versions = list(study.protocols.all())
    if versions:
        return read_document(max(versions, key=lambda version: version.number).document)
    return document_of_rows(study, study.questions.all())


def launch_faults(study: Study) -> list[Fault]:
    newest = max(study.protocols.all(), key=lambda version: version.number, default=None)
    if newest is not None and newest.frozen_at is not None:
        return []
    return freezing_faults(study, current_document(study))


def freezing_faults(study: Study, document: ProtocolDocument) -> list[Fault]:
    return [*document_faults(plain_document(document)), *study_faults(study, document)]


def study_faults(study: Study, document: ProtocolDocument) -> list[Fault]:
    faults = [*column_faults(study, document), *source_faults(study, document)]
    return [*faults, *practice_source_faults(study, document)]


@transaction.atomic
def save_draft(
    *,
    study: Study,
    document: ProtocolDocument,
    is_copy: bool = False,
    seen: str = "",
    writer: str = "",
) -> Protocol:
    """Store a document as the study's draft; what is frozen already needs none, unless it is a
    copy to be changed.

    DraftChanged where it is not any more what the `writer` had `seen`, and somebody else wrote it
    last; without either it is stored whatever was there.
    """
    Study.objects.select_for_update(of=("self",)).get(pk=study.pk)
    newest = newest_version(study)
    require_seen(study, newest, seen, writer)
    set_pairs(study, document.pairs, before=_pairs_in(newest))
    if newest is not None and newest.frozen_at is None:
        newest.document, newest.writer = plain_document(document), writer
        newest.save()
        return newest
    plain = plain_document(document)
    if newest is not None and newest.fingerprint == fingerprint(plain) and not is_copy:
        return newest
    number = 1 if newest is None else newest.number + 1
    return Protocol.objects.create(study=study, number=number, document=plain, writer=writer)


def seen_as(version: Protocol | None, document: ProtocolDocument) -> str:
    return fingerprint(plain_document(document) if version is None else version.document)


def require_seen(study: Study, newest: Protocol | None, seen: str, writer: str = "") -> None:
    is_own = newest is not None and bool(writer) and newest.writer == writer
    if seen and not is_own and seen != seen_as(newest, current_document(study)):
        raise DraftChanged(newest.saved_at if newest is not None else None)


def _pairs_in(version: Protocol | None) -> Pairs | None:
    return None if version is None else read_document(version.document).pairs


@transaction.atomic
def discard_draft(*, study: Study) -> bool:
    Study.objects.select_for_update(of=("self",)).get(pk=study.pk)
    before = _pairs_in(newest_version(study))
    is_discarded = bool(Protocol.objects.of(study).drafts().delete()[0])
    set_pairs(study, _pairs_in(newest_version(study)), before=before)
    return is_discarded


@transaction.atomic
def freeze(
    *, study: Study, actor: AbstractBaseUser | None = None, seen: str = "", writer: str = ""
) -> Protocol:
    """Make the draft the study's version for good, or ProtocolInvalid with all that is wrong, or
    DraftChanged where it is not what was `seen`.

    Without a draft, the version frozen last stands; a study without a protocol gets the one that
    it amounts to, where that is one.
    """
    Study.objects.select_for_update(of=("self",)).get(pk=study.pk)
    newest = newest_version(study)
    require_seen(study, newest, seen, writer)
    if newest is None:
        document = document_of_rows(study, study.questions.all())
        require_no_faults(freezing_faults(study, document))
        return _freeze(Protocol(study=study, number=1, document=plain_document(document)), actor)
    if newest.frozen_at is not None:
        return newest
    document = read_document(newest.document)
    require_no_faults(freezing_faults(study, document))
    if (standing := standing_version(study)) is not None:
        newest.delete()
        return standing
    write_columns(study, document)
    return _freeze(newest, actor)


def _freeze(version: Protocol, actor: AbstractBaseUser | None) -> Protocol:
    version.fingerprint = fingerprint(version.document)
    version.frozen_at = timezone.now()
    version.frozen_by_id = None if actor is None else actor.pk
    version.save()
    record_in(
        version.study,
        actor=actor,
        action="protocol.freeze",
        details={"version": version.number, "fingerprint": version.fingerprint},
    )
    return version


def require_no_faults(faults: Sequence[Fault]) -> None:
    if faults:
        n = len(faults)
        head = ngettext("The protocol has %(n)d fault:", "The protocol has %(n)d faults:", n)
        head %= {"n": n}
        raise ProtocolInvalid("\n".join([head, *(f"  {fault}" for fault in faults)]), faults)


def column_faults(study: Study, document: ProtocolDocument) -> Iterator[Fault]:
    changed = list(_changed_columns(study, document))
    judged = _judged_questions(study) if changed else {}
    for index, name in changed:
        if name in judged:
            yield Fault(
                ("questions", index, "name"), _changed(name, judged[name]), code="judged_otherwise"
            )
    ticked = [n for n, each in enumerate(document.questions) if each.kind == "selection"]
    if study.kind == Study.Kind.ALTERNATIVES and len(ticked) != 1:
        yield Fault(
            ("questions",),
            _("A study of alternatives asks exactly one question that is answered by ticks."),
            code="not_one_selection",
        )
    if study.kind == Study.Kind.RATING and ticked:
        yield Fault(
            ("questions", ticked[0], "kind"),
            _("is answered by ticks, as only alternatives are. Ask for yes or no instead."),
            code="selection_of_ratings",
        )


def _changed_columns(study: Study, document: ProtocolDocument) -> Iterator[tuple[int, str]]:
    columns = {question.name: question for question in study.questions.all()}
    for index, question in enumerate(document.questions):
        for scale in scales_of(question) if question.kind in KINDS else ():
            known = columns.get(scale.name)
            if known is not None and _identity(known, question) != (question.kind, *scale.identity):
                yield index, scale.name


def _judged_questions(study: Study) -> dict[str, Question]:
    judged = Judgment.objects.filter(question__study=study).order_by()
    ids = judged.values_list("question", flat=True).distinct()
    return {question.name: question for question in study.questions.filter(pk__in=ids)}


def _identity(column: Question, question: ProtocolQuestion) -> tuple[object, ...]:
    kind = question.kind if column.kind == "line" and column.categories else column.kind
    scale = Scale(
        column.name,
        column.level,
        column.scale_min,
        column.scale_max,
        categories=tuple(column.categories),
    )
    return kind, *scale.identity


def _changed(name: str, known: Question) -> str:
    scale = ", ".join(known.categories) or f"{known.scale_min:g} to {known.scale_max:g}"
    return _(
        "'%(name)s' has judgments as a %(level)s question of the kind '%(kind)s' (%(scale)s), "
        "which cannot change. Give the question another name, or keep its kind, level and scale; "
        "wording and labels may change."
    ) % {"name": name, "level": known.level, "kind": known.kind, "scale": scale}


def write_columns(study: Study, document: ProtocolDocument) -> None:
    known = {column.name: column for column in study.questions.all()}
    columns = [
        (question, scale) for question in document.questions for scale in scales_of(question)
    ]
    for position, (question, scale) in enumerate(columns):
        column = known.pop(scale.name, None) or Question(study=study, name=scale.name)
        _fill(column, question, scale, position)
        column.save()
    judged = _judged_questions(study)
    for column in known.values():
        if column.name not in judged:
            column.delete()
        elif column.position < len(columns):
            column.position = len(columns)
            column.save()


def _fill(column: Question, question: ProtocolQuestion, scale: Scale, position: int) -> None:
    column.kind, column.wording, column.position = question.kind, question.wording, position
    column.level, column.categories = scale.level, list(scale.categories)
    column.scale_min, column.scale_max = scale.scale_min, scale.scale_max
    column.low_label, column.high_label = scale.low_label, scale.high_label


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
        return record(
            kind="category",
            categories=tuple(question.categories),
            level="ordinal" if question.level == "ordinal" else "",
        )
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


def blind_document(study: Study, document: ProtocolDocument) -> ProtocolDocument:
    """The document with the blind names of the study's candidates instead of their keys. Keys that
    are of no candidate are left out."""
    practice = document.qualifications.practice
    items = () if practice is None else practice.items
    cases = [case for check in document.checks for case in check.cases]
    keys = {case.source_item for case in cases} | {item.item for item in items}
    names = {
        (row.item.key, row.key): row.blind_name
        for row in Candidate.objects.filter(item__study=study, item__key__in=keys - {""})
        .select_related("item")
        .only("item__key", "key", "blind_key", "system")
    }

    def blind_case(case: CheckCase) -> CheckCase:
        return replace(
            case, source_candidate=names.get((case.source_item, case.source_candidate), "")
        )

    def blind_item(item: PracticeItem) -> PracticeItem:
        return replace(
            item,
            candidates=tuple(
                replace(each, candidate=names.get((item.item, each.candidate), ""))
                for each in item.candidates
            ),
        )

    checks = (
        replace(check, cases=tuple(map(blind_case, check.cases))) for check in document.checks
    )
    document = replace(document, checks=tuple(checks))
    if practice is None:
        return document
    practice = replace(practice, items=tuple(map(blind_item, items)))
    return replace(document, qualifications=replace(document.qualifications, practice=practice))


def blind_faults(faults: Iterable[Fault]) -> list[Fault]:
    return [fault for fault in faults if fault.code != "unknown_candidate"]
