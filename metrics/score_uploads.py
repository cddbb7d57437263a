"""Uploaded scores: what their columns are, what they come to, and writing them into a study."""

import math
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _, ngettext

from annotation.access import record_in
from annotation.exceptions import AnnotationError, ImportRefused
from annotation.models import Candidate, Study, Upload
from annotation.readers.drafts import Faults, ReadingReport
from annotation.readers.mapping import NAMES, Use, plain_name
from annotation.readers.policies import Reading
from annotation.readers.profiles import profile_table
from annotation.readers.rows import Row
from annotation.readers.tables import OpenTable
from annotation.score_settings import KIND, ScoreSettings, ScoreUse
from annotation.uploads import (
    find_stored_mapping,
    keep_mapping,
    note_faults,
    opened_upload,
    require_no_faults,
)
from metrics.result_kinds.scores import ScoresKind
from metrics.score_tables import (
    ScoreColumns,
    ScoreTable,
    read_score_table,
    write_score_table,
)
from work.execution import RunningJob

ROWS_SHOWN, METRICS_SHOWN = 30, 50


LIKELY: dict[ScoreUse, tuple[str, ...]] = {
    ScoreUse.ITEM: NAMES[Use.ITEM],
    ScoreUse.CANDIDATE: NAMES[Use.CANDIDATE],
    ScoreUse.SYSTEM: NAMES[Use.SYSTEM],
    ScoreUse.METRIC: ("metric", "metric_name", "measure", "scorer"),
    ScoreUse.VALUE: ("value", "score", "metric_value"),
    ScoreUse.SIGNATURE: ("signature", "metric_signature"),
    ScoreUse.REASON: ("reason",),
}


def score_columns(settings: ScoreSettings) -> ScoreColumns:
    names: dict[str, Any] = {
        use.value: next(iter(settings.columns(use)), "")
        for use in ScoreUse
        if use != ScoreUse.SCORE
    }
    return ScoreColumns(values=settings.columns(ScoreUse.SCORE), **names)


def guess_score_uses(first: Mapping[str, str]) -> dict[str, str]:
    plain = {name: plain_name(name) for name in first}
    uses: dict[str, str] = {}
    for use, names in LIKELY.items():
        column = next((c for n in names for c in first if plain[c] == n and c not in uses), None)
        if column is not None:
            uses[column] = use.value
    if ScoreUse.METRIC not in uses.values():
        uses = {name: use for name, use in uses.items() if use != ScoreUse.VALUE}
        uses |= {
            name: ScoreUse.SCORE.value
            for name, value in first.items()
            if name not in uses and _is_number(value)
        }
    return {name: uses[name] for name in first if name in uses}


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text.replace(",", ".")))
    except ValueError:
        return False


def read_scores_upload(running: RunningJob) -> str:
    upload = Upload.objects.select_related("study").get(pk=running.arguments["upload"])
    faults, report = Faults(), ReadingReport()
    try:
        with opened_upload(upload, report) as table:
            profile = profile_table(table, passed=_passing(running, 0, len))
            upload.form, upload.n_rows = table.form.plain, profile.n_rows
            upload.columns = [vars(column) for column in profile.columns]
            if "uses" not in upload.mapping:
                upload.mapping = _first_settings(upload).plain
            chosen = ScoreSettings.of(upload.mapping)
            upload.sample = [
                [row.line, row.fields, row.is_csv] for row in profile.sample[:ROWS_SHOWN]
            ]
            if chosen.problems():
                faults = profile.faults
                upload.summary = {}
            else:
                scores, report = _read(upload, table, chosen, faults, running)
                upload.summary = summary_of(_study(upload), scores)
    except ImportRefused as refused:
        upload.n_rows, faults = None, Faults()
        faults.add(refused)
    note_faults(upload, faults, report)
    n = upload.n_rows or 0
    return ngettext("%(n)s row read.", "%(n)s rows read.", n) % {"n": f"{n:,}"}


def _passing(running: RunningJob, total: int, *sizes: Any) -> Any:
    progress = running.progress(_("row"))
    return lambda rows: progress(rows, total, *sizes)


def _study(upload: Upload) -> Study:
    assert upload.study is not None
    return upload.study


def _first_settings(upload: Upload) -> ScoreSettings:
    stored = find_stored_mapping(upload, KIND)
    if stored is not None:
        return ScoreSettings.of(stored)
    first = {column["name"]: column["first"] for column in upload.columns}
    return ScoreSettings(uses=guess_score_uses(first))


def _read(
    upload: Upload, table: OpenTable, chosen: ScoreSettings, faults: Faults, running: RunningJob
) -> tuple[ScoreTable, ReadingReport]:
    # The columns were counted by the same table before.
    report = table.source.report = ReadingReport(notes=list(table.report.notes))
    rows: Iterator[Row] = iter(_passing(running, upload.n_rows or 0)(table.rows(faults)))
    cells: dict[int, Row] = {}

    def seen() -> Iterator[Row]:
        for row in rows:
            cells.clear()
            cells[row.line] = row
            yield row

    def note(refused: ImportRefused) -> None:
        row = cells.get(refused.line or 0)
        faults.add(refused, str(row.fields.get(refused.field, "") if row and refused.field else ""))

    scores = read_score_table(
        _study(upload),
        seen(),
        score_columns(chosen),
        signature=chosen.signature_for(upload),
        note=note,
        reading=Reading(chosen.policies, report),
    )
    return scores, report


def summary_of(study: Study, table: ScoreTable) -> dict[str, Any]:
    n_candidates = Candidate.objects.filter(item__study=study).count()
    rows = []
    for (metric, signature), keys in islice(table.by_run().items(), METRICS_SHOWN):
        values = [value for key in keys if not math.isnan(value := table.values[key])]
        rows.append(
            {
                "metric": metric,
                "signature": signature,
                "n": len(keys),
                "n_undefined": len(keys) - len(values),
                "n_without": n_candidates - len(keys),
                "least": min(values) if values else None,
                "most": max(values) if values else None,
            }
        )
    return {
        "n_scores": len(table.values),
        "n_metrics": len(table.by_run()),
        "n_candidates": n_candidates,
        "metrics": rows,
    }


def import_scores_upload(running: RunningJob) -> str:
    upload = Upload.objects.select_related("study", "uploaded_by").get(
        pk=running.arguments["upload"]
    )
    chosen, faults = ScoreSettings.of(upload.mapping), Faults()
    study = _study(upload)
    with opened_upload(upload) as table:
        scores, _report = _read(upload, table, chosen, faults, running)
    require_no_faults(upload, faults)
    if not scores.values:
        raise AnnotationError(_("The file holds no score. Nothing was imported."))
    with transaction.atomic():
        write_score_table(
            study, scores, lower_is_better=chosen.lower, signature=chosen.signature_for(upload)
        )
        keep_mapping(upload, KIND)
        actor = running.job.requested_by or upload.uploaded_by
        details = {"file": upload.file_name, "n_scores": len(scores.values)}
        record_in(study, actor=actor, action="scores.import", details=details)
        Upload.objects.filter(pk=upload.pk).update(result=study, faults=[], n_faults=0, sample=[])
        upload.parts.all().delete()
        counts = ", ".join(f"{metric} ({n:,})" for metric, n in scores.counts.items())
        message = _("Scores are imported: {counts}.").format(counts=counts)
        running.complete(message)
    ScoresKind().request(Study.objects.get(pk=study.pk), None)
    return message
