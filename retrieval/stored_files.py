import gzip
import shutil
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Sum
from django.utils.translation import gettext as _

from accounts.audit import record
from accounts.models import User
from annotation.exceptions import AnnotationError
from annotation.readers.archives import (
    PARQUET_MARK,
    READ_AT_ONCE,
    UNPACKING_ERRORS,
    require_few_members,
    short_file_name,
    unpacked,
)
from annotation.readers.pictures import NoPictures
from annotation.readers.rows import storable
from annotation.uploads import PART_BYTES, SentFile, plain_file_name, require_size
from presentation.files import reason_of
from presentation.libraries import pa, pq
from retrieval.exceptions import CollectionUnfit, PoolFileFaults
from retrieval.models import Collection, CollectionFile, FilePart
from retrieval.models.collections import NAME_LENGTH
from retrieval.pools.catalogue import Catalogue, read_catalogue
from retrieval.pools.vectors import Vectors, read_vectors
from retrieval.trec_files import (
    RelevanceGrades,
    Run,
    each_row,
    read_assessors,
    read_qrels,
    read_run,
)
from retrieval.trec_layouts import (
    decoded_start,
    find_layout,
    guess_kind,
    is_json,
    is_simulated_name,
    problem_of_table,
    problem_of_text,
    problem_of_vectors,
)

Kind = CollectionFile.Kind
KINDS = {"run": Kind.RUN, "qrels": Kind.QRELS, "qrels_jg": Kind.ASSESSORS}
GZIP, ZIP = b"\x1f\x8b", b"PK"
# A collection may hold so many of the largest files, and so many files of any size.
MOST_LARGEST, MOST_FILES = 20, 1000
# Text takes so many times the room of what gzip makes of it, at most.
MOST_UNPACKED = 10
DESCRIPTIONS = ("name", "family", "made_by", "assessor", "round", "rule")


@transaction.atomic
def store_file(
    *,
    collection: Collection,
    file: SentFile,
    actor: User | None,
    kind: str = "",
    family: str = "",
    made_by: str = "",
    is_confirmed: bool = True,
) -> CollectionFile:
    """Keep a run or qrels that somebody sent; which of them it is, its columns say.

    `made_by` is who judged qrels. A mark of simulated answers in the file is stronger.
    A file that is not confirmed is not used until it is read and leaves nothing out, or somebody
    confirms what it leaves out.
    """
    try:
        require_size(file)
    except AnnotationError as refused:
        raise CollectionUnfit(str(refused), code=refused.code) from None
    # One at a time: the room and the names of a collection are looked at and then taken.
    Collection.objects.select_for_update().get(pk=collection.pk)
    _require_room(collection, file.size or 0)
    digest = sha256()
    for part in file.chunks(PART_BYTES):
        digest.update(part)
    start = next(iter(file.chunks(PART_BYTES)))
    _require_sort(kind, start)
    kind = kind or _kind_of(start)
    _require_new(collection, kind, digest.hexdigest())
    name = plain_file_name(file.name)
    row = CollectionFile.objects.create(
        collection=collection,
        kind=kind,
        name=free_name(collection, kind, name),
        family=family[:NAME_LENGTH],
        made_by=_judges(kind, start, made_by),
        file_name=name,
        n_bytes=file.size or 0,
        sha256=digest.hexdigest(),
        uploaded_by=actor,
        is_confirmed=is_confirmed,
    )
    for position, part in enumerate(file.chunks(PART_BYTES)):
        FilePart.objects.create(file=row, position=position, content=part)
    record_action(row, "collection.file", actor)
    return row


def _judges(kind: str, start: bytes, made_by: str) -> str:
    """Who judged: as the file says, or else as its sender does."""
    if kind not in (Kind.QRELS, Kind.ASSESSORS):
        return CollectionFile.MadeBy.PEOPLE
    for cells in map(bytes.split, _text_start(start).splitlines()):
        if len(cells) == 4 and is_simulated_name(cells[1].decode(errors="replace")):
            return CollectionFile.MadeBy.SIMULATED
    return made_by or CollectionFile.MadeBy.UNKNOWN


