import json

from annotation.frames import judgment_frame
from annotation.models import Study, Submission
from marketplace.models import LedgerEntry
from metrics.models import Score


def print_summary() -> None:
    studies = {study.slug: _numbers(study) for study in Study.objects.order_by("slug")}
    print(json.dumps({"studies": studies, "ledger_entries": LedgerEntry.objects.count()}))  # noqa: T201


def _numbers(study: Study) -> dict[str, float]:
    values = judgment_frame(study)["value"]
    return {
        "items": study.items.count(),
        "submissions": Submission.objects.of(study).count(),
        "judgments": len(values),
        "sum": round(float(values.sum()), 6),
        "scores": Score.objects.filter(run__study=study).count(),
    }
