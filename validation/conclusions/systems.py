from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from math import isfinite, isnan
from pathlib import Path
from typing import Any

from annotation.exceptions import TableRefused
from annotation.readers.columns import (
    Table,
    as_table_refused,
    open_table,
    refusing_tables,
    refusing_values,
)
from annotation.readers.label_tables import read_labels
from annotation.readers.policies import MISSING, Reading
from annotation.readers.shapes import Columns, Where, comparison_outcomes
from presentation.numbers import plain_values
from stats.inference.preferences_with_ties import Abilities, abilities_with_ties
from stats.inference.tie_likelihood import Model
from stats.libraries import np, pd
from validation.analysis.rated_systems import (
    INTERVALS_ALONE,
    RatedSystems,
    Scale,
    adjusted_by_holm,
    compare_rated_systems,
    comparison_sentence,
)

OF_WORDS = (
    "Of answers in words, such as yes and no, name the one that counts as 1 with --positive, and "
    "compare them with --scale binary."
)
SPREAD = ("of_items", "of_annotators", "of_cells")


@dataclass(frozen=True)
class RatingsReport:
    compared: RatedSystems

    def record(self) -> dict[str, Any]:
        systems = [
            {"system": name, "mean": one.value, "rank_low": low, "rank_high": high}
            | {key: value for key, value in asdict(one).items() if key not in ("value", *SPREAD)}
            for name, one in self.compared.best_first()
            for low, high in [self.compared.ranks[name]]
        ]
        return {
            "systems": [plain_values(row) for row in systems],
            "comparisons": [_with_conclusion(row) for row in self.compared.comparisons],
            "notes": list(self.compared.notes),
            "note_codes": [note.code for note in self.compared.notes],
        }

    def lines(self) -> Iterator[str]:
        for name, one in self.compared.best_first():
            limits = "" if isnan(one.ci_low) else f" [{one.ci_low:.4g}, {one.ci_high:.4g}]"
            low, high = self.compared.ranks[name]
            rank = f"rank {low}" if low == high else f"rank {low} to {high}"
            yield f"{name}: {one.value:.4g}{limits}, {rank}."
        yield from (comparison_sentence(row) for row in self.compared.comparisons)
        if len(self.compared.comparisons) > 1:
            yield f"{INTERVALS_ALONE}."
        yield from (f"Note: {note}." for note in self.compared.notes)


@dataclass(frozen=True)
class PreferredSystems:
    abilities: Abilities
    comparisons: tuple[dict[str, Any], ...]

    def record(self) -> dict[str, Any]:
        one = self.abilities
        rest = {
            "tie_parameter": one.tie_parameter,
            "model": one.model,
            "converged": one.converged,
            "log_likelihood": one.log_likelihood,
            "se_by": one.se_by,
            "n_comparisons": one.n,
            "n_ties": one.n_ties,
            "reason": one.reason,
        }
        return {
            "abilities": plain_values({str(k): v for k, v in one.abilities.items()}),
            **plain_values(rest),
            "coefficients": {
                name: {"value": value, "ci_low": low, "ci_high": high}
                for name, value in one.coefficients.items()
                for low, high in [one.coefficient_limits[name]]
            },
            "smoothed": [str(name) for name in one.smoothed],
            "comparisons": [_with_conclusion(row) for row in self.comparisons],
            "notes": list(one.notes),
        }

    def lines(self) -> Iterator[str]:
        one = self.abilities
        if one.reason is not None:
            named = f": {', '.join(str(name) for name in one.smoothed)}" if one.smoothed else ""
            yield f"No abilities: {str(one.reason).replace('_', ' ')}{named}."
            return
        for name, value in sorted(one.abilities.items(), key=lambda pair: -pair[1]):
            yield f"{name}: log ability {value:+.3f}."
        for name, value in one.coefficients.items():
            low, high = one.coefficient_limits[name]
            yield f"{name}: {value:+.3f} [{low:+.3f}, {high:+.3f}] on the log odds."
        yield from (comparison_sentence(row) for row in self.comparisons)
        if len(self.comparisons) > 1:
            yield f"{INTERVALS_ALONE}."
        yield from (f"Note: {note}." for note in one.notes)


def _with_conclusion(row: Mapping[str, Any]) -> dict[str, Any]:
    return {**row, "conclusion": comparison_sentence(row).code}


