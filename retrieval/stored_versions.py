"""Versions of a collection's results: found by what they were computed from, and numbered."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models import Max
from django.utils.translation import gettext as _

from annotation.bulk import batched
from retrieval.exceptions import CollectionUnfit
from retrieval.file_readings import subject_of
from retrieval.models import Collection, CollectionFile, CollectionVersion, VersionFile, VersionNote
from work.models import Job
from work.request import request_job

if TYPE_CHECKING:
    from accounts.models import User
    from work.execution import RunningJob

ROWS_AT_ONCE = 2000
MOST_LISTED = 20
"""Of a list, in a signature; the whole of it is in the fingerprint."""


def fingerprint_of(form: int, files: Iterable[CollectionFile], rules: Mapping[str, Any]) -> str:
    """What a result depends on: the files' contents and names, the settings, the rows' form."""
    inputs = [
        [file.kind, file.name, file.family, file.made_by, file.sha256]
        for file in sorted(files, key=lambda file: (file.kind, file.name))
    ]
    return sha256(json.dumps([form, inputs, rules], sort_keys=True).encode()).hexdigest()


def signature_of(version: CollectionVersion) -> str:
    """Under which settings and of which files a result was computed, on one line."""
    settings = (
        f"{name}:{_plain(value)}"
        for name, value in sorted(version.rules.items())
        if value not in (None, "", [], {})
    )
    return "|".join([version.kind, *settings, f"sha256:{version.fingerprint[:12]}"])


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        return ",".join(f"{name}={_plain(each)}" for name, each in sorted(value.items()))
    if isinstance(value, list | tuple):
        shown = ",".join(map(_plain, value[:MOST_LISTED]))
        return f"{shown},+{len(value) - MOST_LISTED}" if len(value) > MOST_LISTED else shown
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def stored_version(collection: Collection, kind: str, fingerprint: str) -> CollectionVersion | None:
    """The version that was computed of the same before."""
    versions = CollectionVersion.objects.of(collection, kind)
    return versions.filter(fingerprint=fingerprint).first()


class ComputedMeanwhile(Exception):
    """A version of the same is there: by a job that was taken for dead, or by another request."""

    def __init__(self, version: CollectionVersion) -> None:
        self.version = version
        super().__init__(str(version))


def create_version(
    *,
    collection: Collection,
    kind: str,
    form: int,
    fingerprint: str,
    rules: Mapping[str, Any],
    actor: User | None,
    **counts: int,
) -> CollectionVersion:
    """The next version of its kind, inside the transaction that writes its rows.

    ComputedMeanwhile where another job stored the same since this one looked; audits, whose files
    are gone afterwards, are each by itself.
    """
    Collection.objects.select_for_update().get(pk=collection.pk)
    if kind != CollectionVersion.Kind.AUDIT and (
        same := stored_version(collection, kind, fingerprint)
    ):
        raise ComputedMeanwhile(same)
    last = CollectionVersion.objects.of(collection, kind).aggregate(last=Max("number"))["last"]
    return CollectionVersion.objects.create(
        collection=collection,
        kind=kind,
        number=(last or 0) + 1,
        form=form,
        fingerprint=fingerprint,
        rules=dict(rules),
        created_by=actor,
        **counts,
    )


def write_files(
    version: CollectionVersion,
    files: Sequence[CollectionFile],
    counts: Mapping[str, Mapping[str, int]] | None = None,
) -> dict[str, VersionFile]:
    """The files that a version was computed from, by name; of runs with counts of their topics."""
    return {
        file.name: VersionFile.objects.create(
            version=version,
            file=file,
            kind=file.kind,
            name=file.name,
            family=file.family,
            made_by=file.made_by,
            sha256=file.sha256,
            **(counts or {}).get(file.name, {}),
        )
        for file in files
    }


def write_notes(version: CollectionVersion, notes: Iterable[str]) -> None:
    VersionNote.objects.bulk_create(VersionNote(version=version, text=text) for text in notes)


def write_rows(model: type[models.Model], rows: Iterable[Mapping[str, Any]]) -> None:
    """Rows of a table, some thousands a statement."""
    for some in batched(rows, ROWS_AT_ONCE):  # bulk_create makes a list of all it is given
        model._default_manager.bulk_create(model(**row) for row in some)


def request_version(
    *,
    collection: Collection,
    job_kind: str,
    files: Iterable[CollectionFile],
    rules: Mapping[str, Any],
    actor: User | None,
) -> Job:
    """Have a result computed in the background of these files by these settings."""
    return request_job(
        kind=job_kind,
        subject=subject_of(collection),
        arguments={
            "collection": collection.pk,
            "files": sorted(file.pk for file in files),
            "rules": dict(rules),
        },
        requested_by=actor,
    )


def collection_of(running: RunningJob) -> Collection:
    """The collection of a job; CollectionUnfit where it has gone."""
    known = Collection.objects.select_related("team").filter(pk=running.arguments["collection"])
    if (collection := known.first()) is None:
        raise CollectionUnfit(_("The collection was deleted meanwhile."))
    return collection


def files_of(running: RunningJob) -> tuple[Collection, list[CollectionFile]]:
    """The collection and the files of a job; CollectionUnfit where one of them has gone."""
    collection = collection_of(running)
    wanted = running.arguments["files"]
    files = list(collection.files.usable().filter(pk__in=wanted).order_by("kind", "name"))
    if len(files) != len(wanted):
        raise CollectionUnfit(_("A file was removed meanwhile. Choose the files again."))
    return collection, files


Compute = Callable[[], CollectionVersion]


def once(collection: Collection, kind: str, fingerprint: str, compute: Compute) -> str:
    """Compute a version, or find the one that was computed of the same; a sentence about it."""
    before = stored_version(collection, kind, fingerprint)
    try:
        version = before or compute()
    except ComputedMeanwhile as meanwhile:
        version = before = meanwhile.version
    text = _("Result {number}.").format(number=version.number)
    return " ".join([text, _("It was computed of the same before.")]) if before else text


@dataclass(frozen=True)
class VersionDraft:
    """The version that a job is to compute of files by rules."""

    collection: Collection
    kind: str
    form: int
    files: Sequence[CollectionFile]
    rules: Mapping[str, Any]
    fingerprint: str
    actor: User | None

    def create(self, *, rules: Mapping[str, Any] | None = None, **counts: int) -> CollectionVersion:
        """The next of its kind, inside the transaction that writes its rows; by rules of which
        some came out of the computation, where there are such."""
        return create_version(
            collection=self.collection,
            kind=self.kind,
            form=self.form,
            fingerprint=self.fingerprint,
            rules=self.rules if rules is None else rules,
            actor=self.actor,
            **counts,
        )

    def once(self, compute: Compute) -> str:
        """Compute it unless it is there, and say of it which it is."""
        return once(self.collection, self.kind, self.fingerprint, compute)


def draft_of(running: RunningJob, kind: str, form: int) -> VersionDraft:
    """What a job was requested to compute; CollectionUnfit where its files have gone."""
    collection, files = files_of(running)
    rules = running.arguments["rules"]
    fingerprint = fingerprint_of(form, files, rules)
    actor = running.job.requested_by
    return VersionDraft(collection, kind, form, files, rules, fingerprint, actor)
