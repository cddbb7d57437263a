"""What is said of answers that a program made up, wherever results are handed on."""

from __future__ import annotations

from django.core.cache import cache
from django.db.models import Count, Q
from django.utils.translation import gettext as _

from annotation.models import Study, Submission


def simulation_notice(study: Study) -> str:
    """That answers are simulated, and how many; empty where none says so."""
    counts = _counts(study)
    if not counts["simulated"]:
        return ""
    if counts["simulated"] == counts["all"]:
        whose = _("Every answer of this study is simulated: the results are nobody's opinion.")
    else:
        text = _(
            "%(simulated)s of the %(all)s submissions of this study are simulated: they are "
            "nobody's opinion."
        )
        whose = text % {name: f"{n:,}" for name, n in counts.items()}
    circular = _(
        "Simulated workers go by the words that a candidate shares with its reference, so that "
        "metrics which count shared words agree with them whatever they are worth."
    )
    return f"{whose} {circular}"


def _counts(study: Study) -> dict[str, int]:
    """Counted once for each version of the judgments."""
    key = f"simulated:{study.pk}:{study.judgments_version}"
    counts: dict[str, int] | None = cache.get(key)
    if counts is None:
        counts = Submission.objects.of(study).aggregate(
            all=Count("pk"), simulated=Count("pk", filter=Q(is_simulated=True))
        )
        cache.set(key, counts)
    return counts