@dataclass(frozen=True)
class ComparisonColumns:
    first: str
    second: str
    winner: str
    item: tuple[str, ...] = ()
    annotator: str | None = None
    cluster: str | None = None
    covariates: tuple[str, ...] = ()
    where: Where = field(default_factory=dict)

    @property
    def named(self) -> list[str]:
        names = (self.first, self.second, self.winner, self.annotator, self.cluster)
        return list(dict.fromkeys(n for n in (*names, *self.item, *self.covariates) if n))


def rated_systems_of_file(
    path: Path,
    columns: Columns,
    *,
    seed: int = 0,
    scale: Scale = "interval",
    positive: str | None = None,
    reading: Reading | None = None,
) -> RatingsReport:
    """The systems of a file of ratings compared over its items and annotators.

    On a binary scale `positive` is the value that counts as 1.
    """
    try:
        table = read_labels(
            path,
            columns,
            kind="number",
            reading=reading,
            repeats="mean",
            has_systems=True,
            positive=positive,
        )
    except TableRefused as refused:
        if refused.code != "not_number":
            raise
        raise as_table_refused(refused, OF_WORDS) from None
    frame = pd.DataFrame(
        {
            "item": table.items,
            "annotator": table.annotators,
            "system": table.systems,
            "value": table.values,
        }
    )
    if table.clusters is not None:
        frame = frame.assign(item=table.clusters, within=frame["item"])
    if frame["system"].nunique() < 2:
        raise TableRefused(path, "there is one system, not two.", code="one_system")
    if scale == "binary" and (n := frame["value"].nunique()) > 2:
        problem = f"column {columns.value} has {n} values; a binary scale has two."
        raise TableRefused(path, problem, code="not_binary")
    return RatingsReport(compare_rated_systems(frame, seed=seed, scale=scale))


def preferred_systems_of_file(
    path: Path,
    columns: ComparisonColumns,
    *,
    model: Model = "davidson",
    side: bool = False,
    half_wins: bool = False,
    reading: Reading | None = None,
) -> PreferredSystems:
    reading = reading or Reading()
    with refusing_tables():
        table = open_table(path, columns.named, columns.where, reading)
        outcomes = _drop_unanswered(table, columns)
        units = table.units(columns.item) if columns.item else None
        clusters = None
        if columns.cluster and units:
            clusters = table.clusters(columns.cluster, units).to_list()
        elif columns.cluster:
            clusters = table.names(columns.cluster, "clusters").to_list()
        annotators = table.names(columns.annotator, "annotators") if columns.annotator else None
        systems = [table.names(name, "systems") for name in (columns.first, columns.second)]
        covariates = {name: table.numbers(name) for name in columns.covariates}
    with refusing_values(path):
        abilities = abilities_with_ties(
            systems[0].to_list(),
            systems[1].to_list(),
            outcomes,
            model=model,
            covariates=covariates,
            side=side,
            items=clusters or (units.to_list() if units else None),
            annotators=annotators.to_list() if annotators else None,
            separated="half_wins" if half_wins else "refuse",
        )
    rows = [
        {
            "a": str(pair.a),
            "b": str(pair.b),
            "delta": pair.delta,
            "se": pair.se,
            "ci_low": pair.ci_low,
            "ci_high": pair.ci_high,
            "test": f"{model}-wald",
            "freedom": pair.freedom if isfinite(pair.freedom) else None,
            "p": pair.p,
            "estimand": _preference_estimand(abilities.se_by),
            "n_annotators": abilities.n_annotators,
            "busiest_share": abilities.busiest_share,
        }
        for pair in abilities.pairs
    ]
    return PreferredSystems(abilities, adjusted_by_holm(rows))


def _preference_estimand(se_by: str) -> str:
    if se_by == "comparisons":
        return "these systems, on comparisons taken as independent"
    return f"these systems, on new {se_by}"


def _drop_unanswered(table: Table, columns: ComparisonColumns) -> list[int]:
    outcomes = comparison_outcomes(
        table.cells, columns.first, columns.second, columns.winner, table.reading
    )
    winners = table.cells.words(columns.winner)
    missing = np.array([outcome is None for outcome in outcomes], dtype=np.bool_)
    for text in winners.rows(missing).to_list():
        table.report.note_missing(text)
    table.keep(~missing, MISSING)
    return [outcome for outcome in outcomes if outcome is not None]
