from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.db.models import Avg, Count, F, FloatField, Max, Min
from django.db.models.functions import Cast
from django.utils.functional import Promise
from django.utils.translation import gettext as _, gettext_lazy, ngettext

from error_codes import CodedText
from presentation.numbers import group_values
from results.models import Result
from retrieval.models import (
    CollectionFile,
    PooledTopic,
    PoolFinding,
    PoolReplacement,
    PoolStudy,
    ResultFile,
    SampledTarget,
)
from retrieval.pools.lint import FAULTS

MOST_FINDINGS = 50
LEAST_TARGETS_OF_A_HUB = 3
REASONS: dict[str, str | Promise] = {
    "target": gettext_lazy("is the target, or looks the same"),
    "pooled": gettext_lazy("another slot has it"),
    "content": gettext_lazy("another slot has the same picture or text"),
    "cap": gettext_lazy("is in as many pools as the limit allows"),
    "excluded": gettext_lazy("is never to be pooled"),
    "unknown": gettext_lazy("is not in the catalogue"),
    "picture": gettext_lazy("its picture cannot be shown"),
}
FAULT_TITLES = {
    "repeat": gettext_lazy("a candidate is twice in a pool"),
    "content": gettext_lazy("the same picture or text is twice in a pool, under two names"),
    "target": gettext_lazy("a target is among its own candidates, by name or looks"),
    "hub": gettext_lazy("a candidate is in the pools of many targets"),
    "quota": gettext_lazy("a source's quota is not met"),
    "short": gettext_lazy("there are fewer candidates than planned"),
    "picture": gettext_lazy("a document has no picture that can be shown"),
    "unknown": gettext_lazy("the catalogue does not have a document"),
    "unlisted": gettext_lazy("no source lists anything for a target"),
}
assert set(FAULT_TITLES) == set(FAULTS)


@dataclass(frozen=True)
class FaultCount:
    name: str
    n: int

    @property
    def title(self) -> str:
        return str(FAULT_TITLES[self.name])


class PoolView:
    def __init__(self, version: Result, topic: str = "") -> None:
        self.version, self.topic_name = version, topic
        self.facts = version.facts

    @cached_property
    def faults(self) -> list[FaultCount]:
        rows = PoolFinding.objects.filter(version=self.version).order_by("name")
        return [
            FaultCount(row["name"], row["n"]) for row in rows.values("name").annotate(n=Count("pk"))
        ]

    @cached_property
    def findings(self) -> list[PoolFinding]:
        return list(PoolFinding.objects.filter(version=self.version)[:MOST_FINDINGS])

    @cached_property
    def replacements(self) -> list[tuple[str, int]]:
        counts = Counter(
            dict(
                PoolReplacement.objects.filter(topic__version=self.version)
                .order_by()
                .values_list("reason")
                .annotate(n=Count("pk"))
            )
        )
        return [(str(REASONS[reason]), n) for reason, n in counts.most_common()]

    @property
    def answer(self) -> str:
        facts, n = self.facts, self.facts["n_topics"]
        least, most = facts["n_least"], facts["n_most"]
        targets = ngettext("{n} target", "{n} targets", n).format(n=f"{n:,}")
        each = (
            ngettext("{n} candidate each", "{n} candidates each", least).format(n=least)
            if least == most
            else _("{least} to {most} candidates each").format(least=least, most=most)
        )
        return _(
            "{targets} with {each}: {slots} judgments to make, of {documents} documents."
        ).format(
            targets=targets,
            each=each,
            slots=f"{facts['n_slots']:,}",
            documents=f"{facts['n_documents']:,}",
        )

    @property
    def soundness(self) -> str:
        if not self.faults:
            return _("Nothing is wrong with it.")
        n = sum(fault.n for fault in self.faults)
        return ngettext(
            "{n} fault is to be looked at.", "{n} faults are to be looked at.", n
        ).format(n=f"{n:,}")

    @property
    def has_hubs(self) -> bool:
        """Whether a share of the targets is more than the one or two that any candidate reaches."""
        return bool(self.facts["hub_share"] * self.facts["n_topics"] >= LEAST_TARGETS_OF_A_HUB)

    @property
    def hubs(self) -> str:
        facts, n = self.facts, self.facts["n_hubs"]
        if not self.has_hubs:
            return _(
                "Too few targets to speak of hubs; {anti} of the documents are in no pool."
            ).format(anti=f"{facts['anti_hubs']:.1%}")
        return ngettext(
            "{n} document is in at least {share} of the pools and takes {slots} of the slots; "
            "{anti} of the documents are in none.",
            "{n} documents are in at least {share} of the pools and take {slots} of the slots; "
            "{anti} of the documents are in none.",
            n,
        ).format(
            n=f"{n:,}",
            share=f"{facts['hub_share']:.0%}",
            slots=f"{facts['hub_slots']:.1%}",
            anti=f"{facts['anti_hubs']:.1%}",
        )

    @cached_property
    def topic(self) -> PooledTopic | None:
        rows = PooledTopic.objects.filter(version=self.version)
        match = rows.filter(topic=self.topic_name).first() if self.topic_name else None
        return match or rows.first()

    @property
    def unknown_topic(self) -> str:
        is_shown = self.topic is not None and self.topic.topic == self.topic_name
        return "" if is_shown else self.topic_name

    @cached_property
    def slots(self) -> list[dict[str, Any]]:
        if self.topic is None:
            return []
        passed = group_values(
            (row.slot, f"{row.docno} ({row.source} {row.source_rank}): {REASONS[row.reason]}")
            for row in self.topic.replacements.all()
        )
        return [{"slot": slot, "passed": passed[slot.slot]} for slot in self.topic.slots.all()]


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
    studies = (
        ResultFile.objects.filter(version=evaluation, kind=CollectionFile.Kind.QRELS)
        .exclude(file=None)
        .values("file__study")
    )
    row = (
        PoolStudy.objects.filter(study__in=studies).select_related("version").order_by("pk").last()
    )
    return find_draw(row.version) if row is not None else None


def describe_unweighted(evaluation: Result, draw: Draw | None) -> str:
    """Of which targets means are that take no notice of unequal probabilities; else empty."""
    if draw is None or not draw.is_unequal or evaluation.record["weighted"]:
        return ""
    return CodedText(
        _(
            "{drawn} Means and intervals here count each topic once, and are of the drawn ones "
            "alone: for all targets, choose this sample under “Topics stand for” on Evaluation."
        ).format(drawn=draw.sentence),
        code="unweighted",
    )


def sentence_of(version: Result) -> str:
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
    return [
        {
            **{name: row[name] for name in ("stratum", "low", "high", "n_drawn", "probability")},
            "n_targets": round(row["n_drawn"] / row["probability"]),
        }
        for row in strata.annotate(number=Cast(F("stratum"), FloatField())).order_by("number")
    ]
