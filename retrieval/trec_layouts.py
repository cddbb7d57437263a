"""Layouts of runs and qrels as lines: TREC's columns, MS MARCO's, and three columns with a header.

The first lines of a file say which one it has.
"""

import codecs
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from django.utils.translation import gettext as _

from error_codes import CodedText

UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
FileKind = Literal["run", "qrels", "qrels_jg"]
RUN_COLUMNS = ("topic", "Q0", "docno", "rank", "score", "tag")
QREL_COLUMNS = ("topic", "iteration", "docno", "grade")
TREC = {"run": RUN_COLUMNS, "qrels": QREL_COLUMNS, "qrels_jg": QREL_COLUMNS}
# https://github.com/microsoft/MSMARCO-Passage-Ranking
MS_MARCO_RUN, MS_MARCO_QRELS = ("topic", "docno", "rank"), ("topic", "docno")
# As `ir_datasets export` writes qrels with --format tsv.
GRADE_BEFORE_ITERATION = ("topic", "docno", "grade", "iteration")
NAMES = {
    "topic": "topic topicid query queryid qid",
    "docno": "docno document documentid doc docid did pid passageid corpusid",
    "iteration": "iteration iter",
    "grade": "grade relevance rel label judgment",
    "score": "score",
    "Q0": "q0",
    "rank": "rank",
    "tag": "tag run runid runname system",
}
COLUMN_OF_NAME = {name: column for column, names in NAMES.items() for name in names.split()}
LINES_LOOKED_AT = 50
JSON = re.compile(rb'\s*(?:\{\s*["}]|\[\s*[{\]])')
JSON_PAIRS = re.compile(rb'\s*\{\s*"[^"]*"\s*:\s*\{\s*"[^"]*"\s*:\s*[-\d]')
WHOLE, GRADE = re.compile(rb"[+-]?\d+"), re.compile(rb"-?\d{1,2}")
DECIMAL = re.compile(rb"[+-]?\d+(?:\.\d*)?(?:e[+-]?\d+)?", re.I)
# The value of a line of data; of a comment the last word may be anything.
NUMERIC = re.compile(rb"[+-]?(?:[\d.]|inf|nan)", re.I)


@dataclass(frozen=True)
class Layout:
    """The columns of a file's lines, and the number of the line that names them, 0 without one.

    `is_json` is of records, and `is_table` of those that are rows of a CSV table.
    """

    kind: FileKind
    columns: tuple[str, ...]
    header_line: int = 0
    is_json: bool = False
    is_table: bool = False

    @property
    def value_column(self) -> str:
        """The column with the score or grade; empty if every pair counts as relevant."""
        return next((name for name in ("grade", "score", "rank") if name in self.columns), "")

    def split(self, line: bytes) -> list[bytes]:
        """The cells of a line: between tabs if that gives all columns, else between white space."""
        if b"\t" in line:
            cells = [cell.strip() for cell in line.split(b"\t")]
            if len(cells) == len(self.columns):
                return cells
        return line.split()

    def is_comment(self, cells: list[bytes]) -> bool:
        """Whether cells are of a line that begins with `#` and is no line of data.

        Names of topics may begin with `#`: a line with all columns and a number is data.
        """
        if not cells[0].startswith(b"#"):
            return False
        if len(cells) != len(self.columns) or not cells[0].strip(b"#"):
            return True
        if not self.value_column:
            return False
        return not NUMERIC.match(cells[self.columns.index(self.value_column)])


def is_json(start: bytes) -> bool:
    return JSON.match(start) is not None


