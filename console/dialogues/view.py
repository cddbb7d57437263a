"""A report on dialogues as its page shows it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from django.utils.translation import gettext as _

from console.chart_summaries import range_in_words, values_in_words
from console.dialogues.rows import StoredReport
from console.dialogues.sentences import ReportAnswer
from console.dialogues.tables import SHARES, tables_of
from console.experiments.view import Figure
from presentation.documents import Table
from presentation.numbers import format_number
from simulation.dialogue_estimates import BIAS, FIT, ORDER, PEOPLE, SHARE
from simulation.dialogue_figures import outcomes_figure, spans_figure
from simulation.models import DialogueEstimate, DialogueStudy

if TYPE_CHECKING:
    import pandas as pd


class ReportView:
    """The sentences, pictures and tables of a stored report."""

    def __init__(self, report: StoredReport) -> None:
        self.stored, self.report = report, report.report

    @cached_property
    def answer(self) -> ReportAnswer:
        return ReportAnswer(self.stored)

    @cached_property
    def tables(self) -> dict[str, Table]:
        return tables_of(self.stored)

    @property
    def query(self) -> str:
        return urlencode({"report": self.report.number})

    @cached_property
    def figures(self) -> dict[str, Figure]:
        is_switching = self.report.dialogues.kind == DialogueStudy.Kind.SWITCHING
        rows = self._of_switching() if is_switching else self._of_outcomes()
        return {one.name: one for one in rows if not one.frame.empty}

    def _of_switching(self) -> list[Figure]:
        shares = _frame((str(SHARES[row.name]), row) for row in self.stored.part(SHARE)[:2])
        errors = _frame((row.user, row) for row in self.stored.part(FIT, "brier"))
        return [
            Figure(
                "switching",
                _("How often people switch"),
                _("P(switch) of people after a loss and after a gain, with 95 % intervals."),
                values_in_words(shares),
                shares,
                lambda: spans_figure(shares, _("P(switch)")),
            ),
            Figure(
                "errors",
                _("How far simulated users are from people"),
                _("The mean squared error of each user's rule; less is truer."),
                values_in_words(errors),
                errors,
                lambda: spans_figure(errors, _("Mean squared error")),
            ),
        ]

    def _of_outcomes(self) -> list[Figure]:
        orders = _frame((row.user, row) for row in self.stored.part(ORDER, "spa"))
        top = self.stored.attainable("spa")
        words = _("Soft pairwise accuracy of each user's order, with 95 % intervals over targets.")
        if top is not None:
            text = _("{words} Who knows what people would say has about the dashed line's.")
            words = text.format(words=words)
        outcomes, whose = self._outcomes()
        return [
            Figure(
                "order",
                _("Whose order of the recommenders is people's"),
                words,
                values_in_words(orders),
                orders,
                lambda: spans_figure(orders, _("Soft pairwise accuracy"), reference=top),
            ),
            Figure(
                "outcomes",
                _("Recommenders with people and with simulated users"),
                _(
                    "The share of final items that would do: with people, with its 95 % interval, "
                    "and with each simulated user."
                ),
                _in_words(outcomes, whose[0]),
                outcomes,
                lambda: outcomes_figure(outcomes, whose),
            ),
        ]

    def _outcomes(self) -> tuple[pd.DataFrame, list[str]]:
        import pandas as pd

        people = _("people")
        rows = [
            {"recommender": row.recommender or _("an item at random"), "who": people}
            | _numbers(row)
            for row in self.stored.part(PEOPLE)
        ]
        of_people = {row.recommender: row.value or 0.0 for row in self.stored.part(PEOPLE)}
        biases = self.stored.part(BIAS, "bias")
        rows += [
            {
                "recommender": row.recommender,
                "who": row.user,
                "value": of_people[row.recommender] + (row.value or 0.0),
                "ci_low": None,
                "ci_high": None,
            }
            for row in biases
        ]
        return pd.DataFrame(rows), [people, *dict.fromkeys(row.user for row in biases)]


def _in_words(outcomes: pd.DataFrame, people: str) -> str:
    """Of each recommender the share with people, and those with simulated users."""
    is_people = outcomes["who"] == people
    simulated = outcomes[~is_people].groupby("recommender", sort=False)["value"]
    ranges = {name: range_in_words(values) for name, values in simulated}
    said = []
    for row in outcomes[is_people].to_dict(orient="records"):
        name, users = row["recommender"], ranges.get(row["recommender"])
        text = _("{name}: people {people}, simulated users {users}")
        if users is None:
            text = _("{name}: people {people}")
        said.append(text.format(name=name, people=format_number(row["value"]), users=users))
    return "{values}.".format(values="; ".join(said))


def _numbers(row: DialogueEstimate) -> dict[str, float | None]:
    return {"value": row.value, "ci_low": row.ci_low, "ci_high": row.ci_high}


def _frame(rows: Iterable[tuple[str, DialogueEstimate]]) -> pd.DataFrame:
    """Named estimates, those that are defined."""
    import pandas as pd

    named = [{"name": name} | _numbers(row) for name, row in rows if row.value is not None]
    return pd.DataFrame(named)
