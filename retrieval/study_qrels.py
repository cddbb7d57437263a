"""Qrels of a collection that are made of a study's judgments, by a rule and of a round."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import transaction
from django.utils.translation import gettext as _

from annotation.models import Study
from retrieval.collection_files import describe_file, free_name, store_file
from retrieval.exports.assessors import assessor_lines
from retrieval.exports.qrels import judgment_source, qrels_of
from retrieval.file_readings import collection_of, read_file, subject_of
from retrieval.models import Collection, CollectionFile
from work.request import request_job

if TYPE_CHECKING:
    from accounts.models import User
    from annotation.uploads import SentFile
    from work.execution import RunningJob
    from work.models import Job

STUDY_QRELS = "qrels_of_study"
OWN = "own"
"""For a rule: each annotator's own grades, of every round, in one file."""
Kind = CollectionFile.Kind


def request_study_qrels(
    *, collection: Collection, study: Study, rule: str, round: int, actor: User | None
) -> Job:
    """Have qrels made of what a round's annotators said, by a rule."""
    return request_job(
        kind=STUDY_QRELS,
        subject=subject_of(collection),
        arguments={
            "collection": collection.pk,
            "study": study.pk,
            "rule": rule,
            "round": round,
            # what came since makes other qrels of the same
            "judgments_version": study.judgments_version,
        },
        requested_by=actor,
    )


def make_study_qrels(running: RunningJob) -> str:
    """Make the qrels of a job: -1 where a document was pooled and nobody could judge it."""
    arguments = running.arguments
    collection = collection_of(running)
    study = collection.studies.get(pk=arguments["study"])
    rule, round = arguments["rule"], arguments["round"]
    if rule == OWN:
        text = "".join(assessor_lines(judgment_source(study, round=round))).encode()
    else:
        qrels = qrels_of(judgment_source(study, rule=rule, round=round, with_unjudged=True))
        text = "".join(qrels.lines()).encode()
    content: SentFile = SimpleUploadedFile(f"{study.slug}-{round}.qrels", text)
    file = _earlier_file(collection, text, study, arguments)
    if file is None:
        file = _store(collection, content, study, arguments, running.job.requested_by)
    if file.n_lines is None and not file.n_faults:
        read_file(file)
    n_lines = text.count(b"\n")
    return _("{name}: {n} grades.").format(name=file.name, n=f"{n_lines:,}")


def _earlier_file(
    collection: Collection, text: bytes, study: Study, arguments: Mapping[str, Any]
) -> CollectionFile | None:
    """What an attempt before this one stored, and may not have read."""
    return collection.files.filter(
        kind=_kind_of(arguments["rule"]),
        sha256=sha256(text).hexdigest(),
        study=study,
        **_origin(arguments),
    ).first()


def _kind_of(rule: str) -> str:
    return Kind.ASSESSORS if rule == OWN else Kind.QRELS


def _origin(arguments: Mapping[str, Any]) -> dict[str, str]:
    """What qrels say of themselves; each annotator's own grades are of no rule and every round."""
    if arguments["rule"] == OWN:
        return {}
    return {"rule": arguments["rule"], "round": str(arguments["round"])}


def _store(
    collection: Collection,
    content: SentFile,
    study: Study,
    arguments: Mapping[str, Any],
    actor: User | None,
) -> CollectionFile:
    """The qrels as a file of the collection that says what they were made of."""
    rule, round = arguments["rule"], arguments["round"]
    with transaction.atomic():
        kind = _kind_of(rule)
        people = CollectionFile.MadeBy.PEOPLE
        file = store_file(
            collection=collection, file=content, actor=actor, kind=kind, made_by=people
        )
        name = _("{study}, each annotator") if rule == OWN else _("{study}, round {round}, {rule}")
        name = name.format(study=study.title[:60], round=round, rule=rule)
        name = free_name(collection, kind, name, of=file)
        describe_file(file=file, actor=actor, name=name, **_origin(arguments))
        CollectionFile.objects.filter(pk=file.pk).update(study=study)
    file.refresh_from_db()
    return file
