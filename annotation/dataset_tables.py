"""The tables of a study's dataset; apps above register theirs."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from annotation.exports import item_rows, judgment_rows, label_rows
from annotation.models import Label, Study
from console.registrations import load_registrations
from presentation.row_files import RowFile


@dataclass(frozen=True)
class DatasetTable:
    """A table of datasets, its place, a line about it, and of which studies it has rows; with a
    section of the card if there is more to say."""

    place: int
    name: str
    about: str
    rows: Callable[[Study], RowFile]
    has_rows: Callable[[Study], bool] = lambda study: True
    section: Callable[[Study], str] | None = None


_tables: dict[str, DatasetTable] = {}
_counts: dict[str, Callable[[Study], int]] = {}


def register_dataset_table(table: DatasetTable) -> None:
    _tables[table.name] = table


def register_dataset_count(name: str, count: Callable[[Study], int]) -> None:
    """Let the card say how much there is of something that an app above stores."""
    _counts[name] = count


def counts_of_apps(study: Study) -> dict[str, int]:
    load_registrations()
    return {name: count(study) for name, count in _counts.items()}


def about_table(name: str) -> str:
    return _tables[name].about


def table_sections(study: Study, names: Collection[str]) -> list[str]:
    sections = {name: _tables[name].section for name in names}
    return [section(study) for section in sections.values() if section is not None]


def dataset_tables(study: Study) -> dict[str, RowFile]:
    """The tables that have rows, by name; those of judgments and items always."""
    load_registrations()
    tables = sorted(_tables.values(), key=lambda table: table.place)
    return {table.name: table.rows(study) for table in tables if table.has_rows(study)}


for table in (
    DatasetTable(
        10,
        "judgments",
        "each judgment that was not rejected: what an annotator answered about a candidate under "
        "a question",
        judgment_rows,
    ),
    DatasetTable(20, "items", "each candidate with what annotators were shown", item_rows),
    DatasetTable(
        40,
        "labels",
        "one label a candidate by a rule, for each label set",
        label_rows,
        lambda study: Label.objects.filter(label_set__study=study).exists(),
    ),
):
    register_dataset_table(table)
