"""Whether a judge moved between two versions, on anchor items that both scored."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from math import isnan
from pathlib import Path
from typing import Any

from annotation.readers.columns import open_table, refusing_tables, unusable
from annotation.readers.policies import Reading
from annotation.readers.repeated_rows import settle_repeats
from annotation.readers.shapes import Where
from error_codes import CodedText
from presentation.records import plain_values
from stats.inference.judge_soundness import Drift, judge_shift

ANCHORS = 50
MOVED = 30
"""Of scores that are mostly the same, an interval of the mean needs about so many that moved."""
ALPHA = 0.05


@dataclass(frozen=True)
class DriftColumns:
    """The columns of a judge's scores at two versions and, where there are, of human ratings."""

    before: str
    after: str
    human: str | None = None
    cluster: str | None = None
    item: tuple[str, ...] = ()
    where: Where = field(default_factory=dict)


@dataclass(frozen=True)
class JudgeDrift:
    """The shift, and whether it is more than is tolerated."""

    drift: Drift
    tolerance: float

    @property
    def has_drifted(self) -> bool:
        """Whether a shift larger than the tolerance is shown."""
        return self.drift.p_beyond < ALPHA

    def record(self) -> dict[str, Any]:
        """As plain values for JSON."""
        values = plain_values(asdict(self.drift))
        return values | {
            "tolerance": self.tolerance,
            "drifted": self.has_drifted,
            "notes": list(self.notes()),
            "note_codes": [note.code for note in self.notes()],
        }

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
            limits = f" [{one.distance_ci_low:+.4g}, {one.distance_ci_high:+.4g}]"
            limits = ", all alike" if isnan(one.distance_ci_low) else limits
            yield (
                f"Mean distance from people: {one.distance_before:.4g} before, "
                f"{one.distance_after:.4g} after ({one.distance_shift:+.4g}{limits})."
            )
        yield from (f"Note: {note}." for note in self.notes())

    def notes(self) -> Iterator[CodedText]:
        """What makes the interval a rough guide."""
        one = self.drift
        if one.n_clusters < ANCHORS:
            units = "anchor items" if one.n_clusters == one.n else "clusters of anchor items"
            text = f"{one.n_clusters} {units}; {ANCHORS} or more are advised"
            yield CodedText(text, code="few_anchors")
        if one.n >= ANCHORS and 0 < one.n_moved < min(MOVED, one.n):
            text = f"only {one.n_moved} scores moved: the interval is a rough guide below {MOVED}"
            yield CodedText(text, code="few_moved")


def drift_of_file(
    path: Path,
    columns: DriftColumns,
    *,
    tolerance: float = 0.0,
    looks: int = 1,
    reading: Reading | None = None,
) -> JudgeDrift:
    """The shift of the judge whose scores at two versions are columns of a file.

    Anchor items without one of the scores, or without the human rating, are left out.
    """
    reading = reading or Reading()
    scores = [name for name in (columns.before, columns.after, columns.human) if name]
    cluster = [columns.cluster] if columns.cluster else []
    with refusing_tables():
        table = open_table(path, [*scores, *columns.item, *cluster], columns.where, reading)
        table.drop_missing(*dict.fromkeys(scores))
        clusters = table.names(cluster[0], "clusters").to_list() if cluster else None
        values = [table.numbers(name) for name in scores]
        if columns.item:
            units = table.units(columns.item)
            values, kept = settle_repeats(table, [units], values, reading.repeats("refuse"))
            clusters = clusters and [clusters[row] for row in kept.tolist()]
    before, after, *human = values
    try:
        drift = judge_shift(
            before,
            after,
            human=human[0] if human else None,
            clusters=clusters,
            tolerance=tolerance,
            looks=looks,
        )
    except ValueError as error:
        raise unusable(path, error) from None
    return JudgeDrift(drift, tolerance)
