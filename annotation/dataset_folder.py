"""A study as a dataset: a card and Parquet tables, as a folder or a zip of it.

No table names a worker or an amount of money, so whoever may export may have it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, cast
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

from django.db.models import Count, Q

from annotation.dataset_card import (
    UNKNOWN_LICENSE,
    dataset_card,
    require_license,
)
from annotation.dataset_tables import counts_of_apps, dataset_tables
from annotation.exceptions import FolderUnusable
from annotation.models import Candidate, Judgment, Study, Submission
from presentation.files import write_whole
from presentation.row_files import PartBuffer, RowFile, row_parquet

# A dataset of the same study is the same file, whenever it was made.
TIME = (1980, 1, 1, 0, 0, 0)
CARD = "README.md"


def dataset_counts(study: Study) -> dict[str, int]:
    submissions = Submission.objects.of(study).aggregate(
        submissions=Count("pk"),
        rejected=Count("pk", filter=Q(status=Submission.Status.REJECTED)),
        simulated=Count("pk", filter=Q(is_simulated=True)),
    )
    return {
        **submissions,
        "judgments": Judgment.objects.of(study).accepted().count(),
        "annotators": study.annotators.count(),
        "candidates": Candidate.objects.filter(item__study=study).count(),
        "items": study.items.count(),
        "questions": study.questions.count(),
        **counts_of_apps(study),
    }


def write_dataset(study: Study, folder: Path, *, license: str = UNKNOWN_LICENSE) -> list[Path]:
    """Write the folder and return its files, the card first."""
    require_license(license)
    tables = dataset_tables(study)
    try:
        (folder / "data").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FolderUnusable(f"{folder} cannot be made: {error.strerror}.") from None
    card = folder / CARD
    write_whole(card, dataset_card(study, tables, dataset_counts(study), license=license))
    paths = [card]
    for name, table in tables.items():
        path = folder / "data" / f"{name}.parquet"
        write_whole(path, row_parquet(table))
        paths.append(path)
    return paths


def dataset_zip(study: Study, license: str = UNKNOWN_LICENSE) -> Iterator[bytes]:
    require_license(license)
    tables = dataset_tables(study)
    return _zipped(
        study.slug,
        tables,
        # Counted once the tables are out: of a million judgments that takes a while, and whoever
        # waits for a file waits for its first byte.
        lambda: dataset_card(study, tables, dataset_counts(study), license=license),
    )


def _zipped(slug: str, tables: dict[str, RowFile], card: Callable[[], str]) -> Iterator[bytes]:
    sink = PartBuffer()
    with ZipFile(cast(IO[bytes], sink), "w") as archive:
        for name, table in tables.items():
            # Parquet is compressed already.
            where = f"{slug}/data/{name}.parquet"
            yield from _member(archive, sink, where, ZIP_STORED, row_parquet(table))
        yield from _member(archive, sink, f"{slug}/{CARD}", ZIP_DEFLATED, [card().encode()])
    yield from sink.drain()


def _member(
    archive: ZipFile, sink: PartBuffer, name: str, compression: int, parts: Iterable[bytes]
) -> Iterator[bytes]:
    info = ZipInfo(name, TIME)
    info.compress_type = compression
    with archive.open(info, "w", force_zip64=True) as member:
        for part in parts:
            member.write(part)
            yield from sink.drain()
