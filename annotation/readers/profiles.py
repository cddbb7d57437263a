from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from django.utils.translation import gettext as _, ngettext

from annotation.exceptions import ImportRefused
from annotation.readers.drafts import (
    DRAFTS_WITH_PICTURES_AT_ONCE,
    Faults,
    QuestionDraft,
    StudyDraft,
)
from annotation.readers.item_files import ACCEPTABLE, APPROPRIATENESS
from annotation.readers.mapped_items import MappedItems
from annotation.readers.mapping import (
    Column,
    ColumnMapping,
    guess_mapping,
    is_code,
    mapping_faults,
)
from annotation.readers.pictures import EXTENSIONS
from annotation.readers.rows import Row, RowBlock
from annotation.readers.tables import OpenTable

T = TypeVar("T")
# Rows that a preview is made of, and how many characters they may have in all.
SAMPLE_ROWS = 1000
SAMPLE_CHARACTERS = 1_000_000
SHOWN_CHARACTERS = 120


@dataclass(frozen=True)
class TableProfile:
    n_rows: int
    columns: tuple[Column, ...]
    sample: tuple[Row, ...]
    faults: Faults

    @property
    def is_whole(self) -> bool:
        return len(self.sample) == self.n_rows

    def guess(self) -> ColumnMapping:
        return guess_mapping(self.columns, [row.fields for row in self.sample], n_rows=self.n_rows)


def profile_table(
    table: OpenTable, passed: Callable[[Iterable[RowBlock]], Iterable[RowBlock]] | None = None
) -> TableProfile:
    faults = Faults()
    columns: dict[str, _ColumnCounts] = {}
    sample: list[Row] = []
    n_rows = n_characters = 0
    is_sampling = True
    blocks = table.blocks(faults)
    for block in passed(blocks) if passed else blocks:
        n_rows += len(block)
        for name, values in block.columns.items():
            columns.setdefault(name, _ColumnCounts()).add(values, is_csv=block.is_csv)
        for row in block.rows() if is_sampling else ():
            n_characters += sum(len(str(value)) for value in row.fields.values())
            is_sampling = len(sample) < SAMPLE_ROWS and (
                n_characters < SAMPLE_CHARACTERS or not sample
            )
            if not is_sampling:
                break
            sample.append(row)
    return TableProfile(
        n_rows,
        tuple(column.result(name, n_rows) for name, column in columns.items()),
        tuple(sample),
        faults,
    )


@dataclass
class _ColumnCounts:
    first: str = ""
    n_filled: int = 0
    has_codes: bool = True
    has_files: bool = True
    # The lowest and the highest number; None once a cell is not a number.
    ends: list[tuple[float, str]] | None = field(default_factory=list)
    hashes: array[int] = field(default_factory=lambda: array("q"))
    # Of the cells whose words are counted.
    n_cells: int = 0
    n_words: int = 0

    def add(self, values: Sequence[Any], *, is_csv: bool) -> None:
        filled = [value for value in values if value not in ("", None)]
        self.n_filled += len(filled)
        # 1 and true are equal and not the same; in CSV both are texts.
        different = set(filled) if is_csv else filled
        self.hashes.extend(map(hash, different))
        if not self.first and filled:
            self.first = str(filled[0])[:SHOWN_CHARACTERS]
        self.has_codes = self.has_codes and all(map(is_code, different))
        self.has_files = self.has_files and all(map(is_picture_name, different))
        self._add_ends(different)
        if self.n_cells < SAMPLE_ROWS:
            self.n_cells += len(filled)
            self.n_words += sum(len(str(value).split()) for value in filled)

    def _add_ends(self, values: Iterable[Any]) -> None:
        if self.ends is None:
            return
        try:
            numbers = [(float(value), str(value)) for value in values]
        except (TypeError, ValueError):
            self.ends = None
            return
        known = sorted([*self.ends, *numbers])
        self.ends = [known[0], known[-1]] if known else []

    def result(self, name: str, n_rows: int) -> Column:
        ends = self.ends or [(0, ""), (0, "")]
        return Column(
            name,
            self.first,
            self.n_filled,
            n_distinct=len(np.unique(np.frombuffer(self.hashes, "q"))),
            has_codes=self.has_codes and self.n_filled == n_rows,
            has_files=self.has_files and self.n_filled > 0,
            n_words=self.n_words / (self.n_cells or 1),
            lowest=ends[0][1],
            highest=ends[1][1],
        )


def is_picture_name(value: object) -> bool:
    return str(value).strip().casefold().endswith(EXTENSIONS)


def mapped_study(items: MappedItems, *, kind: str, has_protocol: bool) -> StudyDraft:
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
    passed: Callable[[Iterable[RowBlock]], Iterable[RowBlock]] | None = None,
) -> MappedItems:
    for problem in mapping_faults(mapping, has_pictures=table.has_pictures):
        faults.add(ImportRefused(table.path, problem))
    table.start_report()
    blocks = table.blocks(faults) if not faults.n else iter(())
    return MappedItems(
        passed(blocks) if passed else blocks,
        mapping,
        path=table.path,
        faults=faults,
        pictures=table.pictures,
        is_pool=kind == "alternatives",
        report=table.report,
    )


def faults_as_text(faults: Faults) -> str:
    lines = []
    for fault in faults.first:
        where = [fault.place] if fault.place else []
        where += [_("column {name}").format(name=fault.column)] if fault.column else []
        value = f" ({json.dumps(fault.value, ensure_ascii=False)})" if fault.value else ""
        lines.append(f"  {', '.join(where)}{value}: {fault.problem}".replace("  : ", "  "))
    if faults.n_more:
        lines.append(
            ngettext("  and %(n)s more.", "  and %(n)s more.", faults.n_more)
            % {"n": f"{faults.n_more:,}"}
        )
    return "\n".join(lines)
