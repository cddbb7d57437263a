from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log2, nan
from typing import Any

from presentation.documents import Cell, Number
from presentation.numbers import plain_values
from presentation.text_tables import text_report, text_table
from simulation.catalogue import Targets
from simulation.comparisons import causes, compare_all, sensitivity
from simulation.experiments import Experiment, Qrels
from stats.libraries import np, scipy
from stats.ranking import Measure
from stats.ranking.topic_means import TopicDifference

EVALUATED_BY: Mapping[Qrels, str] = {
    "accepted": "the target for SimBase, the target and its alternatives for the others",
    "target": "the target",
    "target and alternatives": "the target and its alternatives",
    "alternatives": "the alternatives",
}


def report(
    experiment: Experiment,
    *,
    with_sensitivity: bool = False,
    judged_otherwise: Mapping[str, Targets] | None = None,
) -> dict[str, Any]:
    record = experiment.record() | {
        "results": [row.record() for row in experiment.rows()],
        "table": results_table(experiment).record(),
        "comparisons": [row.record() for row in compare_all(experiment)],
        "causes": [row.record() for row in causes(experiment)],
    }
    if with_sensitivity:
        rows = sensitivity(experiment, judged_otherwise=judged_otherwise)
        record["sensitivity"] = [row.record() for row in rows]
    return record


def report_text(experiment: Experiment) -> str:
    table, settings = results_table(experiment), experiment.settings
    parts = [
        f"Turn {table.turn}, {len(experiment.targets):,} targets, {experiment.catalogue.source}",
        f"Relevant: {EVALUATED_BY[settings.qrels]}. After the end: {settings.carry}",
        table_text(table),
        "\n".join(_best(experiment)),
    ]
    if compared := list(_compared(experiment)):
        parts.append(text_table(("differs", "measure", "delta", "p (Holm)"), compared))
    if rows := list(_causes(experiment)):
        header = ("cause of the change from the first user", "measure", "qrels", "user", "total")
        parts.append(text_table(header, rows))
    parts.append("\n".join(_switches(experiment)))
    return text_report(parts, (*experiment.notes, *table.faults))


def _best(experiment: Experiment) -> Iterator[str]:
    for row in results_table(experiment).improvements:
        if row.n_rows > 1 and row.best > row.base:
            yield (
                f"{row.recommender} {row.measure.name}: {row.best_user} is the best of "
                f"{row.n_rows} rows; of equal ones the best would be {row.expected_gain_se:.2f} "
                "standard errors above their mean"
            )


def _compared(experiment: Experiment) -> Iterator[tuple[Cell, ...]]:
    for row in compare_all(experiment):
        if row.p_adjusted < 1 - experiment.settings.confidence:
            name = f"{row.a} - {row.b}, {row.within}"
            yield name, row.measure.name, _delta(row.difference), Number(row.p_adjusted, 4)


def _causes(experiment: Experiment) -> Iterator[tuple[Cell, ...]]:
    for row in causes(experiment):
        effects = map(_delta, (row.of_qrels, row.of_user, row.total))
        yield f"{row.user}, {row.recommender}", row.measure.name, *effects


def _delta(one: TopicDifference) -> Number:
    return Number(one.delta, 3, one.ci_low, one.ci_high, is_signed=True)


def _switches(experiment: Experiment) -> Iterator[str]:
    for name, log in experiment.logs.items():
        counts = zip(experiment.users, log.n_switches().tolist(), strict=True)
        said = "; ".join(f"{user.name} {count:,}" for user, count in counts)
        yield f"Critiques with an alternative in mind, {name}: {said}"


# By row, then by measure. Measures are nDCG, RR and Success, whatever their cutoffs.
Cells = Mapping[str, Mapping[str, float]]
# Means are printed to three places, so two of them may be wrong by this much.
ROUNDED = 0.0006


