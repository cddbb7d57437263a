from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from math import isnan
from pathlib import Path
from typing import Any

from annotation.readers.coded_table import Words, coded
from annotation.readers.columns import open_table, refusing_tables, refusing_values
from annotation.readers.label_tables import settle_outputs
from annotation.readers.policies import Reading
from annotation.readers.shapes import Where
from presentation.numbers import plain_values
from stats.inference.larger_studies import least_distinguishable
from stats.inference.looks import Spending, confidence_at_look, p_of_look
from stats.inference.powered_means import PredictionPowered, prediction_powered_mean
from stats.inference.powered_quantiles import (
    PoweredCoefficient,
    prediction_powered_correlation,
    prediction_powered_quantile,
)
from stats.inference.powered_regression import (
    Coefficient,
    PoweredRegression,
    prediction_powered_regression,
)
from stats.inference.sampled_batches import sampled_mean
from stats.libraries import np, pd
from stats.significance import holm
from validation.analysis.rated_systems import untested_pairs
from validation.analysis.systems import p_of_no_difference, paired_systems


@dataclass(frozen=True)
class PoweredColumns:
    """An empty human value is an item that people did not rate."""

    human: str
    judge: str
    item: tuple[str, ...] = ()
    system: str | None = None
    cluster: str | None = None
    where: Where | None = None
    # Filled in every row: covariates, or what people are correlated with.
    others: tuple[str, ...] = ()
    # The batch that sent an item first; `probability` is the probability of drawing it.
    batch: str | None = None
    probability: str | None = None

    @property
    def sampling(self) -> dict[str, str]:
        both = {"batch": self.batch, "probability": self.probability}
        return {name: column for name, column in both.items() if column is not None}


@dataclass(frozen=True)
class Estimand:
    quantile: float | None = None
    correlation: str | None = None
    coefficient: PoweredCoefficient = "pearson"

    @property
    def is_mean(self) -> bool:
        return self.quantile is None and self.correlation is None

    @property
    def label(self) -> str:
        if self.correlation is not None:
            return f"{self.coefficient} with {self.correlation}"
        return "mean" if self.quantile is None else f"quantile {self.quantile:g}"


MEAN = Estimand()


@dataclass(frozen=True)
class Look:
    """One of several planned looks at data that are still collected."""

    number: int = 1
    planned: int = 1
    spending: Spending = "pocock"

    def level(self, confidence: float) -> float:
        """The level of this look's intervals, so that those of all looks hold together."""
        return confidence_at_look(
            self.number, self.planned, confidence=confidence, spending=self.spending
        )

    def scaled(self, p: float, confidence: float) -> float:
        """The p that rejects at 1 - confidence exactly if this look's interval excludes 0."""
        return p_of_look(p, self.level(confidence), confidence=confidence)

    def record(self, confidence: float) -> dict[str, Any]:
        if self.planned == 1:
            return {}
        return {"look": {**asdict(self), "level": self.level(confidence)}}

    def lines(self, confidence: float) -> Iterator[str]:
        if self.planned > 1:
            yield (
                f"Look {self.number} of {self.planned}: intervals of all looks together hold "
                f"{confidence:.0%} of the time, this one's at {self.level(confidence):.2%}."
            )


ONLY_LOOK = Look()


@dataclass(frozen=True)
class PoweredMeans:
    """Differences have Holm-adjusted p; there are differences of means only."""

    means: tuple[tuple[str | None, PredictionPowered], ...]
    differences: tuple[dict[str, Any], ...]
    estimand: Estimand = MEAN
    look: Look = ONLY_LOOK
    confidence: float = 0.95

    def record(self) -> dict[str, Any]:
        return {
            "estimand": self.estimand.label,
            **self.look.record(self.confidence),
            "estimates": [{"system": name, **_record(one)} for name, one in self.means],
            "differences": [dict(one) for one in self.differences],
        }

    def lines(self) -> Iterator[str]:
        yield from self.look.lines(self.confidence)
        for name, one in self.means:
            label = f"{name}: " if name is not None else ""
            what = "" if self.estimand.is_mean else f"{self.estimand.label} "
            yield f"{label}{what}{_sentence(one)}"
            yield from (f"Note: {note}." for note in one.notes)
        for row in self.differences:
            yield _difference_sentence(row)


