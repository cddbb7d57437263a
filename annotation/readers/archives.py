"""Files that hold others: a table by itself out of a zip, or out of what gzip compressed.

Whoever sends one may have made it to be huge once unpacked: sizes and numbers are looked at first.
"""

import gzip
import io
import lzma
import posixpath
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from errno import EINVAL
from pathlib import Path, PurePosixPath
from xml.etree.ElementTree import ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from annotation.exceptions import ImportRefused
from annotation.readers.pictures import Archive, NoPictures, PictureSource
from annotation.readers.spreadsheets import require_bearable_xml
from error_codes import CodedText, require
from presentation.files import plain_file, reason_of

READ_AT_ONCE = 1 << 20
TABLES = (
    *(".csv", ".tsv", ".tab", ".txt", ".xlsx", ".xlsm", ".ods"),
    *(".json", ".jsonl", ".ndjson", ".parquet"),
)
OF_OFFICE = {
    "word/": CodedText("this is a Word document. Save the table in it as CSV or Excel.", "word"),
    "ppt/": CodedText(
        "this is a PowerPoint document. Save the table in it as CSV or Excel.", "powerpoint"
    ),
    "xl/workbook.bin": CodedText(
        "this is a binary Excel file (.xlsb). Save it as .xlsx.", "binary_excel"
    ),
}
EXCEL_BOOK = "xl/workbook.xml"
OPEN_DOCUMENT, SPREADSHEET = "content.xml", "application/vnd.oasis.opendocument.spreadsheet"
ZIP, GZIP, PARQUET_MARK = b"PK", b"\x1f\x8b", b"PAR1"
# Python's list of what is in a zip takes 500 bytes for each file, of which there may be a million.
MOST_MEMBERS = 100_000
MEMBER = b"PK\x01\x02"
# The texts of an Excel file's cells are all in memory, in several times their size.
MOST_TEXTS_BYTES = 128 * 1024 * 1024
TEXTS = "application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"
# What the readers of a zip raise where its directory, or something in it, is not whole; of a
# version or under a password that they do not have, NotImplementedError or RuntimeError.
UNPACKING_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    OSError,
    NotImplementedError,
    RuntimeError,
    UnicodeError,
)
# File systems take 255.
MOST_NAME_BYTES = 200
CONTENT_TYPES, MOST_TYPES_BYTES = "[Content_Types].xml", 1024 * 1024


