"""A file of any kind as a study: what it is, what its columns hold, and the items they make."""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotation.exceptions import ImportRefused
from annotation.readers.alternatives import ACCEPTABLE
from annotation.readers.column_mapping import ColumnMapping, is_code, mapping_faults
from annotation.readers.drafts import DRAFTS_WITH_PICTURES_AT_ONCE, QuestionDraft, StudyDraft
from annotation.readers.file_faults import Faults
from annotation.readers.mapped_items import MappedItems
from annotation.readers.responses import APPROPRIATENESS
from annotation.readers.rows import Row
from annotation.readers.tables import OpenTable

T = TypeVar("T")
# Rows that a preview is made of, and how many characters they may have in all.
SAMPLE_ROWS = 1000
SAMPLE_CHARACTERS = 1_000_000
SHOWN_CHARACTERS = 120


@dataclass(frozen=True)
class Column:
    """What is in a column: its first value, how many rows fill it, with how many values, and
    whether each row has a code such as T01 there."""

    name: str
    first: str
    n_filled: int
    n_distinct: int
    has_codes: bool = False


@dataclass(frozen=True)
class TableProfile:
    """What there is to know of a table before its columns are mapped."""

    n_rows: int
    columns: tuple[Column, ...]
    sample: tuple[Row, ...]
    faults: Faults

    @property
    def is_whole(self) -> bool:
        """Whether the sample is the whole table."""
        return len(self.sample) == self.n_rows

    @property
    def n_distinct(self) -> dict[str, int]:
        return {column.name: column.n_distinct for column in self.columns}

    @property
    def codes(self) -> list[str]:
        """The columns that have a code in each row."""
        return [column.name for column in self.columns if column.has_codes]


def profile_table(
    table: OpenTable, passed: Callable[[Iterable[Row]], Iterable[Row]] | None = None
) -> TableProfile:
    """Read a table once, keeping its beginning."""
    faults = Faults()
    hashes: dict[str, array[int]] = {}
    first: dict[str, str] = {}
    sample: list[Row] = []
    others: set[str] = set()
    n_rows = n_characters = 0
    is_sampling = True
    rows = table.rows(faults)
    for row in passed(rows) if passed else rows:
        n_rows += 1
        for name, value in row.fields.items():
            column = hashes.setdefault(name, array("q"))
            if value not in ("", None):
                column.append(hash(value))
                first.setdefault(name, str(value)[:SHOWN_CHARACTERS])
            if name not in others and not is_code(value):
                others.add(name)
        if is_sampling:
            n_characters += sum(len(str(value)) for value in row.fields.values())
            is_sampling = len(sample) < SAMPLE_ROWS and (
                n_characters < SAMPLE_CHARACTERS or not sample
            )
        if is_sampling:
            sample.append(row)
    columns = tuple(
        Column(
            name,
            first.get(name, ""),
            len(values),
            len(np.unique(np.frombuffer(values, "q"))),
            has_codes=len(values) == n_rows and name not in others,
        )
        for name, values in hashes.items()
    )
    return TableProfile(n_rows, columns, tuple(sample), faults)


def mapped_study(items: MappedItems, *, kind: str, has_protocol: bool) -> StudyDraft:
    """The study that mapped items make; without a protocol it asks one question."""
    question: QuestionDraft = ACCEPTABLE if kind == "alternatives" else APPROPRIATENESS
    return StudyDraft(
        kind=kind,
        items=items,
        questions=() if has_protocol else (question,),
        report=items.report(),
        drafts_at_once=DRAFTS_WITH_PICTURES_AT_ONCE if items.has_pictures else None,
    )


def items_of(
    table: OpenTable,
    mapping: ColumnMapping,
    *,
    faults: Faults,
    kind: str,
    passed: Callable[[Iterable[Row]], Iterable[Row]] | None = None,
) -> MappedItems:
    """The items of a whole table; what is wrong with it is noted."""
    for problem in mapping_faults(mapping, has_pictures=table.has_pictures):
        faults.add(ImportRefused(table.path, problem))
    table.start_report()
    rows = table.rows(faults) if not faults.n else iter(())
    return MappedItems(
        passed(rows) if passed else rows,
        mapping,
        path=table.path,
        faults=faults,
        pictures=table.pictures,
        is_pool=kind == "alternatives",
        report=table.report,
    )


def faults_as_text(faults: Faults) -> str:
    """Every fault on a line of its own, and how many more there are."""
    lines = []
    for fault in faults.first:
        where = [fault.place] if fault.place else []
        where += [_("column {name}").format(name=fault.column)] if fault.column else []
        value = f" ({json.dumps(fault.value, ensure_ascii=False)})" if fault.value else ""
        lines.append(f"  {', '.join(where)}{value}: {fault.problem}".replace("  : ", "  "))
    if faults.n_more:
        text = ngettext("  and %(n)s more.", "  and %(n)s more.", faults.n_more)
        lines.append(text % {"n": f"{faults.n_more:,}"})
    return "\n".join(lines)
