import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from annotation.exceptions import ImportRefused
from annotation.readers.delimited import BLANK_ROW
from annotation.readers.drafts import ReadingReport, place_of_line
from annotation.readers.rows import Row
from annotation.readers.tables import each_row
from error_codes import CodedText
from presentation.files import plain_file
from retrieval.exceptions import FileFaults

# In characters: a name has at most a thousand bytes.
LONGEST_LINE = 64 * 1024


def each_table_row(
    path: Path,
    refused: type[FileFaults],
    columns: Sequence[str] = (),
    *,
    report: ReadingReport | None = None,
) -> Iterator[Row]:
    try:
        yield from each_row(path, columns, report=report)
    except ImportRefused as fault:
        raise refused(path, [numbered_fault(fault)]) from None


def take_rows(
    path: Path,
    refused: type[FileFaults],
    rows: Iterable[Row],
    take: Callable[[Row], object],
    *,
    most_faults: int | None = None,
) -> None:
    """Call `take` with each row; its refusals are raised together, as faults of the class."""
    faults: list[tuple[int | None, str]] = []
    for row in rows:
        try:
            take(row)
        except ImportRefused as fault:
            faults.append(numbered_fault(fault))
            if len(faults) == most_faults:
                break
    if faults:
        raise refused(path, faults)


def numbered_fault(fault: ImportRefused) -> tuple[int | None, str]:
    problem = f"{fault.field}: {fault.problem}" if fault.field else fault.problem
    return fault.line, CodedText(problem, fault.code)


def each_text_line(
    path: Path, refused: type[FileFaults], *, report: ReadingReport | None = None
) -> Iterator[tuple[int, str]]:
    """Lines of UTF-8 with their numbers, without their ends, or faults of the class.

    The report counts blank lines as left out.
    """
    number = 0
    try:
        file = plain_file(path).open("rb")
        with file, io.TextIOWrapper(file, encoding="utf-8-sig") as lines:
            while line := lines.readline(LONGEST_LINE + 1):
                number += 1
                if len(line) > LONGEST_LINE:
                    raise refused.of_one(
                        path,
                        f"it is longer than {LONGEST_LINE:,} characters.",
                        "too_long",
                        line=number,
                    )
                if report is not None:
                    report.n_rows += 1
                    if line.isspace():
                        report.leave_out(BLANK_ROW, place_of_line(number))
                yield number, line.removesuffix("\n")
    except OSError as error:
        raise refused.of_one(
            path, f"it cannot be read: {error.strerror or error}.", "unreadable"
        ) from None
    except UnicodeDecodeError:
        raise refused.of_one(path, "it is not UTF-8. Save it as UTF-8.", "not_utf8") from None
