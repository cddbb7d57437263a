"""The full report of a validation, and those of the ready-made layouts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from validation.documents.content import Content, Record
from validation.documents.documents import (
    Column,
    Document,
    Figure,
    Number,
    P,
    Row,
    Section,
    Table,
)
from validation.documents.figures import (
    curve_figure,
    forest_figure,
    heat_map_figure,
    ranks_figure,
    scatter_figure,
    significance_figure,
)
from validation.documents.methods import methods_paragraph
from validation.documents.planning import curves_of, planning_table
from validation.documents.signatures import number_signature, shared_rules
from validation.documents.system_tables import (
    disagreements_table,
    systems_table,
    worst_table,
)
from validation.documents.tables import (
    ceilings_table,
    comparisons_table,
    correlations_table,
    coverage_table,
    sensitivity_table,
)
from validation.documents.wording import statistic

Cells = Mapping[tuple[str, str, str], pd.DataFrame]
KINDS = {
    "correlations": "correlation",
    "comparisons": "comparison",
    "ceilings": "ceiling",
    "sensitivity": "sensitivity",
}


def full_report(content: Content, *, title: str, cells: Cells | None = None) -> Document:
    """Everything a validation found: pictures, tables, methods and signatures.

    `cells` holds, by question, metric and signature, the columns human and score of a scatter.
    """
    sections = [
        Section("Which metric agrees with people", _agreement(content, cells or {})),
        Section("Which metrics differ", _differences(content)),
        Section("How far a metric could go", _tables([ceilings_table(content)])),
        Section("The systems", _systems(content)),
        Section("Where metrics go wrong", _tables([worst_table(content)])),
        Section("What other policies would give", _tables([sensitivity_table(content)])),
        Section("How large a study would have to be", _plans(content)),
        Section("All correlations", _everything(content)),
    ]
    return signed_document(content, title, sections)


def signed_document(content: Content, title: str, sections: Sequence[Section]) -> Document:
    """The sections that hold something, the methods, and the signatures of their numbers."""
    shown = [section for section in sections if section.parts]
    methods = methods_paragraph(content.settings, content.inputs)
    rules = shared_rules(content.settings, content.found["fingerprint"])
    tables = [part for section in shown for part in section.parts if isinstance(part, Table)]
    return Document(
        title=title,
        sections=[
            *shown,
            Section("Methods", [methods]),
            Section("Signatures", [SIGNATURES_ARE, scores_table(content), appendix(tables, rules)]),
        ],
        records=_records(content),
        about={
            "study": content.study,
            "fingerprint": content.found["fingerprint"],
            "settings": content.settings,
            "inputs": content.inputs,
            "methods": methods,
        },
    )


# The pairs least surely told apart have their curves drawn; the table has all.
MOST_CURVES = 6
REST = "…"
SIGNATURE = Column("Signature", is_number=False, is_code=True)
SIGNATURES_ARE = (
    "Each number of the tables above, with what it was computed from and by which rules. Two "
    "numbers of the same signature are the same number."
)


def appendix(tables: Sequence[Table], rules: str = "") -> Table:
    """Every number that has a signature, with where it stands; `rules` are written out once."""
    rows: list[Row] = [
        (table.name, _row_name(row), _title(column), cell.text, _short(cell.signature, rules))
        for table in tables
        for row in table.rows
        for column, cell in zip(table.columns, row, strict=True)
        if isinstance(cell, Number | P) and cell.signature
    ]
    titles = ("Table", "Row", "Column", "Number")
    return Table(
        name="signatures",
        caption="The signature of every number",
        columns=[*(Column(title, is_number=False) for title in titles), SIGNATURE],
        rows=rows,
        note=f"{REST} stands for {rules}." if rules else "",
    )


def _short(signature: str, rules: str) -> str:
    ends_so = bool(rules) and signature.endswith(rules)
    return signature.removesuffix(rules) + REST if ends_so else signature


def _row_name(row: Row) -> str:
    """The text cells that a row begins with."""
    names: list[str] = []
    for cell in row:
        if not isinstance(cell, str):
            break
        names.append(cell)
    return ", ".join(name for name in names if name)


def _title(column: Column) -> str:
    return f"{column.group}, {column.title}" if column.group else column.title


def scores_table(content: Content) -> Table:
    """The sets of scores, and a hash of each."""
    rows: list[Row] = [
        (
            content.label(one),
            one["signature"],
            one["n_scores"],
            one["n_undefined"] + one["n_unparsed"],
            one["digest"][:12],
        )
        for one in content.inputs["score_sets"]
    ]
    return Table(
        name="score-sets",
        caption="The sets of scores",
        columns=[
            Column("Metric", is_number=False),
            SIGNATURE,
            Column("Scores"),
            Column("Undefined"),
            Column("Input", is_number=False),
        ],
        rows=rows,
    )


def _records(content: Content) -> dict[str, list[dict[str, Any]]]:
    """Every record of the validation, signed where it is a number of a rule."""
    found = {
        kind: list(map(dict, content.records(kind)))
        for kind in ("correlations", "comparisons", "ceilings", "sensitivity", "systems")
    }
    fingerprint = content.found["fingerprint"]
    for kind, name in KINDS.items():
        for record in found[kind]:
            signature = number_signature(name, record, content.settings, fingerprint)
            record["number_signature"] = signature
    rest = ("disagreements", "worst", "planning")
    return found | {kind: list(map(dict, content.records(kind))) for kind in rest}


def _agreement(content: Content, cells: Cells) -> list[str | Table | Figure]:
    parts: list[str | Table | Figure] = [heat_map_figure(content)]
    for question in content.questions:
        parts.append(forest_figure(content, question))
        best = _best(content, question)
        if best is not None:
            of_best = cells.get((question, best["metric"], best["signature"]))
            if of_best is not None:
                parts.append(scatter_figure(content, question, content.label(best), of_best))
    return parts


def _best(content: Content, question: str) -> Record | None:
    """The correlation of the metric that agrees best, as the pictures count."""
    place = {"question": question, "scope": "all", "level": content.level}
    found = content.records("correlations", coefficient=content.coefficient, **place)
    defined = [row for row in found if row["value"] is not None]
    return max(defined, key=lambda row: row["value"], default=None)


def _differences(content: Content) -> list[str | Table | Figure]:
    parts: list[str | Table | Figure] = []
    for question in content.questions:
        table = comparisons_table(content, question)
        if table.rows:
            parts += [significance_figure(content, question), table]
    return parts


def _systems(content: Content) -> list[str | Table | Figure]:
    parts: list[str | Table | Figure] = []
    for question in content.questions:
        table = systems_table(content, question)
        if table.rows:
            parts += [ranks_figure(content, question), table]
    return parts + _tables([disagreements_table(content)])


def _plans(content: Content) -> list[str | Table | Figure]:
    curves = curves_of(content)
    figures = [
        curve_figure(content, number, curve)
        for number, curve in enumerate(curves[:MOST_CURVES], start=1)
    ]
    return [*figures, *_tables([planning_table(content, curves)])]


def _everything(content: Content) -> list[str | Table | Figure]:
    shown = statistic(content.coefficient, content.level)
    told = f"Pictures and short tables show one of these measures: {shown}."
    tables = [correlations_table(content, level) for level in content.levels]
    return [told, *_tables([*tables, coverage_table(content)])]


def _tables(tables: Sequence[Table]) -> list[str | Table | Figure]:
    """Those that have rows."""
    return [table for table in tables if table.rows]
