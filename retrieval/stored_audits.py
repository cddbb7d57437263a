"""Audits of files that somebody sent: requested, computed, stored as rows without the files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.utils.translation import gettext as _

from annotation.readers.rows import storable
from retrieval.audit.collection import audit_collection
from retrieval.audit.records import Audit, Claims
from retrieval.collection_files import files_on_disk, require_bearable, store_file
from retrieval.exceptions import CollectionUnfit
from retrieval.file_readings import subject_of
from retrieval.models import (
    AuditClaim,
    AuditedFile,
    AuditFact,
    AuditFinding,
    Collection,
    CollectionFile,
    CollectionVersion,
)
from retrieval.stored_versions import (
    collection_of,
    create_version,
    fingerprint_of,
    request_version,
    write_files,
    write_rows,
)
from work.models import Job

if TYPE_CHECKING:
    from accounts.models import User
    from annotation.uploads import SentFile
    from work.execution import RunningJob

AUDIT = "audit_collection"
FORM = 2
"""Of the rows."""
NAME_LENGTH, LONGEST_NAME = 60, 200
Kind = CollectionFile.Kind


def request_audit(
    *,
    collection: Collection,
    files: Sequence[CollectionFile],
    actor: User | None,
    claims: Mapping[str, Claims] | None = None,
) -> Job:
    """Have files audited in the background: those sent for it, and runs and qrels that are here.

    `claims` are numbers that were published, by the name of their file.
    """
    if not files:
        raise CollectionUnfit(_("Choose at least one file to audit."), code="no_file")
    return request_version(
        collection=collection,
        job_kind=AUDIT,
        files=files,
        rules={"claims": dict(claims)} if claims else {},
        actor=actor,
    )


@transaction.atomic
def request_audit_of_uploads(
    *,
    collection: Collection,
    uploads: Iterable[SentFile],
    files: Sequence[CollectionFile],
    actor: User | None,
    claims: Mapping[str, Claims] | None = None,
) -> Job:
    """Keep files until they are audited, with others that are here; all are kept, or none.

    What one person sends and the job that waits for it are stored while nobody else's are, or
    the files would pass for leftovers.
    """
    Collection.objects.select_for_update().get(pk=collection.pk)
    _delete_leftovers(collection)
    kept = [_store_audited(collection, file, actor) for file in uploads]
    return request_audit(collection=collection, files=[*kept, *files], claims=claims, actor=actor)


def _store_audited(collection: Collection, file: SentFile, actor: User | None) -> CollectionFile:
    """A file of several, whose refusal names it."""
    try:
        return store_file(collection=collection, file=file, actor=actor, kind=Kind.AUDITED)
    except CollectionUnfit as refused:
        raise CollectionUnfit(f"{file.name}: {refused}", code=refused.code) from None


def _delete_leftovers(collection: Collection) -> None:
    """Delete what was sent for audits that came to nothing, unless one still waits for it."""
    if not Job.objects.about(subject_of(collection)).of_kind(AUDIT).unfinished().exists():
        collection.files.filter(kind=Kind.AUDITED).delete()


def audit_files(running: RunningJob) -> str:
    """Audit the files of a job together, and delete those that were sent for it."""
    collection, rules = collection_of(running), running.arguments["rules"]
    wanted = collection.files.filter(pk__in=running.arguments["files"])
    files = list(wanted.order_by("file_name"))
    if len(files) != len(running.arguments["files"]):
        raise CollectionUnfit(
            _("The files were removed meanwhile. Send them again."), code="files_removed"
        )
    with files_on_disk(files) as paths:
        for path in paths:
            require_bearable(path)
        claims = rules.get("claims")
        audit = audit_collection(paths, claims=claims, progress=running.progress(_("file")))
    with transaction.atomic():
        version = create_version(
            collection=collection,
            kind=CollectionVersion.Kind.AUDIT,
            form=FORM,
            fingerprint=fingerprint_of(FORM, files, rules),
            rules=rules,
            actor=running.job.requested_by,
        )
        write_files(version, files)
        _write(version, audit)
        collection.files.filter(pk__in=[file.pk for file in files], kind=Kind.AUDITED).delete()
        message = _("Result {number}.").format(number=version.number)
        # with the result: a second attempt would find the files that were sent gone
        running.complete(message)
    return message


def _write(version: CollectionVersion, audit: Audit) -> None:
    for one in audit.files:
        record = storable(one.record())
        row = AuditedFile.objects.create(
            version=version,
            file_name=record["file"][:LONGEST_NAME],
            kind=record["kind"],
            n_lines=record["n_lines"],
            n_rows=record["n_rows"],
            related=", ".join(record["related"])[:LONGEST_NAME],
        )
        write_rows(AuditFinding, (_finding(row, finding) for finding in record["findings"]))
        write_rows(AuditClaim, (_claim(row, claim) for claim in record["claims"]))
        write_rows(AuditFact, _facts(row, record["facts"]))


def _finding(file: AuditedFile, finding: Mapping[str, Any]) -> dict[str, Any]:
    lines = ", ".join(map(str, finding["lines"]))
    return {**finding, "file": file, "lines": lines}


def _claim(file: AuditedFile, claim: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in claim.items() if name != "holds"} | {"file": file}


def _facts(file: AuditedFile, facts: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Each number with its section, and its row where the section is a table."""
    for name, value in facts.items():
        if isinstance(value, Mapping):
            yield from _section(file, name, None, value)
        elif isinstance(value, list | tuple):
            for row, each in enumerate(value):
                values = each if isinstance(each, Mapping) else {"value": each}
                yield from _section(file, name, row, values)
        else:
            yield _fact(file, "", None, name, value)


def _section(
    file: AuditedFile, section: str, row: int | None, values: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _section(file, f"{section} {name}", row, value)
        elif isinstance(value, list | tuple) and any(isinstance(one, Mapping) for one in value):
            for number, each in enumerate(value):
                yield from _section(file, f"{section} {name}", number, each)
        elif isinstance(value, list | tuple):
            yield _fact(file, section, row, str(name), ", ".join(map(str, value)))
        else:
            yield _fact(file, section, row, str(name), value)


def _fact(
    file: AuditedFile, section: str, row: int | None, name: str, value: Any
) -> dict[str, Any]:
    is_number = isinstance(value, int | float)
    return {
        "file": file,
        "section": section[:NAME_LENGTH],
        "row": row,
        "name": name[:LONGEST_NAME],
        "number": value if is_number else None,
        "text": "" if is_number or value is None else str(value),
    }