def powered_means_of_file(
    path: Path,
    columns: PoweredColumns,
    *,
    estimand: Estimand = MEAN,
    confidence: float = 0.95,
    look: Look = ONLY_LOOK,
    reading: Reading | None = None,
) -> PoweredMeans:
    cells, level = powered_cells(path, columns, reading), look.level(confidence)
    with refusing_values(path):
        means = tuple(
            (name, _estimate(part, estimand, level))
            for name, part in parts_by_system(cells, columns)
        )
        paired = estimand.is_mean and columns.system is not None and bool(columns.item)
        differences = _differences(cells, confidence, look) if paired else ()
    return PoweredMeans(means, differences, estimand, look, confidence)


def parts_by_system(
    cells: pd.DataFrame, columns: PoweredColumns
) -> Iterator[tuple[str | None, pd.DataFrame]]:
    if columns.system is None:
        yield None, cells
    else:
        yield from ((str(name), part) for name, part in cells.groupby("system"))


def powered_cells(
    path: Path, columns: PoweredColumns, reading: Reading | None = None
) -> pd.DataFrame:
    """A row per item (under a system) with the mean of the human ratings of it.

    Rows without a score of the judge, or without one of the further columns, are left out.
    """
    reading = reading or Reading()
    filled = (columns.judge, *columns.others)
    texts = [name for name in (columns.system, columns.cluster) if name]
    named = [*columns.item, *texts, columns.human, *filled, *columns.sampling.values()]
    with refusing_tables():
        table = open_table(path, named, columns.where or {}, reading)
        table.drop_missing(*dict.fromkeys(filled))
        scores = {name: table.numbers(name) for name in filled}
        sampling = {
            name: table.numbers(name, is_optional=True, is_counted=False)
            for name in columns.sampling.values()
        }
        human = table.numbers(columns.human, is_optional=True)
        keys = [table.units(columns.item)] if columns.item else [coded(map(str, range(len(table))))]
        if columns.system:
            keys.append(table.names(columns.system, "systems"))
        clusters = table.names(columns.cluster, "clusters") if columns.cluster else None
        human, settled, kept = settle_outputs(
            table, keys, human, scores | sampling, reading.repeats("refuse")
        )

    def texts_of(words: Words) -> list[str]:
        return words.rows(kept).to_list()

    cells = {"item": texts_of(keys[0])}
    cells["system"] = texts_of(keys[1]) if columns.system else [""] * len(kept)
    numbers = {"human": human, "judge": settled[columns.judge]}
    numbers |= {other_column(name): settled[name] for name in columns.others}
    numbers |= {name: settled[column] for name, column in columns.sampling.items()}
    frame = pd.DataFrame(cells | numbers)
    return frame if clusters is None else frame.assign(cluster=texts_of(clusters))


def other_column(name: str) -> str:
    return f"other {name}"


def _estimate(cells: pd.DataFrame, estimand: Estimand, confidence: float) -> PredictionPowered:
    human, judge, clusters = cells["human"], cells["judge"], cells.get("cluster")
    if estimand.correlation is not None:
        return prediction_powered_correlation(
            human,
            judge,
            cells[other_column(estimand.correlation)],
            coefficient=estimand.coefficient,
            clusters=clusters,
            confidence=confidence,
        )
    if estimand.quantile is None:
        return _mean(cells, confidence)
    return prediction_powered_quantile(
        human, judge, quantile=estimand.quantile, clusters=clusters, confidence=confidence
    )


def _mean(cells: pd.DataFrame, confidence: float) -> PredictionPowered:
    if "probability" in cells:
        return sampled_mean(
            cells["human"],
            cells["judge"],
            cells["batch"],
            cells["probability"],
            clusters=cells.get("cluster"),
            confidence=confidence,
        )
    return prediction_powered_mean(
        cells["human"],
        cells["judge"],
        clusters=cells.get("cluster"),
        confidence=confidence,
    )


def _differences(cells: pd.DataFrame, confidence: float, look: Look) -> tuple[dict[str, Any], ...]:
    rows = []
    for a, b, pair in paired_systems(cells):
        one = _mean(pair, look.level(confidence))
        p = look.scaled(p_of_no_difference(one), confidence)
        rows.append({"a": a, "b": b, **_record(one), "p": None if isnan(p) else p})
    adjusted = holm(
        [np.nan if row["p"] is None else row["p"] for row in rows],
        n_untested=untested_pairs(cells["system"].nunique(), len(rows)),
    )
    return tuple(
        row | plain_values({"p_adjusted": float(p)}) for row, p in zip(rows, adjusted, strict=True)
    )


def _record(one: PredictionPowered) -> dict[str, Any]:
    values = asdict(one)
    people = plain_values(values.pop("people_only"))
    notes, power = list(values.pop("notes")), values.pop("power")
    return plain_values(values | {"lambda": power}) | {"people_only": people, "notes": notes}