@dataclass(frozen=True)
class Unpacked:
    path: Path
    pictures: PictureSource
    table: str = ""
    tables: tuple[str, ...] = ()


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder that is deleted at the end, also if a generator that uses it is abandoned."""
    folder = Path(tempfile.mkdtemp(prefix="assay-table-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def unpacked(path: Path, *, most_bytes: int, table: str = "") -> Iterator[Unpacked]:
    start = start_of(path)
    if start.startswith(ZIP):
        require_few_members(path)
    with temporary_folder() as folder:
        if start.startswith(GZIP):
            copy = _gunzip(path, folder, most_bytes)
            _require_bearable(copy, most_bytes)
            yield Unpacked(copy, NoPictures())
        elif start.startswith(ZIP) and not is_excel(path) and not is_open_document(path):
            with _archive(path, most_bytes) as archive:
                tables = _tables(path, archive)
                chosen = table if table in tables else tables[0]
                copy = folder / short_file_name(posixpath.basename(chosen))
                with archive.open(chosen) as source, copy.open("wb") as target:
                    shutil.copyfileobj(source, target, READ_AT_ONCE)
                _require_bearable(copy, most_bytes)
                yield Unpacked(copy, Archive(archive, chosen), chosen, tables)
        else:
            _require_bearable(path, most_bytes)
            yield Unpacked(path, NoPictures())


def _require_bearable(path: Path, most_bytes: int) -> None:
    if start_of(path).startswith(ZIP):
        require_few_members(path)
        with _archive(path, most_bytes) as archive:
            require_bearable_xml(path, archive, texts=_texts_names(archive))


def is_excel(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            return EXCEL_BOOK in archive.NameToInfo
    except UNPACKING_ERRORS:
        return False


def is_open_document(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            if OPEN_DOCUMENT not in archive.NameToInfo:
                return False
            kind = archive.NameToInfo.get("mimetype")
            has_kind = kind is not None and kind.file_size < MOST_NAME_BYTES
            text = archive.read("mimetype").decode(errors="replace") if has_kind else ""
    except UNPACKING_ERRORS:
        return False
    require(
        text.startswith(SPREADSHEET),
        ImportRefused(
            path,
            CodedText(
                "this is an OpenDocument file without sheets. Save the table in it as CSV or .ods.",
                "open_document",
            ),
        ),
    )
    return True


def short_file_name(name: str) -> str:
    return name.encode(errors="replace")[-MOST_NAME_BYTES:].decode(errors="ignore")


def start_of(path: Path) -> bytes:
    try:
        with plain_file(path).open("rb") as content:
            return content.read(16)
    except OSError as error:
        raise ImportRefused(
            path, f"it cannot be read: {error.strerror}.", code="unreadable"
        ) from None


@contextmanager
def _archive(path: Path, most_bytes: int) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            names = {member.filename for member in members}
            for mark, problem in OF_OFFICE.items():
                if any(
                    name == mark or (mark[-1] == "/" and name.startswith(mark)) for name in names
                ):
                    raise ImportRefused(path, problem)
            require(
                sum(member.file_size for member in members) <= most_bytes,
                ImportRefused(
                    path,
                    f"unpacked it has more than {most_bytes // 1024**2:,} MiB.",
                    code="unpacked_too_large",
                ),
            )
            if _texts_bytes(archive) > MOST_TEXTS_BYTES:
                n = MOST_TEXTS_BYTES // 1024**2
                raise ImportRefused(
                    path,
                    f"its texts have more than {n:,} MiB. Save it as CSV.",
                    code="texts_too_large",
                )
            require(
                not any(member.flag_bits & 1 for member in members),
                ImportRefused(
                    path, "it is locked with a password. Make it without one.", code="locked"
                ),
            )
            yield archive
    except UNPACKING_ERRORS as error:
        # Of the disk, and not of a zip that says it has a file before its beginning.
        if isinstance(error, OSError) and error.errno not in {None, 0, EINVAL}:
            raise
        raise ImportRefused(
            path, f"it is not a zip that can be unpacked: {reason_of(error)}.", code="not_zip"
        ) from None


def _texts_bytes(archive: zipfile.ZipFile) -> int:
    listed = archive.NameToInfo.get(CONTENT_TYPES)
    if listed is not None and listed.file_size > MOST_TYPES_BYTES:
        return listed.file_size * MOST_TEXTS_BYTES
    return sum(archive.NameToInfo[name].file_size for name in _texts_names(archive))


def _texts_names(archive: zipfile.ZipFile) -> set[str]:
    listed = archive.NameToInfo.get(CONTENT_TYPES)
    if listed is None:
        return set()
    try:
        types = fromstring(archive.read(listed), forbid_dtd=True)
    except (ParseError, DefusedXmlException):
        return set()
    names = {each.get("PartName", "")[1:] for each in types if each.get("ContentType") == TEXTS}
    return names & archive.NameToInfo.keys()


def require_few_members(path: Path) -> None:
    """Count the entries of a zip's directory, without making a list of them."""
    n, before = 0, b""
    with path.open("rb") as content:
        while part := content.read(READ_AT_ONCE):
            n += (before + part).count(MEMBER)
            before = part[-(len(MEMBER) - 1) :]
    require(
        n <= MOST_MEMBERS,
        ImportRefused(
            path, f"there are more than {MOST_MEMBERS:,} files in it.", code="too_many_files"
        ),
    )


