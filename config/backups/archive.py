"""The file of a backup: a ZIP with a table in each member, and a manifest of what they hold."""

import json
import os
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from io import TextIOWrapper
from pathlib import Path
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile

from config.backups.rows import Digest
from config.exceptions import BackupRefused, BackupUnreadable

FORMAT = 1
MANIFEST = "manifest.json"


@dataclass(frozen=True)
class StoredTable:
    """What a member of the file holds."""

    model: str
    columns: list[str]
    n_rows: int
    digest: str

    @property
    def member(self) -> str:
        return f"tables/{self.model}.jsonl"


@dataclass(frozen=True)
class Manifest:
    """What a backup is of."""

    made_at: str
    database: str
    # The last of each app, by app and name.
    migrations: list[list[str]]
    # A text that only the keys of then decrypt.
    key_check: str
    tables: list[StoredTable] = field(default_factory=list)
    format: int = FORMAT

    @property
    def n_rows(self) -> int:
        return sum(table.n_rows for table in self.tables)


@contextmanager
def new_archive(path: Path) -> Iterator[ZipFile]:
    """A file that appears under its name once it is whole, for its owner's eyes alone."""
    if path.exists():
        raise BackupRefused(
            f"{path} is there already. Name a file that is not.", code="file_exists"
        )
    partial = path.with_name(f"{path.name}.partial")
    try:
        descriptor = os.open(partial, os.O_CREAT | os.O_TRUNC | os.O_RDWR, 0o600)
        with os.fdopen(descriptor, "w+b") as file:
            with ZipFile(file, "w", ZIP_DEFLATED, compresslevel=6) as archive:
                yield archive
            file.flush()
            os.fsync(file.fileno())
        partial.rename(path)
    except OSError as error:
        raise BackupRefused(
            f"{path} cannot be written: {error.strerror or error}.", code="not_writable"
        ) from error
    finally:
        partial.unlink(missing_ok=True)


def write_table(
    archive: ZipFile, model: str, columns: list[str], lines: Iterable[str]
) -> StoredTable:
    """Write a table's lines and return what was written."""
    digest = Digest()
    member = StoredTable(model, columns, 0, "").member
    with archive.open(member, "w", force_zip64=True) as file:
        for line in lines:
            digest.add(line)
            file.write(f"{line}\n".encode())
    return StoredTable(model, columns, digest.n_rows, str(digest))


def write_manifest(archive: ZipFile, manifest: Manifest) -> None:
    archive.writestr(MANIFEST, json.dumps(asdict(manifest), indent=1) + "\n")


@contextmanager
def opened_archive(path: Path) -> Iterator[tuple[ZipFile, Manifest]]:
    """A backup and its manifest; BackupUnreadable says what is wrong with it."""
    try:
        with ZipFile(path) as archive:
            yield archive, _manifest(archive)
    except OSError as error:
        raise BackupUnreadable(
            f"{path} cannot be read: {error.strerror or error}.", code="not_readable"
        ) from error
    except (BadZipFile, zlib.error, EOFError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise BackupUnreadable(
            f"{path} is no backup, or is damaged: {error}.", code="damaged"
        ) from error


def read_table(archive: ZipFile, table: StoredTable) -> Iterator[str]:
    """A table's lines; BackupUnreadable at the end where they are not what the manifest says."""
    digest = Digest()
    if table.member not in archive.namelist():
        raise BackupUnreadable(
            f"{archive.filename} lacks {table.member}, which its manifest names. Use another "
            "backup.",
            code="missing_table",
        )
    with archive.open(table.member) as file, TextIOWrapper(file, "utf-8", newline="\n") as text:
        for line in text:
            digest.add(line.rstrip("\n"))
            yield line
    if (digest.n_rows, str(digest)) != (table.n_rows, table.digest):
        raise BackupUnreadable(
            f"{table.member} has {digest.n_rows} rows that are not the {table.n_rows} of the "
            "manifest. The file was changed; use another backup.",
            code="changed_table",
        )


def _manifest(archive: ZipFile) -> Manifest:
    if MANIFEST not in archive.namelist():
        raise BackupUnreadable(
            f"{archive.filename} is no backup: it has no {MANIFEST}.", code="missing_manifest"
        )
    stored = json.loads(archive.read(MANIFEST))
    if stored.get("format") != FORMAT:
        raise BackupUnreadable(
            f"This is a backup of format {stored.get('format')}; this version reads {FORMAT}.",
            code="unknown_format",
        )
    return Manifest(**stored | {"tables": [StoredTable(**each) for each in stored["tables"]]})