def _require_room(collection: Collection, n_bytes: int) -> None:
    files = collection.files.aggregate(n=Sum("n_bytes"))
    most = MOST_LARGEST * settings.UPLOAD_MAX_MEGABYTES
    if (files["n"] or 0) + n_bytes > most * 1024**2:
        raise CollectionUnfit(
            _("The collection's files have no more than {n} MiB in all. Remove some first.").format(
                n=f"{most:,}"
            )
        )
    if collection.files.count() >= MOST_FILES:
        raise CollectionUnfit(
            _("A collection has no more than {n} files. Remove some first.").format(
                n=f"{MOST_FILES:,}"
            )
        )


def _require_new(collection: Collection, kind: str, digest: str) -> None:
    same = collection.files.filter(kind=kind, sha256=digest).first()
    if same is not None:
        text = _("The same file is here already, as {name}.").format(name=same.name)
        raise CollectionUnfit(text, code="duplicate_file")


def _require_sort(kind: str, start: bytes) -> None:
    """Refuse a picture or a workbook, and a run that is sent as qrels, before it is stored."""
    if kind in (Kind.CATALOGUE, Kind.EMBEDDINGS):
        problem = (problem_of_table if kind == Kind.CATALOGUE else problem_of_vectors)(start)
    elif kind == Kind.AUDITED:
        return
    else:
        start = _text_start(start)
        problem = problem_of_text(start) or _problem_of_columns(kind, start)
    if problem:
        raise CollectionUnfit(problem[0].upper() + problem[1:], code="wrong_content")


def _problem_of_columns(kind: str, start: bytes) -> str:
    found = guess_kind(start)
    if found is None or KINDS[found] == kind or is_json(start):
        return ""
    layout = find_layout(start, found)
    width = 0 if layout.is_table else len(layout.columns)
    if kind == Kind.RUN and width == 4:
        return _(
            "it has four columns, as qrels have (topic iteration docno grade); a run has six. "
            "Send it as qrels."
        )
    if kind in (Kind.QRELS, Kind.ASSESSORS) and width == 6:
        return _(
            "it has six columns, as a run has (topic Q0 docno rank score tag); qrels have four. "
            "Send it as a run."
        )
    return ""


def _text_start(start: bytes) -> bytes:
    if start.startswith(GZIP):
        try:
            start = zlib.decompressobj(wbits=31).decompress(start, PART_BYTES)
        except zlib.error:
            return b""
    return decoded_start(start)


def _kind_of(start: bytes) -> str:
    kind = guess_kind(_text_start(start))
    if kind is not None:
        return KINDS[kind]
    raise CollectionUnfit(
        _(
            "It is neither a run, of six columns (topic Q0 docno rank score tag), nor qrels, of "
            "four (topic iteration docno grade). Say which of the two it is to see all its faults."
        ),
        code="unknown_kind",
    )


def free_name(
    collection: Collection, kind: str, name: str, of: CollectionFile | None = None
) -> str:
    others = collection.files.filter(kind=kind)
    if of is not None:
        others = others.exclude(pk=of.pk)
    taken = set(others.values_list("name", flat=True))
    base = name.strip()[: NAME_LENGTH - 5] or kind
    n, free = 1, base
    while free in taken:
        n += 1
        free = f"{base} ({n})"
    return free


@transaction.atomic
def describe_file(*, file: CollectionFile, actor: User | None, **descriptions: str) -> None:
    values = {name: descriptions[name].strip() for name in DESCRIPTIONS if name in descriptions}
    if not values.get("name", file.name):
        raise CollectionUnfit(_("A file needs a name."))
    # One at a time, as where files are stored: a name is looked for and then taken.
    Collection.objects.select_for_update().get(pk=file.collection_id)
    others = file.collection.files.filter(kind=file.kind).exclude(pk=file.pk)
    if others.filter(name=values.get("name", file.name)).exists():
        raise CollectionUnfit(
            _("Another file is called {name} already.").format(name=values["name"]),
            code="name_taken",
        )
    for name, value in values.items():
        setattr(file, name, value)
    file.save(update_fields=list(values))
    record_action(file, "collection.describe", actor, values)


@transaction.atomic
def remove_file(*, file: CollectionFile, actor: User | None) -> None:
    """Delete a file with its content; what was computed of it stays, under the file's name."""
    record_action(file, "collection.remove", actor)
    file.delete()


