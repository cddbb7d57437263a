"""Embeddings of a catalogue that a model of this site makes, kept as a file of the collection."""

from __future__ import annotations

import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.files import File
from django.db import transaction
from django.utils.translation import gettext as _

from metrics.scorers.checkpoints import Checkpoint
from retrieval.collection_files import files_on_disk, free_name, store_file
from retrieval.exceptions import PoolUnfit
from retrieval.file_fits import note_fits
from retrieval.file_readings import collection_of, read_file, subject_of
from retrieval.models import CollectionFile
from retrieval.pools.encoding import Part, encode_catalogue
from retrieval.pools.vectors import Vectors, write_vectors
from retrieval.source_files import opened_catalogue
from work.request import request_job

if TYPE_CHECKING:
    from accounts.models import User
    from retrieval.models import Collection
    from work.execution import RunningJob
    from work.models import Job

MAKE_VECTORS = "make_vectors"
KIND = CollectionFile.Kind.EMBEDDINGS
FIRST_DAY = (1980, 1, 1, 0, 0, 0)
"""Of a zip's clock: the same vectors are the same file whenever they are made."""


def offered_models() -> dict[str, str]:
    """The models that pages offer, by their names without a path of this machine."""
    return {Checkpoint(model).label: model for model in settings.EMBEDDING_MODELS}


def request_vectors(
    *, catalogue: CollectionFile, part: Part, model: str, actor: User | None
) -> Job:
    """Have vectors made in the background of a catalogue's texts or pictures."""
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
    """Make the vectors of a job and keep them; the same ones are kept once."""
    arguments = running.arguments
    collection = collection_of(running)
    part, model = arguments["part"], offered_models().get(arguments["model"])
    catalogue = collection.files.usable().filter(pk=arguments["catalogue"]).first()
    if catalogue is None:
        raise PoolUnfit(_("The catalogue was removed."))
    if model is None:
        text = _("This site offers no model {name} any more.")
        raise PoolUnfit(text.format(name=arguments["model"]))
    with TemporaryDirectory(prefix="assay-vectors-") as folder:
        vectors = _vectors(running, catalogue, model, part)
        path = _zipped(vectors, Path(folder), f"{arguments['model']}-{part}")
        file = _store(collection, path, _signature(vectors, catalogue), running.job.requested_by)
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


def _signature(vectors: Vectors, catalogue: CollectionFile) -> str:
    return f"{vectors.signature}|catalogue:sha256:{catalogue.sha256[:16]}"


def _zipped(vectors: Vectors, folder: Path, name: str) -> Path:
    """A zip as somebody would upload it."""
    array = folder / "vectors.npy"
    write_vectors(array, vectors)
    path = folder / f"{name}.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for member in (array, array.with_suffix(".ids")):
            info = zipfile.ZipInfo(member.name, FIRST_DAY)
            with member.open("rb") as source, archive.open(info, "w") as copy:
                while part := source.read(1 << 20):
                    copy.write(part)
    return path


def _store(
    collection: Collection, path: Path, signature: str, actor: User | None
) -> CollectionFile:
    """The file of these vectors; that of an attempt before this one, where it was kept already."""
    existing = collection.files.filter(kind=KIND, signature=signature).first()
    if existing is None:
        with transaction.atomic(), path.open("rb") as content:
            sent: Any = File(content, name=path.name)
            existing = store_file(collection=collection, file=sent, actor=actor, kind=KIND)
            existing.name = free_name(collection, KIND, path.stem, of=existing)
            existing.signature = signature
            existing.save(update_fields=["name", "signature"])
    if existing.n_lines is None:
        read_file(existing)
        note_fits(collection)
    return existing
