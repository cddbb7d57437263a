from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from django.utils.translation import gettext as _

from annotation.exceptions import AnnotationError, ImportRefused
from annotation.readers.coded_table import CodedTable, coded
from annotation.readers.policies import Reading
from error_codes import CodedText, require

MOST_NAMED = 8
POSITION, KEY, RECORD = "position", "key", "record"


def flat_records(cells: CodedTable, columns: Sequence[str], reading: Reading) -> CodedTable:
    if cells.is_csv:
        return cells
    is_inside = [name for name in columns if not _is_plain(cells, name)]
    is_wanted = reading.policies.shape == "nested" or bool(is_inside)
    if not is_wanted or not _has_nested(cells):
        return cells
    flat = nested_to_rows(cells, columns)
    _note_empty_lists(cells, flat, reading)
    reading.report.note(
        CodedText(
            _("{rows} rows were made of {n} records, whose columns are {paths}.").format(
                rows=f"{len(flat):,}",
                n=f"{len(cells):,}",
                paths=listed_columns(list(flat.inside.values())),
            ),
            "nested_records",
        )
    )
    return flat


def _note_empty_lists(cells: CodedTable, flat: CodedTable, reading: Reading) -> None:
    is_empty = ~np.isin(cells.rows, flat.rows)
    places = cells.places(is_empty)
    for n, place in enumerate(places):
        rest = int(is_empty.sum()) - len(places) if n == 0 else 0
        reading.report.leave_out(
            CodedText("its list has no elements", "empty_list"), place, n=1 + rest
        )


def _is_plain(cells: CodedTable, name: str) -> bool:
    return name in cells.columns and not any(
        isinstance(value, list | dict) for value in cells.columns[name].words
    )


def _has_nested(cells: CodedTable) -> bool:
    return any(
        isinstance(value, list | dict)
        for column in cells.columns.values()
        for value in column.words
    )


def listed_columns(names: Sequence[str]) -> str:
    return ", ".join(names[:MOST_NAMED]) + (", …" if len(names) > MOST_NAMED else "")


def nested_to_rows(cells: CodedTable, columns: Sequence[str]) -> CodedTable:
    """Records of JSON as rows, with the columns that are named.

    A column is a path, such as `summary.responses.worker`, or its last part if only one path
    ends so. A list on the way is a row for each of its elements, whose number from 1 is
    `….position`; so is an object that is named itself, whose keys are `….key`. The number of the
    record is `record`.
    """
    records = _records(cells)
    rows: list[dict[str, Any]] = []
    numbers: list[int] = []
    paths = _paths(records)
    wanted = {name: _path(name, paths, cells) for name in columns}
    for number, record in enumerate(records):
        for row in _exploded(record, "", {*wanted.values()}):
            rows.append({RECORD: str(int(cells.rows[number]) + 1), **row})
            numbers.append(number)
    return replace(
        cells,
        columns={name: coded(row.get(wanted[name], "") for row in rows) for name in columns},
        rows=cells.rows[np.array(numbers, dtype=np.intp)],
        inside={name: path for name, path in wanted.items() if name != path},
    )


def _records(cells: CodedTable) -> list[dict[str, Any]]:
    names = list(cells.columns)
    return [
        dict(zip(names, row, strict=True))
        for row in zip(*(cells.columns[name].to_list() for name in names), strict=True)
    ]


def _paths(records: Sequence[Mapping[str, Any]]) -> dict[str, bool]:
    """Every path in the records, and whether it is literal.

    The others leave out keys that are names: `systems.human` in
    `{"systems": {"ours": {"human": 3}}}`.
    """
    paths: dict[str, bool] = {RECORD: True}
    for record in records:
        _note_paths(record, "", paths)
    return paths


def _note_paths(value: Any, path: str, paths: dict[str, bool], is_real: bool = True) -> None:
    if path:
        paths[path] = is_real or paths.get(path, False)
    if isinstance(value, dict):
        if path:
            paths.setdefault(f"{path}.{KEY}", is_real)
        for name, each in value.items():
            _note_paths(each, f"{path}.{name}" if path else name, paths, is_real)
            if path and isinstance(each, dict):
                _note_paths(each, path, paths, is_real=False)
    elif isinstance(value, list):
        paths.setdefault(f"{path}.{POSITION}", is_real)
        for each in value:
            _note_paths(each, path, paths, is_real)


def _path(name: str, paths: Mapping[str, bool], cells: CodedTable) -> str:
    if name in paths:
        return name
    found = [path for path in paths if path.endswith(f".{name}")]
    found = [path for path in found if paths[path]] or found
    if len(found) != 1:
        problem = f"'{name}' could be {' or '.join(found)}." if found else f"there is no '{name}'."
        listed = ", ".join([path for path, is_real in paths.items() if is_real][:20])
        raise ImportRefused(
            cells.path, f"{problem} The records have: {listed}.", code="missing_columns"
        )
    return found[0]


def _exploded(value: Mapping[str, Any], path: str, wanted: set[str]) -> Iterator[dict[str, Any]]:
    own: dict[str, Any] = {}
    many: list[list[dict[str, Any]]] = []
    for name, each in value.items():
        at = f"{path}.{name}" if path else name
        if not any(want == at or want.startswith(f"{at}.") for want in wanted):
            continue
        if isinstance(each, list):
            many.append(list(_elements(enumerate(each, start=1), at, POSITION, wanted)))
        elif isinstance(each, dict) and wanted & {at, f"{at}.{KEY}"}:
            many.append(list(_elements(each.items(), at, KEY, wanted)))
        elif isinstance(each, dict):
            inside = list(_exploded(each, at, wanted))
            if len(inside) == 1:
                own |= inside[0]
            else:
                many.append(inside)
        else:
            own[at] = each
    require(
        len(many) <= 1,
        AnnotationError(
            "Two lists of one record cannot be read at once; name columns of one of them.",
            code="two_lists",
        ),
    )
    for row in many[0] if many else [{}]:
        yield own | row


def _elements(pairs: Any, path: str, label: str, wanted: set[str]) -> Iterator[dict[str, Any]]:
    for key, each in pairs:
        named = {f"{path}.{label}": str(key)}
        if isinstance(each, dict):
            for row in _exploded(each, path, wanted):
                yield named | row
        elif isinstance(each, list):
            for row in _elements(enumerate(each, start=1), path, POSITION, wanted):
                yield named | row
        else:
            yield named | {path: each}
