"""How far to trust an evaluation: the runs' order under several qrels, in words and tables."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from console.collections.comparison_words import (
    any_two_sentence,
    change_name,
    kind_name,
    pair_sentence,
)
from console.collections.few_runs import few_runs_sentence
from console.collections.result_charts import MOST_DRAWN, Chart, means_chart
from console.collections.result_view import Fold, ResultView, estimate, text_column
from console.templatetags.numbers import coefficient
from error_codes import CodedText
from presentation.documents import Column, Number, P, Table
from retrieval.models import (
    AnyTwoAssessors,
    ChangedPair,
    ComparedQrels,
    RankedRun,
    RankingCoefficient,
    RankingPair,
)
from retrieval.rankings import ComparisonSettings
from validation.documents.terms import listed

QRELS, AGAINST = text_column(gettext_noop("Qrels")), text_column(gettext_noop("Against"))
MEASURE, RUN = text_column(gettext_noop("Measure")), text_column(gettext_noop("Run"))
MOST_SENTENCES = 6
UNKNOWN = RankingCoefficient()
Row = tuple[str | int | Number | P, ...]


class ComparisonView(ResultView):
    """Runs ranked under several qrels, by the first primary measure."""

    picture = "console:collection-trust-picture"

    @cached_property
    def sets(self) -> list[ComparedQrels]:
        return list(self.version.compared_qrels.all())

    @cached_property
    def measure(self) -> str:
        rules = self.version.rules
        names = [pair.measure for pair in self.all_pairs]
        return next((name for name in rules.get("primary", []) if name in names), names[0])

    @cached_property
    def coefficients(self) -> dict[tuple[int, str], RankingCoefficient]:
        """By the key of their pair of rankings, and by use."""
        rows = RankingCoefficient.objects.filter(pair__version=self.version)
        return {(one.pair_id, one.use): one for one in rows.select_related("pair")}

    @cached_property
    def all_pairs(self) -> list[RankingPair]:
        return [one.pair for (_key, use), one in self.coefficients.items() if use == "tau_b"]

    @cached_property
    def pairs(self) -> list[RankingPair]:
        """Of the measure, between the qrels of which sentences speak."""
        compared = set(self.compared)
        return [
            pair
            for pair in self.all_pairs
            if pair.measure == self.measure and {pair.first, pair.second} <= compared
        ]

    @cached_property
    def compared(self) -> list[str]:
        """The qrels that were handed in, or where no two of them rank the runs, all."""
        handed_in = [one.name for one in self.sets if one.kind != "derived"]
        return handed_in if len(handed_in) > 1 else [one.name for one in self.sets]

    @cached_property
    def ranked(self) -> list[RankedRun]:
        return list(self.version.ranked.all())

    @cached_property
    def charts(self) -> list[Chart]:
        """The runs' means under what was compared, where so many can be told apart."""
        rows = [
            (one.run, one.qrels, one.rank, one.mean, one.ci_low, one.ci_high)
            for one in self.ranked
            if one.measure == self.measure and one.qrels in self.compared[:MOST_DRAWN]
        ]
        return means_chart("ranks", _("The runs under each of the qrels"), self.measure, rows)

    @property
    def n_runs(self) -> int:
        """Those that are ranked."""
        return max(one.n_systems for one in self.coefficients.values())

    @cached_property
    def any_two(self) -> list[AnyTwoAssessors]:
        """One row where there are assessors."""
        one = getattr(self.version, "any_two_assessors", None)
        return [one] if one else []

    @cached_property
    def machines(self) -> set[str]:
        return {one.name for one in self.sets if one.kind == "machine"}

    @property
    def first_sentence(self) -> str:
        # names may have commas of their own
        names = listed([_("“{name}”").format(name=name) for name in self.compared])
        if len(self.compared) > MOST_SENTENCES:
            names = _("{n} qrels").format(n=len(self.compared))
        worst = max(pair.n_swapped_significantly for pair in self.pairs)
        if worst:
            return CodedText(
                _("Who judged changes which run is better by {measure}.").format(
                    measure=self.measure
                ),
                code="decided_order_changes",
            )
        if any(pair.n_swapped for pair in self.pairs):
            return CodedText(
                _(
                    "The order of the runs by {measure} changes with {names} only where no test "
                    "decides which run is better."
                ).format(measure=self.measure, names=names),
                code="undecided_order_changes",
            )
        return CodedText(
            _("The runs come in the same order by {measure} under {names}.").format(
                measure=self.measure, names=names
            ),
            code="same_order",
        )

    @property
    def details(self) -> list[str]:
        order = sorted(self.pairs, key=lambda pair: -pair.n_swapped_significantly)
        sentences = [
            pair_sentence(pair, self.coefficients[pair.pk, "tau_b"])
            for pair in order[:MOST_SENTENCES]
        ]
        if len(order) > MOST_SENTENCES:
            sentences.append(
                CodedText(_("All pairs of qrels are in the tables below."), code="more_pairs")
            )
        if few := few_runs_sentence(self.n_runs):
            sentences.append(few)
        sentences += map(any_two_sentence, self.any_two)
        if self.machines:
            sentences.append(
                CodedText(
                    _(
                        "{names}: a machine judged. High agreement over all runs does not say that "
                        "the best are told apart, nor that runs of its own model are not favoured."
                    ).format(
                        names=listed(
                            [_("“{name}”").format(name=one) for one in sorted(self.machines)]
                        )
                    ),
                    code="machine_judged",
                )
            )
        return sentences

    def _folds(self) -> Iterator[Fold]:
        yield self._similarities()
        yield self._significance()
        yield self._changed()
        yield self._rankings()
        yield self._labels()
        yield self._any_two()
        yield self._designs()
        yield self._crossed()
        yield self._described()

    def _similarities(self) -> Fold:
        columns = (
            MEASURE,
            QRELS,
            AGAINST,
            Column(_("tau-b")),
            Column(_("tau_AP")),
            Column(_("RBO")),
        )
        has_top = any(use == "top" for _key, use in self.coefficients)
        rows = [self._similarity(pair, has_top) for pair in self.all_pairs]
        top = (Column(_("tau-b of the best")),) if has_top else ()
        caption = _("How alike the rankings are")
        note = _(
            "1 is the same order; {level} intervals are for new topics. tau_AP and RBO weigh the "
            "top most: RBO with p = {p}, ties by variant {ties}. With few runs tau-b is coarse."
        ).format(level=self.level, **self.overlap)
        table = Table("rankings-compared", caption, (*columns, *top), rows, note=note)
        # of every pair that the table lists
        values = [self.coefficients[pair.pk, "tau_b"].value for pair in self.all_pairs]
        taus = [value for value in values if value is not None]
        finding = _("tau-b {least} or more").format(least=coefficient(min(taus))) if taus else ""
        return Fold(caption, finding, table)

    @property
    def overlap(self) -> dict[str, str]:
        """What rank-biased overlap depends on; results of before say nothing of the defaults."""
        rules = self.version.rules
        p = rules.get("rbo_p", ComparisonSettings.rbo_p)
        return {"p": f"{p:g}", "ties": rules.get("rbo_ties", ComparisonSettings.rbo_ties)}

    def _similarity(self, pair: RankingPair, has_top: bool) -> Row:
        uses = ("tau_b", "tau_ap", "rbo", *(("top",) if has_top else ()))
        rows = [self.coefficients.get((pair.pk, use), UNKNOWN) for use in uses]
        cells = (estimate(one.value, one.ci_low, one.ci_high, one.reason) for one in rows)
        return (pair.measure, pair.first, pair.second, *cells)

    def _significance(self) -> Fold:
        titles = (
            _("Pairs"),
            _("Swapped"),
            _("decided before"),
            _("Kept"),
            _("Lost"),
            _("Gained"),
            _("Reversed"),
        )
        caption = _("What stays significant")
        names = ("n_pairs", "n_swapped", "n_swapped_significantly", "n_kept", "n_lost", "n_gained")
        rows = [
            (
                *(pair.measure, pair.first, pair.second),
                *(getattr(pair, name) for name in (*names, "n_reversed")),
            )
            for pair in self.all_pairs
        ]
        columns = (MEASURE, QRELS, AGAINST, *map(Column, titles))
        note = _("Of pairs of runs: whether p, adjusted by Holm's method, is below .05 under each.")
        n_kept = sum(pair.n_kept for pair in self.pairs)
        n_decided = n_kept + sum(pair.n_lost + pair.n_reversed for pair in self.pairs)
        finding = _("{kept} of {n} decided differences kept").format(kept=n_kept, n=n_decided)
        return Fold(caption, finding, Table("significance", caption, columns, rows, note=note))

    def _changed(self) -> Fold:
        caption = _("Pairs of runs that change")
        columns = (
            *(MEASURE, QRELS, AGAINST, RUN, text_column(_("Other run"))),
            *(
                Column(_("Difference")),
                Column(_("Under the other")),
                Column(_("p")),
                Column(_("p there")),
            ),
            text_column(_("What changes")),
        )
        changed = ChangedPair.objects.filter(pair__version=self.version).order_by("pk")
        pairs = {pair.pk: pair for pair in self.all_pairs}
        rows = [
            (
                *(pairs[one.pair_id].measure, pairs[one.pair_id].first, pairs[one.pair_id].second),
                *(one.a, one.b, Number(one.delta_first, 4), Number(one.delta_second, 4)),
                *(P(one.p_first), P(one.p_second), change_name(one.change)),
            )
            for one in changed
        ]
        return Fold(caption, f"{len(rows):,}", Table("changed-pairs", caption, columns, rows))

    def _rankings(self) -> Fold:
        caption = _("Rankings")
        columns = (MEASURE, QRELS, Column(_("Rank")), RUN, Column(_("Mean")), Column(_("Topics")))
        rows = [
            (
                *(one.measure, one.qrels, one.rank, one.run),
                *(estimate(one.mean, one.ci_low, one.ci_high, decimals=4), one.n_topics),
            )
            for one in self.ranked
        ]
        finding = _("under {n} qrels").format(n=len(self.sets))
        return Fold(caption, finding, Table("rankings", caption, columns, rows))

    def _labels(self) -> Fold:
        caption = _("How far the labels agree")
        columns = (
            *(
                QRELS,
                AGAINST,
                Column(_("Topics")),
                Column(_("Documents")),
                Column(_("Both relevant")),
            ),
            *(Column(_("Overlap")), Column(_("Kappa"))),
        )
        pairs = list(self.version.label_pairs.all())
        rows = [
            (
                *(one.first, one.second, one.n_topics, one.n_documents, one.n_both_relevant),
                estimate(one.overlap, one.overlap_low, one.overlap_high, one.overlap_reason),
                estimate(one.kappa, one.kappa_low, one.kappa_high, one.kappa_reason),
            )
            for one in pairs
        ]
        note = _(
            "Overlap: relevant to both, of those relevant to either. {level} intervals are for new "
            "topics."
        ).format(level=self.level)
        known = [one.kappa for one in pairs if one.kappa is not None]
        finding = (
            _("kappa from {least} to {most}").format(
                least=coefficient(min(known)), most=coefficient(max(known))
            )
            if known
            else ""
        )
        return Fold(caption, finding, Table("labels", caption, columns, rows, note=note))

    def _any_two(self) -> Fold:
        caption = _("Any two assessors of a document")
        titles = (
            *(_("Assessors"), _("Documents"), _("Pairs of grades")),
            *(_("Overlap"), _("Krippendorff's alpha")),
        )
        rows = [
            (
                *(one.n_assessors, one.n_documents, one.n_pairs_of_labels),
                estimate(one.overlap, one.overlap_low, one.overlap_high, one.overlap_reason),
                estimate(one.alpha, one.alpha_low, one.alpha_high, one.alpha_reason),
            )
            for one in self.any_two
        ]
        note = " ".join(one.warnings.replace("\n", "; ") for one in self.any_two)
        columns = tuple(map(Column, titles))
        return Fold(caption, "", Table("any-two-assessors", caption, columns, rows, note=note))

    def _designs(self) -> Fold:
        caption = _("One assessor a topic at random")
        titles = (
            _("Draws"),
            _("Topics with a choice"),
            _("tau-b, mean"),
            _("5 %"),
            _("Median"),
            _("95 %"),
        )
        columns = (
            MEASURE,
            text_column(_("Merged")),
            *map(Column, titles),
            text_column(_("Often swap")),
        )
        rows: list[Row] = [
            (
                *(one.measure, one.merged, one.n_draws, one.n_topics_with_choice),
                *(Number(value, 3) for value in (one.mean, one.q05, one.median, one.q95)),
                one.often_swapped,
            )
            for one in self.version.designs.all()
        ]
        finding = _("as if each topic had had one of them")
        return Fold(caption, finding, Table("random-assessor", caption, columns, rows))

    def _crossed(self) -> Fold:
        caption = _("Means over topics and assessors")
        columns = (
            *(
                MEASURE,
                RUN,
                Column(_("Mean")),
                Column(_("Bootstrap, low")),
                Column(_("Bootstrap, high")),
            ),
            *(Column(_("Topics")), Column(_("Assessors"))),
        )
        rows = [
            (
                *(one.measure, one.run),
                estimate(one.mean, one.ci_low, one.ci_high, one.reason, 4),
                *(Number(one.bootstrap_low, 4), Number(one.bootstrap_high, 4)),
                *(one.n_topics, one.n_assessors),
            )
            for one in self.version.crossed.all()
        ]
        finding = _("both taken for samples")
        return Fold(caption, finding, Table("crossed-means", caption, columns, rows))

    def _described(self) -> Fold:
        caption = _("The qrels")
        titles = (_("Topics"), _("Left out"), _("Judged"), _("Relevant"), _("Pooled, not judged"))
        columns = (QRELS, text_column(_("Kind")), *map(Column, titles), text_column(_("Rule")))
        rows = [
            (
                *(one.name, kind_name(one.kind), one.n_topics, one.n_topics_left_out),
                *(one.n_judged, one.n_relevant, one.n_unjudged, one.rule),
            )
            for one in self.sets
        ]
        return Fold(caption, f"{len(rows)}", Table("qrels", caption, columns, rows))
