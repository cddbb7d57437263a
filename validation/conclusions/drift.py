"""Whether a judge moved between two versions, on anchor items that both scored."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from math import isnan
from pathlib import Path
from typing import Any

from annotation.readers.selection import Where
from presentation.records import plain_values
from stats.inference.judge_soundness import Drift, judge_shift
from validation.conclusions.columns import TableColumns, read_table, unusable

ANCHORS = 50
ALPHA = 0.05


@dataclass(frozen=True)
class DriftColumns:
    """The columns of a judge's scores at two versions and, where there are, of human ratings."""

    before: str
    after: str
    human: str | None = None
    where: Where = field(default_factory=dict)


@dataclass(frozen=True)
class JudgeDrift:
    """The shift, and whether it is more than is tolerated."""

    drift: Drift
    tolerance: float

    @property
    def has_drifted(self) -> bool:
        """Whether a shift is shown, and is larger than the tolerance."""
        return self.drift.p_adjusted < ALPHA and abs(self.drift.shift) > self.tolerance

    def record(self) -> dict[str, Any]:
        """As plain values for JSON."""
        values = plain_values(asdict(self.drift))
        return values | {"tolerance": self.tolerance, "drifted": self.has_drifted}

    def lines(self) -> Iterator[str]:
        """The conclusion, and whether the judge came nearer to people."""
        one = self.drift
        limits = "" if isnan(one.ci_low) else f" [{one.ci_low:+.4g}, {one.ci_high:+.4g}]"
        state = "has moved" if self.has_drifted else "is not shown to have moved too far"
        yield (
            f"The judge {state}: {one.shift:+.4g}{limits} on {one.n} anchor items, "
            f"p = {one.p_adjusted:.4f}, tolerance {self.tolerance:g}."
        )
        if not isnan(one.distance_shift):
            yield (
                f"Mean distance from people: {one.distance_before:.4g} before, "
                f"{one.distance_after:.4g} after ({one.distance_shift:+.4g} "
                f"[{one.distance_ci_low:+.4g}, {one.distance_ci_high:+.4g}])."
            )
        if one.n < ANCHORS:
            yield f"Note: {one.n} anchor items; {ANCHORS} or more are advised."


def drift_of_file(
    path: Path, columns: DriftColumns, *, tolerance: float = 0.0, looks: int = 1
) -> JudgeDrift:
    """The shift of the judge whose scores at two versions are columns of a file."""
    human = [columns.human] if columns.human else []
    table = read_table(
        path, TableColumns(numbers=[columns.before, columns.after, *human], where=columns.where)
    )
    try:
        drift = judge_shift(
            table.numbers[columns.before],
            table.numbers[columns.after],
            human=table.numbers[columns.human] if columns.human else None,
            looks=looks,
        )
    except ValueError as error:
        raise unusable(path, error) from None
    return JudgeDrift(drift, tolerance)
