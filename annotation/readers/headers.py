"""The header of a table: names of columns, and rows above or below them that are not data.

Sources: Qualtrics' CSV exports have three header rows: names, questions, and JSON objects with an
ImportId (https://www.qualtrics.com/support/survey-platform/data-and-analysis-module/data/download-data/understanding-your-dataset/).
SurveyMonkey's have two: questions, and their answer options
(https://help.surveymonkey.com/en/surveymonkey/analyze/exporting-results/).
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from django.utils.translation import gettext as _

from annotation.exceptions import ImportRefused
from annotation.readers.rows import TableSource, unstorable
from error_codes import CodedText, require

# Records that the header rows are among.
LOOKED_AT = 5
# A spreadsheet has 16,384.
MOST_COLUMNS = 16_384
# Of columns' names, in a message.
MOST_LISTED, LONGEST_LISTED = 50, 80
# SurveyMonkey's second header row below a question that has one column.
SOLE_ANSWERS = {"", "Response", "Open-Ended Response"}


@dataclass(frozen=True)
class NumberedRecord:
    line: int
    cells: list[str]


@dataclass(frozen=True)
class Header:
    names: list[str]
    line: int
    n_records: int


def find_header(
    path: Path, first: Sequence[NumberedRecord], source: TableSource, *, is_sheet: bool = False
) -> Header:
    """The header among the first records of a table, which have cells.

    What is skipped is noted in the source's report, and questions become its wording.
    """
    start = 0
    if not is_sheet and first[0].line == 1 and _is_separator_line(first[0].cells):
        source.report.note(CodedText(_("The line 'sep=' is skipped."), "sep_line"))
        start = 1
        require(len(first) != 1, ImportRefused(path, _("it holds no rows."), code="no_rows"))
    if is_sheet:
        while start + 1 < len(first) and _is_title(first[start].cells, first[start + 1].cells):
            text = _("Row {n} is a title and is skipped: {title}").format(
                n=first[start].line, title=" ".join("".join(first[start].cells).split())[:80]
            )
            source.report.note(CodedText(text, "title_row"))
            start += 1
    record = first[start]
    names = [
        cell.strip() or _("Column {n}").format(n=n) for n, cell in enumerate(record.cells, start=1)
    ]
    end = start + 1
    below = first[end : end + 2]
    for n, each in enumerate(below):
        if any(cell.lstrip().startswith('{"ImportId"') for cell in each.cells):
            if n == 1:
                source.wording |= {
                    name: text.strip()
                    for name, text in zip(names, below[0].cells, strict=False)
                    if text
                }
            text = _("Header rows of Qualtrics are skipped: {n}.").format(n=n + 1)
            source.report.note(CodedText(text, "qualtrics_header"))
            end += n + 1
            break
    if end == start + 1 and below and _is_survey_monkey(record.cells, below[0].cells):
        names, wording = _survey_monkey_names(record.cells, below[0].cells)
        source.wording |= wording
        text = _("The second header row of SurveyMonkey is joined to the first.")
        source.report.note(CodedText(text, "survey_monkey_header"))
        end += 1
    _require_usable(path, names, record.line, source.sheet)
    return Header(names, record.line, end)


def _is_separator_line(cells: Sequence[str]) -> bool:
    first = cells[0].strip().casefold()
    return first.startswith("sep=") and len(first) <= len("sep=") + 1 and not any(cells[1:])


def _is_title(cells: Sequence[str], below: Sequence[str]) -> bool:
    return sum(map(bool, cells)) == 1 and sum(map(bool, below)) > 1


def _is_survey_monkey(cells: Sequence[str], below: Sequence[str]) -> bool:
    return (
        cells[0].strip().casefold() in {"respondent id", "respondent_id"}
        and not below[0].strip()
        and any(below)
    )


def _survey_monkey_names(
    cells: Sequence[str], below: Sequence[str]
) -> tuple[list[str], dict[str, str]]:
    names, wording = [], {}
    question = ""
    padded = [*cells, *[""] * (len(below) - len(cells))]
    for n, cell in enumerate(padded):
        question = cell.strip() or question
        option = below[n].strip() if n < len(below) else ""
        is_sole = option in SOLE_ANSWERS and bool(cell.strip())
        part = option or _("Column {n}").format(n=n + 1)
        name = question if is_sole else f"{question}: {part}"
        names.append(name)
        if option:
            wording[name] = question
    return names, wording


def _require_usable(path: Path, names: Sequence[str], line: int, sheet: str) -> None:
    for name in names:
        if (problem := unstorable(name)) is not None:
            raise ImportRefused(path, problem, line=line, sheet=sheet)
    require(
        len(names) <= MOST_COLUMNS,
        refuse_columns(path, len(names), MOST_COLUMNS, line=line, sheet=sheet),
    )
    repeated = sorted(name for name, n in Counter(names).items() if n > 1)
    require(
        not repeated,
        ImportRefused(
            path,
            _("columns appear twice: {names}. Give each a name of its own.").format(
                names=listed_names(repeated)
            ),
            line=line,
            sheet=sheet,
            code="repeated_columns",
        ),
    )


def refuse_columns(
    path: Path, n: int, most: int, *, line: int = 1, sheet: str = ""
) -> ImportRefused:
    return ImportRefused(
        path,
        _("it has {n} columns; {most} fit.").format(n=f"{n:,}", most=f"{most:,}"),
        line=line,
        sheet=sheet,
        code="too_many_columns",
    )


def require_columns(
    path: Path, names: Sequence[str], columns: Sequence[str], line: int, sheet: str = ""
) -> None:
    known = set(names)
    missing = [name for name in columns if name not in known]
    if missing:
        raise ImportRefused(
            path,
            _("columns are missing: {missing} (found: {found}).").format(
                missing=", ".join(missing), found=listed_names(names) or _("none")
            ),
            line=line,
            sheet=sheet,
            code="missing_columns",
        )


def listed_names(names: Sequence[str]) -> str:
    shown = [name if len(name) <= LONGEST_LISTED else f"{name[:LONGEST_LISTED]}…" for name in names]
    more = [f"and {len(names) - MOST_LISTED:,} more"] if len(names) > MOST_LISTED else []
    return ", ".join([*shown[:MOST_LISTED], *more])
