import logging
import zlib
from collections.abc import Callable, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import numpy as np
from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from annotation.bulk import batched
from annotation.exceptions import ImportRefused
from annotation.jobs import PASSING, unexpected_problem
from annotation.readers.delimited import BLANK_ROW
from annotation.readers.drafts import ReadingReport
from annotation.readers.rows import storable
from annotation.uploads import AT_ONCE_BYTES
from results.models import Result
from retrieval.exceptions import CollectionUnfit, FileFaults, TrecFileFaults
from retrieval.models import (
    Collection,
    CollectionFile,
    FileFit,
    FileTopic,
    ResultType,
    SampledTarget,
    SampleFit,
)
from retrieval.models.collections import NAME_LENGTH
from retrieval.stored_files import (
    WARNINGS_KEPT,
    catalogue_facts,
    contradicting_lines,
    files_on_disk,
    free_name,
    is_packed,
    names_in,
    record_action,
    require_bearable,
    vectors_facts,
)
from retrieval.trec_files import (
    RelevanceGrades,
    Run,
    has_simulated_mark,
    read_assessors,
    read_qrels,
    read_run,
)
from stats.arguments import Integers
from stats.ranking.judged_lists import in_single_precision
from work.execution import RunningJob, run_job
from work.tasks import request_job

logger = logging.getLogger(__name__)
READ_FILES = "read_collection_files"
FAULTS_KEPT, LONGEST_FAULT = 200, 500
ROWS_AT_ONCE = 5000
# The longest name of a topic, in bytes: PostgreSQL's indexes take no entry above 2,700.
LONGEST_TOPIC = 1000


def subject_of(collection: Collection) -> str:
    return f"collection:{collection.pk}"


def collection_of(running: RunningJob) -> Collection:
    known = Collection.objects.select_related("team").filter(pk=running.arguments["collection"])
    if (collection := known.first()) is None:
        raise CollectionUnfit(_("The collection was deleted meanwhile."))
    return collection


def request_reading(
    *, collection: Collection, files: Sequence[CollectionFile], requested_by: User | None
) -> None:
    """Have files read: small ones before the page answers, others in the background."""
    job = request_job(
        kind=READ_FILES,
        subject=subject_of(collection),
        arguments={"collection": collection.pk, "files": [file.pk for file in files]},
        requested_by=requested_by,
    )
    if sum(file.n_bytes for file in files) <= AT_ONCE_BYTES and not any(map(is_packed, files)):
        run_job(job.pk)


def read_files(running: RunningJob) -> str:
    rows = CollectionFile.objects.filter(
        pk__in=running.arguments["files"], n_lines=None, n_faults=0
    )
    files = list(rows.select_related("collection").order_by("pk"))
    for file in running.progress(_("file"))(files, len(files)):
        read_file(file)
    for collection in Collection.objects.filter(pk=running.arguments["collection"]):
        note_fits(collection)
    return ""


def read_file(file: CollectionFile) -> None:
    try:
        with files_on_disk([file]) as [path]:
            _require_readable(path)
            facts, topics = READERS[CollectionFile.Kind(file.kind)](path)
    except FileFaults as refused:
        _note_faults(file, refused.faults)
    except ImportRefused as refused:
        _note_faults(file, [(refused.line, refused.problem)])
    except PASSING:
        raise
    except Exception as error:
        logger.exception("reading '%s' broke off", file)
        _note_faults(file, [(None, unexpected_problem(error))])
    else:
        _note_facts(file, facts, topics)


def _read_run(path: Path) -> tuple[dict[str, Any], Sequence[str]]:
    run = read_run(path)
    _require_short(path, run.topics)
    facts = {
        "reading": run.reading.plain(),
        "tag": run.tag[:NAME_LENGTH],
        "n_lines": len(run.score),
        "n_topics": len(run.topics),
        "n_documents": len(run.documents),
        "n_tied": _n_tied(run),
        "n_infinite": run.n_infinite,
        "n_warnings": len(run.contradicting),
        "warnings": storable(list(map(list, contradicting_lines(run, WARNINGS_KEPT)))),
    }
    return facts, run.topics


