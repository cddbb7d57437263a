"""Samples of targets in sentences and by stratum, and what unequal probabilities mean for means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import Avg, Count, F, FloatField, Max, Min
from django.db.models.functions import Cast
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from error_codes import CodedText
from results.models import Result
from retrieval.models import (
    CollectionFile,
    EvaluationWeights,
    PoolStudy,
    ResultFile,
    SampledTarget,
)


@dataclass(frozen=True)
class Draw:
    """A sample of targets, and the least and greatest probability with which one was drawn."""

    version: Result
    least: float
    most: float

    @property
    def is_unequal(self) -> bool:
        return round(self.least, 9) != round(self.most, 9)

    @property
    def sentence(self) -> str:
        """How its targets were drawn."""
        names = {
            "number": self.version.number,
            "n": format(self.version.facts["n_topics"], ","),
            "least": f"{self.least:.2f}",
            "most": f"{self.most:.2f}",
        }
        if self.is_unequal:
            return CodedText(
                _(
                    "The {n} targets of sample {number} were drawn with probabilities from {least} "
                    "to {most}."
                ).format(**names),
                code="unequal_draw",
            )
        return CodedText(
            _(
                "The {n} targets of sample {number} were drawn with the same probability, {most}."
            ).format(**names),
            code="equal_draw",
        )


def find_draw(pool: Result | None) -> Draw | None:
    """The sample that a pool's targets are, where they are one."""
    key = pool.settings.get("sample") if pool is not None else None
    version = Result.objects.filter(pk=key).first() if key else None
    if version is None:
        return None
    limits = SampledTarget.objects.filter(version=version).aggregate(
        least=Min("inclusion"), most=Max("inclusion")
    )
    return Draw(version, limits["least"] or 1.0, limits["most"] or 1.0)


def find_evaluation_draw(evaluation: Result) -> Draw | None:
    """The sample whose targets the evaluated qrels are of, by their study's pool."""
    qrels = ResultFile.objects.filter(version=evaluation, kind=CollectionFile.Kind.QRELS)
    studies = qrels.exclude(file=None).values("file__study")
    rows = PoolStudy.objects.filter(study__in=studies).select_related("version")
    row = rows.order_by("pk").last()
    return find_draw(row.version) if row is not None else None


def describe_unweighted(evaluation: Result, draw: Draw | None) -> str:
    """Of which targets means are that take no notice of unequal probabilities; else empty."""
    if draw is None or not draw.is_unequal:
        return ""
    if EvaluationWeights.objects.filter(version=evaluation).exists():
        return ""
    return CodedText(
        _(
            "{drawn} Means and intervals here count each topic once, and are of the drawn ones "
            "alone: for all targets, choose this sample under “Topics stand for” on Evaluation."
        ).format(drawn=draw.sentence),
        code="unweighted",
    )


def sentence_of(version: Result) -> str:
    """How many targets were drawn, and by what."""
    text = ngettext(
        "Sample {number}: {n} target, by {column}.",
        "Sample {number}: {n} targets, by {column}.",
        version.facts["n_topics"],
    )
    n, column = format(version.facts["n_topics"], ","), version.settings["column"]
    return text.format(number=version.number, n=n, column=column)


def list_strata(version: Result) -> list[dict[str, Any]]:
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
