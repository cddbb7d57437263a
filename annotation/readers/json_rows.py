"""Objects of JSON files as rows: of an array, of an API's page with an array in it, or of lines.

Arrays and lines are read a record at a time.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

from django.utils.translation import gettext as _

from annotation.exceptions import ImportRefused
from annotation.readers.archives import READ_AT_ONCE
from annotation.readers.rows import OnFault, Row, TableSource, cell_text, unstorable
from annotation.readers.text_files import LONGEST_RECORD, BoundedLines
from error_codes import CodedText, require

DEEPEST = 20
SPACE = re.compile("[ \\t\\r\\n]*")
LONGEST_ID = 40
LABELS_BY_ANNOTATOR = "labels_by_annotator"
# An object with an array in it has to be in memory to be read; arrays and lines have not.
MOST_OBJECT_CHARACTERS = 64 * 1024 * 1024
# Usual names of the records of an API's page, of their total, and of facts next to them.
RECORDS = (
    "items",
    "results",
    "data",
    "records",
    "rows",
    "tasks",
    "traces",
    "scores",
    "examples",
    "%FEATURE_STRUCTURES",
)
TOTALS = ("total", "count", "total_count", "totalItems")
PAGE_FIELDS = {"meta", "pagination", "links", "_links", "page_info", "%TYPES", "%VIEWS"}
# How far before its end a text that is cut may seem to be wrong.
CUT = 16
MOST_FIELDS = 500
SPEAKERS, WORDS = ("role", "speaker", "from", "author"), ("content", "text", "value", "utterance")


class _ArrayText:
    def __init__(self, path: Path, lines: TextIO) -> None:
        self._path, self._lines = path, lines
        self._decoder = json.JSONDecoder(
            parse_constant=_refuse_constant, object_pairs_hook=_distinct_fields
        )
        self._text, self._position, self._is_whole = "", 0, False
        self._n_before, self._line = 0, 1

    @property
    def line(self) -> int:
        self._line += self._text.count("\n", self._n_before, self._position)
        self._n_before = self._position
        return self._line

    def _read_more(self) -> None:
        _line = self.line
        rest = self._text[self._position :]
        part = self._lines.read(max(READ_AT_ONCE, len(rest)))
        self._is_whole = not part
        self._text, self._position, self._n_before = rest + part, 0, 0

    def next_character(self) -> str:
        while True:
            space = SPACE.match(self._text, self._position)
            self._position = space.end() if space else self._position
            if self._position < len(self._text) or self._is_whole:
                return self._text[self._position : self._position + 1]
            self._read_more()

    def skip_character(self) -> None:
        self._position += 1

    def value(self) -> Any:
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._position)
            except (RecursionError, ValueError) as error:
                size = len(self._text) - self._position
                if self._is_whole or not self._may_be_cut(error):
                    begins = self.line - self._text.count("\n", 0, self._position)
                    raise not_json(self._path, error, 1, begins=begins) from None
                if size > LONGEST_RECORD:
                    raise ImportRefused(
                        self._path,
                        _("it has more than {n} million characters up to the next row.").format(
                            n=LONGEST_RECORD // 1_000_000
                        ),
                        line=self.line,
                        code="too_long",
                    ) from None
                self._read_more()
                continue
            if end == len(self._text) and not self._is_whole:
                # A number may have more digits.
                self._read_more()
                continue
            self._position = end
            return value

    def _may_be_cut(self, error: Exception) -> bool:
        return isinstance(error, json.JSONDecodeError) and (
            error.msg.startswith("Unterminated string") or error.pos > len(self._text) - CUT
        )


def json_array(path: Path, lines: TextIO, source: TableSource, on_fault: OnFault) -> Iterator[Row]:
    text = _ArrayText(path, lines)
    require(
        text.next_character() == "[",
        ImportRefused(
            path, "expected a JSON array of objects, in brackets.", line=1, code="not_array"
        ),
    )
    text.skip_character()
    n = 0
    if is_last := text.next_character() == "]":
        text.skip_character()
    while not is_last:
        n += 1
        line = text.line
        value = text.value()
        source.report.n_rows += 1
        if isinstance(value, dict):
            yield Row(path, line, value, record=_record_name(n, value), source=source)
        else:
            on_fault(
                ImportRefused(
                    path,
                    "expected a JSON object in braces.",
                    line=line,
                    code="not_object",
                    record=f"{n:,}",
                )
            )
        after = text.next_character()
        if after not in {",", "]"} or not after:
            raise ImportRefused(
                path, "expected a comma or a bracket after it.", line=line, code="not_json"
            )
        text.skip_character()
        is_last = after == "]"
        if not is_last:
            text.next_character()
    require(
        not text.next_character(),
        ImportRefused(
            path, "there is text after the array's end.", line=text.line, code="not_json"
        ),
    )


def _record_name(n: int, fields: Mapping[str, Any]) -> str:
    name = fields.get("id")
    is_short = isinstance(name, str | int) and len(str(name)) <= LONGEST_ID
    return f"{n:,} (id {name})" if is_short and name != "" else f"{n:,}"


def json_lines(path: Path, lines: TextIO, source: TableSource, on_fault: OnFault) -> Iterator[Row]:
    bounded = BoundedLines(path, lines)
    for line, text in enumerate(bounded, start=1):
        bounded.begin_record(line=line + 1)
        if not text.strip():
            continue
        source.report.n_rows += 1
        try:
            value = json_object(path, line, text.rstrip())
        except ImportRefused as fault:
            on_fault(fault)
        else:
            yield Row(path, line, value, source=source)


def json_page(path: Path, lines: TextIO, source: TableSource, on_fault: OnFault) -> Iterator[Row]:
    """The records of an object that has arrays of them, such as an API's page; or labels by
    annotator and item."""
    content = lines.read(MOST_OBJECT_CHARACTERS + 1)
    require(
        len(content) <= MOST_OBJECT_CHARACTERS,
        ImportRefused(
            path,
            _("a JSON object of more than {n} million characters; save it as JSON Lines.").format(
                n=MOST_OBJECT_CHARACTERS // 1_000_000
            ),
            code="too_large",
        ),
    )
    fields = json_object(path, 1, content)
    if _has_labels_by_annotator(fields):
        yield from _labels_by_annotator(path, fields, source)
        return
    names = _records_fields(fields)
    require(
        names,
        ImportRefused(
            path,
            _("expected an array of objects, or one object that contains one such array."),
            line=1,
            code="not_objects",
        ),
    )
    source.report.note(
        CodedText(_("The records are in '{name}'.").format(name="', '".join(names)), "json_page")
    )
    n_there = sum(len(fields[name]) for name in names)
    total = next((fields[each] for each in TOTALS if type(fields.get(each)) is int), n_there)
    if total > n_there:
        source.report.note(
            CodedText(
                _("The file has {n} of {total} records. Export the other pages, too.").format(
                    n=f"{n_there:,}", total=f"{total:,}"
                ),
                "incomplete_page",
            )
        )
    for name in names:
        for n, value in enumerate(fields[name]):
            record = f"{name}[{n}]"
            source.report.n_rows += 1
            if isinstance(value, dict):
                yield Row(path, 1, value, record=record, source=source)
            else:
                on_fault(
                    ImportRefused(
                        path,
                        "expected a JSON object in braces.",
                        line=1,
                        code="not_object",
                        record=record,
                    )
                )


def _records_fields(fields: Mapping[str, Any]) -> list[str]:
    """The fields of a page that have its records: the only array of objects, every field if each
    is such an array, or the usual name."""
    arrays = [name for name, value in fields.items() if _is_records(value)]
    if len(arrays) == 1 or (arrays and len(arrays) == len(fields)):
        return arrays
    usual = [name for name in RECORDS if isinstance(fields.get(name), list)]
    return next(([name] for name in usual if name in arrays or not arrays), [])


def _has_labels_by_annotator(fields: Mapping[str, Any]) -> bool:
    """Whether an object has the labels of each annotator by item, as in the files of the
    alternative annotator test (https://github.com/nitaytech/AltTest).

    Each annotator shares an item with another, unlike the objects in a record.
    """
    if not all(isinstance(labels, dict) and labels for labels in fields.values()):
        return False
    every = (label for labels in fields.values() for label in labels.values())
    if any(isinstance(label, dict) or _is_records(label) for label in every):
        return False
    counts = Counter(item for labels in fields.values() for item in labels)
    if len(fields) == 1:
        return len(counts) > 1
    return bool(fields) and all(
        any(counts[item] > 1 for item in labels) for labels in fields.values()
    )


def _labels_by_annotator(
    path: Path, fields: Mapping[str, dict[str, Any]], source: TableSource
) -> Iterator[Row]:
    source.report.note(
        CodedText(
            _("The file has the labels of each annotator by item: each label is a row."),
            LABELS_BY_ANNOTATOR,
        )
    )
    for annotator, labels in fields.items():
        for item, label in labels.items():
            source.report.n_rows += 1
            yield Row(
                path,
                1,
                {"annotator": annotator, "item": item, "value": label},
                record=f"{annotator[:LONGEST_ID]}, {item[:LONGEST_ID]}",
                source=source,
            )


def is_page(fields: Mapping[str, Any]) -> bool:
    if _has_labels_by_annotator(fields) or (fields and all(map(_is_records, fields.values()))):
        return True
    name = next((name for name in RECORDS if isinstance(fields.get(name), list)), None)
    if name is None or not all(isinstance(each, dict) for each in fields[name]):
        return False
    rest = {key: value for key, value in fields.items() if key != name}
    return all(
        key in PAGE_FIELDS or not isinstance(value, list | dict) for key, value in rest.items()
    )


def json_object(path: Path, line: int, text: str) -> dict[str, Any]:
    try:
        value = json.loads(
            text, parse_constant=_refuse_constant, object_pairs_hook=_distinct_fields
        )
    except (RecursionError, ValueError) as error:
        raise not_json(path, error, line, begins=line) from None
    if not isinstance(value, dict):
        raise ImportRefused(path, "expected a JSON object in braces.", line=line, code="not_object")
    return value


def not_json(
    path: Path, error: RecursionError | ValueError, line: int, *, begins: int
) -> ImportRefused:
    if isinstance(error, json.JSONDecodeError):
        return ImportRefused(
            path,
            f"this is not JSON: {error.msg}, column {error.colno}.",
            line=begins + error.lineno - 1,
            code="not_json",
        )
    if isinstance(error, _RepeatedField):
        return ImportRefused(path, error.problem, line=line, code=error.problem.code)
    is_deep = isinstance(error, RecursionError)
    reason = "it is nested too deeply" if is_deep else str(error)
    return ImportRefused(
        path, f"this is not JSON: {reason}.", line=line, code="too_deep" if is_deep else "not_json"
    )


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON value")


class _RepeatedField(ValueError):
    def __init__(self, name: str) -> None:
        self.problem = CodedText(
            _("the field '{name}' is twice in one object. Leave one of them out.").format(
                name=name[:LONGEST_ID]
            ),
            "repeated_field",
        )
        super().__init__(self.problem)


def _distinct_fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise _RepeatedField(Counter(name for name, _value in pairs).most_common(1)[0][0])
    return fields


def _unfit(value: Any, depth: int = 0) -> CodedText | None:
    if isinstance(value, str):
        return unstorable(value)
    if not isinstance(value, dict | list):
        return None
    if depth == DEEPEST:
        return CodedText(f"nested more than {DEEPEST} deep.", "too_deep")
    inside = [*value, *value.values()] if isinstance(value, dict) else value
    return next((why for part in inside if (why := _unfit(part, depth + 1))), None)


def fit_row(row: Row, columns: Iterable[str]) -> Row:
    for name, value in row.fields.items():
        if (problem := _unfit(name) or _unfit(value)) is not None:
            raise row.refuse(problem, name)
    for name in columns:
        if name not in row.fields:
            raise row.refuse("this field is missing.", name, code="missing_field")
    return row


def flatten_row(row: Row) -> Iterator[Row]:
    """The cells of an object: those of objects inside it by dotted names, lists of texts and turns
    as lines; a list of objects makes a row of each."""
    cells: dict[str, Any] = {}
    pools: list[tuple[str, list[dict[str, Any]]]] = []
    _gather(row.fields, "", cells, pools)
    if len(cells) > MOST_FIELDS:
        raise row.refuse(
            _("it has more than {n} fields.").format(n=MOST_FIELDS), code="too_many_columns"
        )
    for name, pool in pools[1:]:
        cells[name] = json.dumps(pool, ensure_ascii=False)
    if not pools:
        yield row.child(cells, row.inside)
        return
    name, pool = pools[0]
    for entry in pool:
        inside: dict[str, Any] = {}
        further: list[tuple[str, list[dict[str, Any]]]] = []
        _gather(entry, f"{name}.", inside, further)
        inside |= {label: json.dumps(each, ensure_ascii=False) for label, each in further}
        yield row.child(cells | inside, row.inside)


def _gather(
    fields: Mapping[str, Any],
    prefix: str,
    cells: dict[str, Any],
    pools: list[tuple[str, list[dict[str, Any]]]],
) -> None:
    for key, value in fields.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            _gather(value, f"{name}.", cells, pools)
        elif _is_records(value) and not _is_dialogue(value):
            pools.append((name, value))
        elif isinstance(value, list):
            cells[name] = "\n".join(_turn(each) for each in value)
        else:
            cells[name] = cell_text(value)


def _is_records(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, dict) for each in value)


def _is_dialogue(turns: list[dict[str, Any]]) -> bool:
    return all(
        any(name in turn for name in SPEAKERS) and any(name in turn for name in WORDS)
        for turn in turns
    )


def _turn(turn: Any) -> str:
    if not isinstance(turn, dict):
        return turn if isinstance(turn, str) else json.dumps(turn, ensure_ascii=False)
    who = next((turn[name] for name in SPEAKERS if name in turn), "")
    words = next((turn[name] for name in WORDS if name in turn), "")
    return f"{cell_text(who).capitalize()}: {cell_text(words)}"