def _sentence(one: PredictionPowered) -> str:
    if one.reason is not None:
        value = "no value" if isnan(one.value) else f"{one.value:.4g}"
        return f"{value}, without an interval: {str(one.reason).replace('_', ' ')}."
    people = one.people_only
    return (
        f"{one.value:.4g} [{one.ci_low:.4g}, {one.ci_high:.4g}] from {one.n_labelled} human "
        f"ratings and {one.n} scores, worth {one.effective_n:.0f} ratings (lambda "
        f"{one.power:.2f}); people alone {people.value:.4g} [{people.ci_low:.4g}, "
        f"{people.ci_high:.4g}]."
    )


def _difference_sentence(row: dict[str, Any]) -> str:
    a, b = row["a"], row["b"]
    if row["p"] is None:
        return f"{a} and {b}: undetermined: {str(row['reason']).replace('_', ' ')}."
    limits = f"{row['value']:.4g} [{row['ci_low']:.4g}, {row['ci_high']:.4g}]"
    if row["p_adjusted"] < 0.05:
        better, worse = (a, b) if row["value"] > 0 else (b, a)
        p = f"p = {row['p_adjusted']:.4f} after Holm"
        return f"{better} is better than {worse}, these two on new items ({limits}, {p})."
    least = least_distinguishable(row["se"], row.get("freedom") or 0.0)
    return (
        f"{a} and {b} are not distinguished ({limits}); this study could distinguish "
        f"differences over {least:.3g}."
    )


@dataclass(frozen=True)
class PoweredRegressions:
    regressions: tuple[tuple[str | None, PoweredRegression], ...]
    covariates: tuple[str, ...]
    look: Look = ONLY_LOOK
    confidence: float = 0.95

    def record(self) -> dict[str, Any]:
        return {
            "estimand": f"least squares on {', '.join(self.covariates)}",
            **self.look.record(self.confidence),
            "estimates": [
                {"system": name, **_regression_record(one)} for name, one in self.regressions
            ],
            "differences": [],
        }

    def lines(self) -> Iterator[str]:
        yield from self.look.lines(self.confidence)
        for name, one in self.regressions:
            label = f"{name}: " if name is not None else ""
            if one.reason is not None:
                yield f"{label}no coefficients: {str(one.reason).replace('_', ' ')}."
            else:
                yield from (f"{label}{_coefficient_sentence(row)}" for row in one.coefficients)
            yield from (f"Note: {note}." for note in one.notes)


def powered_regressions_of_file(
    path: Path,
    columns: PoweredColumns,
    *,
    confidence: float = 0.95,
    look: Look = ONLY_LOOK,
    reading: Reading | None = None,
) -> PoweredRegressions:
    cells = powered_cells(path, columns, reading)
    with refusing_values(path):
        results = tuple(
            (
                name,
                prediction_powered_regression(
                    part["human"],
                    part["judge"],
                    {other: part[other_column(other)] for other in columns.others},
                    clusters=part.get("cluster"),
                    confidence=look.level(confidence),
                ),
            )
            for name, part in parts_by_system(cells, columns)
        )
    looked = tuple((name, _at_look(one, look, confidence)) for name, one in results)
    return PoweredRegressions(looked, columns.others, look, confidence)


def _at_look(one: PoweredRegression, look: Look, confidence: float) -> PoweredRegression:
    if look.planned == 1:
        return one
    rows = (replace(row, p=look.scaled(row.p, confidence)) for row in one.coefficients)
    return replace(one, coefficients=tuple(rows))


def _regression_record(one: PoweredRegression) -> dict[str, Any]:
    values = asdict(one)
    rows = [
        plain_values({key: value for key, value in row.items() if key != "people_only"})
        | {"people_only": plain_values(row["people_only"])}
        for row in values.pop("coefficients")
    ]
    notes, power = list(values.pop("notes")), values.pop("power")
    return plain_values(values | {"lambda": power}) | {"coefficients": rows, "notes": notes}


def _coefficient_sentence(row: Coefficient) -> str:
    people = row.people_only
    p = "" if isnan(row.p) or row.name == "intercept" else f", p = {row.p:.4f}"
    return (
        f"{row.name} {row.value:+.4g} [{row.ci_low:+.4g}, {row.ci_high:+.4g}]{p}; people alone "
        f"{people.value:+.4g} [{people.ci_low:+.4g}, {people.ci_high:+.4g}]."
    )
