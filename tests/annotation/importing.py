"""Run import commands in tests, and check that a refusal changes nothing."""

import re
from collections.abc import Iterable, Mapping, Sequence
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any
from zipfile import ZIP_STORED, ZipFile

import openpyxl
from django.apps import apps
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from annotation.exceptions import AnnotationError, FileRefused
from tests.codes import refused

Snapshot = dict[str, list[tuple[object, ...]]]


def command_output(command: str, *arguments: object, **options: Any) -> str:
    output = StringIO()
    call_command(command, *map(str, arguments), stdout=output, **options)
    return output.getvalue()


def numbers_in(output: str) -> list[int]:
    """The numbers in what a command says, such as how many items were new and known."""
    return [int(number.replace(",", "")) for number in re.findall(r"\b\d[\d,]*\b", output)]


def everything() -> Snapshot:
    """Every row of the annotation app, to compare two moments."""
    return {
        model.__name__: sorted(model.objects.values_list(), key=repr)
        for model in apps.get_app_config("annotation").get_models()
    }


def assert_refused(
    command: str,
    path: Path,
    code: str,
    *,
    line: int | None = None,
    field: str | None = None,
    value: str = "",
    study: str = "s",
    **options: Any,
) -> AnnotationError:
    """The import is refused with this code at that line and field, and leaves every row as it was.

    The message has the name of the file and the `value`, such as what is wrong or what there is.
    """
    before = everything()
    with refused(AnnotationError, code) as caught:
        command_output(command, path, study=study, **options)
    assert everything() == before
    error: AnnotationError = caught.value
    if isinstance(error, FileRefused):
        assert (error.line, error.field) == (line, field)
        assert path.name in str(error)
    assert value in str(error)
    assert not re.search(r"[Tt]raceback|Error\(|<class", str(error))
    return error


def assert_imported_once(command: str, path: Path, counts: list[int], **options: Any) -> None:
    """The import has these counts, and the same import again changes nothing."""
    assert numbers_in(command_output(command, path, **options).splitlines()[0]) == counts
    before = everything()
    again = [number for n in counts for number in (0, n)]
    assert numbers_in(command_output(command, path, **options).splitlines()[0]) == again
    assert everything() == before


def queries_of(command: str, path: Path, **options: Any) -> int:
    with CaptureQueriesContext(connection) as queries:
        command_output(command, path, **options)
    return len(queries)


def as_zip(files: Mapping[str, str | bytes], compression: int = ZIP_STORED) -> bytes:
    content = BytesIO()
    with ZipFile(content, "w", compression) as archive:
        for name, body in files.items():
            archive.writestr(name, body)
    return content.getvalue()


def as_excel(rows: Iterable[Sequence[Any]], sheets: Sequence[str] = ("Sheet",)) -> bytes:
    """A workbook in which each sheet has these rows."""
    book = openpyxl.Workbook()
    book.remove(book.active)
    for sheet in map(book.create_sheet, sheets):
        for row in rows:
            sheet.append(row)
    content = BytesIO()
    book.save(content)
    return content.getvalue()


def altered_excel(rows: Iterable[Sequence[Any]], old: bytes, new: bytes) -> bytes:
    """A workbook as no program would write it, with other bytes in place of some."""
    with ZipFile(BytesIO(as_excel(rows))) as book:
        return as_zip({name: book.read(name).replace(old, new) for name in book.namelist()})


def as_parquet(columns: Any) -> bytes:
    """A file of these columns, or of this table of pyarrow."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    content = BytesIO()
    pq.write_table(columns if isinstance(columns, pa.Table) else pa.table(columns), content)
    return content.getvalue()


def write_file(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path
