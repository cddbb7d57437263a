"""Which system people rate higher, or prefer, from a plain file of ratings or comparisons."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from math import isfinite, isnan
from pathlib import Path
from typing import Any

from annotation.exceptions import ImportRefused
from annotation.readers.rows import Row
from annotation.readers.selection import Where
from presentation.records import plain_values
from stats.inference.preferences_with_ties import Abilities, abilities_with_ties
from stats.inference.tie_likelihood import Model
from validation.analysis.adjusted_pairs import adjusted_by_holm
from validation.analysis.rated_systems import (
    INTERVALS_ALONE,
    RatedSystems,
    Scale,
    compare_rated_systems,
    comparison_sentence,
)
from validation.conclusions.columns import (
    Table,
    TableColumns,
    clusters_of,
    read_table,
    unread,
    unusable,
)

TIES = ("", "tie")
SPREAD = ("of_items", "of_annotators", "of_cells")


@dataclass(frozen=True)
class RatingsReport:
    """Rated systems as the command prints them."""

    compared: RatedSystems

    def record(self) -> dict[str, Any]:
        """As plain values for JSON, best system first."""
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
        """A line a system, a sentence a pair."""
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
    """Abilities from comparisons, and every two systems compared."""

    abilities: Abilities
    comparisons: tuple[dict[str, Any], ...]

    def record(self) -> dict[str, Any]:
        """As plain values for JSON."""
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
        """A line a system, a sentence a pair; or why there is none."""
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
    """A comparison for JSON, with the code of its conclusion, such as "better"."""
    return {**row, "conclusion": comparison_sentence(row).code}


@dataclass(frozen=True)
class RatingColumns:
    """Which columns of a file of ratings hold what."""

    item: tuple[str, ...]
    annotator: str
    system: str
    value: str
    cluster: str | None = None
    where: Where = field(default_factory=dict)


@dataclass(frozen=True)
class ComparisonColumns:
    """Which columns of a file of comparisons hold what."""

    first: str
    second: str
    winner: str
    item: tuple[str, ...] = ()
    annotator: str | None = None
    cluster: str | None = None
    covariates: tuple[str, ...] = ()
    where: Where = field(default_factory=dict)


def rated_systems_of_file(
    path: Path, columns: RatingColumns, *, seed: int = 0, scale: Scale = "interval"
) -> RatingsReport:
    """The systems of a file of ratings compared over its items and annotators."""
    import pandas as pd

    cluster = [columns.cluster] if columns.cluster else []
    table = read_table(
        path,
        TableColumns(
            texts=[columns.annotator, columns.system, *cluster],
            numbers=[columns.value],
            units=columns.item,
            where=columns.where,
        ),
    )
    frame = pd.DataFrame(
        {
            "item": table.unit,
            "annotator": table.texts[columns.annotator],
            "system": table.texts[columns.system],
            "value": table.numbers[columns.value],
        }
    )
    if columns.cluster:
        frame = frame.assign(item=clusters_of(table, columns.cluster), within=frame["item"])
    if frame["system"].nunique() < 2:
        raise unusable(path, ValueError(f"column {columns.system} names one system, not two"))
    if scale == "binary" and (n := frame["value"].nunique()) > 2:
        problem = f"column {columns.value} has {n} values; a binary scale has two"
        raise unusable(path, ValueError(problem))
    return RatingsReport(compare_rated_systems(frame, seed=seed, scale=scale))


def preferred_systems_of_file(
    path: Path,
    columns: ComparisonColumns,
    *,
    model: Model = "davidson",
    side: bool = False,
    half_wins: bool = False,
) -> PreferredSystems:
    """The systems of a file of comparisons by a model with ties."""
    annotator = [columns.annotator] if columns.annotator else []
    cluster = [columns.cluster] if columns.cluster else []
    table = read_table(
        path,
        TableColumns(
            texts=[columns.first, columns.second, *annotator, *cluster],
            numbers=columns.covariates,
            optional_texts=[columns.winner],
            units=columns.item,
            where=columns.where,
        ),
    )
    try:
        outcome = [_outcome(row, columns) for row in table.rows]
        abilities = abilities_with_ties(
            table.texts[columns.first],
            table.texts[columns.second],
            outcome,
            model=model,
            covariates={name: table.numbers[name] for name in columns.covariates},
            side=side,
            items=_sampled(table, columns.cluster),
            annotators=table.texts[columns.annotator] if columns.annotator else None,
            separated="half_wins" if half_wins else "refuse",
        )
    except ImportRefused as refused:
        raise unread(refused) from None
    except ValueError as error:
        raise unusable(path, error) from None
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


def _sampled(table: Table, cluster: str | None) -> list[str] | None:
    """What is drawn anew: clusters of items, items, or nothing."""
    if cluster is None:
        return table.unit or None
    return clusters_of(table, cluster) if table.unit else table.texts[cluster]


def _preference_estimand(se_by: str) -> str:
    if se_by == "comparisons":
        return "these systems, on comparisons taken as independent"
    return f"these systems, on new {se_by}"


def _outcome(row: Row, columns: ComparisonColumns) -> int:
    winner = row.optional(columns.winner)
    if winner.lower() in TIES:
        return 0
    first, second = row.required(columns.first), row.required(columns.second)
    if winner in (first, "first"):
        return 1
    if winner in (second, "second"):
        return -1
    raise row.refuse(
        f"'{winner}' is neither '{first}' nor '{second}'; write the winner's name, or nothing "
        "or 'tie' for a tie.",
        columns.winner,
    )
