"""Prints what a database holds, for `manage.py shell -c`: numbers that no migration may change."""

import json

from annotation.frames import judgment_frame
from annotation.models import Study, Submission
from marketplace.models import LedgerEntry
from metrics.models import Score

studies = {}
for study in Study.objects.order_by("slug"):
    values = judgment_frame(study)["value"]
    studies[study.slug] = {
        "items": study.items.count(),
        "submissions": Submission.objects.of(study).count(),
        "judgments": len(values),
        "sum": round(float(values.sum()), 6),
        "scores": Score.objects.filter(run__study=study).count(),
    }
print(json.dumps({"studies": studies, "ledger_entries": LedgerEntry.objects.count()}))  # noqa: T201
