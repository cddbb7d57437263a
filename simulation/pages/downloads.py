"""What an experiment offers to take away."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from django.http import Http404, HttpRequest, StreamingHttpResponse
from django.views.decorators.http import require_safe

from accounts.audit import record
from accounts.roles import Permission
from console.access import person
from presentation.documents import Table
from presentation.latex import table_latex
from presentation.plain import table_csv
from presentation.row_files import FORMS as ROW_FORMS
from presentation.row_files import JSON_LINES, RowFile
from simulation.experiment_dialogues import LOG_NAME, log_lines
from simulation.pages.experiment import experiment_for, version_for
from simulation.pages.rows import StoredRun
from simulation.pages.tables import (
    causes_table,
    comparisons_table,
    results_table,
    switches_table,
)

JSON, TEX, CSV = "application/json", "application/x-tex", "text/csv; charset=utf-8"
TABLES: dict[str, Callable[[StoredRun], Table]] = {
    "results": results_table,
    "comparisons": lambda run: comparisons_table(run, run.measures),
    "causes": lambda run: causes_table(run, run.measures),
    "switches": switches_table,
}
ROWS: dict[str, Callable[[StoredRun], RowFile]] = {
    "turns": StoredRun.result_rows,
    "seeds": StoredRun.seed_rows,
    "targets": StoredRun.target_rows,
    "sensitivity": StoredRun.sensitivity_rows,
}
Parts = Iterator[str] | Iterator[bytes]


def _all(run: StoredRun) -> Iterator[str]:
    tables = {name: list(make(run).records()) for name, make in TABLES.items()}
    yield json.dumps(run.record() | {"tables": tables}, indent=1, ensure_ascii=False)


def _content(name: str, run: StoredRun) -> tuple[str, Any] | None:
    """The type of a download and its parts; None where there is none of that name."""
    base, _dot, form = name.partition(".")
    if name == "experiment.json":
        return JSON, _all(run)
    if name == LOG_NAME:
        return JSON_LINES, log_lines(run.version)
    if base in TABLES and form in ("csv", "tex"):
        table = TABLES[base](run)
        return (CSV, [table_csv(table)]) if form == "csv" else (TEX, [table_latex(table)])
    if base in ROWS and form in ROW_FORMS:
        content_type, write = ROW_FORMS[form]
        return content_type, write(ROWS[base](run))
    return None


@require_safe
def download(request: HttpRequest, slug: str, name: str) -> StreamingHttpResponse:
    """Access: those who may export."""
    row = experiment_for(request, slug, Permission.EXPORT)
    version = version_for(request, list(row.versions.exclude(finished_at=None).order_by("-number")))
    if version is not None:
        version.experiment = row
    content = None if version is None else _content(name, StoredRun(version))
    if version is None or content is None:
        raise Http404(f"There is no download {name}.")
    content_type, parts = content
    response = StreamingHttpResponse(parts, content_type=content_type)
    response["Content-Disposition"] = f'attachment; filename="{slug}-{version.number}-{name}"'
    if request.method == "GET":
        details = {"file": name, "version": version.number}
        record(team=row.team, actor=person(request), action="export", subject=slug, details=details)
    return response
