"""Conversions of tables of several shapes to a row per label.

A shape is named after what has a column each: annotators, systems or items. `pairs` are A/B
comparisons, which names, sides and ties tell; `nested` is JSON with lists or objects inside its
records.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from django.utils.translation import gettext as _, ngettext

from annotation.exceptions import AnnotationError
from annotation.readers.coded_table import (
    CodedTable,
    Integers,
    Words,
    coded,
    number_in_order,
    stacked,
)
from annotation.readers.nested_records import flat_records, listed_columns
from annotation.readers.policies import Reading
from error_codes import CodedText, require

Shape = Literal["long", "annotators", "systems", "items", "pairs", "scores", "nested"]
SHAPES: tuple[Shape, ...] = ("long", "annotators", "systems", "items", "pairs", "nested")

# The values of a column of which a row has to have one; a row has to fit every column.
Where = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Columns:
    """Which columns of a file of labels hold what, and which rows count.

    Several `item` columns together name the unit. Of annotators and of systems there may be
    several columns, each with the labels of one of them; `value` is then "".
    """

    item: tuple[str, ...] = ()
    annotator: tuple[str, ...] = ()
    value: str = ""
    system: tuple[str, ...] = ()
    cluster: str | None = None
    where: Where = field(default_factory=dict)

    @property
    def named(self) -> list[str]:
        names = (*self.item, *self.annotator, *self.system, self.value, self.cluster, *self.where)
        return list(dict.fromkeys(name for name in names if name))


def to_rows_per_label(
    cells: CodedTable, columns: Columns, reading: Reading, *, has_systems: bool = False
) -> tuple[CodedTable, Columns]:
    """The table with a row per label, and its columns: one annotator, one value, one system.

    The shape is the reading's or, if that names none, what the columns leave out: without
    `value`, several annotators or systems have a column each; without `annotator` too, every
    other column is an annotator's; without `item`, every other column is an item. `has_systems`
    says that labels have systems in any case.
    """
    cells = flat_records(cells, columns.named, reading)
    cells.require(columns.named)
    shape = reading.policies.shape or _found_shape(cells, columns, has_systems)
    reading.report.policies["shape"] = shape
    if shape == "pairs":
        return _from_pairs(cells, columns, reading)
    if shape in ("annotators", "systems", "items"):
        return _from_columns(cells, columns, shape, reading)
    _require_long(columns, has_systems)
    return cells.only(columns.named), columns


@dataclass(frozen=True)
class OutputColumns:
    """Which columns hold the human values and the scores of outputs: items under systems.

    Of several `human` columns each has the values of one annotator; of several `system` columns
    each has the scores of one system.
    """

    item: tuple[str, ...]
    system: tuple[str, ...]
    human: tuple[str, ...]
    metrics: tuple[str, ...]
    others: tuple[str, ...] = ()


METRIC, VALUE = "metric", "value"


def to_rows_per_output(
    cells: CodedTable, columns: OutputColumns, reading: Reading
) -> tuple[CodedTable, OutputColumns]:
    """The table with a row per output, or per output and annotator, and a column per measure.

    If the file has no columns of the measures, its column `metric` names them in each row; the
    numbers are in its column `value`, or in a column per system.
    """
    measures = (*columns.human, *columns.metrics)
    keys = (*columns.item, *columns.others)
    is_long = reading.policies.shape in ("scores", "systems") or (
        cells.is_csv and METRIC in cells.columns and not {*measures} <= {*cells.columns}
    )
    if not is_long:
        cells = flat_records(cells, (*keys, *columns.system, *measures), reading)
        is_long = METRIC in cells.columns and not {*measures} <= {*cells.columns}
    shape: Shape = "long"
    if is_long:
        shape = "scores"
        system, value = columns.system, VALUE
        if len(system) != 1 or reading.policies.shape == "systems":
            shape, named = "systems", (*keys, METRIC)
            spread = (
                system if len(system) > 1 else tuple(n for n in cells.columns if n not in named)
            )
            cells.require((*named, *spread))
            cells = columns_to_rows(
                cells.only((*named, *spread)), spread, name="system", value=value
            )
            system = ("system",)
        cells.require((*keys, *system, METRIC, value))
        cells = rows_to_columns(
            cells.only((*keys, *system, METRIC, value)),
            (*keys, *system),
            name=METRIC,
            value=value,
        )
        columns = replace(columns, system=system)
    cells.require((*keys, *columns.system, *measures))
    if len(columns.human) > 1:
        shape = "annotators"
        others = (*keys, *columns.system, *columns.metrics)
        cells = columns_to_rows(
            cells.only((*others, *columns.human)), columns.human, name="annotator", value="human"
        )
        columns = replace(columns, human=("human",))
    require(
        len(columns.system) == 1,
        AnnotationError(
            "Name one column of systems with --system; or several, each with the scores of one "
            "system, in a file whose column 'metric' names the measures.",
            code="columns_unnamed",
        ),
    )
    reading.report.policies["shape"] = shape
    return cells, columns


def _found_shape(cells: CodedTable, columns: Columns, has_systems: bool) -> Shape:
    if columns.value:
        return "long"
    if not columns.annotator and not columns.system and not {*SIDES} - {*cells.columns}:
        return "pairs"
    if len(columns.annotator) > 1:
        return "annotators"
    if len(columns.system) > 1 or (has_systems and columns.annotator and not columns.system):
        return "systems"
    if columns.annotator and not columns.item:
        return "items"
    if columns.item and not columns.annotator and _is_row_per_unit(cells, columns):
        return "annotators"
    return "long"


def _is_row_per_unit(cells: CodedTable, columns: Columns) -> bool:
    _numbers, first = first_rows(cells, (*columns.item, *columns.system))
    return len(_others(cells, columns)) > 1 and len(first) == len(cells)


def _others(cells: CodedTable, columns: Columns) -> list[str]:
    return [name for name in cells.columns if name not in columns.named]


def _require_long(columns: Columns, has_systems: bool) -> None:
    roles = {"item": columns.item, "annotator": columns.annotator, "value": columns.value}
    roles |= {"system": columns.system} if has_systems else {}
    missing = [f"--{name}" for name, named in roles.items() if not named]
    several = [f"--{n}" for n in ("annotator", "system") if len(getattr(columns, n)) > 1]
    require(
        not missing,
        AnnotationError(
            f"Name the columns {', '.join(missing)} too. If annotators, systems or items have a "
            "column each, add --shape annotators, systems or items.",
            code="columns_unnamed",
        ),
    )
    if several:
        raise AnnotationError(
            f"{several[0]} was given more than once, so each is the column of one of them: leave "
            "--value out.",
            code="several_columns",
        )


def _from_pairs(
    cells: CodedTable, columns: Columns, reading: Reading
) -> tuple[CodedTable, Columns]:
    cells.require(SIDES)
    pair, value = _free("pair", columns), _free("value", columns)
    cells = pairs_to_orders(cells, *SIDES, reading, pair=pair, value=value)
    require(
        columns.annotator,
        AnnotationError(
            "Name the column of who compared the systems with --annotator.", code="columns_unnamed"
        ),
    )
    columns = replace(columns, item=(*columns.item, pair), value=value)
    return cells.only(columns.named), columns


def _from_columns(
    cells: CodedTable, columns: Columns, shape: str, reading: Reading
) -> tuple[CodedTable, Columns]:
    role = shape.removesuffix("s")
    given: tuple[str, ...] = getattr(columns, role)
    rest = _with_role(columns, role, (), value="")
    spread = given or tuple(_others(cells, rest))
    require(
        spread,
        AnnotationError(
            f"The file has no further columns, one per {role}.", code="columns_unnamed"
        ),
    )
    name, value = _free(role, rest), _free("value", rest)
    resolved = _with_role(rest, role, (name,), value=value)
    _require_long(resolved, has_systems=shape == "systems")
    cells = columns_to_rows(cells.only((*rest.named, *spread)), spread, name=name, value=value)
    reading.report.note(
        CodedText(
            _("Each of {n} columns is one {role}: {columns}.").format(
                n=f"{len(spread):,}", role=role, columns=listed_columns(spread)
            ),
            f"columns_are_{shape}",
        )
    )
    return cells.only(resolved.named), resolved


def _with_role(columns: Columns, role: str, names: tuple[str, ...], *, value: str) -> Columns:
    changes: dict[str, Any] = {role: names}
    return replace(columns, value=value, **changes)


def _free(name: str, columns: Columns) -> str:
    while name in columns.named:
        name += "_"
    return name


def columns_to_rows(
    cells: CodedTable, columns: Sequence[str], *, name: str, value: str = "value"
) -> CodedTable:
    n, k = len(cells), len(columns)
    repeated = np.repeat(np.arange(n), k)
    kept = {
        each: column.rows(repeated) for each, column in cells.columns.items() if each not in columns
    }
    names = Words(np.tile(np.arange(k), n), list(columns))
    return replace(
        cells,
        columns=kept | {name: names, value: stacked([cells.columns[each] for each in columns])},
        rows=cells.rows[repeated],
        spread=(name, value),
    )


def rows_to_columns(cells: CodedTable, keys: Sequence[str], *, name: str, value: str) -> CodedTable:
    """A row per key, with a column for each value of the column `name`.

    Each row has the place of its key's first row in the file. A cell without a row in the file is
    empty; a cell with two is refused.
    """
    row, first_of_row = first_rows(cells, keys)
    names = cells.words(name)
    where = row * len(names.words) + names.codes
    _unique, first, inverse = np.unique(where, return_index=True, return_inverse=True)
    if len(first) < len(where):
        again = np.ones(len(where), dtype=np.bool_)
        again[first] = False
        earlier = cells.place(int(first[inverse[int(np.argmax(again))]]))
        raise cells.refuse(f"{earlier} has this value already.", name, again, code="repeated_score")
    values = cells.columns[value]
    wide = np.full((len(first_of_row), len(names.words)), len(values.words), dtype=np.intp)
    wide[row, names.codes] = values.codes
    columns = {each: column.rows(first_of_row) for each, column in cells.columns.items()}
    del columns[name], columns[value]
    words = [*values.words, ""]
    columns |= {each: Words(wide[:, at], words) for at, each in enumerate(names.words)}
    return replace(cells, columns=columns, rows=cells.rows[first_of_row], spread=None)


def first_rows(cells: CodedTable, keys: Sequence[str]) -> tuple[Integers, Integers]:
    codes = np.zeros(len(cells), dtype=np.intp)
    for key in keys:
        words = cells.words(key)
        _distinct, codes = np.unique(codes * len(words.words) + words.codes, return_inverse=True)
    return number_in_order(codes)


SIDES = ("model_a", "model_b", "winner")


def pairs_to_orders(
    cells: CodedTable,
    first: str,
    second: str,
    winner: str,
    reading: Reading,
    *,
    pair: str = "pair",
    value: str = "value",
) -> CodedTable:
    """A row per comparison: `pair` names both systems in one order, `value` is "a>b" or "a=b".

    A missing word in place of a winner stays.
    """
    columns = [cells.words(name).to_list() for name in (first, second, winner)]
    outcomes = comparison_outcomes(cells, first, second, winner, reading)
    pairs, values = [], []
    for one, other, said, won in zip(*columns, outcomes, strict=True):
        a, b = sorted((one, other))
        pairs.append(f"{a} | {b}")
        values.append(said if won is None else _order(one, other, a, b, won))
    return replace(cells, columns={**cells.columns, pair: coded(pairs), value: coded(values)})


def _order(one: str, other: str, a: str, b: str, won: int) -> str:
    if won == 0:
        return f"{a}={b}"
    return f"{one}>{other}" if won > 0 else f"{other}>{one}"


TIES = frozenset({"tie", "ties", "tied", "draw", "equal", "=", "both", "neither"})
BOTH_BAD = frozenset({"bothbad", "tiebothbad", "bothgood", "tiebothgood"})
FIRST = frozenset({"first", "a", "1", "left", "modela", "model1", "systema", "system1"})
SECOND = frozenset({"second", "b", "2", "right", "modelb", "model2", "systemb", "system2"})


def comparison_outcomes(
    cells: CodedTable, first: str, second: str, winner: str, reading: Reading
) -> list[int | None]:
    """1 if the first won, -1 if the second won, 0 for a tie, None for a missing word.

    A winner is a system's name, or a side's, or the name of its column, in any case; an empty
    one is a tie.
    """
    sides = [cells.words(name) for name in (first, second)]
    words = cells.words(winner)
    if n := int(words.mask(lambda text: not text).sum()):
        text = ngettext(
            "%(n)s empty winner was read as a tie.", "%(n)s empty winners were read as ties.", n
        )
        reading.report.note(CodedText(text % {"n": f"{n:,}"}, "empty_winner_is_tie"))
    known: dict[tuple[int, int, int], int | str | None] = {}
    outcomes: list[int | None] = []
    wrong = np.zeros(len(cells), dtype=np.bool_)
    codes = zip(sides[0].codes.tolist(), sides[1].codes.tolist(), words.codes.tolist(), strict=True)
    for row, key in enumerate(codes):
        if key not in known:
            one, other = (side.words[code] for side, code in zip(sides, key, strict=False))
            said = words.words[key[2]]
            is_missing = bool(said) and reading.policies.is_missing(said)
            known[key] = None if is_missing else _outcome(said, (one, first), (other, second))
        found = known[key]
        wrong[row] = isinstance(found, str)
        outcomes.append(None if isinstance(found, str) else found)
    if wrong.any():
        row = int(np.argmax(wrong))
        one, other = (side.words[side.codes[row]] for side in sides)
        raise cells.refuse(
            f"'{words.words[words.codes[row]]}' is neither '{one}' nor '{other}'. Write the "
            f"winner's name, its side ('{first}', '{second}'), or 'tie'.",
            winner,
            wrong,
            code="unknown_winner",
        )
    return outcomes


def _outcome(said: str, first: tuple[str, str], second: tuple[str, str]) -> int | str | None:
    for fold in (str, str.casefold):
        word = fold(said)
        # A name before a column's name: a system may be called "model_b".
        for at in (0, 1):
            is_first, is_second = (fold(side[at]) == word for side in (first, second))
            if is_first != is_second:
                return 1 if is_first else -1
    plain = "".join(each for each in said.casefold() if each.isalnum() or each == "=")
    if not said or plain in TIES or plain in BOTH_BAD:
        return 0
    if plain in FIRST:
        return 1
    return -1 if plain in SECOND else said
