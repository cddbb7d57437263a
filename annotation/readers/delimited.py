"""Rows and columns of text tables whose cells are separated by commas, semicolons, tabs or bars.

Rows come from Python's csv module. Whole columns come from pyarrow, in a sixth of the time, if the
text is regular, so that both read the same cells.
"""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from django.utils.translation import gettext as _

from annotation.exceptions import ImportRefused
from annotation.readers.drafts import place_of_line
from annotation.readers.headers import (
    LOOKED_AT,
    Header,
    NumberedRecord,
    find_header,
    require_columns,
)
from annotation.readers.rows import (
    CHARACTERS_AT_ONCE,
    ROWS_AT_ONCE,
    OnFault,
    Row,
    RowBlock,
    TableSource,
)
from annotation.readers.text_files import (
    LONGEST_RECORD,
    BoundedLines,
    refuse_encoding,
    scan_text,
    text_encoding,
)
from error_codes import CodedText
from presentation.files import reason_of
from presentation.libraries import pa

# A dialogue of 100,000 words is not a mistake; Python's own limit is 131,072 characters.
csv.field_size_limit(10_000_000)
# Parsed by pyarrow at once; a file with a longer record is read row by row.
BLOCK_BYTES = 8 * 1024**2
BLANK_ROW = CodedText("all cells are empty", "blank_row")


@dataclass(frozen=True)
class TextTable:
    name: Path
    content: Path
    delimiter: str
    source: TableSource
    encoding: str = "utf-8"

    def rows(self, columns: Sequence[str], on_fault: OnFault) -> Iterator[Row]:
        for block in self.blocks(columns, on_fault):
            yield from block.rows()

    def blocks(self, columns: Sequence[str], on_fault: OnFault) -> Iterator[RowBlock]:
        is_regular, longest, _lines = scan_text(self.content, self.delimiter)
        with self.content.open(encoding=text_encoding("utf-8"), newline="") as lines:
            is_bounded = is_regular and longest <= LONGEST_RECORD
            bounded = None if is_bounded else BoundedLines(self.name, lines)
            records = self._records(
                csv.reader(bounded or lines, strict=True, delimiter=self.delimiter), bounded
            )
            first, failure = _first_records(records)
            if first:
                header = find_header(self.name, first, self.source)
                require_columns(self.name, header.names, columns, header.line)
                data = ((each.line, each.cells) for each in first[header.n_records :])
                is_short = is_bounded and longest * ROWS_AT_ONCE <= CHARACTERS_AT_ONCE
                yield from self._blocks(header, chain(data, records), on_fault, is_short=is_short)
            if failure is not None:
                raise failure

    def _blocks(
        self,
        header: Header,
        records: Iterator[tuple[int, list[str]]],
        on_fault: OnFault,
        *,
        is_short: bool,
    ) -> Iterator[RowBlock]:
        report, n = self.source.report, len(header.names)
        lines: list[int] = []
        rows: list[list[str]] = []
        n_characters = 0
        failure = None
        try:
            for line, cells in records:
                if len(cells) > n and not any(cells[n:]):
                    cells = cells[:n]
                if not cells[0] and not any(cells):
                    report.n_rows += 1
                    report.leave_out(BLANK_ROW, place_of_line(line))
                    continue
                if not is_short:
                    n_characters += sum(map(len, cells))
                is_misfit = len(cells) != n
                is_full = len(rows) == ROWS_AT_ONCE or n_characters > CHARACTERS_AT_ONCE
                if (is_full or is_misfit) and rows:
                    yield self._block(header, lines, rows)
                    lines, rows, n_characters = [], [], 0
                if is_misfit:
                    report.n_rows += 1
                    on_fault(
                        ImportRefused(
                            self.name,
                            _("the row has {n} cells; the header has {n_columns}.").format(
                                n=len(cells), n_columns=n
                            ),
                            line=line,
                            code="field_count",
                        )
                    )
                else:
                    lines.append(line)
                    rows.append(cells)
        except ImportRefused as refused:
            failure = refused
        if rows:
            yield self._block(header, lines, rows)
        if failure is not None:
            raise failure

    def _block(self, header: Header, lines: list[int], rows: list[list[str]]) -> RowBlock:
        self.source.report.n_rows += len(rows)
        names, source = header.names, self.source

        def row(n: int) -> Row:
            return Row(
                self.name, lines[n], dict(zip(names, rows[n], strict=True)), "", True, "", source
            )

        return RowBlock(
            dict(zip(names, zip(*rows, strict=True), strict=True)), lines, row, is_csv=True
        )

    def _records(
        self, reader: Any, bounded: BoundedLines | None
    ) -> Iterator[tuple[int, list[str]]]:
        line = 1
        try:
            for record in reader:
                if bounded is not None:
                    bounded.begin_record(line=reader.line_num + 1)
                if record:
                    yield line, record
                line = reader.line_num + 1
        except csv.Error as error:
            raise ImportRefused(
                self.name,
                _("this is not CSV: {error}. Is a quotation mark missing?").format(
                    error=reason_of(error)
                ),
                line=line,
                code="not_csv",
            ) from None
        except UnicodeError:
            raise refuse_encoding(self.content, self.name, "utf-8", line) from None

    def columns(self, names: Sequence[str]) -> tuple[np.ndarray, dict[str, Any]] | None:
        """The lines of the rows, and columns as pyarrow's dictionary arrays.

        None if the text is not regular: if cells are quoted in other ways than RFC 4180 says, if
        rows and header differ in length, or if there are rows above or below the header that are
        not data. Its rows are read one by one then, with each fault.
        """
        import pyarrow.csv as pc

        is_regular, longest, lines = scan_text(self.content, self.delimiter)
        if not is_regular or longest > LONGEST_RECORD:
            return None
        if (header := self._plain_header()) is None:
            return None
        require_columns(self.name, header, names, 1)
        wanted = list(names) or header
        kinds = dict.fromkeys(header, pa.dictionary(pa.int32(), pa.string()))
        try:
            table = pc.read_csv(
                # From a path, pyarrow would unpack by the name's ending.
                pa.OSFile(str(self.content)),
                read_options=pc.ReadOptions(
                    use_threads=False,
                    column_names=header,
                    skip_rows=0,
                    skip_rows_after_names=1,
                    block_size=BLOCK_BYTES,
                ),
                parse_options=pc.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
                convert_options=pc.ConvertOptions(
                    column_types=kinds, include_columns=wanted, strings_can_be_null=False
                ),
            )
        except pa.ArrowInvalid:
            return None
        lines = lines[1:]
        if len(lines) != len(table):
            return None
        return lines, {name: table.column(name).unify_dictionaries() for name in wanted}

    def _plain_header(self) -> list[str] | None:
        with self.content.open(encoding=text_encoding("utf-8"), newline="") as lines:
            first, failure = _first_records(
                self._records(csv.reader(lines, strict=True, delimiter=self.delimiter), None)
            )
        if failure is not None or not first or first[0].line != 1:
            return None
        trial = TableSource()
        header = find_header(self.name, first, trial)
        return header.names if header.n_records == 1 and not trial.report.notes else None


def _first_records(
    records: Iterator[tuple[int, list[str]]],
) -> tuple[list[NumberedRecord], ImportRefused | None]:
    first: list[NumberedRecord] = []
    try:
        for line, cells in records:
            if first or any(cells):
                first.append(NumberedRecord(line, cells))
            if len(first) == LOOKED_AT:
                break
    except ImportRefused as failure:
        return first, failure
    return first, None
