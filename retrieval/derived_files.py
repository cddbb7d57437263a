import shutil
import zipfile
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from django.conf import settings
from django.core.files import File
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from annotation.models import Study
from annotation.uploads import SentFile
from metrics.scorers.checkpoints import Checkpoint
from retrieval.exceptions import CollectionUnfit, PoolUnfit
from retrieval.exports.assessors import assessor_lines
from retrieval.exports.qrels import judgment_source, qrels_of
from retrieval.file_readings import collection_of, note_fits, read_file, subject_of
from retrieval.models import Collection, CollectionFile
from retrieval.pools.encoding import Part, encode_catalogue
from retrieval.pools.vectors import Vectors, write_vectors
from retrieval.rankings.label_sets import label_sets
from retrieval.stored_files import (
    assessors_grades,
    describe_file,
    files_on_disk,
    free_name,
    opened_catalogue,
    store_file,
)
from retrieval.trec_files import RelevanceGrades
from retrieval.trec_layouts import iteration_of
from work.execution import RunningJob
from work.models import Job
from work.tasks import request_job

Kind = CollectionFile.Kind
MERGED_QRELS = "qrels_of_assessors"
# As the rules of a study's qrels are called, over those who judged a document.
RULES = {"majority": "majority", "any": "union", "all": "intersection"}


def merged(grades: Mapping[str, RelevanceGrades], rule: str) -> RelevanceGrades:
    """Assessors' grades as one qrels: the highest grade that more than half, any or all of those
    who judged a document reached; -1 where nobody did."""
    topics = sorted({topic for each in grades.values() for topic in each.topics}, key=str.encode)
    return label_sets(grades, topics).derived(RULES[rule])


def qrels_lines(qrels: RelevanceGrades, *, is_simulated: bool = False) -> Iterator[str]:
    iteration = iteration_of(is_simulated)
    for topic, document, grade in zip(qrels.topic, qrels.document, qrels.grade, strict=True):
        yield f"{qrels.topics[topic]} {iteration} {qrels.documents[document]} {grade}\n"


def request_merged_qrels(
    *, collection: Collection, file: CollectionFile, rule: str, actor: User | None
) -> Job:
    return request_job(
        kind=MERGED_QRELS,
        subject=subject_of(collection),
        arguments={"collection": collection.pk, "file": file.pk, "rule": rule},
        requested_by=actor,
    )


def make_merged_qrels(running: RunningJob) -> str:
    collection, rule = collection_of(running), running.arguments["rule"]
    files = collection.files.usable().filter(kind=Kind.ASSESSORS)
    if (source := files.filter(pk=running.arguments["file"]).first()) is None:
        raise CollectionUnfit(_("A file was removed meanwhile. Choose the files again."))
    qrels = merged(assessors_grades([source]), rule)
    is_simulated = source.made_by == CollectionFile.MadeBy.SIMULATED
    text = "".join(qrels_lines(qrels, is_simulated=is_simulated)).encode()
    content: SentFile = SimpleUploadedFile(f"{source.file_name}.{rule}.qrels", text)
    # Files by two rules are still the same assessors' judgments.
    described = {"rule": rule, "round": source.round, "assessor": source.name}
    described["made_by"] = source.made_by
    with transaction.atomic():
        name = f"{source.name}, {rule}"
        file = _store(running, collection, content, Kind.QRELS, name, **described)
    file.refresh_from_db()
    read_file(file)
    return _("{name}: {n} grades.").format(name=file.name, n=f"{len(qrels.grade):,}")


STUDY_QRELS = "qrels_of_study"
# In place of a rule: each annotator's own grades, of every round, in one file.
OWN = "own"


def request_study_qrels(
    *, collection: Collection, study: Study, rule: str, round: int, actor: User | None
) -> Job:
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
    collection, arguments = collection_of(running), running.arguments
    study = collection.studies.get(pk=arguments["study"])
    rule, round = arguments["rule"], arguments["round"]
    if rule == OWN:
        # Each annotator's own grades are of no rule and of every round.
        kind, origin, name = Kind.ASSESSORS, {}, _("{study}, each annotator")
        lines = assessor_lines(judgment_source(study, round=round))
    else:
        kind, origin = Kind.QRELS, {"rule": rule, "round": str(round)}
        name = _("{study}, round {round}, {rule}")
        lines = qrels_of(judgment_source(study, rule=rule, round=round, with_unjudged=True)).lines()
    text = "".join(lines).encode()
    # An earlier attempt of the job may have stored the file without reading it.
    digest = sha256(text).hexdigest()
    stored = collection.files.filter(kind=kind, sha256=digest, study=study, **origin)
    if (file := stored.first()) is None:
        name = name.format(study=study.title[:60], round=round, rule=rule)
        content: SentFile = SimpleUploadedFile(f"{study.slug}-{round}.qrels", text)
        with transaction.atomic():
            by = CollectionFile.MadeBy.PEOPLE
            file = _store(running, collection, content, kind, name, judged_by=by, **origin)
            CollectionFile.objects.filter(pk=file.pk).update(study=study)
        file.refresh_from_db()
    if file.n_lines is None and not file.n_faults:
        read_file(file)
    n_lines = text.count(b"\n")
    return _("{name}: {n} grades.").format(name=file.name, n=f"{n_lines:,}")