def is_small(content: bytes, *, most_bytes: int) -> bool:
    if content.startswith(GZIP):
        return _gzip_is_small(content, most_bytes)
    if content.startswith(ZIP):
        return _zip_is_small(content, most_bytes)
    # How much a column of equal values comes to is not in its size.
    return not content.startswith(PARQUET_MARK) and len(content) <= most_bytes


def _gzip_is_small(content: bytes, most_bytes: int) -> bool:
    unpacking = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    try:
        size = len(unpacking.decompress(content, most_bytes + 1))
    except zlib.error:
        return True
    return size <= most_bytes and not unpacking.unused_data


def _zip_is_small(content: bytes, most_bytes: int) -> bool:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
            is_whole = EXCEL_BOOK in archive.NameToInfo or not any(
                archive.open(member).read(4).startswith((ZIP, PARQUET_MARK)) for member in members
            )
            return is_whole and sum(member.file_size for member in members) <= most_bytes
    except UNPACKING_ERRORS:
        return True


def _tables(path: Path, archive: zipfile.ZipFile) -> tuple[str, ...]:
    tables = [
        name
        for name in archive.namelist()
        if name.lower().endswith(TABLES)
        and not name.startswith(("__MACOSX/", "."))
        and not posixpath.basename(name).startswith(".")
    ]
    require(
        tables,
        ImportRefused(
            path,
            "there is no table in it: put a CSV, Excel or JSON file beside the pictures.",
            code="no_table",
        ),
    )
    # The one nearest to the top first.
    return tuple(sorted(tables, key=lambda name: (name.count("/"), name)))


def _gunzip(path: Path, folder: Path, most_bytes: int) -> Path:
    copy = folder / (path.name.removesuffix(".gz") or "table")
    size = 0
    try:
        with gzip.open(path) as source, copy.open("wb") as target:
            while part := source.read(READ_AT_ONCE):
                size += len(part)
                if size > most_bytes:
                    raise ImportRefused(
                        path,
                        f"unpacked it has more than {most_bytes // 1024**2:,} MiB.",
                        code="unpacked_too_large",
                    )
                target.write(part)
    except (EOFError, OSError, zlib.error):
        raise ImportRefused(path, "it is not a file that gzip can read.", code="not_gzip") from None
    return copy


MOST_BYTES = 512 * 1024 * 1024


@dataclass(frozen=True)
class Member:
    name: PurePosixPath
    path: Path


@contextmanager
def unpacked_members(path: Path) -> Iterator[list[Member]]:
    with tempfile.TemporaryDirectory() as folder:
        yield _unpacked(path, Path(folder))


def member_names(path: Path) -> list[PurePosixPath]:
    try:
        with zipfile.ZipFile(path) as archive:
            return [PurePosixPath(info.filename) for info in _infos(archive)]
    except UNPACKING_ERRORS:
        return []


def _infos(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    return [
        info
        for info in archive.infolist()
        if not (info.is_dir() or any(part[:1] in "._" for part in info.filename.split("/")))
    ]


def _unpacked(path: Path, folder: Path) -> list[Member]:
    try:
        with zipfile.ZipFile(path) as archive:
            infos = _infos(archive)
            require(
                sum(info.file_size for info in infos) <= MOST_BYTES,
                ImportRefused(
                    path,
                    "what is in it is over 512 MiB; import its files singly.",
                    code="too_large",
                ),
            )
            return [
                _unpacked_member(archive, info, folder / str(n)) for n, info in enumerate(infos)
            ]
    except UNPACKING_ERRORS as error:
        raise ImportRefused(
            path, f"it is not a zip that can be read: {reason_of(error)}.", code="not_zip"
        ) from None


def _unpacked_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, folder: Path) -> Member:
    # The name alone: a path inside an archive may lead anywhere.
    name = PurePosixPath(info.filename)
    folder.mkdir()
    target = folder / name.name
    with archive.open(info) as source, target.open("wb") as content:
        shutil.copyfileobj(source, content)
    return Member(name, target)
