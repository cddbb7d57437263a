"""How large a study would have to be to distinguish two metrics: curves and their table."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.translation import gettext as _

from presentation.documents import Column, Number, Row, Table
from validation.analysis.records import PlanRecord
from validation.documents.cells import signed
from validation.documents.tables import QUESTION
from validation.documents.terms import statistic
from validation.results import Results

PAIR = ("metric_a", "signature_a", "metric_b", "signature_b")


def curves_of(results: Results) -> list[list[PlanRecord]]:
    """The records of each question, measure and pair; those of least power here first."""
    curves: dict[tuple[str, ...], list[PlanRecord]] = {}
    for record in results.rows(PlanRecord):
        key = tuple(getattr(record, name) for name in ("question", "level", "coefficient", *PAIR))
        curves.setdefault(key, []).append(record)
    return sorted(curves.values(), key=_power_here)


def _power_here(curve: Sequence[PlanRecord]) -> float:
    """The power of a study of as many items, and annotators, as this one."""
    return next((row.power or 0.0 for row in curve if row.is_pilot), 0.0)


def sample_size_table(results: Results, curves: Sequence[Sequence[PlanRecord]]) -> Table:
    """The items that each pair needs, by the number of ratings of a candidate."""
    rows: list[Row] = [
        (
            first.question,
            statistic(first.coefficient, first.level),
            *results.pair_labels(first),
            Number(row.n_annotators, 1, reason="unknown"),
            Number(row.power, reason="undefined", signature=_signature(results, row)),
            "more than were tried" if row.items_needed is None else f"{row.items_needed:,}",
        )
        for curve in curves
        for first in curve[:1]
        for row in curve
        if row.is_pilot
    ]
    titles = ("Measure", "Metric", "against")
    power = next((row.power_wanted for curve in curves for row in curve), 0.8)
    return Table(
        name="planning",
        caption=f"Items needed to tell two metrics apart with a power of {power:.0%}",
        columns=[
            QUESTION,
            *(Column(title, is_number=False) for title in titles),
            Column("Ratings each"),
            Column("Power of as many items as here"),
            Column("Items needed"),
        ],
        rows=rows,
        note=_(
            "Studies of other sizes are drawn from the items of this one, of these very systems: "
            "where the two metrics differ here by luck, that luck is planned for. More ratings of "
            "each candidate, by annotators like these, take noise from both correlations as far "
            "as the annotators agree on what the measure compares; by how much studies differ is "
            "taken as unchanged, and of a rank coefficient values as normal. Whether the metrics "
            "differ on new systems is another question."
        ),
    )


def _signature(results: Results, record: PlanRecord) -> str:
    drawn = {"test": "resampled-studies", "n_draws": record.n_studies}
    return signed(results, f"power.{record.n_items}", record, **drawn)
