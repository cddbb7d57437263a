"""A result as pages, commands, the API and files show it: its answer, charts and tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from presentation import documents
from presentation.text_tables import text_report, text_table
from presentation.writers import TABLE_FORMS
from results.computing import sign_result
from results.kinds import Chart, ResultKind, Row, result_kind
from results.models import Result, pack_record


@dataclass(frozen=True)
class Fold:
    title: str
    finding: str
    table: documents.Table


class ShownResult:
    table_forms = tuple(TABLE_FORMS)

    def __init__(self, result: Result) -> None:
        self.result = result
        self.kind: ResultKind[Any] = result_kind(result.kind)

    @classmethod
    def of_record(
        cls,
        kind: type[ResultKind[Any]],
        record: Mapping[str, Any],
        settings: Mapping[str, Any],
        notes: Sequence[str],
    ) -> Self:
        return cls(
            Result(
                kind=kind.name,
                settings=dict(settings),
                notes=[{"text": str(note)} for note in notes],
                packed_record=pack_record(record),
            )
        )

    @cached_property
    def answer(self) -> str:
        return self.kind.answer(self.result)

    @cached_property
    def details(self) -> list[str]:
        return list(self.kind.details(self.result))

    @cached_property
    def charts(self) -> list[Chart]:
        return list(self.kind.charts(self.result))

    @property
    def notes(self) -> list[str]:
        return [note["text"] for note in self.result.notes]

    @property
    def signature(self) -> str:
        return sign_result(self.result)

    @property
    def query(self) -> str:
        """Part of a chart's address that names the result."""
        return f"version={self.result.number}"

    @cached_property
    def rows(self) -> dict[str, list[Row]]:
        record = self.kind.read_record(self.result)
        read = {name: table.read_rows(name, record) for name, table in self.kind.tables.items()}
        return {name: list(rows) for name, rows in read.items() if rows}

    @cached_property
    def folds(self) -> list[Fold]:
        folds = []
        for name, rows in self.rows.items():
            declared = self.kind.tables[name]
            table = declared.show(name, rows, self.result)
            folds.append(Fold(table.caption, declared.finding(rows, self.result), table))
        return folds

    @cached_property
    def tables(self) -> dict[str, documents.Table]:
        return {fold.table.name: fold.table for fold in self.folds}

    def write_text(self) -> str:
        tables = (
            f"{fold.title}\n"
            + text_table([one.title for one in fold.table.columns], fold.table.rows)
            for fold in self.folds
        )
        return text_report(["\n".join([self.answer, *self.details]), *tables], self.notes)

    def summarize(self) -> dict[str, Any]:
        return {
            "answer": self.answer,
            "details": self.details,
            "tables": self.rows,
            "notes": self.notes,
        }

    def export(self) -> dict[str, Any]:
        return {
            "result": self.result.number,
            "kind": self.result.kind,
            "fingerprint": self.result.fingerprint,
            "signature": self.signature,
            "settings": self.result.settings,
            "tables": self.rows,
            "notes": self.notes,
        }
