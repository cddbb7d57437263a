"""The file of a backup: a ZIP with a table in each member, and a manifest of what they hold."""

import base64
import json
import os
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from hashlib import blake2b
from io import TextIOWrapper
from pathlib import Path
from typing import Any
from uuid import UUID
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile

from django.db import connection
from django.db.models import BinaryField, Field, JSONField, Model
from django.utils.duration import duration_string

from error_codes import CodedError, require

FORMAT = 1
MANIFEST = "manifest.json"


@dataclass(frozen=True)
class StoredTable:
    model: str
    columns: list[str]
    n_rows: int
    digest: str

    @property
    def member(self) -> str:
        return f"tables/{self.model}.jsonl"


@dataclass(frozen=True)
class Manifest:
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
    require(
        not path.exists(),
        BackupRefused(f"{path} is there already. Name a file that is not.", code="file_exists"),
    )
    partial = path.with_name(f"{path.name}.partial")
    try:
        with os.fdopen(os.open(partial, os.O_CREAT | os.O_TRUNC | os.O_RDWR, 0o600), "w+b") as file:
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
    digest = Digest()
    with archive.open(StoredTable(model, columns, 0, "").member, "w", force_zip64=True) as file:
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
    require(
        table.member in archive.namelist(),
        BackupUnreadable(
            f"{archive.filename} lacks {table.member}, which its manifest names. Use another "
            "backup.",
            code="missing_table",
        ),
    )
    with archive.open(table.member) as file, TextIOWrapper(file, "utf-8", newline="\n") as text:
        for line in text:
            digest.add(line.rstrip("\n"))
            yield line
    require(
        (digest.n_rows, str(digest)) == (table.n_rows, table.digest),
        BackupUnreadable(
            f"{table.member} has {digest.n_rows} rows that are not the {table.n_rows} of the "
            "manifest. The file was changed; use another backup.",
            code="changed_table",
        ),
    )


def _manifest(archive: ZipFile) -> Manifest:
    require(
        MANIFEST in archive.namelist(),
        BackupUnreadable(
            f"{archive.filename} is no backup: it has no {MANIFEST}.", code="missing_manifest"
        ),
    )
    stored = json.loads(archive.read(MANIFEST))
    require(
        stored.get("format") == FORMAT,
        BackupUnreadable(
            f"This is a backup of format {stored.get('format')}; this version reads {FORMAT}.",
            code="unknown_format",
        ),
    )
    return Manifest(**stored | {"tables": [StoredTable(**each) for each in stored["tables"]]})


ROWS_AT_ONCE = 2000
# Of tables with pieces of files, pictures or checkpoints, of a megabyte and more each.
LARGE_ROWS_AT_ONCE = 8
DIGEST_BYTES = 16
Row = tuple[Any, ...]


class Digest:
    """How many rows there are and what they hold, whatever their order."""

    def __init__(self) -> None:
        self.n_rows = 0
        self._sum = 0

    def add(self, line: str) -> None:
        digest = blake2b(line.encode(), digest_size=DIGEST_BYTES).digest()
        self._sum = (self._sum + int.from_bytes(digest)) % 256**DIGEST_BYTES
        self.n_rows += 1

    def __str__(self) -> str:
        return f"{self._sum:0{2 * DIGEST_BYTES}x}"


def columns(model: type[Model]) -> list["Field[Any, Any]"]:
    return list(model._meta.concrete_fields)


def read_lines(model: type[Model]) -> Iterator[str]:
    # Every row as a line, by its key: no cursor is held, as none may be behind a pooler.
    fields = columns(model)
    names = [field.attname for field in fields]
    key = names.index(model._meta.pk.attname)
    rows = model._base_manager.order_by("pk").values_list(*names)
    at_once = _rows_at_once(fields)
    batch = list(rows[:at_once])
    while batch:
        for row in batch:
            yield encode(fields, row)
        batch = list(rows.filter(pk__gt=batch[-1][key])[:at_once])


def _rows_at_once(fields: "list[Field[Any, Any]]") -> int:
    return LARGE_ROWS_AT_ONCE if any(isinstance(f, BinaryField) for f in fields) else ROWS_AT_ONCE


def write_rows(model: type[Model], lines: Iterable[str]) -> None:
    """Insert rows as they are: no default, no time of now, no key of the database's."""
    fields = columns(model)
    quoted = ", ".join(connection.ops.quote_name(str(field.column)) for field in fields)
    table = connection.ops.quote_name(model._meta.db_table)
    marks = ", ".join(["%s"] * len(fields))
    at_once = _rows_at_once(fields)
    statement = f"INSERT INTO {table} ({quoted}) VALUES ({marks})"
    with connection.cursor() as cursor:
        batch: list[Row] = []
        for line in lines:
            batch.append(decode(fields, line))
            if len(batch) == at_once:
                cursor.executemany(statement, batch)
                batch = []
        if batch:
            cursor.executemany(statement, batch)


def encode(fields: "list[Field[Any, Any]]", row: Row) -> str:
    values = [
        _one_form(value) if isinstance(field, JSONField) else _plain(value)
        for field, value in zip(fields, row, strict=True)
    ]
    return json.dumps(values, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def decode(fields: "list[Field[Any, Any]]", line: str) -> Row:
    return tuple(
        _parameter(field, value) for field, value in zip(fields, json.loads(line), strict=True)
    )


def _plain(value: Any) -> Any:
    match value:
        case None | bool() | int() | float() | str():
            return value
        case Decimal() | UUID():
            return str(value)
        case datetime() | date():
            return value.isoformat()
        case timedelta():
            return duration_string(value)
        case _:
            return base64.b64encode(bytes(value)).decode("ascii")


def _one_form(value: Any) -> Any:
    # PostgreSQL keeps numbers as decimals, so that 1e16 comes back as a whole number.
    if isinstance(value, dict):
        return {name: _one_form(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_one_form(part) for part in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _parameter(field: "Field[Any, Any]", value: Any) -> Any:
    if isinstance(field, JSONField) and value is None and not field.null:
        # JSON's own null: the column takes no other.
        return connection.ops.adapt_json_value(None, field.encoder)
    return field.get_db_prep_save(field.to_python(value), connection)


class SiteError(CodedError):
    """Something an operator can mend; its text says what and how."""


class BackupRefused(SiteError):
    """The database is not in a state of which a backup is of use."""


class BackupUnreadable(SiteError):
    """The file is no backup, or is damaged."""


class RestoreRefused(SiteError):
    """The backup must not be written into this site."""


class RestoreFailed(SiteError):
    """What was restored is not what the backup holds."""
