from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from math import isclose
from types import SimpleNamespace
from typing import Any

from django.utils.translation import gettext as _, gettext_lazy

from presentation.documents import Cell, Column, Number, P, Table
from presentation.row_files import RowFile
from results.kinds import read_rows
from results.models import Result
from simulation.experiments import EVALUATION_BY_MODE
from simulation.stored_experiments import find_experiment
from simulation.stored_results import ROWS

BOLD = gettext_lazy(
    "Bold: the highest of its column, unless all rows are equal. Percentages are of the "
    "best user next to SimBase, whom the last row names, against SimBase. % of base is 100 "
    "(best − base) / base; symmetric % is 200 (best − base) / (best + base)."
)
MIXED = gettext_lazy(
    "SimBase is evaluated by the target alone, the other users by the target and its alternatives."
)
MIXED_TESTS = gettext_lazy(
    "A difference from SimBase is therefore one of users and relevant items together; "
    "“User and qrels, apart” has each."
)
IMPROVEMENT = gettext_lazy(
    "With this evaluation the symmetric % is what the article prints as “% Improv.”."
)
METHODS = {
    "Student's t": gettext_lazy("Student's t of {measures}"),
    "Wilson": gettext_lazy("Wilson's of {measures}, each target being a success or none"),
}


class StoredRun:
    def __init__(self, version: Result) -> None:
        self.version = version
        self.names: list[str] = [one["name"] for one in version.facts["recommenders"]]
        self.user_names: list[str] = [one["name"] for one in version.facts["users"]]
        self.measures: list[str] = version.settings["measures"]

    @property
    def is_mixed(self) -> bool:
        """Whether each user is evaluated by what it accepts, SimBase by the target alone."""
        return bool(self.version.settings["qrels"] == "accepted")

    @property
    def is_articles(self) -> bool:
        rules = self.version.settings
        return (rules["qrels"], rules["carry"]) == EVALUATION_BY_MODE["paper"]

    @property
    def last_turn(self) -> int:
        return int(self.version.settings["n_turns"])

    @cached_property
    def n_targets(self) -> int:
        n_targets: int = next(iter(self.last.values())).n_targets
        return n_targets

    @cached_property
    def last(self) -> dict[tuple[str, str, str], SimpleNamespace]:
        rows = self.long_rows("turns", turn=self.last_turn)
        return {(row.user, row.recommender, row.measure): row for row in rows}

    def long_rows(self, table: str, **equal: Any) -> list[SimpleNamespace]:
        return [SimpleNamespace(**row) for row in read_rows(self.version, table, **equal)]

    def rows(self, table: str) -> list[SimpleNamespace]:
        """Of comparisons, causes, switches or improvements."""
        return [SimpleNamespace(**row) for row in self.version.record[table]]

    def file(self, name: str) -> RowFile:
        return RowFile(ROWS[name], (tuple(row.values()) for row in read_rows(self.version, name)))

    def record(self) -> dict[str, Any]:
        experiment = find_experiment(self.version)
        return {
            "experiment": experiment.slug,
            "version": self.version.number,
            "fingerprint": self.version.fingerprint,
            "catalogue": experiment.catalogue.name,
            "is_stand_in": experiment.catalogue.kind == "stand-in",
            "judgments": experiment.made_of,
            "n_targets": experiment.n_targets,
            "settings": self.version.settings,
            "users": [
                {name: one[name] for name in USER_FIELDS} for one in self.version.facts["users"]
            ],
            "recommenders": self.names,
            "notes": [
                {"text": text, "is_fault": name == "faults"}
                for name in ("notes", "faults")
                for text in self.version.record[name]
            ],
        }


def results_table(run: StoredRun) -> Table:
    """Users by recommenders at the last turn, like the article's Table 3."""
    columns = [Column(_("User"), is_number=False)]
    columns += [Column(measure, group=name) for name in run.names for measure in run.measures]
    rows = [
        (user, *(_mean(run, user, name, measure) for name in run.names for measure in run.measures))
        for user in run.user_names
    ]
    rows += _improvement_rows(run)
    return Table(
        "results",
        _("Means at turn {turn}, with 95 % intervals over {n} targets").format(
            turn=run.last_turn, n=f"{run.n_targets:,}"
        ),
        columns,
        rows,
        note=" ".join(_notes(run)).rstrip(),
    )


def _notes(run: StoredRun) -> Iterator[str]:
    yield str(BOLD)
    if run.is_mixed:
        yield str(MIXED)
    if run.is_articles:
        yield str(IMPROVEMENT)
    yield _methods(run)


