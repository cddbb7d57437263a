import shutil
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _

from annotation.readers.archives import (
    READ_AT_ONCE,
    UNPACKING_ERRORS,
    require_few_members,
    unpacked,
)
from annotation.readers.pictures import NoPictures
from annotation.readers.rows import storable
from presentation.files import reason_of
from presentation.libraries import pa, pq
from retrieval.exceptions import PoolFileFaults
from retrieval.models import CollectionFile
from retrieval.pools.catalogue import Catalogue, read_catalogue
from retrieval.pools.vectors import Vectors, read_vectors
from retrieval.trec_files import Run, each_row

ZIP = b"PK\x03\x04"
MOST_UNPACKED = 5
BYTES_A_NUMBER = 4
# The memory that a short name takes in a lookup table.
BYTES_A_NAME = 100


@contextmanager
def opened_catalogue(path: Path) -> Iterator[Catalogue]:
    most_bytes = MOST_UNPACKED * settings.UPLOAD_MAX_MEGABYTES * 1024**2
    with unpacked(path, most_bytes=most_bytes) as table:
        yield read_catalogue(table.path, pictures=table.pictures)


@contextmanager
def vectors_of(path: Path) -> Iterator[Vectors]:
    with path.open("rb") as file:
        is_zip = file.read(4) == ZIP
    most_rows = MOST_UNPACKED * settings.UPLOAD_MAX_MEGABYTES * 1024**2 // BYTES_A_NAME
    if not is_zip:
        _require_bearable(path)
        yield read_vectors(path, most_rows=most_rows)
        return
    with TemporaryDirectory(prefix="assay-vectors-") as folder:
        yield read_vectors(_unzipped(path, Path(folder)), most_rows=most_rows)


def _require_bearable(path: Path) -> None:
    """Refuse Parquet of a few bytes whose equal vectors fill a disk once they are read."""
    try:
        about = pq.read_metadata(path)
    except (pa.ArrowException, OSError):
        return  # what it is instead, its reader says
    groups = (about.row_group(number) for number in range(about.num_row_groups))
    columns = [group.column(i) for group in groups for i in range(group.num_columns)]
    n = max(sum(column.num_values for column in columns), about.num_rows)
    # texts that are written out, and pages that are pressed to a thousandth of themselves
    n_bytes = sum(column.total_uncompressed_size for column in columns)
    if max(n * BYTES_A_NUMBER, n_bytes) > MOST_UNPACKED * settings.UPLOAD_MAX_MEGABYTES * 1024**2:
        most = MOST_UNPACKED * settings.UPLOAD_MAX_MEGABYTES
        raise PoolFileFaults.of_one(
            path,
            _("unpacked it has more than {n} MiB.").format(n=f"{most:,}"),
            "too_large_unpacked",
        )


def _unzipped(path: Path, folder: Path) -> Path:
    most = MOST_UNPACKED * settings.UPLOAD_MAX_MEGABYTES * 1024**2
    require_few_members(path)
    try:
        with zipfile.ZipFile(path) as archive:
            members = [one for one in archive.infolist() if not one.is_dir()]
            arrays = [one for one in members if one.filename.endswith(".npy")]
            names = [one for one in members if one.filename.endswith((".ids", ".txt"))]
            if len(arrays) != 1 or len(names) != 1:
                raise PoolFileFaults.of_one(
                    path,
                    _("a zip of vectors holds one .npy file and one .ids file of names."),
                    "no_array",
                )
            if sum(one.file_size for one in members) > most:
                raise PoolFileFaults.of_one(
                    path,
                    _("unpacked it has more than {n} MiB.").format(n=f"{most // 1024**2:,}"),
                    "too_large_unpacked",
                )
            array, ids = folder / "vectors.npy", folder / "vectors.ids"
            for member, copy in ((arrays[0], array), (names[0], ids)):
                with archive.open(member) as source, copy.open("wb") as target:
                    shutil.copyfileobj(source, target, READ_AT_ONCE)
    except UNPACKING_ERRORS as error:
        if isinstance(error, OSError) and error.errno:  # of the disk, not of what is read
            raise
        raise PoolFileFaults.of_one(
            path,
            _("it is not a zip that can be unpacked: {error}.").format(error=reason_of(error)),
            "zip_damaged",
        ) from None
    return array


def names_in(path: Path, kind: str) -> frozenset[str]:
    if kind == CollectionFile.Kind.EMBEDDINGS:
        with vectors_of(path) as vectors:
            return frozenset(vectors.names)
    most_bytes = MOST_UNPACKED * settings.UPLOAD_MAX_MEGABYTES * 1024**2
    with unpacked(path, most_bytes=most_bytes) as table:
        return frozenset(read_catalogue(table.path, pictures=NoPictures()).documents)


def vectors_facts(path: Path) -> dict[str, Any]:
    with vectors_of(path) as vectors:
        n, n_dimensions = vectors.array.shape
        try:
            for _start, _block in vectors.blocks():
                pass
        except ValueError as refused:
            raise PoolFileFaults(path, [(None, f"{reason_of(refused)}.")]) from None
        return {"n_lines": n, "n_documents": n, "n_dimensions": n_dimensions}


def catalogue_facts(path: Path) -> dict[str, Any]:
    with opened_catalogue(path) as catalogue:
        n = len(catalogue.documents)
        unshown = unshown_pictures(catalogue)
        return {
            "n_lines": n,
            "n_documents": n,
            "n_warnings": len(unshown),
            "warnings": storable([list(one) for one in unshown[:WARNINGS_KEPT]]),
        }


WARNINGS_KEPT = 20


def contradicting_lines(run: Run, most: int) -> Iterator[tuple[int, str]]:
    pairs = run.contradicting[:most]
    if not len(pairs):
        return
    positions = set(pairs.ravel().tolist())
    lines = islice(each_row(run.path, "run"), max(positions) + 1)
    rows = {at: row for at, row in enumerate(lines) if at in positions}
    for at, before in pairs.tolist():
        (number, line), (_number, other) = rows[at], rows[before]
        yield (
            number,
            f"document {line['docno']} of topic {line['topic']} has rank {line['rank']} and score "
            f"{line['score']}, which is more than the {other['score']} of {other['docno']} at rank "
            f"{other['rank']}.",
        )


def unshown_pictures(catalogue: Catalogue) -> list[tuple[int, str]]:
    return [
        (catalogue.lines[docno], f"{docno}: {document.problem}")
        for docno, document in catalogue.documents.items()
        if document.problem
    ]
