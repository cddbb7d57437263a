"""How far a collection may be used for systems that were not pooled, in words and tables."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, partial

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext

from console.collections.evaluation_sentences import figure
from console.collections.result_charts import Chart
from console.collections.result_view import Fold, ResultView, estimate, text_column
from console.templatetags.numbers import percent
from error_codes import CodedText
from presentation.documents import Column, Number, Table
from retrieval.charts.reuse import (
    depths_in_words,
    left_out_forest,
    left_out_in_words,
    relevant_by_depth,
)
from retrieval.models import (
    JudgedPool,
    LeftOutEffect,
    LeftOutUnit,
    PooledRun,
    PoolRank,
    ReuseExpectation,
)
from retrieval.reuse.records import LEAST_IN_QRELS

RUN, MEASURE = text_column(gettext_noop("Run")), text_column(gettext_noop("Measure"))
FAMILY = text_column(gettext_noop("Family"))
LITTLE_JUDGED = 0.8


DEPTHS = "depth", "n_judged", "n_relevant", "n_new_relevant"


class ReuseView(ResultView):
    """What leaving each run and family out of the pool does."""

    picture = "console:collection-reuse-picture"

    @cached_property
    def pool(self) -> JudgedPool:
        return self.version.pool

    @cached_property
    def expectations(self) -> list[ReuseExpectation]:
        return list(self.version.expectations.all())

    @cached_property
    def main(self) -> ReuseExpectation:
        """That of the first primary measure, by families where there are any."""
        rules = self.version.rules
        names = [*rules.get("primary", []), *rules["measures"]]
        ranked = sorted(
            self.expectations,
            key=lambda one: (
                names.index(one.measure) if one.measure in names else len(names),
                one.unit != "group",
            ),
        )
        return ranked[0]

    @cached_property
    def runs(self) -> list[PooledRun]:
        return list(self.version.pooled_runs.all())

    @cached_property
    def effects(self) -> list[LeftOutEffect]:
        """On the runs that are left out themselves."""
        rows = LeftOutEffect.objects.filter(unit__version=self.version, is_left_out=True)
        return list(rows.select_related("unit").order_by("pk"))

    @cached_property
    def charts(self) -> list[Chart]:
        """Those that have something to draw."""
        return [chart for chart in (self._forest(), self._curve()) if len(chart.frame)]

    def _forest(self) -> Chart:
        import pandas as pd

        measure = self.main.measure
        rows = [
            (one.run, one.unit.unit, one.change, one.ci_low, one.ci_high)
            for one in self.effects
            if one.measure == measure and one.change is not None
        ]
        frame = pd.DataFrame(rows, columns=["run", "unit", "change", "ci_low", "ci_high"])
        return Chart(
            "left-out",
            _("What each run loses outside the pool"),
            left_out_in_words(frame, measure) if len(frame) else "",
            frame,
            partial(left_out_forest, frame, measure=measure),
        )

    def _curve(self) -> Chart:
        import pandas as pd

        rows = [tuple(getattr(one, name) for name in DEPTHS) for one in self.depths]
        frame = pd.DataFrame(rows, columns=list(DEPTHS))
        return Chart(
            "depths",
            _("Relevant documents by the pool's depth"),
            depths_in_words(frame) if len(frame) else "",
            frame,
            partial(relevant_by_depth, frame),
        )

    @cached_property
    def depths(self) -> list[PoolRank]:
        return list(self.version.ranks.all())

    @property
    def first_sentence(self) -> str:
        one = self.main
        if one.underestimate is None:
            return CodedText(
                _("Nothing is known of how {measure} would treat an outside system.").format(
                    measure=one.measure
                ),
                code="unknown",
            )
        if figure(abs(one.underestimate)) == figure(0):
            return CodedText(
                _("Expect {measure} of an outside system to be as it would be in the pool.").format(
                    measure=one.measure
                ),
                code="unbiased",
            )
        if one.underestimate >= 0:
            return CodedText(
                _("Expect {measure} of an outside system to be {value} too low.").format(
                    measure=one.measure, value=figure(one.underestimate)
                ),
                code="too_low",
            )
        return CodedText(
            _("Expect {measure} of an outside system to be {value} too high.").format(
                measure=one.measure, value=figure(-one.underestimate)
            ),
            code="too_high",
        )

    @property
    def details(self) -> list[str]:
        return [*self._basis(), *self._interval(), *self._pool(), *self._judged()]

    def _interval(self) -> Iterator[str]:
        one = self.main
        if one.underestimate is None:
            yield CodedText(_("Why: {reason}.").format(reason=one.reason), code="reason")
            return
        left_out = (
            ngettext("%(n)d family left out", "%(n)d families left out", one.n_left_out)
            if one.unit == "group"
            else ngettext("%(n)d system left out", "%(n)d systems left out", one.n_left_out)
        ) % {"n": one.n_left_out}
        if one.ci_low is None or one.ci_high is None:
            yield CodedText(
                _("By {left_out}; too few for an interval: {reason}.").format(
                    left_out=left_out, reason=one.reason
                ),
                code="no_interval",
            )
            return
        yield CodedText(
            _("For one further such system: {low} to {high} too low, by {left_out}.").format(
                low=figure(one.ci_low), high=figure(one.ci_high), left_out=left_out
            ),
            code="interval",
        )
        if one.unit == "system":
            yield CodedText(
                _(
                    "No runs share a family here, so that relatives of a run that is left out "
                    "still vouch for what it found: a new kind of system will suffer more."
                ),
                code="no_families",
            )

    def _basis(self) -> Iterator[str]:
        """How deep each run is taken to have been pooled, where that could be otherwise."""
        pool = self.pool
        if pool.has_provenance:
            yield CodedText(
                _(
                    "What a run brought is what the pool took of it, topic by topic, by the pool's "
                    "own record."
                ),
                code="provenance",
            )
        elif pool.is_depth_inferred:
            yield CodedText(
                _(
                    "How deep the runs were pooled is not known: rank {depth} is assumed, to which "
                    "all their documents are in the qrels. If they were pooled deeper, type the "
                    "depth: this is then a rough guide only."
                ).format(depth=pool.pool_depth),
                code="depth_assumed",
            )
        elif pool.share_in_qrels is not None and pool.share_in_qrels < LEAST_IN_QRELS:
            yield CodedText(
                _(
                    "The pool was hardly {depth} documents deep: of the runs' documents to that "
                    "rank {share} are in the qrels. An outside system loses more than this."
                ).format(depth=f"{pool.pool_depth:,}", share=percent(pool.share_in_qrels)),
                code="pool_incomplete",
            )

    def _pool(self) -> Iterator[str]:
        if self.pool.has_provenance:
            return
        share = percent(self.pool.last_share)
        names = {"depth": self.pool.pool_depth, "share": share}
        if self.pool.is_rising:
            yield CodedText(
                _(
                    "The pool is shallow: its rank {depth} still brought {share} of the relevant "
                    "documents that the runs have down to it, so that a deeper one would hold more."
                ).format(**names),
                code="pool_shallow",
            )
        elif not self.pool.last_share:
            yield CodedText(
                _("The pool's rank {depth} brought no relevant document.").format(**names),
                code="last_rank_empty",
            )
        else:
            yield CodedText(
                _(
                    "The pool's rank {depth} brought {share} of the relevant documents that the "
                    "runs have down to it."
                ).format(**names),
                code="last_rank",
            )

    def _judged(self) -> Iterator[str]:
        little = [
            run
            for run in self.runs
            if run.judged_at_10 is not None and run.judged_at_10 < LITTLE_JUDGED
        ]
        if little:
            least = min(little, key=lambda run: run.judged_at_10 or 0)
            yield CodedText(
                _("Of {run}'s first ten documents {share} were judged.").format(
                    run=least.run, share=percent(least.judged_at_10)
                ),
                code="little_judged",
            )

    def _folds(self) -> Iterator[Fold]:
        yield self._expected()
        yield self._left_out()
        yield self._systems()
        yield self._depths()
        yield self._sources()

    def _expected(self) -> Fold:
        caption = _("What an outside system must expect")
        columns = (
            *(MEASURE, text_column(_("Left out")), Column(_("Too low by"))),
            Column(_("Number left out")),
        )
        rows = [
            (
                *(one.measure, unit_name(one.unit)),
                estimate(one.underestimate, one.ci_low, one.ci_high, one.reason, 4),
                one.n_left_out,
            )
            for one in self.expectations
        ]
        note = _("A value below 0 says too high: bpref and condensed lists can rise.")
        finding = _("by {n} measures").format(n=len({one.measure for one in self.expectations}))
        return Fold(caption, finding, Table("expectations", caption, columns, rows, note=note))

    def _left_out(self) -> Fold:
        caption = _("Each run and family left out")
        columns = (
            *(
                text_column(_("Left out")),
                Column(_("Judged lost")),
                Column(_("Relevant lost")),
                RUN,
            ),
            *(
                MEASURE,
                Column(_("Mean")),
                Column(_("Mean without")),
                Column(_("Change")),
                Column(_("Rank")),
            ),
            *(Column(_("Rank without")), Column(_("Judged")), Column(_("Judged without"))),
        )
        rows = [
            (
                *(unit_label(one.unit), one.unit.n_judged_lost, one.unit.n_relevant_lost, one.run),
                *(one.measure, Number(one.mean, 4), Number(one.mean_without, 4)),
                estimate(one.change, one.ci_low, one.ci_high, decimals=4),
                *(one.rank, one.rank_without, Number(one.judged), Number(one.judged_without)),
            )
            for one in self.effects
        ]
        most = max((one.unit.n_relevant_lost for one in self.effects), default=0)
        finding = ngettext(
            "at most {n} relevant document lost", "at most {n} relevant documents lost", most
        ).format(n=f"{most:,}")
        return Fold(caption, finding, Table("left-out", caption, columns, rows))

    def _systems(self) -> Fold:
        caption = _("What each run brought")
        shared = {one.group for one in self.runs if one.group != one.run}
        columns = (
            *(RUN, FAMILY, text_column(_("Pooled")), Column(_("Judged@10")), Column(_("Judged"))),
            *(
                Column(_("Relevant")),
                Column(_("Judged by it alone")),
                Column(_("Relevant by it alone")),
            ),
            Column(_("Relevant by its family alone")),
        )
        rows = [
            (
                *(one.run, one.group if one.group in shared or one.group != one.run else "–"),
                *(_("yes") if one.is_pooled else _("no"), Number(one.judged_at_10)),
                *(one.n_judged, one.n_relevant, one.n_judged_only, one.n_relevant_only),
                one.n_relevant_group_only,
            )
            for one in self.runs
        ]
        unique = sum(one.n_relevant_only for one in self.runs if one.is_pooled)
        finding = ngettext(
            "{n} relevant document that one run alone has",
            "{n} relevant documents that one run alone has",
            unique,
        ).format(n=f"{unique:,}")
        return Fold(caption, finding, Table("systems", caption, columns, rows))

    def _depths(self) -> Fold:
        caption = _("Relevant documents by the pool's depth")
        titles = (_("Depth"), _("Judged"), _("Relevant"), _("New"), _("New relevant"))
        rows = [
            (one.depth, one.n_judged, one.n_relevant, one.n_new_judged, one.n_new_relevant)
            for one in self.depths
        ]
        finding = _("still rising") if self.pool.is_rising else _("no longer rising")
        if self.pool.has_provenance:
            finding = _("to rank {depth}").format(depth=self.pool.pool_depth)
        return Fold(caption, finding, Table("depths", caption, tuple(map(Column, titles)), rows))

    def _sources(self) -> Fold:
        caption = _("Share of relevant documents by source")
        columns = (
            *(
                text_column(_("Source")),
                Column(_("Judged")),
                Column(_("Relevant")),
                Column(_("Prevalence")),
            ),
        )
        rows = [
            (
                *(one.source, one.n_judged, one.n_relevant),
                estimate(one.prevalence, one.ci_low, one.ci_high, one.reason),
            )
            for one in self.version.sources.all()
        ]
        finding = ngettext("%(n)d source", "%(n)d sources", len(rows)) % {"n": len(rows)}
        return Fold(caption, finding, Table("sources", caption, columns, rows))


def unit_name(unit: str) -> str:
    return _("a family") if unit == "group" else _("a system")


def unit_label(unit: LeftOutUnit) -> str:
    """What is left out, by name."""
    return _("family {name}").format(name=unit.name) if unit.unit == "group" else unit.name