def _mean(run: StoredRun, user: str, name: str, measure: str) -> Cell:
    row = run.last[user, name, measure]
    means = [run.last[one, name, measure].mean or 0.0 for one in run.user_names]
    return Number(
        row.mean,
        3,
        row.ci_low,
        row.ci_high,
        row.reason,
        is_best=row.mean is not None
        and is_tied(row.mean, max(means))
        and not is_tied(min(means), max(means)),
        no_interval=row.reason,
    )


def _methods(run: StoredRun) -> str:
    """How intervals were computed, if not all were alike."""
    of: dict[str, list[str]] = {}
    for (_user, _name, measure), row in run.last.items():
        if row.ci_method in METHODS and measure not in of.setdefault(row.ci_method, []):
            of[row.ci_method].append(measure)
    texts = (METHODS[name].format(measures=", ".join(measures)) for name, measures in of.items())
    return _("Intervals over targets: {methods}.").format(methods="; ".join(texts)) if of else ""


def is_tied(a: float, b: float) -> bool:
    """Whether two means differ only by rounding in their sums."""
    return isclose(a, b, rel_tol=1e-9, abs_tol=1e-12)


def _improvement_rows(run: StoredRun) -> list[tuple[Cell, ...]]:
    rows = {(row.recommender, row.measure): row for row in run.rows("improvements")}
    if not rows:
        return []
    cells = [rows[name, measure] for name in run.names for measure in run.measures]
    return [
        (_("best − SimBase, % of base"), *(_percent(row.percent_of_base) for row in cells)),
        (
            _("% Improv. (symmetric)") if run.is_articles else _("best − SimBase, symmetric %"),
            *(_percent(row.percent_symmetric) for row in cells),
        ),
        (_("the best beside SimBase"), *(_best_of(run, row) for row in cells)),
    ]


def _percent(value: float | None) -> Cell:
    return Number(value, 1, reason=_("SimBase's mean is 0"))


def _best_of(run: StoredRun, row: SimpleNamespace) -> str:
    name = row.recommender
    others = [run.last[user, name, row.measure].mean or 0.0 for user in run.user_names[1:]]
    if (n_tied := sum(is_tied(mean, row.best) for mean in others)) > 1:
        return _("{tied} of {n} alike").format(tied=n_tied, n=row.best_of)
    return _("{user}, best of {n}").format(user=row.best_user, n=row.best_of)


def _measure_column(measures: Sequence[str]) -> list[Column]:
    """Only if there are several measures; a page shows one and names it above."""
    return [Column(_("Measure"), is_number=False)] if len(measures) > 1 else []


def _measure_cell(measures: Sequence[str], measure: str) -> list[str]:
    return [measure] if len(measures) > 1 else []


def comparisons_table(run: StoredRun, measures: Sequence[str]) -> Table:
    what = {"users": _("users"), "recommenders": _("recommenders")}
    return Table(
        "comparisons",
        _("Comparisons at turn {turn}").format(turn=run.last_turn),
        (
            *_measure_column(measures),
            Column(_("Of"), is_number=False),
            Column(_("within"), is_number=False),
            Column(_("A"), is_number=False),
            Column(_("B"), is_number=False),
            Column(_("A − B")),
            Column(_("Test"), is_number=False),
            Column(_("p")),
            Column(_("p, Holm")),
        ),
        [
            (
                *_measure_cell(measures, row.measure),
                what[row.what],
                row.within,
                row.a,
                row.b,
                Number(row.delta, 3, row.ci_low, row.ci_high, row.reason, no_interval=row.reason),
                row.test,
                P(row.p),
                P(row.p_adjusted),
            )
            for row in run.rows("comparisons")
            if row.measure in measures
        ],
        note=_(
            "Paired over targets. p is adjusted by Holm's method over all comparisons of the "
            "result, whatever the measure; each interval is of its comparison alone."
        )
        + (f" {MIXED} {MIXED_TESTS}" if run.is_mixed else ""),
    )


