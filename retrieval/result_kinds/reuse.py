from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _, gettext_lazy, ngettext

from presentation.numbers import format_number, format_percent
from results.kinds import (
    Chart,
    Chosen,
    Computed,
    Count,
    Estimate,
    Given,
    Record,
    Row,
    Table,
    Text,
    Value,
    YesNo,
    register_kind,
    sentence,
)
from results.models import Result
from results.settings import Inputs
from retrieval.charts import depths_chart, left_out_chart
from retrieval.exceptions import RunsUnfit
from retrieval.models import Collection, CollectionFile, ResultType
from retrieval.result_kinds.base import ReuseSettings, RunsKind
from retrieval.reuse.pools import LEAST_IN_QRELS
from retrieval.reuse.stored_runs import estimate_reuse

Kind = CollectionFile.Kind
ESTIMATE_REUSE = "estimate_collection_reuse"
FEWEST = 2
LITTLE_JUDGED = 0.8
RUN, MEASURE = Text(gettext_lazy("Run")), Text(gettext_lazy("Measure"))
JUDGED, RELEVANT = Count(gettext_lazy("Judged")), Count(gettext_lazy("Relevant"))


def _list_effects(record: Record) -> list[Row]:
    titles = {"group": _("family {name}"), "system": "{name}"}
    return [
        {**unit, **effect, "name": titles[unit["unit"]].format(name=unit["name"])}
        for unit in record["left_out"]
        for effect in unit["effects"]
        if effect["is_left_out"]
    ]


def _list_systems(record: Record) -> list[Row]:
    """The runs; a group of one run is shown as no group."""
    shared = {one["group"] for one in record["systems"] if one["group"] != one["run"]}
    return [
        one | {"group": one["group"] if one["group"] in shared else "–"}
        for one in record["systems"]
    ]


def _count_unique(rows: Sequence[Row], result: Result) -> str:
    n = sum(one["n_relevant_only"] for one in rows if one["is_pooled"])
    return ngettext(
        "{n} relevant document that one run alone has",
        "{n} relevant documents that one run alone has",
        n,
    ).format(n=f"{n:,}")


def _count_lost(rows: Sequence[Row], result: Result) -> str:
    most = max((one["n_relevant_lost"] for one in rows), default=0)
    return ngettext(
        "at most {n} relevant document lost", "at most {n} relevant documents lost", most
    ).format(n=f"{most:,}")


def _describe_depths(rows: Sequence[Row], result: Result) -> str:
    if result.record["has_provenance"]:
        return _("to rank {depth}").format(depth=result.record["pool_depth"])
    return _("still rising") if result.record["is_rising"] else _("no longer rising")


@register_kind
class ReuseKind(RunsKind):
    name = ResultType.REUSE.value
    title = gettext_lazy("Reuse for other systems")
    job = ESTIMATE_REUSE
    job_label = gettext_lazy("Leaving systems out")
    form = 5
    settings = ReuseSettings
    inputs = {
        **RunsKind.inputs,
        "outside": Inputs(
            label=gettext_lazy("Runs that were not pooled"),
            several=True,
            is_required=False,
            is_subset=True,
            stored_as="outside",
        ),
    }
    tables = {
        "expectations": Table(
            gettext_lazy("What an outside system must expect"),
            {
                "measure": MEASURE,
                "unit": Text(
                    gettext_lazy("Left out"),
                    {"group": gettext_lazy("a family"), "system": gettext_lazy("a system")},
                ),
                "underestimate": Estimate(gettext_lazy("Too low by"), digits=4),
                "n_left_out": Count(gettext_lazy("Number left out")),
            },
            note=lambda result: _(
                "A value below 0 says too high: bpref and condensed lists can rise."
            ),
        ),
        "left_out": Table(
            gettext_lazy("Each run and family left out"),
            {
                "name": Text(gettext_lazy("Left out")),
                "n_judged_lost": Count(gettext_lazy("Judged lost")),
                "n_relevant_lost": Count(gettext_lazy("Relevant lost")),
                "run": RUN,
                "measure": MEASURE,
                "mean": Value(gettext_lazy("Mean"), digits=4),
                "mean_without": Value(gettext_lazy("Mean without"), digits=4),
                "change": Estimate(gettext_lazy("Change"), digits=4),
                "rank": Count(gettext_lazy("Rank")),
                "rank_without": Count(gettext_lazy("Rank without")),
                "judged": Value(gettext_lazy("Judged"), digits=3),
                "judged_without": Value(gettext_lazy("Judged without"), digits=3),
            },
            finding=_count_lost,
            rows=_list_effects,
        ),
        "systems": Table(
            gettext_lazy("What each run brought"),
            {
                "run": RUN,
                "group": Text(gettext_lazy("Family")),
                "is_pooled": YesNo(gettext_lazy("Pooled")),
                "judged_at_10": Value(gettext_lazy("Judged@10"), digits=3),
                "n_judged": JUDGED,
                "n_relevant": RELEVANT,
                "n_judged_only": Count(gettext_lazy("Judged by it alone")),
                "n_relevant_only": Count(gettext_lazy("Relevant by it alone")),
                "n_relevant_group_only": Count(gettext_lazy("Relevant by its family alone")),
            },
            finding=_count_unique,
            rows=_list_systems,
        ),
        "depths": Table(
            gettext_lazy("Relevant documents by the pool's depth"),
            {
                "depth": Count(gettext_lazy("Depth")),
                "n_judged": JUDGED,
                "n_relevant": RELEVANT,
                "n_new_judged": Count(gettext_lazy("New")),
                "n_new_relevant": Count(gettext_lazy("New relevant")),
            },
            finding=_describe_depths,
        ),
        "sources": Table(
            gettext_lazy("Share of relevant documents by source"),
            {
                "source": Text(gettext_lazy("Source")),
                "n_judged": JUDGED,
                "n_relevant": RELEVANT,
                "prevalence": Estimate(gettext_lazy("Prevalence")),
            },
        ),
    }

    def explain_missing(self, offered: Chosen) -> str:
        if len(offered["runs"]) < FEWEST or not offered["qrels"]:
            return sentence(
                "reuse_needs",
                _("Leaving one out needs two pooled runs or more, and the qrels of their pool."),
            )
        return ""

    def check_request(self, chosen: Chosen, settings: Mapping[str, Any]) -> None:
        if len(chosen["runs"]) - len(settings.get("outside", ())) < FEWEST:
            raise RunsUnfit(
                _("Choose two pooled runs or more: each is left out in turn."), code="too_few_runs"
            )

    def compute(self, given: Given[Collection]) -> Computed:
        estimated = estimate_reuse(given.inputs, given.settings, given.progress(_("system")))
        facts = {"n_topics": estimated.n_topics}
        return Computed(record=estimated.record(), facts=facts, notes=estimated.notes)

    def answer(self, result: Result) -> str:
        one = _find_main(result)
        value, measure = one["underestimate"], one["measure"]
        if value is None:
            return sentence(
                "unknown",
                _("Nothing is known of how {measure} would treat an outside system."),
                measure=measure,
            )
        if format_number(abs(value)) == format_number(0):
            return sentence(
                "unbiased",
                _("Expect {measure} of an outside system to be as it would be in the pool."),
                measure=measure,
            )
        code, text = (
            ("too_low", _("Expect {measure} of an outside system to be {value} too low."))
            if value >= 0
            else ("too_high", _("Expect {measure} of an outside system to be {value} too high."))
        )
        return sentence(code, text, measure=measure, value=format_number(abs(value)))

    def details(self, result: Result) -> Iterator[str]:
        yield from _describe_interval(_find_main(result))
        yield from _describe_pool(result.record)
        yield from _describe_judged(result.record)

    def charts(self, result: Result) -> list[Chart]:
        measure = _find_main(result)["measure"]
        rows = [one for one in _list_effects(result.record) if one["measure"] == measure]
        return [*left_out_chart(rows, measure), *depths_chart(result.record["depths"])]