def _read_qrels(path: Path) -> tuple[dict[str, Any], Sequence[str]]:
    try:
        grades = read_qrels(path)
    except TrecFileFaults as refused:
        raise TrecFileFaults(path, [*_hint_of_assessors(path), *refused.faults]) from None
    _require_short(path, grades.topics)
    reading = {"reading": grades.reading.plain()}
    return {**qrels_facts(grades), **reading, **_judges(path)}, grades.topics


def _hint_of_assessors(path: Path) -> list[tuple[None, str]]:
    try:
        read_assessors(path)
    except TrecFileFaults:
        return []
    text = _(
        "If column 2 names the assessor, send the file once more and choose “qrels of several "
        "assessors”."
    )
    return [(None, text)]


def _read_assessors(path: Path) -> tuple[dict[str, Any], Sequence[str]]:
    grades = read_assessors(path)
    if long := next((name for name in grades if len(name) > NAME_LENGTH), ""):
        text = _("The assessor's name {name} has more than {n} characters.")
        raise TrecFileFaults(path, [(None, text.format(name=f"{long[:40]}…", n=NAME_LENGTH))])
    topics = sorted({topic for one in grades.values() for topic in one.topics}, key=str.encode)
    _require_short(path, topics)
    reading = {"reading": next(iter(grades.values())).reading.plain()}
    return {**assessors_facts(grades), **reading, **_judges(path)}, topics


def _judges(path: Path) -> dict[str, Any]:
    """Who judged, if a line has the mark of simulated answers; the upload reads the first only."""
    return {"made_by": CollectionFile.MadeBy.SIMULATED} if has_simulated_mark(path) else {}


def _require_readable(path: Path) -> None:
    try:
        require_bearable(path)
    except (CollectionUnfit, OSError, EOFError, zlib.error) as refused:
        raise TrecFileFaults(path, [(None, str(refused))]) from None


def _require_short(path: Path, topics: Sequence[str]) -> None:
    long = [topic for topic in topics if len(topic.encode()) > LONGEST_TOPIC]
    faults: list[tuple[int | None, str]] = [
        (
            None,
            _(
                "The name of topic {topic} is too long: {n} bytes, where {most} are the most."
            ).format(
                topic=f"{topic[:40]}…", n=f"{len(topic.encode()):,}", most=f"{LONGEST_TOPIC:,}"
            ),
        )
        for topic in long
    ]
    if faults:
        raise TrecFileFaults(path, faults)


def qrels_facts(grades: RelevanceGrades) -> dict[str, Any]:
    return {
        "n_lines": len(grades.grade),
        "n_topics": len(grades.topics),
        "n_documents": len(grades.documents),
        "n_relevant": int((grades.grade > 0).sum()),
        "n_unjudged": int((grades.grade < 0).sum()),
    }


def assessors_facts(grades: Mapping[str, RelevanceGrades]) -> dict[str, Any]:
    facts = [qrels_facts(one) for one in grades.values()]
    added = {
        name: sum(of_one[name] for of_one in facts)
        for name in ("n_lines", "n_relevant", "n_unjudged")
    }
    return {
        **added,
        "n_topics": len({topic for one in grades.values() for topic in one.topics}),
        "n_documents": len({name for one in grades.values() for name in one.documents}),
        "n_assessors": len(grades),
    }


# What is noted of a file of each kind, and its topics.
READERS: dict[CollectionFile.Kind, Callable[[Path], tuple[dict[str, Any], Sequence[str]]]] = {
    CollectionFile.Kind.RUN: _read_run,
    CollectionFile.Kind.QRELS: _read_qrels,
    CollectionFile.Kind.ASSESSORS: _read_assessors,
    CollectionFile.Kind.EMBEDDINGS: lambda path: (vectors_facts(path), ()),
    CollectionFile.Kind.CATALOGUE: lambda path: (catalogue_facts(path), ()),
}