def impossible_cells(
    rows: Cells,
    *,
    single_relevant: Sequence[str] = (),
    cutoff: int = 10,
    rr_cutoff: int | None = None,
    n_items: int = 100,
) -> list[str]:
    """What is wrong with a table's means, row by row; nothing where all of it can be.

    `single_relevant` names the rows whose qrels hold one relevant item a topic: there the rank of
    that item decides both nDCG@cutoff and RR (uncut where `rr_cutoff` is None, lists having
    `n_items`), so that the means lie in the convex hull of what single ranks give.
    """
    faults = list(_bounds(rows))
    corners = _corners(cutoff, rr_cutoff, n_items)
    for name in single_relevant:
        cells = rows[name]
        if {"nDCG", "RR"} <= cells.keys() and _is_outside(corners, (cells["RR"], cells["nDCG"])):
            faults.append(
                f"{name}: with one relevant item a topic no ranks give an nDCG@{cutoff} of "
                f"{cells['nDCG']:.3f} with an RR of {cells['RR']:.3f}"
            )
    faults += _twice(rows)
    return faults


def _bounds(rows: Cells) -> Iterator[str]:
    for name, cells in rows.items():
        for measure, value in cells.items():
            if value < 0 or value > 1:
                yield f"{name}: {measure} is {value:.3f}, and measures lie between 0 and 1"
        if {"Success", "RR"} <= cells.keys() and cells["Success"] > cells["RR"] + ROUNDED:
            yield (
                f"{name}: Success@1 is {cells['Success']:.3f} and RR {cells['RR']:.3f}, though a "
                "success at rank 1 has the reciprocal rank 1"
            )


def _corners(cutoff: int, rr_cutoff: int | None, n_items: int) -> list[tuple[float, float]]:
    last = n_items if rr_cutoff is None else rr_cutoff
    return [(0.0, 0.0)] + [
        (1 / rank if rank <= last else 0.0, 1 / log2(rank + 1) if rank <= cutoff else 0.0)
        for rank in range(1, n_items + 1)
    ]


def _is_outside(corners: Sequence[tuple[float, float]], point: tuple[float, float]) -> bool:
    from scipy.spatial import ConvexHull, QhullError

    try:
        planes = ConvexHull(np.array(corners)).equations
    except QhullError:
        return False
    return bool((planes[:, :2] @ np.array(point) + planes[:, 2] > ROUNDED).any())


def _twice(rows: Cells) -> Iterator[str]:
    """Rows that share two or more measures: one may be a copying error."""
    counts = Counter(tuple(sorted(cells.items())) for cells in rows.values() if len(cells) > 1)
    for values, n in counts.items():
        if n > 1 and any(value for _, value in values):
            names = [name for name, cells in rows.items() if tuple(sorted(cells.items())) == values]
            yield f"{' and '.join(names)} have the very same values; is one a copy of the other?"


# Measures of the first ten items, whose means limit each other. Others, such as Success@10 or
# nDCG@5, do not.
BOUNDED = {
    "nDCG": "nDCG",
    "nDCG@10": "nDCG",
    "RR": "RR",
    "RR@10": "RR",
    "Success@1": "Success",
}


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
    of_base = 100 * (best - base) / base if base else nan
    symmetric = 200 * (best - base) / (best + base) if best + base else nan
    gain = expected_maximum(n_rows)
    return Improvement(recommender, measure, base, best, user, of_base, symmetric, n_rows, gain)


def expected_maximum(n: int) -> float:
    """Of n independent standard normal numbers, such as 1.163 of five."""
    if n == 1:
        return 0.0
    normal = scipy.stats.norm
    value, _ = scipy.integrate.quad(
        lambda x: x * n * normal.pdf(x) * normal.cdf(x) ** (n - 1), -10, 10
    )
    return float(value)


def _faults(
    experiment: Experiment,
    columns: Sequence[tuple[str, Measure]],
    rows: Sequence[tuple[str, tuple[float, ...]]],
) -> Iterator[str]:
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
    rows: list[tuple[Cell, ...]] = [
        (user, *(Number(value, 3) for value in means)) for user, means in table.rows
    ]
    if table.improvements:
        symmetric = "% Improv." if table.is_articles else "best - base, symmetric %"
        for title, name in (("best - base, % of base", "of_base"), (symmetric, "symmetric")):
            percents = (getattr(one, name) for one in table.improvements)
            rows.append((title, *(Number(value, 1, is_signed=True) for value in percents)))
    return text_table(("user", *(f"{name} {one.name}" for name, one in table.columns)), rows)
