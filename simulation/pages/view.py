"""An experiment's result as its page shows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.utils.translation import gettext as _

from console.chart_summaries import ranges_in_words
from presentation.documents import Table
from presentation.theme import Picture
from simulation.figures import choices_figure, has_several, line_of, turns_figure
from simulation.models import StoredCatalogue, TurnResult
from simulation.pages.rows import StoredRun
from simulation.pages.sentences import ExperimentAnswer
from simulation.pages.tables import (
    causes_table,
    comparisons_table,
    results_table,
    sensitivity_table,
    switches_table,
    turns_table,
)

if TYPE_CHECKING:
    import pandas as pd


TURNS, TOLERANCE, P_SWITCH = "turns", "tolerance", "p-switch"
FRAME = ("turn", "mean", "ci_low", "ci_high")


@dataclass(frozen=True)
class Figure:
    """A chart, as `console/_chart.html` and the addresses of pictures read it; `summary` says its
    values to who does not see it, as `words` below it do not."""

    name: str
    title: str
    words: str
    summary: str
    frame: pd.DataFrame
    picture: Any

    def draw(self) -> Picture:
        picture: Picture = self.picture()
        return picture


class ExperimentView:
    """A version under one of its measures."""

    def __init__(self, run: StoredRun, query: Mapping[str, str]) -> None:
        self.run, self.version = run, run.version
        name = query.get("measure", "")
        self.measure = name if name in run.measures else run.measures[0]

    @cached_property
    def answer(self) -> ExperimentAnswer:
        of_measure = [row for row in self.run.last.values() if row.measure == self.measure]
        return ExperimentAnswer(
            self.measure,
            self.version.experiment.catalogue.kind == StoredCatalogue.Kind.STAND_IN,
            of_measure,
            self._of_measure(self.run.comparisons),
            self._of_measure(self.run.causes),
            self._of_measure(self.run.improvements),
            self.run.is_mixed,
        )

    def _of_measure(self, rows: list[Any]) -> list[Any]:
        return [row for row in rows if row.measure == self.measure]

    @cached_property
    def results(self) -> Table:
        return results_table(self.run)

    @cached_property
    def causes(self) -> Table:
        return causes_table(self.run, [self.measure])

    @cached_property
    def comparisons(self) -> Table:
        return comparisons_table(self.run, [self.measure])

    @cached_property
    def switches(self) -> Table:
        return switches_table(self.run)

    @cached_property
    def sensitivity(self) -> Table | None:
        rows = self.run.sensitivity(self.measure)
        return sensitivity_table(self.run, rows, self.measure) if rows else None

    @cached_property
    def turns(self) -> Table:
        return turns_table(self.run, self._rows)

    @property
    def faults(self) -> list[str]:
        return [note.text for note in self.run.notes if note.is_fault]

    @property
    def notes(self) -> list[str]:
        return [note.text for note in self.run.notes if not note.is_fault]

    @property
    def query(self) -> str:
        return urlencode({"version": self.version.number, "measure": self.measure})

    @cached_property
    def _rows(self) -> list[TurnResult]:
        return self.run.by_turn(self.measure)

    @cached_property
    def figures(self) -> dict[str, Figure]:
        """The charts that the users have something to show in, by name."""
        users = self.run.users.values()
        figures = [self._turns()]
        if has_several(users, "tolerance"):
            title = _("By tolerance, at the last turn")
            figures.append(self._against(TOLERANCE, "tolerance", title, _("Tolerance, turns")))
        if has_several(users, "p_switch"):
            title = _("By P(switch), at the last turn")
            axis = _("Probability of switching")
            figures.append(self._against(P_SWITCH, "p_switch", title, axis))
        return {one.name: one for one in figures}

    def _turns(self) -> Figure:
        import pandas as pd

        frame = pd.DataFrame([_plain(row) for row in self._rows])
        names = self.run.user_names
        words = _(
            "{measure} of each recommender at turns 1 to {turn}, a line for each of {n} users with "
            "its 95 % interval. Lines that coincide hide one another; the table “Every turn” has "
            "each."
        ).format(measure=self.measure, turn=self.run.last_turn, n=len(names))
        return Figure(
            TURNS,
            _("Turn by turn"),
            words,
            self._summary(frame),
            frame,
            lambda: turns_figure(frame, self.measure, names),
        )

    def _against(self, name: str, field: str, title: str, axis: str) -> Figure:
        import pandas as pd

        kinds = ("prob",) if field == "p_switch" else ("tol", "prob")
        frame = pd.DataFrame(
            [
                _plain(row) | line_of(row.user, field)
                for row in self._rows
                if row.turn == self.run.last_turn and row.user.kind in kinds
            ]
        )
        words = _("{measure} at turn {turn} against: {axis}. A point is a user, with its interval.")
        text = words.format(measure=self.measure, turn=self.run.last_turn, axis=axis)
        return Figure(
            name,
            title,
            text,
            self._summary(frame),
            frame,
            lambda: choices_figure(frame, self.measure, field, axis),
        )

    def _summary(self, frame: pd.DataFrame) -> str:
        """The last turn's values, from the lowest user's to the highest's."""
        text = _("{measure} at turn {turn}, over users: {ranges}. The table “{table}” has each.")
        return text.format(
            measure=self.measure,
            turn=self.run.last_turn,
            ranges=ranges_in_words(frame[frame["turn"] == self.run.last_turn]),
            table=self.turns.caption,
        )


def _plain(row: TurnResult) -> dict[str, Any]:
    values = {name: getattr(row, name) for name in FRAME}
    return {"recommender": row.recommender.name, "user": row.user.name} | values
