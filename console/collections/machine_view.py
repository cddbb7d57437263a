"""A machine's labels beside people's, in words and tables."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext

from console.collections.evaluation_sentences import figure
from console.collections.few_runs import few_runs_sentence
from console.collections.result_charts import Chart, means_chart
from console.collections.result_view import Fold, ResultView, estimate, in_words, text_column
from error_codes import CodedText
from presentation.documents import Column, Number, P, Table
from retrieval.models import MachineEstimate, MachineFacts, ModelBias
from retrieval.reuse.machine import NO_SUM
from retrieval.run_order import SIGNIFICANT

RUN, MEASURE = text_column(gettext_noop("Run")), text_column(gettext_noop("Measure"))


class MachineView(ResultView):
    """What a machine's labels make of the runs, and people's of a sample."""

    picture = "console:collection-machine-picture"

    @cached_property
    def charts(self) -> list[Chart]:
        """Each run's mean by the machine, by people, and as people would say of all topics."""
        parts = {
            _("machine"): ("machine_mean", "machine_ci_low", "machine_ci_high"),
            _("people"): ("people_mean", "people_ci_low", "people_ci_high"),
            _("calibrated"): ("calibrated", "calibrated_ci_low", "calibrated_ci_high"),
        }
        of_measure = [one for one in self.estimates if one.measure == self.measure]
        rows = [
            (one.run, part, rank, *(getattr(one, name) for name in names))
            for part, names in parts.items()
            for rank, one in enumerate(_by_mean(of_measure, names[0]), 1)
        ]
        return means_chart("means", _("The runs by machine and by people"), self.measure, rows)

    @cached_property
    def facts(self) -> MachineFacts:
        return self.version.machine_facts

    @cached_property
    def estimates(self) -> list[MachineEstimate]:
        return list(self.version.machine_estimates.all())

    @cached_property
    def biases(self) -> list[ModelBias]:
        return list(self.version.model_biases.all())

    @cached_property
    def measure(self) -> str:
        names = [one.measure for one in self.estimates]
        primary = self.version.rules.get("primary", [])
        return next((name for name in primary if name in names), names[0])

    @property
    def first_sentence(self) -> str:
        gaps = [
            one
            for one in self.estimates
            if one.measure == self.measure and one.gap_ci_low is not None
        ]
        if not gaps:
            text = _("How far the machine's {measure} is from people's is not known: {reason}.")
            return CodedText(
                text.format(measure=self.measure, reason=self._reason()), code="gap_unknown"
            )
        if all(one.gap_ci_low is not None and one.gap_ci_low > 0 for one in gaps):
            return CodedText(
                _("The machine's {measure} is higher than people's for every run.").format(
                    measure=self.measure
                ),
                code="higher",
            )
        if all(one.gap_ci_high is not None and one.gap_ci_high < 0 for one in gaps):
            return CodedText(
                _("The machine's {measure} is lower than people's for every run.").format(
                    measure=self.measure
                ),
                code="lower",
            )
        return CodedText(
            _(
                "The machine's {measure} is neither higher than people's for every run nor lower "
                "for every run."
            ).format(measure=self.measure),
            code="mixed",
        )

    def _reason(self) -> str:
        """Why no difference of machine and people has an interval."""
        rows = (one for one in self.estimates if one.measure == self.measure)
        if reason := next((one.reason for one in rows if one.reason), ""):
            return reason
        n = self.facts.n_topics_both
        text = ngettext("both judged {n} topic", "both judged {n} topics", n)
        return text.format(n=f"{n:,}")

    @property
    def details(self) -> list[str]:
        return [*self._remedy(), *self._sample(), *self._bias()]

    def _remedy(self) -> Iterator[str]:
        """What to choose where single documents cannot say how a measure would be."""
        if any(one.measure == self.measure and NO_SUM in one.reason for one in self.estimates):
            yield CodedText(
                _(
                    "{measure} depends on all documents of a topic. Where people judged whole "
                    "topics, choose so under “What was drawn for people”; of single documents, "
                    "choose a measure such as P@10."
                ).format(measure=self.measure),
                code="whole_topics_needed",
            )

    def _sample(self) -> Iterator[str]:
        facts = self.facts
        yield CodedText(
            _("People judged {people} topics, the machine {machine}; both judged {both}.").format(
                people=f"{facts.n_topics_people:,}",
                machine=f"{facts.n_topics_machine:,}",
                both=f"{facts.n_topics_both:,}",
            ),
            code="topics_judged",
        )
        yield CodedText(
            _(
                "Calibrated means are what people would say of all topics, by the machine's labels "
                "and the sample of people's; the two are never merged."
            ),
            code="calibrated",
        )

    def _bias(self) -> Iterator[str]:
        one = next((each for each in self.biases if each.measure == self.measure), None)
        if one is None or one.difference is None:
            why = one.reason if one and one.reason else ""
            if not self.version.rules.get("sharing"):
                why = _("no run is named as sharing it")
            text = _("Whether it favours systems of its own model is not known{why}.")
            yield CodedText(text.format(why=f": {why}" if why else ""), code="bias_unknown")
            return
        favours = one.p is not None and one.p < SIGNIFICANT
        if favours and one.difference > 0:
            code, text = (
                "bias_shown",
                _("It rates runs of its own model {value} higher than others, beside people."),
            )
        elif favours:
            code, text = (
                "bias_opposite",
                _(
                    "It does not favour runs of its own model: beside people it rates them lower "
                    "than others, difference {value}."
                ),
            )
        else:
            code, text = (
                "bias_not_shown",
                _("That it rates runs of its own model higher is not shown: difference {value}."),
            )
        yield CodedText(
            text.format(value=in_words(one.difference, one.ci_low, one.ci_high)), code=code
        )
        if one.tau is not None:
            yield CodedText(
                _("The runs' order by people and by the machine: tau-b {tau}.").format(
                    tau=figure(one.tau)
                ),
                code="order",
            )
            if few := few_runs_sentence(len({each.run for each in self.estimates})):
                yield few

    def _folds(self) -> Iterator[Fold]:
        caption = _("Means by machine and by people")
        titles = (_("Machine"), _("People"), _("Machine less people"), _("Calibrated"), _("Worth"))
        rows = [
            (
                *(one.run, one.measure),
                estimate(one.machine_mean, one.machine_ci_low, one.machine_ci_high),
                estimate(one.people_mean, one.people_ci_low, one.people_ci_high),
                estimate(one.gap, one.gap_ci_low, one.gap_ci_high),
                estimate(one.calibrated, one.calibrated_ci_low, one.calibrated_ci_high, one.reason),
                Number(one.effective_n, 0),
            )
            for one in self.estimates
        ]
        note = _("Worth: of how many topics judged by people the calibrated mean is worth.")
        columns = (RUN, MEASURE, *map(Column, titles))
        finding = _("machine {machine}, people {people}").format(
            machine=self.facts.machine, people=self.facts.qrels
        )
        table = Table("machine-and-people", caption, columns, rows, note=note)
        yield Fold(caption, finding, table)
        yield self._biases()

    def _biases(self) -> Fold:
        caption = _("Runs that share the machine's model")
        titles = (
            *(_("Too high by"), _("Others by"), _("Difference"), _("p"), _("tau-b")),
            _("tau-b without them"),
        )
        rows = [
            (
                *(one.measure, Number(one.gap_sharing, 3), Number(one.gap_others, 3)),
                estimate(one.difference, one.ci_low, one.ci_high, one.reason),
                *(P(one.p), Number(one.tau, 3), Number(one.tau_without, 3)),
            )
            for one in self.biases
        ]
        table = Table("model-bias", caption, (MEASURE, *map(Column, titles)), rows)
        return Fold(caption, ", ".join(self.version.rules.get("sharing", [])), table)


def _by_mean(estimates: list[MachineEstimate], name: str) -> list[MachineEstimate]:
    """The greatest first, those without one last."""
    mean = {one.pk: getattr(one, name) for one in estimates}
    return sorted(estimates, key=lambda one: (mean[one.pk] is None, -(mean[one.pk] or 0), one.run))
