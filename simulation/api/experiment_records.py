"""What a run of an experiment holds, as its page has it: the answer, tables and notes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.forms.models import model_to_dict

from simulation.models import ExperimentVersion
from simulation.pages.rows import StoredRun
from simulation.pages.view import ExperimentView

Record = dict[str, Any]
OF_THE_DATABASE = ("id", "version")


def content_of(version: ExperimentVersion) -> Record:
    """`answer`, `details`, `tables`, `notes` and `faults`; all empty before the run is finished."""
    if version.finished_at is None:
        return {"answer": "", "details": [], "tables": {}, "notes": [], "faults": []}
    run = StoredRun(version)
    view = ExperimentView(run, {})
    tables = {
        "results": run.last.values(),
        "comparisons": run.comparisons,
        "causes": run.causes,
        "switches": run.switches,
        "improvements": run.improvements,
    }
    return {
        "answer": view.answer.first_sentence,
        "details": list(view.answer.details),
        "tables": {name: _records(rows) for name, rows in tables.items()},
        "notes": view.notes,
        "faults": view.faults,
    }


def _records(rows: Iterable[Any]) -> list[Record]:
    return [_record(row) for row in rows]


def _record(row: Any) -> Record:
    """A row by the names of its fields, with the names of recommender and user in place of keys."""
    values = {
        name: value for name, value in model_to_dict(row).items() if name not in OF_THE_DATABASE
    }
    return values | {
        name: getattr(row, name).name for name in ("recommender", "user") if name in values
    }
