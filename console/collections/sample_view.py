"""A stored sample of targets as pages and programs are shown it: its sentence and its strata."""

from __future__ import annotations

from typing import Any

from django.db.models import Avg, Count, F, FloatField, Max, Min
from django.db.models.functions import Cast
from django.utils.translation import ngettext

from results.models import Result
from retrieval.models import SampledTarget


def sentence_of(version: Result) -> str:
    """How many targets were drawn, and by what."""
    text = ngettext(
        "Sample {number}: {n} target, by {column}.",
        "Sample {number}: {n} targets, by {column}.",
        version.facts["n_topics"],
    )
    n, column = format(version.facts["n_topics"], ","), version.settings["column"]
    return text.format(number=version.number, n=n, column=column)


def strata_of(version: Result) -> list[dict[str, Any]]:
    """Each stratum of a sample, with how many targets it had: drawn over the probability."""
    rows = SampledTarget.objects.filter(version=version).order_by().values("stratum")
    strata = rows.annotate(
        n_drawn=Count("pk"), low=Min("value"), high=Max("value"), probability=Avg("inclusion")
    )
    in_order = strata.annotate(number=Cast(F("stratum"), FloatField())).order_by("number")
    return [
        {
            **{name: row[name] for name in ("stratum", "low", "high", "n_drawn", "probability")},
            "n_targets": round(row["n_drawn"] / row["probability"]),
        }
        for row in in_order
    ]
