"""Systems that were not pooled: each run and family left out of the pool, and what it loses."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from error_codes import CodedText
from presentation.numbers import format_number, format_percent
from results.computing import request_result
from results.kinds import Chart, Computed, register_kind
from results.models import Result
from results.tables import Count, Estimate, Record, Row, Table, Text, Value, YesNo
from retrieval.charts.reuse import (
    depths_in_words,
    left_out_forest,
    left_out_in_words,
    relevant_by_depth,
)
from retrieval.exceptions import PoolDepthUnknown, RunsUnfit
from retrieval.models import Collection, CollectionFile, ResultType
from retrieval.pool_provenance import find_pool_depth, find_provenance
from retrieval.result_kinds.base import CollectionKind
from retrieval.result_kinds.evaluation import settings_of
from retrieval.reuse.records import LEAST_IN_QRELS
from retrieval.reuse.reusability import reusability
from retrieval.stored_files import opened_files

if TYPE_CHECKING:
    from accounts.models import User
    from work.execution import RunningJob
    from work.models import Job

ESTIMATE_REUSE = "estimate_collection_reuse"
FEWEST = 2
LITTLE_JUDGED = 0.8
DEPTHS = ("depth", "n_judged", "n_relevant", "n_new_relevant")
Kind = CollectionFile.Kind
RUN, MEASURE = Text(gettext_lazy("Run")), Text(gettext_lazy("Measure"))
JUDGED, RELEVANT = Count(gettext_lazy("Judged")), Count(gettext_lazy("Relevant"))


def request_reuse(
    *,
    collection: Collection,
    qrels: CollectionFile,
    runs: Sequence[CollectionFile],
    rules: Mapping[str, Any],
    actor: User | None,
) -> Job:
    """Have each run and each family left out in the background; RunsUnfit if it is impossible.

    `rules` are an evaluation's, with `pool_depth` (or None) and `outside`, names of runs.
    """
    settings_of(rules)
    if len(runs) - len(rules.get("outside", ())) < FEWEST:
        raise RunsUnfit(
            _("Choose two pooled runs or more: each is left out in turn."), code="too_few_runs"
        )
    return request_result(
        kind=ReuseKind(), subject=collection, inputs=[qrels, *runs], settings=rules, actor=actor
    )


def families_of(files: Sequence[CollectionFile], outside: Sequence[str]) -> dict[str, list[str]]:
    """The pooled runs of each family."""
    families: dict[str, list[str]] = defaultdict(list)
    for file in files:
        if file.kind == Kind.RUN and file.family and file.name not in outside:
            families[file.family].append(file.name)
    return dict(families)


def _list_effects(record: Record) -> list[Row]:
    """What is left out, and its effect on the runs that are left out themselves."""
    return [
        {**unit, **effect}
        for unit in record["left_out"]
        for effect in unit["effects"]
        if effect["is_left_out"]
    ]


def _label_units(record: Record) -> list[Row]:
    """The effects, with what is left out as a page names it."""
    family = _("family {name}")
    return [
        row | {"name": family.format(name=row["name"]) if row["unit"] == "group" else row["name"]}
        for row in map(dict, _list_effects(record))
    ]


def _list_systems(record: Record) -> list[Row]:
    """The runs; the group of one that shares it with no other is none."""
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


def _count_measures(rows: Sequence[Row], result: Result) -> str:
    return _("by {n} measures").format(n=len({one["measure"] for one in rows}))


def _count_sources(rows: Sequence[Row], result: Result) -> str:
    return ngettext("%(n)d source", "%(n)d sources", len(rows)) % {"n": len(rows)}


@register_kind
class ReuseKind(CollectionKind):
    """What leaving each run and family out of the pool does."""

    name = ResultType.REUSE.value
    title = gettext_lazy("Reuse for other systems")
    job = ESTIMATE_REUSE
    job_label = gettext_lazy("Leaving systems out")
    form = 5
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
            finding=_count_measures,
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
                "judged": Value(gettext_lazy("Judged"), digits=2),
                "judged_without": Value(gettext_lazy("Judged without"), digits=2),
            },
            finding=_count_lost,
            rows=_label_units,
        ),
        "systems": Table(
            gettext_lazy("What each run brought"),
            {
                "run": RUN,
                "group": Text(gettext_lazy("Family")),
                "is_pooled": YesNo(gettext_lazy("Pooled")),
                "judged_at_10": Value(gettext_lazy("Judged@10"), digits=2),
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
            finding=_count_sources,
        ),
    }

    def compute(
        self,
        subject: Collection,
        inputs: Sequence[CollectionFile],
        settings: Mapping[str, Any],
        running: RunningJob,
    ) -> Computed:
        outside = settings.get("outside", [])
        depth: int | None = settings.get("pool_depth")
        provenance = None if depth else find_provenance(inputs, outside)
        if not depth and provenance is None:
            depth = find_pool_depth(inputs)
        with opened_files(inputs) as (runs, qrels):
            [(name, grades)] = qrels.items()
            try:
                estimated = reusability(
                    runs,
                    grades,
                    depth,
                    families_of(inputs, outside),
                    settings_of(settings),
                    outside=outside,
                    provenance=provenance,
                    progress=running.progress(_("system")),
                )
            except PoolDepthUnknown:
                raise PoolDepthUnknown(_ask_for_depth(name)) from None
        record = estimated.record() | {"has_provenance": estimated.has_provenance}
        facts = {"n_topics": estimated.n_topics}
        return Computed(record=record, facts=facts, notes=estimated.notes)

    def answer(self, result: Result) -> str:
        one = _find_main(result)
        value, measure = one["underestimate"], one["measure"]
        if value is None:
            text = _("Nothing is known of how {measure} would treat an outside system.")
            return CodedText(text.format(measure=measure), code="unknown")
        if format_number(abs(value)) == format_number(0):
            text = _("Expect {measure} of an outside system to be as it would be in the pool.")
            return CodedText(text.format(measure=measure), code="unbiased")
        code, text = (
            ("too_low", _("Expect {measure} of an outside system to be {value} too low."))
            if value >= 0
            else ("too_high", _("Expect {measure} of an outside system to be {value} too high."))
        )
        return CodedText(text.format(measure=measure, value=format_number(abs(value))), code=code)

    def details(self, result: Result) -> Iterator[str]:
        yield from _describe_basis(result.record)
        yield from _describe_interval(_find_main(result))
        yield from _describe_pool(result.record)
        yield from _describe_judged(result.record)

    def charts(self, result: Result) -> Iterator[Chart]:
        import pandas as pd

        measure = _find_main(result)["measure"]
        rows = [
            one
            for one in _list_effects(result.record)
            if one["measure"] == measure and one["change"] is not None
        ]
        effects = pd.DataFrame(rows, columns=["run", "unit", "change", "ci_low", "ci_high"])
        depths = pd.DataFrame(result.record["depths"], columns=list(DEPTHS))
        if len(effects):
            yield Chart(
                "left-out",
                _("What each run loses outside the pool"),
                left_out_in_words(effects, measure),
                effects,
                partial(left_out_forest, effects, measure=measure),
            )
        if len(depths):
            yield Chart(
                "depths",
                _("Relevant documents by the pool's depth"),
                depths_in_words(depths),
                depths,
                partial(relevant_by_depth, depths),
            )


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
        yield CodedText(_("Why: {reason}.").format(reason=one["reason"]), code="reason")
        return
    left_out = (
        ngettext("%(n)d family left out", "%(n)d families left out", one["n_left_out"])
        if one["unit"] == "group"
        else ngettext("%(n)d system left out", "%(n)d systems left out", one["n_left_out"])
    ) % {"n": one["n_left_out"]}
    if one["ci_low"] is None:
        text = _("By {left_out}; too few for an interval: {reason}.")
        text = text.format(left_out=left_out, reason=one["reason"])
        yield CodedText(text, code="no_interval")
        return
    low, high = format_number(one["ci_low"]), format_number(one["ci_high"])
    text = _("For one further such system: {low} to {high} too low, by {left_out}.")
    yield CodedText(text.format(low=low, high=high, left_out=left_out), code="interval")
    if one["unit"] == "system":
        text = _(
            "No runs share a family here, so that relatives of a run that is left out "
            "still vouch for what it found: a new kind of system will suffer more."
        )
        yield CodedText(text, code="no_families")


def _describe_basis(record: Record) -> Iterator[str]:
    """How deep each run is taken to have been pooled, if that could be otherwise."""
    if record["has_provenance"]:
        text = _(
            "What a run brought is what the pool took of it, topic by topic, by the pool's own "
            "record."
        )
        yield CodedText(text, code="provenance")
    elif record["is_depth_inferred"]:
        text = _(
            "How deep the runs were pooled is not known: rank {depth} is assumed, to which all "
            "their documents are in the qrels. If they were pooled deeper, type the depth: this "
            "is then a rough guide only."
        )
        yield CodedText(text.format(depth=record["pool_depth"]), code="depth_assumed")
    elif record["share_in_qrels"] is not None and record["share_in_qrels"] < LEAST_IN_QRELS:
        text = _(
            "The pool was hardly {depth} documents deep: of the runs' documents to that rank "
            "{share} are in the qrels. An outside system loses more than this."
        ).format(depth=f"{record['pool_depth']:,}", share=format_percent(record["share_in_qrels"]))
        yield CodedText(text, code="pool_incomplete")


def _describe_pool(record: Record) -> Iterator[str]:
    if record["has_provenance"]:
        return
    if record["is_rising"]:
        code, text = (
            "pool_shallow",
            _(
                "The pool is shallow: its rank {depth} still brought {share} of the relevant "
                "documents that the runs have down to it, so that a deeper one would hold more."
            ),
        )
    elif not record["last_share"]:
        code, text = "last_rank_empty", _("The pool's rank {depth} brought no relevant document.")
    else:
        code, text = (
            "last_rank",
            _(
                "The pool's rank {depth} brought {share} of the relevant documents that the runs "
                "have down to it."
            ),
        )
    share = format_percent(record["last_share"])
    yield CodedText(text.format(depth=record["pool_depth"], share=share), code=code)


def _describe_judged(record: Record) -> Iterator[str]:
    judged = [one for one in record["systems"] if one["judged_at_10"] is not None]
    least = min(judged, key=lambda one: one["judged_at_10"], default=None)
    if least is not None and least["judged_at_10"] < LITTLE_JUDGED:
        text = _("Of {run}'s first ten documents {share} were judged.").format(
            run=least["run"], share=format_percent(least["judged_at_10"])
        )
        yield CodedText(text, code="little_judged")


def _ask_for_depth(qrels: str) -> str:
    """What the page's form needs where files do not show how deep their pool was."""
    return _(
        "Not all first documents of the runs are in {qrels}, so the files do not show how deep the "
        "pool was. Under “Depth of the pool”, type how many of each run's first documents were "
        "pooled, such as 10; where every run begins with its own target, which is never pooled, "
        "one more. If only some of the runs were pooled, tick the others under “Runs that were "
        "not pooled”."
    ).format(qrels=qrels)
