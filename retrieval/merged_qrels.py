"""Qrels of several assessors' grades: one grade of a document by a rule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import transaction
from django.utils.translation import gettext as _

from retrieval.collection_files import describe_file, free_name, store_file
from retrieval.exceptions import CollectionUnfit
from retrieval.exports.marks import iteration_of
from retrieval.file_readings import collection_of, read_file, subject_of
from retrieval.models import Collection, CollectionFile
from retrieval.rankings.label_sets import label_sets
from retrieval.stored_files import assessors_grades
from retrieval.trec_files import RelevanceGrades
from work.request import request_job

if TYPE_CHECKING:
    from accounts.models import User
    from annotation.uploads import SentFile
    from work.execution import RunningJob
    from work.models import Job

MERGED_QRELS = "qrels_of_assessors"
KIND = CollectionFile.Kind.QRELS
# As the rules of a study's qrels are called, over those who judged a document.
RULES = {"majority": "majority", "any": "union", "all": "intersection"}


def merged(grades: Mapping[str, RelevanceGrades], rule: str) -> RelevanceGrades:
    """Assessors' grades as one qrels: the highest grade that more than half, any or all of those
    who judged a document reached; -1 where nobody did."""
    topics = sorted({topic for each in grades.values() for topic in each.topics}, key=str.encode)
    return label_sets(grades, topics).derived(RULES[rule])


def qrels_lines(qrels: RelevanceGrades, *, is_simulated: bool = False) -> Iterator[str]:
    """The four TREC columns, one pair a line; column 2 marks simulated answers."""
    iteration = iteration_of(is_simulated)
    for topic, document, grade in zip(qrels.topic, qrels.document, qrels.grade, strict=True):
        yield f"{qrels.topics[topic]} {iteration} {qrels.documents[document]} {grade}\n"


def request_merged_qrels(
    *, collection: Collection, file: CollectionFile, rule: str, actor: User | None
) -> Job:
    """Have qrels made of a file of several assessors' grades, by a rule."""
    return request_job(
        kind=MERGED_QRELS,
        subject=subject_of(collection),
        arguments={"collection": collection.pk, "file": file.pk, "rule": rule},
        requested_by=actor,
    )


def make_merged_qrels(running: RunningJob) -> str:
    """Make the qrels of a job; whose grades they are of, they say themselves."""
    collection, rule = collection_of(running), running.arguments["rule"]
    files = collection.files.usable().filter(kind=CollectionFile.Kind.ASSESSORS)
    if (source := files.filter(pk=running.arguments["file"]).first()) is None:
        raise CollectionUnfit(_("A file was removed meanwhile. Choose the files again."))
    qrels = merged(assessors_grades([source]), rule)
    is_simulated = source.made_by == CollectionFile.MadeBy.SIMULATED
    text = "".join(qrels_lines(qrels, is_simulated=is_simulated)).encode()
    content: SentFile = SimpleUploadedFile(f"{source.file_name}.{rule}.qrels", text)
    actor = running.job.requested_by
    with transaction.atomic():
        file = store_file(collection=collection, file=content, actor=actor, kind=KIND)
        name = free_name(collection, KIND, f"{source.name}, {rule}", of=file)
        described = {"rule": rule, "round": source.round, "made_by": source.made_by}
        # of two rules they are the same assessors' still
        described["assessor"] = source.name
        describe_file(file=file, actor=actor, name=name, **described)
    file.refresh_from_db()
    read_file(file)
    return _("{name}: {n} grades.").format(name=name, n=f"{len(qrels.grade):,}")
