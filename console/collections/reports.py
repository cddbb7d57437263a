"""Reports on a collection: requested, written once for the same results, stored by sentence."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from django.db import transaction

from console.collections.conclusions import Conclusions, Section
from console.collections.report_basis import Basis
from retrieval.file_readings import subject_of
from retrieval.models import Collection, CollectionVersion, ReportSentence
from retrieval.stored_versions import create_version, once, write_rows
from work.request import request_job

if TYPE_CHECKING:
    from accounts.models import User
    from work.execution import RunningJob
    from work.models import Job

WRITE_REPORT = "write_collection_report"
FORM = 4
"""Of the sentences; those of another form are written anew."""
KIND = CollectionVersion.Kind


def _fingerprint(basis: Basis) -> str:
    """What the report depends on: the results it rests on, the qrels, and the judgments."""
    return sha256(repr([FORM, *basis.parts()]).encode()).hexdigest()


def request_report(*, collection: Collection, actor: User | None) -> Job:
    """Have a report written of the collection as it stands."""
    return request_job(
        kind=WRITE_REPORT,
        subject=subject_of(collection),
        arguments={
            "collection": collection.pk,
            "fingerprint": _fingerprint(Basis(collection)),
        },
        requested_by=actor,
    )


def write_report(running: RunningJob) -> str:
    """Write the report of a job; the same results make the same report once."""
    collection = Collection.objects.select_related("team").get(pk=running.arguments["collection"])
    conclusions = Conclusions(collection)
    fingerprint = _fingerprint(conclusions.basis)

    def compute() -> CollectionVersion:
        sections = conclusions.sections()
        with transaction.atomic():
            version = create_version(
                collection=collection,
                kind=KIND.REPORT,
                form=FORM,
                fingerprint=fingerprint,
                rules={},
                actor=running.job.requested_by,
            )
            rows = (
                {"version": version, "section": section.name, "text": text}
                for section in sections
                for text in section.sentences
            )
            write_rows(ReportSentence, rows)
        return version

    return once(collection, KIND.REPORT, fingerprint, compute)


def stored_sections(version: CollectionVersion) -> list[Section]:
    """The report of a version, part by part."""
    sections: dict[str, Section] = {}
    for row in ReportSentence.objects.filter(version=version):
        sections.setdefault(row.section, Section(row.section)).sentences.append(row.text)
    return list(sections.values())