def _store(
    running: RunningJob,
    collection: Collection,
    content: SentFile,
    kind: CollectionFile.Kind,
    name: str,
    *,
    judged_by: str = "",
    **described: str,
) -> CollectionFile:
    """Store a file under a name that is free, with what it says of itself.

    `judged_by` is used unless the file has the mark of simulated answers.
    """
    actor = running.job.requested_by
    file = store_file(
        collection=collection, file=content, actor=actor, kind=kind, made_by=judged_by
    )
    describe_file(
        file=file, actor=actor, name=free_name(collection, kind, name, of=file), **described
    )
    return file


MAKE_VECTORS = "make_vectors"
# The time of zip members, fixed so that the same vectors always make the same file.
FIRST_DAY = (1980, 1, 1, 0, 0, 0)


def offered_models() -> dict[str, str]:
    return {Checkpoint(model).label: model for model in settings.EMBEDDING_MODELS}


def request_vectors(
    *, catalogue: CollectionFile, part: Part, model: str, actor: User | None
) -> Job:
    if model not in offered_models():
        raise PoolUnfit(_("This site offers no model {name}.").format(name=model))
    return request_job(
        kind=MAKE_VECTORS,
        subject=subject_of(catalogue.collection),
        arguments={
            "collection": catalogue.collection_id,
            "catalogue": catalogue.pk,
            "part": part,
            "model": model,
        },
        requested_by=actor,
    )


def make_collection_vectors(running: RunningJob) -> str:
    arguments = running.arguments
    collection = collection_of(running)
    part, model = arguments["part"], offered_models().get(arguments["model"])
    catalogue = collection.files.usable().filter(pk=arguments["catalogue"]).first()
    if catalogue is None:
        raise PoolUnfit(_("The catalogue was removed."))
    if model is None:
        raise PoolUnfit(
            _("This site offers no model {name} any more.").format(name=arguments["model"])
        )
    with TemporaryDirectory(prefix="assay-vectors-") as folder:
        vectors = _vectors(running, catalogue, model, part)
        path = _zipped(vectors, Path(folder), f"{arguments['model']}-{part}")
        signature = f"{vectors.signature}|catalogue:sha256:{catalogue.sha256[:16]}"
        file = _store_vectors(collection, path, signature, running.job.requested_by)
    n, n_dimensions = vectors.array.shape
    return _("{name}: {n} vectors of {dimensions} numbers.").format(
        name=file.name, n=f"{n:,}", dimensions=n_dimensions
    )


def _vectors(running: RunningJob, file: CollectionFile, model: str, part: Part) -> Vectors:
    with files_on_disk([file]) as (path,), opened_catalogue(path) as catalogue:
        return encode_catalogue(
            catalogue,
            model,
            part=part,
            most_bytes=settings.UPLOAD_MAX_MEGABYTES * 1024**2,
            progress=running.progress(_("block")),
        )


def _zipped(vectors: Vectors, folder: Path, name: str) -> Path:
    array = folder / "vectors.npy"
    write_vectors(array, vectors)
    path = folder / f"{name}.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for member in (array, array.with_suffix(".ids")):
            info = zipfile.ZipInfo(member.name, FIRST_DAY)
            with member.open("rb") as source, archive.open(info, "w") as copy:
                shutil.copyfileobj(source, copy, 1 << 20)
    return path


def _store_vectors(
    collection: Collection, path: Path, signature: str, actor: User | None
) -> CollectionFile:
    kind = Kind.EMBEDDINGS
    existing = collection.files.filter(kind=kind, signature=signature).first()
    if existing is None:
        with transaction.atomic(), path.open("rb") as content:
            sent: Any = File(content, name=path.name)
            existing = store_file(collection=collection, file=sent, actor=actor, kind=kind)
            existing.name = free_name(collection, kind, path.stem, of=existing)
            existing.signature = signature
            existing.save(update_fields=["name", "signature"])
    if existing.n_lines is None:
        read_file(existing)
        note_fits(collection)
    return existing
