"""Least squares of human ratings on covariates, from few ratings and a judge's scores of all."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from math import isnan
from pathlib import Path
from typing import Any

from annotation.readers.columns import unusable
from annotation.readers.policies import Reading
from presentation.records import plain_values
from stats.inference.powered_regression import (
    Coefficient,
    PoweredRegression,
    prediction_powered_regression,
)
from validation.conclusions.prediction_powered import (
    ONLY_LOOK,
    Look,
    PoweredColumns,
    other_column,
    parts_by_system,
    powered_cells,
)


@dataclass(frozen=True)
class PoweredRegressions:
    """One regression for each system, or of the whole file."""

    regressions: tuple[tuple[str | None, PoweredRegression], ...]
    covariates: tuple[str, ...]
    look: Look = ONLY_LOOK
    confidence: float = 0.95

    def record(self) -> dict[str, Any]:
        """As plain values for JSON."""
        return {
            "estimand": f"least squares on {', '.join(self.covariates)}",
            **self.look.record(self.confidence),
            "estimates": [{"system": name, **_record(one)} for name, one in self.regressions],
            "differences": [],
        }

    def lines(self) -> Iterator[str]:
        """A sentence for each coefficient."""
        yield from self.look.lines(self.confidence)
        for name, one in self.regressions:
            label = f"{name}: " if name is not None else ""
            if one.reason is not None:
                yield f"{label}no coefficients: {str(one.reason).replace('_', ' ')}."
            else:
                yield from (f"{label}{_sentence(row)}" for row in one.coefficients)
            yield from (f"Note: {note}." for note in one.notes)


def powered_regressions_of_file(
    path: Path,
    columns: PoweredColumns,
    *,
    confidence: float = 0.95,
    look: Look = ONLY_LOOK,
    reading: Reading | None = None,
) -> PoweredRegressions:
    """What human ratings rise by with each of the further columns."""
    cells = powered_cells(path, columns, reading)
    try:
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
    except ValueError as error:
        raise unusable(path, error) from None
    looked = tuple((name, _at_look(one, look, confidence)) for name, one in results)
    return PoweredRegressions(looked, columns.others, look, confidence)


def _at_look(one: PoweredRegression, look: Look, confidence: float) -> PoweredRegression:
    """The regression with p that agrees with this look's intervals."""
    if look.planned == 1:
        return one
    rows = (replace(row, p=look.scaled(row.p, confidence)) for row in one.coefficients)
    return replace(one, coefficients=tuple(rows))


def _record(one: PoweredRegression) -> dict[str, Any]:
    values = asdict(one)
    rows = [
        plain_values({key: value for key, value in row.items() if key != "people_only"})
        | {"people_only": plain_values(row["people_only"])}
        for row in values.pop("coefficients")
    ]
    notes, power = list(values.pop("notes")), values.pop("power")
    return plain_values(values | {"lambda": power}) | {"coefficients": rows, "notes": notes}


def _sentence(row: Coefficient) -> str:
    people = row.people_only
    p = "" if isnan(row.p) or row.name == "intercept" else f", p = {row.p:.4f}"
    return (
        f"{row.name} {row.value:+.4g} [{row.ci_low:+.4g}, {row.ci_high:+.4g}]{p}; people alone "
        f"{people.value:+.4g} [{people.ci_low:+.4g}, {people.ci_high:+.4g}]."
    )