def decoded_start(start: bytes) -> bytes:
    if start.startswith(UTF16):
        start = start[: len(start) // 2 * 2].decode("utf-16", errors="replace").encode()
    return start.removeprefix(codecs.BOM_UTF8)


def find_layout(start: bytes, kind: FileKind) -> Layout:
    if is_json(start):
        value = "score" if kind == "run" else "grade"
        return Layout(kind, ("topic", "docno", value), is_json=True)
    if columns := _csv_header(start, kind):
        return Layout(kind, columns, is_json=True, is_table=True)
    trec = Layout(kind, TREC[kind])
    rows = list(islice(_rows(start, trec), LINES_LOOKED_AT))
    if not rows:
        return trec
    number, first = rows[0]
    if columns := _header(first, kind):
        return Layout(kind, columns, header_line=number)
    width, _n = Counter(len(cells) for _number, cells in rows).most_common(1)[0]
    cells = list(zip(*(cells for _number, cells in rows if len(cells) == width), strict=True))
    return Layout(kind, _shorter(kind, cells) or TREC[kind])


def _shorter(kind: FileKind, columns: list[tuple[bytes, ...]]) -> tuple[str, ...]:
    if kind == "qrels" and len(columns) == 2:
        return MS_MARCO_QRELS
    if kind == "qrels" and len(columns) == 4:
        _topic, second, third, fourth = columns
        # In TREC's order all grades would be 0, and documents have fewer names than iterations.
        is_last = set(fourth) == {b"0"} and all(map(GRADE.fullmatch, third))
        return GRADE_BEFORE_ITERATION if is_last and len(set(second)) > len(set(third)) else ()
    if kind == "qrels_jg" or len(columns) != 3:
        return ()
    is_whole = all(map(WHOLE.fullmatch, columns[2]))
    if kind == "qrels":
        return ("topic", "docno", "grade") if is_whole else ()
    if is_whole:
        return MS_MARCO_RUN
    return ("topic", "docno", "score") if all(map(DECIMAL.fullmatch, columns[2])) else ()


def _rows(start: bytes, layout: Layout) -> Iterator[tuple[int, list[bytes]]]:
    for number, line in enumerate(start.split(b"\n"), 1):
        if (cells := layout.split(line)) and not layout.is_comment(cells):
            yield number, cells


def _header(cells: list[bytes], kind: FileKind) -> tuple[str, ...]:
    names = [column_name(cell.decode(errors="replace")) for cell in cells]
    if kind != "run":
        names = ["grade" if name == "score" else name for name in names]
    columns = tuple(name for name in names if name)
    is_complete = len(set(columns)) == len(cells) and {"topic", "docno"} <= set(columns)
    has_value = kind == "qrels" or bool(Layout(kind, columns).value_column)
    return columns if is_complete and has_value else ()


def _csv_header(start: bytes, kind: FileKind) -> tuple[str, ...]:
    """The columns of runs and qrels that the header of a CSV table names, if it has them all.

    Excel's line `sep=;` may be before it.
    """
    lines = start.split(b"\n", 2)
    first = lines[1] if lines[0].lower().startswith(b"sep=") and len(lines) > 1 else lines[0]
    for delimiter in (b",", b";"):
        names = [column_name(cell.decode(errors="replace")) for cell in first.split(delimiter)]
        if kind != "run" and "grade" not in names:
            names = ["grade" if name == "score" else name for name in names]
        needed = {"topic", "docno", "score" if kind == "run" else "grade"}
        if kind == "qrels_jg":
            needed.add("iteration")
        columns = tuple(name for name in names if name)
        if needed <= {*columns} and len({*columns}) == len(columns):
            return columns
    return ()


def column_name(text: str) -> str:
    return COLUMN_OF_NAME.get(re.sub(r"[-_ ]", "", text.strip().strip('"').casefold()), "")


def guess_kind(start: bytes) -> FileKind | None:
    if is_json(start):
        return _guess_json_kind(start)
    run, qrels = find_layout(start, "run"), find_layout(start, "qrels")
    if (run.header_line or run.is_table) and {"rank", "tag"} & set(run.columns):
        return "run"
    if qrels.header_line or qrels.is_table:
        return "qrels"
    for layout in (run, qrels):
        rows = [cells for _number, cells in _rows(start, layout)]
        n_complete = sum(len(cells) == len(layout.columns) for cells in rows)
        # Few columns with spaces between them may be any text.
        if 2 * n_complete > len(rows) and (layout.columns in TREC.values() or b"\t" in start):
            is_jg = layout.columns == QREL_COLUMNS and _has_two_assessors(rows)
            return "qrels_jg" if is_jg else layout.kind
    return None


def _guess_json_kind(start: bytes) -> FileKind | None:
    record = re.match(rb"\[?\s*\{([^{}]*)\}", start.lstrip())
    names = re.findall(rb'"([^"]*)"\s*:', record[1]) if record else []
    is_record = {"topic", "docno"} <= {column_name(name.decode(errors="replace")) for name in names}
    if not is_record and not JSON_PAIRS.match(start):
        return None
    numbers = re.findall(rb":\s*(-?[\d.eE+-]+)\s*[,}]", start)
    is_graded = all(re.fullmatch(rb"-?\d{1,2}(?:\.0*)?", number) for number in numbers)
    return "qrels" if is_graded else "run"


def _has_two_assessors(rows: list[list[bytes]]) -> bool:
    assessor_of: dict[tuple[bytes, bytes], bytes] = {}
    for topic, assessor, document, _grade in (cells for cells in rows if len(cells) == 4):
        if assessor_of.setdefault((topic, document), assessor) != assessor:
            return True
    return False


LOOKED_AT = 4096
# Share of the characters. A line or two in another encoding are faults of a text, by line.
MOST_UNREADABLE = 0.2
ZIP, GZIP, OLD_OFFICE = b"PK\x03\x04", b"\x1f\x8b", b"\xd0\xcf\x11\xe0"
PICTURES = {
    b"\x89PNG": "PNG",
    b"\xff\xd8\xff": "JPEG",
    b"GIF8": "GIF",
    b"BM": "BMP",
    b"II*\0": "TIFF",
    b"MM\0*": "TIFF",
}
WHITE = "\t\n\r\f\v"


def problem_of_text(start: bytes) -> str:
    """Why bytes are not the start of a text; empty where they are one."""
    if (noun := _noun(start)) is not None:
        text = _("it is {noun}, and not text.").format(noun=noun)
        if start.startswith(b"PAR1") or noun == _("an Excel workbook"):
            text += " " + _("Save it as CSV with a header.")
        return CodedText(text, code="not_text")
    if _is_binary(start):
        return CodedText(
            _("it is not text: too much of it cannot be read as characters."), code="not_text"
        )
    return ""


def _noun(start: bytes) -> str | None:
    for first, name in PICTURES.items():
        if start.startswith(first) and _is_binary(start):
            return _("a picture ({name})").format(name=name)
    if start[:4] == b"RIFF" and start[8:12] == b"WEBP":
        return _("a picture ({name})").format(name="WebP")
    if start.startswith(ZIP):
        return _zip_noun(start)
    nouns = {
        OLD_OFFICE: _("an Office document"),
        b"%PDF": _("a PDF document"),
        b"PAR1": _("Parquet"),
        b"\x93NUMPY": _("an array of NumPy"),
    }
    return next((noun for first, noun in nouns.items() if start.startswith(first)), None)


def _zip_noun(start: bytes) -> str:
    if b"xl/" in start:
        return _("an Excel workbook")
    if b"[Content_Types].xml" in start or b"word/" in start:
        return _("an Office document")
    return _("a zip")


def problem_of_table(start: bytes) -> str:
    if start.startswith(ZIP) or start.startswith(OLD_OFFICE):
        return ""  # what is in it, its reader says
    noun = _noun(start)
    if noun is None and _is_binary(start) and not start.startswith((GZIP, *UTF16)):
        return _("it is not text: too much of it cannot be read as characters.")
    return _("it is {noun}, and not a table.").format(noun=noun) if noun else ""


def problem_of_vectors(start: bytes) -> str:
    noun = _noun(start)
    if start.startswith(b"PAR1") or (start.startswith(ZIP) and noun == _("a zip")):
        return ""
    return _(
        "it is {noun}. Vectors are Parquet, or a zip with a .npy file and an .ids file of names."
    ).format(noun=noun or (_("another kind of file") if _is_binary(start) else _("text")))


def _is_binary(start: bytes) -> bool:
    text = start[:LOOKED_AT].decode(errors="replace")
    n = sum(
        character == "\ufffd" or (not character.isprintable() and ord(character) < 160)
        for character in text
        if character not in WHITE
    )
    return n > MOST_UNREADABLE * len(text)


SIMULATED, UNMARKED = "simulated", "0"
PREFIX = f"{SIMULATED}-"


def iteration_of(is_simulated: bool) -> str:
    return SIMULATED if is_simulated else UNMARKED


def assessor_name(name: str, is_simulated: bool) -> str:
    return f"{PREFIX}{name}" if is_simulated else name


def is_simulated_name(name: str) -> bool:
    """Whether column 2 has the mark.

    Examples
    --------
    >>> [is_simulated_name(name) for name in ("0", "simulated", "simulated-A12", "A12")]
    [False, True, True, False]
    """
    return name == SIMULATED or name.startswith(PREFIX)