def _find_main(result: Result) -> Row:
    """The expectation of the first primary measure, by families if there are any."""
    names = [*result.settings.get("primary", []), *result.settings["measures"]]
    expectations: list[Row] = result.record["expectations"]
    return min(
        expectations,
        key=lambda one: (
            names.index(one["measure"]) if one["measure"] in names else len(names),
            one["unit"] != "group",
        ),
    )


def _describe_interval(one: Row) -> Iterator[str]:
    if one["underestimate"] is None:
        yield sentence("reason", _("Why: {reason}."), reason=one["reason"])
        return
    left_out = (
        ngettext("%(n)d family left out", "%(n)d families left out", one["n_left_out"])
        if one["unit"] == "group"
        else ngettext("%(n)d system left out", "%(n)d systems left out", one["n_left_out"])
    ) % {"n": one["n_left_out"]}
    if one["ci_low"] is None:
        yield sentence(
            "no_interval",
            _("By {left_out}; too few for an interval: {reason}."),
            left_out=left_out,
            reason=one["reason"],
        )
        return
    low, high = format_number(one["ci_low"]), format_number(one["ci_high"])
    yield sentence(
        "interval",
        _("For one further such system: {low} to {high} too low, by {left_out}."),
        low=low,
        high=high,
        left_out=left_out,
    )
    if one["unit"] == "system":
        text = _(
            "No runs share a family. Similar runs stay in the pool when a run is left out, so a "
            "new kind of system will lose more."
        )
        yield sentence("no_families", text)


def _describe_pool(record: Record) -> Iterator[str]:
    depth, share = f"{record['pool_depth']:,}", format_percent(record["share_in_qrels"])
    if record["has_provenance"]:
        yield sentence(
            "provenance",
            _("The pool's own record says, per topic, which documents each run contributed."),
        )
        return
    if record["is_depth_inferred"]:
        text = _(
            "The depth of the pool is not known. Rank {depth} is assumed: all documents down to it "
            "are in the qrels. If the pool was deeper, enter its depth; this is a rough guide."
        )
        yield sentence("depth_assumed", text, depth=depth)
    elif record["share_in_qrels"] is not None and record["share_in_qrels"] < LEAST_IN_QRELS:
        text = _(
            "The pool was probably not {depth} documents deep: only {share} of the runs' documents "
            "down to that rank are in the qrels. An outside system loses more than this."
        )
        yield sentence("pool_incomplete", text, depth=depth, share=share)
    code, text = "last_rank", _("Rank {depth} of the pool added {share} of the relevant documents.")
    if record["is_rising"]:
        code, text = "pool_shallow", text + " " + _("A deeper pool would contain more.")
    elif not record["last_share"]:
        code, text = "last_rank_empty", _("Rank {depth} of the pool added no relevant document.")
    yield sentence(code, text, depth=depth, share=format_percent(record["last_share"]))


def _describe_judged(record: Record) -> Iterator[str]:
    judged = [one for one in record["systems"] if one["judged_at_10"] is not None]
    least = min(judged, key=lambda one: one["judged_at_10"], default=None)
    if least is not None and least["judged_at_10"] < LITTLE_JUDGED:
        text = _("Of {run}'s first ten documents {share} were judged.")
        yield sentence(
            "little_judged", text, run=least["run"], share=format_percent(least["judged_at_10"])
        )
