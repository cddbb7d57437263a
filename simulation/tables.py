"""Results in the layout of the article's Table 3: users by recommenders, and the improvement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import nan
from typing import Any

from presentation.documents import Cell, Number
from presentation.records import plain_values
from presentation.text_tables import text_table
from simulation.experiments import Experiment
from simulation.impossible_cells import impossible_cells
from stats.ranking import Measure

BOUNDED = {
    "nDCG": "nDCG",
    "nDCG@10": "nDCG",
    "RR": "RR",
    "RR@10": "RR",
    "Success@1": "Success",
}
"""Measures of the ten items that are ranked whose means bound each other; of others, such as
Success@10 or nDCG@5, no cell says what another may be."""


@dataclass(frozen=True)
class Improvement:
    """The best row of a column against the first (SimBase), by both kinds of percentage.

    `of_base` is the change in per cent of the base; `symmetric` is 200 (best - base) / (best +
    base), which the article prints as "% Improv." in its own evaluation: the base by the target
    alone, the others by the target and its alternatives. The best of `n_rows` is not what one row
    would give: `expected_gain_se` is how many standard errors the best of so many equal rows would
    be above their mean.
    """

    recommender: str
    measure: Measure
    base: float
    best: float
    best_user: str
    of_base: float
    symmetric: float
    n_rows: int
    expected_gain_se: float

    def record(self) -> dict[str, Any]:
        return plain_values(
            {
                "recommender": self.recommender,
                "measure": self.measure.name,
                "base": self.base,
                "best": self.best,
                "best_user": self.best_user,
                "percent_of_base": self.of_base,
                "percent_symmetric": self.symmetric,
                "best_of": self.n_rows,
                "expected_gain_se": self.expected_gain_se,
            }
        )


@dataclass(frozen=True)
class Table:
    """`rows` are users, `cells` their means by (recommender, measure), at one turn."""

    turn: int
    columns: tuple[tuple[str, Measure], ...]
    rows: tuple[tuple[str, tuple[float, ...]], ...]
    improvements: tuple[Improvement, ...]
    faults: tuple[str, ...]
    is_articles: bool = False

    def record(self) -> dict[str, Any]:
        return {
            "turn": self.turn,
            "columns": [[name, one.name] for name, one in self.columns],
            "rows": [{"user": user, "means": list(means)} for user, means in self.rows],
            "is_articles": self.is_articles,
            "improvements": [each.record() for each in self.improvements],
            "faults": list(self.faults),
        }


def results_table(experiment: Experiment, *, turn: int | None = None) -> Table:
    """Means of all users under all recommenders at one turn, the last by default."""
    turn = turn or experiment.settings.n_turns
    columns = tuple(
        (name, one) for name, each in experiment.outcomes.items() for one in each.measures
    )
    rows = []
    for number, user in enumerate(experiment.users):
        means = [
            float(experiment.outcomes[name].by_target(one, number, turn).mean())
            for name, one in columns
        ]
        rows.append((user.name, tuple(means)))
    return Table(
        turn=turn,
        columns=columns,
        rows=tuple(rows),
        improvements=tuple(_improvements(columns, rows)),
        faults=tuple(_faults(experiment, columns, rows)),
        is_articles=experiment.settings.is_articles,
    )


def _improvements(
    columns: Sequence[tuple[str, Measure]], rows: Sequence[tuple[str, tuple[float, ...]]]
) -> Iterator[Improvement]:
    (_, bases), *others = rows
    for column, (name, one) in enumerate(columns):
        if not others:
            return
        user, means = max(others, key=lambda row: row[1][column])
        yield improvement(name, one, bases[column], means[column], user, len(others))


def improvement(
    recommender: str, measure: Measure, base: float, best: float, user: str, n_rows: int
) -> Improvement:
    """Both percentages; undefined where the base, or both, are 0."""
    of_base = 100 * (best - base) / base if base else nan
    symmetric = 200 * (best - base) / (best + base) if best + base else nan
    gain = expected_maximum(n_rows)
    return Improvement(recommender, measure, base, best, user, of_base, symmetric, n_rows, gain)


def expected_maximum(n: int) -> float:
    """Of n independent standard normal numbers: 1.163 of five."""
    from scipy import integrate, stats

    if n == 1:
        return 0.0
    density = stats.norm.pdf
    value, _ = integrate.quad(lambda x: x * n * density(x) * stats.norm.cdf(x) ** (n - 1), -10, 10)
    return float(value)


def _faults(
    experiment: Experiment,
    columns: Sequence[tuple[str, Measure]],
    rows: Sequence[tuple[str, tuple[float, ...]]],
) -> Iterator[str]:
    """Cells that cannot be, which would be a fault of this program."""
    qrels = experiment.settings.qrels
    single = [
        user.name
        for user in experiment.users
        if qrels == "target" or (qrels == "accepted" and user.accepts == "target")
    ]
    for name in experiment.outcomes:
        cells = {
            user: {
                BOUNDED.get(one.name, one.name): value
                for (column, one), value in zip(columns, means, strict=True)
                if column == name
            }
            for user, means in rows
        }
        bounded = [] if experiment.settings.carry == "one" else single
        for fault in impossible_cells(cells, single_relevant=bounded, rr_cutoff=10):
            if "very same values" not in fault:
                yield f"{name}, {fault}"


def table_text(table: Table) -> str:
    """The means of the users, and the improvements below them."""
    rows: list[tuple[Cell, ...]] = [
        (user, *(Number(value, 3) for value in means)) for user, means in table.rows
    ]
    if table.improvements:
        symmetric = "% Improv." if table.is_articles else "best - base, symmetric %"
        for title, name in (("best - base, % of base", "of_base"), (symmetric, "symmetric")):
            percents = (getattr(one, name) for one in table.improvements)
            rows.append((title, *(Number(value, 1, is_signed=True) for value in percents)))
    return text_table(("user", *(f"{name} {one.name}" for name, one in table.columns)), rows)
