"""How a study's answers were collected, for its datasheet."""

from __future__ import annotations

from annotation.models import Study
from hits.models import Batch, Recruitment
from hits.statements import BatchReport, batch_report


def list_batches(study: Study) -> list[tuple[Batch, BatchReport]]:
    started = Batch.objects.of(study).started().select_related("connection")
    return [(batch, batch_report(batch)) for batch in started.order_by("pk")]


def list_recruitments(study: Study) -> list[Recruitment]:
    """Those that participants came by, or may come."""
    rows = Recruitment.objects.of(study).exclude(public_id="")
    rows = rows.exclude(state__in=[*Recruitment.OVER, Recruitment.State.DRAFT])
    return list(rows.select_related("batch", "recruiter").order_by("pk"))