def _n_tied(run: Run) -> int:
    score = in_single_precision(run.score)
    order = np.lexsort((score, run.topic))
    topic, score = run.topic[order], score[order]
    same: Integers = np.zeros(len(score) + 1, dtype=np.intp)
    same[1:-1] = (topic[1:] == topic[:-1]) & (score[1:] == score[:-1])
    return int(((same[1:] + same[:-1]) > 0).sum())


@transaction.atomic
def _note_facts(file: CollectionFile, facts: dict[str, Any], topics: Sequence[str]) -> None:
    Collection.objects.select_for_update().get(pk=file.collection_id)
    if facts.get("tag") and file.name == file.file_name:
        file.name = free_name(file.collection, file.kind, facts["tag"], of=file)
    for name, value in facts.items():
        setattr(file, name, value)
    file.faults, file.n_faults = [], 0
    file.is_confirmed = file.is_confirmed or not _has_omissions(file)
    file.save()
    FileTopic.objects.filter(file=file).delete()
    for some in batched(topics, ROWS_AT_ONCE):
        FileTopic.objects.bulk_create(FileTopic(file=file, topic=topic) for topic in some)


def _has_omissions(file: CollectionFile) -> bool:
    if not file.reading:
        return False
    report = ReadingReport.from_plain(file.reading)
    return bool({*report.left_out, *report.parts} - {BLANK_ROW.code} or report.missing)


def confirm_file(*, file: CollectionFile, actor: User | None) -> bool:
    """Use a file without the rows that its report leaves out; False if it did not wait for that."""
    with transaction.atomic():
        if not CollectionFile.objects.unconfirmed().filter(pk=file.pk).update(is_confirmed=True):
            return False
        record_action(file, "collection.confirm", actor)
    # How well sources fit it is computed by the job, which may run at once: after the commit.
    request_reading(collection=file.collection, files=[file], requested_by=actor)
    return True


def _note_faults(file: CollectionFile, faults: Sequence[tuple[int | None, str]]) -> None:
    file.faults = storable(
        [[line, problem[:LONGEST_FAULT]] for line, problem in faults[:FAULTS_KEPT]]
    )
    file.n_faults = len(faults)
    file.save()
    file.parts.all().delete()


Kind = CollectionFile.Kind
# As many samples as pages offer, the newest first.
SAMPLES = 20


def note_fits(collection: Collection) -> None:
    """Count the names that each source shares with each run and sample, for new pairs only."""
    files = list(collection.files.usable().defer("faults", "warnings"))
    sources = [file for file in files if file.kind in (Kind.CATALOGUE, Kind.EMBEDDINGS)]
    runs = [file for file in files if file.kind == Kind.RUN]
    samples = list(Result.objects.of(collection, ResultType.TARGETS)[:SAMPLES])
    for source in sources:
        known = set(source.fits.values_list("run", flat=True))
        known_samples = set(source.sample_fits.values_list("sample", flat=True))
        new = [run for run in runs if run.pk not in known]
        new_samples = [sample for sample in samples if sample.pk not in known_samples]
        if new or new_samples:
            _note_fits_of(source, new, new_samples)


def _note_fits_of(
    source: CollectionFile, runs: Sequence[CollectionFile], samples: Sequence[Result]
) -> None:
    with files_on_disk([source]) as [path]:
        names = names_in(path, source.kind)
    for file in runs:
        with files_on_disk([file]) as [path]:
            run = read_run(path)
        fit = FileFit(
            source=source,
            run=file,
            n_documents=len(run.documents),
            n_known=sum(name in names for name in run.documents),
            n_topics=len(run.topics),
            n_known_topics=sum(name in names for name in run.topics),
        )
        # Another job may hold the same two against each other at the same time.
        FileFit.objects.bulk_create([fit], ignore_conflicts=True)
    SampleFit.objects.bulk_create(
        [_sample_fit(source, sample, names) for sample in samples], ignore_conflicts=True
    )


def _sample_fit(source: CollectionFile, sample: Result, names: Set[str]) -> SampleFit:
    targets = SampledTarget.objects.filter(version=sample).values_list("topic", "docno")
    n_known = sum((docno or topic) in names for topic, docno in targets)
    return SampleFit(source=source, sample=sample, n_targets=len(targets), n_known=n_known)
