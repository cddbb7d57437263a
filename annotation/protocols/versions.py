from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from django.db import transaction
from django.utils import timezone
from django.utils.translation import ngettext

from annotation.access import record_in
from annotation.exceptions import DraftChanged, ProtocolInvalid, ProtocolUnknown
from annotation.models import Protocol, Study
from annotation.protocols.columns import column_faults, document_of_rows, write_columns
from annotation.protocols.documents import (
    fingerprint,
    plain_document,
    read_document,
)
from annotation.protocols.faults import Fault
from annotation.protocols.practice import practice_source_faults
from annotation.protocols.records import ProtocolDocument
from annotation.protocols.validation import document_faults, source_faults

if TYPE_CHECKING:
    from django.contrib.auth.base_user import AbstractBaseUser


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
        known = list(Protocol.objects.of(study).values_list("number", flat=True))
        raise ProtocolUnknown(study.slug, number, known)
    return version


def current_document(study: Study) -> ProtocolDocument:
    versions = list(study.protocols.all())
    if versions:
        return read_document(max(versions, key=lambda version: version.number).document)
    return document_of_rows(study, study.questions.all())


def launch_faults(study: Study) -> list[Fault]:
    versions = list(study.protocols.all())
    newest = max(versions, key=lambda version: version.number, default=None)
    if newest is not None and newest.frozen_at is not None:
        return []
    return freezing_faults(study, current_document(study))


def freezing_faults(study: Study, document: ProtocolDocument) -> list[Fault]:
    """All that keeps a document from becoming a version of the study."""
    return [*document_faults(plain_document(document)), *study_faults(study, document)]


def study_faults(study: Study, document: ProtocolDocument) -> list[Fault]:
    """Those of them that lie in the study: its judgments, and items that it does not have."""
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
    """DraftChanged where the newest version is another than was seen, and another's."""
    is_own = newest is not None and bool(writer) and newest.writer == writer
    if seen and not is_own and seen != seen_as(newest, current_document(study)):
        raise DraftChanged(newest.saved_at if newest is not None else None)


@transaction.atomic
def discard_draft(*, study: Study) -> bool:
    """Go back to the version frozen last; whether there was a draft."""
    return bool(Protocol.objects.of(study).drafts().delete()[0])


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