def record_action(
    file: CollectionFile, action: str, actor: User | None, details: dict[str, Any] | None = None
) -> None:
    named = {"file": file.file_name, "kind": file.kind, "sha256": file.sha256}
    record(
        team=file.collection.team,
        actor=actor,
        action=action,
        subject=file.collection.slug,
        details=named | (details or {}),
    )


@contextmanager
def files_on_disk(files: Sequence[CollectionFile]) -> Iterator[list[Path]]:
    """The files' contents in a folder, each under its own name, until it is closed."""
    with TemporaryDirectory(prefix="assay-collection-") as folder:
        paths = []
        for position, file in enumerate(files):
            path = Path(folder) / str(position) / short_file_name(file.file_name)
            path.parent.mkdir()
            with path.open("wb") as copy:
                for part in file.parts.order_by("position").iterator(chunk_size=4):
                    copy.write(part.content)
            paths.append(path)
        yield paths


def is_packed(file: CollectionFile) -> bool:
    """Whether it is compressed: what is packed can be a thousand times as large."""
    first = file.parts.order_by("position").first()
    return first is not None and bytes(first.content[:4]).startswith((GZIP, ZIP, PARQUET_MARK))


def require_bearable(path: Path) -> None:
    with path.open("rb") as content:
        if content.read(2) != GZIP:
            return
    most = MOST_UNPACKED * settings.UPLOAD_MAX_MEGABYTES * 1024**2
    n_bytes = 0
    with gzip.open(path) as unpacked:
        while part := unpacked.read(PART_BYTES):
            n_bytes += len(part)
            if n_bytes > most:
                raise CollectionUnfit(
                    _("It has more than {n} MiB once unpacked. Split it by topic.").format(
                        n=f"{most // 1024**2:,}"
                    )
                )


@contextmanager
def opened_files(
    files: Sequence[CollectionFile],
) -> Iterator[tuple[list[Run], dict[str, RelevanceGrades]]]:
    """The runs, each with its file's name for a tag, and the qrels by name."""
    with files_on_disk(files) as paths:
        pairs = list(zip(files, paths, strict=True))
        runs = [
            replace(read_run(path), tag=file.name) for file, path in pairs if file.kind == Kind.RUN
        ]
        qrels = {
            file.name: replace(read_qrels(path), path=Path(file.name))
            for file, path in pairs
            if file.kind == Kind.QRELS
        }
        yield runs, qrels


def assessors_grades(files: Sequence[CollectionFile]) -> dict[str, RelevanceGrades]:
    """Each assessor's qrels of the file among these that names several; empty without one."""
    with files_on_disk([file for file in files if file.kind == Kind.ASSESSORS]) as paths:
        return {name: one for path in paths for name, one in read_assessors(path).items()}


ZIP_MEMBER = b"PK\x03\x04"
MOST_TIMES_UNPACKED = 5
BYTES_A_NUMBER = 4
# The memory that a short name takes in a lookup table.
BYTES_A_NAME = 100


@contextmanager
def opened_catalogue(path: Path) -> Iterator[Catalogue]:
    most_bytes = MOST_TIMES_UNPACKED * settings.UPLOAD_MAX_MEGABYTES * 1024**2
    with unpacked(path, most_bytes=most_bytes) as table:
        yield read_catalogue(table.path, pictures=table.pictures)


@contextmanager
def vectors_of(path: Path) -> Iterator[Vectors]:
    with path.open("rb") as file:
        is_zip = file.read(4) == ZIP_MEMBER
    most_rows = MOST_TIMES_UNPACKED * settings.UPLOAD_MAX_MEGABYTES * 1024**2 // BYTES_A_NAME
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
    if (
        max(n * BYTES_A_NUMBER, n_bytes)
        > MOST_TIMES_UNPACKED * settings.UPLOAD_MAX_MEGABYTES * 1024**2
    ):
        most = MOST_TIMES_UNPACKED * settings.UPLOAD_MAX_MEGABYTES
        raise PoolFileFaults.of_one(
            path,
            _("unpacked it has more than {n} MiB.").format(n=f"{most:,}"),
            "too_large_unpacked",
        )


def _unzipped(path: Path, folder: Path) -> Path:
    most = MOST_TIMES_UNPACKED * settings.UPLOAD_MAX_MEGABYTES * 1024**2
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
    most_bytes = MOST_TIMES_UNPACKED * settings.UPLOAD_MAX_MEGABYTES * 1024**2
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