def causes_table(run: StoredRun, measures: Sequence[str]) -> Table:
    return Table(
        "causes",
        _("User and qrels, apart"),
        (
            Column(_("Recommender"), is_number=False),
            Column(_("User"), is_number=False),
            *_measure_column(measures),
            Column(_("target"), group="SimBase"),
            Column(_("with alternatives"), group="SimBase"),
            Column(_("target"), group=_("the user")),
            Column(_("with alternatives"), group=_("the user")),
            Column(_("of the qrels"), group=_("Change")),
            Column(_("of the user"), group=_("Change")),
            Column(_("together"), group=_("Change")),
            Column(_("interaction"), group=_("Change")),
        ),
        [
            (
                row.recommender,
                row.user,
                *_measure_cell(measures, row.measure),
                *(
                    Number(value, 3)
                    for value in (row.base_target, row.base_all, row.meta_target, row.meta_all)
                ),
                Number(row.qrels_delta, 3, row.qrels_ci_low, row.qrels_ci_high),
                Number(row.user_delta, 3, row.user_ci_low, row.user_ci_high),
                Number(row.total_delta, 3, row.total_ci_low, row.total_ci_high),
                Number(row.interaction_delta, 3, row.interaction_ci_low, row.interaction_ci_high),
            )
            for row in run.rows("causes")
            if row.measure in measures
        ],
        note=_(
            "More relevant items change measures by themselves. Of the qrels: SimBase's change "
            "when alternatives count; of the user: the change from SimBase to the user when they "
            "count; together their sum. Interaction: how much more the user does where they count."
        ),
    )


def switches_table(run: StoredRun) -> Table:
    return Table(
        "switches",
        _("Switches and ends"),
        (
            Column(_("Recommender"), is_number=False),
            Column(_("User"), is_number=False),
            Column(_("Critiques with an alternative in mind")),
            Column(_("Dialogues")),
            Column(_("found")),
            Column(_("left")),
        ),
        [
            (
                row.recommender,
                row.user,
                row.n_switches,
                row.n_dialogues,
                row.n_found,
                row.n_left,
            )
            for row in run.rows("switches")
        ],
    )


def turns_table(run: StoredRun, rows: Sequence[SimpleNamespace]) -> Table:
    turns = list(range(1, run.last_turn + 1))
    cells = {(row.recommender, row.user, row.turn): row for row in rows}
    return Table(
        "every-turn",
        _("Every turn"),
        (
            Column(_("Recommender"), is_number=False),
            Column(_("User"), is_number=False),
            *(Column(str(turn), group=_("Turn")) for turn in turns),
        ),
        [
            (name, user, *(Number(cells[name, user, turn].mean, 3) for turn in turns))
            for name in run.names
            for user in run.user_names
        ],
    )


def sensitivity_table(run: StoredRun, rows: Sequence[SimpleNamespace], measure: str) -> Table:
    choices = {
        "qrels": _("relevant"),
        "carry": _("after the end"),
        "turn": _("turn"),
        "share judged": _("share judged"),
        "user": _("user"),
    }
    means: dict[tuple[str, str], dict[str, dict[str, SimpleNamespace]]] = {}
    for row in rows:
        by_user = means.setdefault((row.choice, row.value), {})
        by_user.setdefault(row.user, {})[row.recommender] = row
    return Table(
        "sensitivity",
        _("The order under other choices"),
        (
            Column(_("Choice"), is_number=False),
            Column(_("Value"), is_number=False),
            Column(_("another is best")),
            Column(_("tau, mean")),
            Column(_("tau, lowest")),
        ),
        [
            (choices[choice], value, *_moves(run, by_user, measure))
            for (choice, value), by_user in means.items()
        ],
        note=_(
            "Another is best: of how many users, when the list of recommenders is ordered by that "
            "choice instead of the result's own. Tau-b is of the two orders; the lowest is over "
            "users, and over the draws where a share of the judgments was drawn."
        ),
    )


def _moves(
    run: StoredRun, by_user: Mapping[str, Mapping[str, SimpleNamespace]], measure: str
) -> tuple[Cell, ...]:
    n_moved, taus, lowest = 0, [], []
    for user, row_of in by_user.items():
        own = max(run.names, key=lambda name: run.last[user, name, measure].mean or 0.0)
        best = max(run.names, key=lambda name: row_of[name].mean)
        n_moved += row_of[best].mean > row_of[own].mean
        first = row_of[own]
        if first.tau is not None and first.tau_low is not None:
            taus.append(first.tau)
            lowest.append(first.tau_low)
    reason = _("fewer than two recommenders with different means")
    counts = _("{n} of {users}").format(n=n_moved, users=len(by_user))
    if not taus:
        return counts, Number(None, reason=reason), Number(None, reason=reason)
    return counts, Number(sum(taus) / len(taus), 2), Number(min(lowest), 2)


USER_FIELDS = (
    *("name", "kind", "mode", "tolerance", "p_switch", "turn_base", "switches_on", "on_equal"),
    *("alternative", "target_among", "sticky", "accepts", "leave_hazard"),
)
TABLES: dict[str, Callable[[StoredRun, Sequence[str]], Table]] = {
    "results": lambda run, _measures: results_table(run),
    "comparisons": comparisons_table,
    "causes": causes_table,
    "switches": lambda run, _measures: switches_table(run),
}
