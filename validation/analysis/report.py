"""The report: everything computed from judgments and scores, frozen, with its settings."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from presentation.records import plain_values
from validation.analysis.ceilings import PanelCeiling, panel_ceilings
from validation.analysis.comparisons import PairTest, pair_tests
from validation.analysis.correlations import (
    MetricAgreement,
    means_of_conditions,
    panel_rows,
)
from validation.analysis.material import Material
from validation.analysis.panels import Panel
from validation.analysis.planning import planning_records
from validation.analysis.residuals import worst_candidates
from validation.analysis.sensitivity import Variation, ranks, variations
from validation.analysis.settings import Settings
from validation.analysis.systems import disagreements, system_records

FORM = 2
"""The shape of a report's content; a stored report of another form is made anew."""
Record = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class ValidationReport:
    """Which metric agrees with people, how sure that is, and by which rules.

    `validation.analysis` describes the records.
    """

    settings: Settings
    fingerprint: str
    rows: tuple[MetricAgreement, ...]
    clusters: tuple[int | None, ...]
    comparisons: tuple[PairTest, ...]
    ceilings: tuple[PanelCeiling, ...]
    sensitivity: tuple[Variation, ...]
    systems: tuple[Record, ...]
    disagreements: tuple[Record, ...]
    worst: tuple[Record, ...]
    inputs: Record
    planning: tuple[Record, ...]

    def records(self) -> list[Record]:
        """The table: each correlation with its rank, ceiling and input."""
        of_rank = _ranked(self.rows)
        ceilings = {(c.question, c.scope, c.by, c.level, c.coefficient): c for c in self.ceilings}
        return [
            row.record()
            | self._beside(row, ceilings)
            | {"rank": of_rank[number], "cluster": self.clusters[number]}
            | {"input": self.fingerprint}
            for number, row in enumerate(self.rows)
        ]

    def content(self) -> Record:
        """The whole report as plain values, undefined numbers None."""
        return {
            "form": FORM,
            "fingerprint": self.fingerprint,
            "settings": self.settings.content(),
            "inputs": self.inputs,
            "correlations": self.records(),
            "comparisons": [pair.record() for pair in self.comparisons],
            "ceilings": [one.record() for one in self.ceilings],
            "sensitivity": [one.record() for one in self.sensitivity],
            "systems": list(self.systems),
            "disagreements": list(self.disagreements),
            "worst": list(self.worst),
            "planning": list(self.planning),
        }

    def _beside(self, row: MetricAgreement, ceilings: dict[Any, PanelCeiling]) -> Record:
        found = row.correlation
        one = ceilings.get((*row.key, found.level, found.coefficient))
        if one is None:
            return {"attainable": None, "share_of_ceiling": None, "leave_one_out": None}
        numbers = {
            "attainable": one.attainable,
            "share_of_ceiling": one.share(found.value),
            "leave_one_out": one.leave_one_out,
        }
        return plain_values(numbers)


def report_from_tables(
    human: pd.DataFrame, scores: pd.DataFrame, settings: Settings | None = None
) -> ValidationReport:
    """The report of plain tables: a row a judgment, and a row a score; see `Material`."""
    return report_of(Material(human, scores), settings or Settings())


def report_of(material: Material, settings: Settings) -> ValidationReport:
    """The report of coded judgments and scores."""
    panels = list(material.panels(settings, scopes=("all", "condition")))
    rows: list[MetricAgreement] = []
    ceilings: list[PanelCeiling] = []
    of_panel: dict[tuple[str, str, str], Panel] = {}
    for panel in panels:
        of_panel[panel.question, panel.scope, panel.condition] = panel
        rows += panel_rows(panel, settings)
        ceilings += panel_ceilings(panel, material.ratings(panel.question, settings), settings)
    rows += list(means_of_conditions(rows, settings))
    groups = _grouped(rows)
    tested = [(group, *pair_tests(group, of_panel.get(group[0].key), settings)) for group in groups]
    whole = [panel for panel in panels if panel.scope == "all"]
    return ValidationReport(
        settings=settings,
        fingerprint=material.fingerprint,
        rows=tuple(row for group, _, _ in tested for row in group),
        clusters=tuple(rank for _, _, clusters in tested for rank in clusters),
        comparisons=tuple(pair for _, tests, _ in tested for pair in tests),
        ceilings=tuple(ceilings),
        sensitivity=tuple(variations(material, rows, settings)),
        systems=tuple(record for panel in panels for record in system_records(panel, settings)),
        disagreements=tuple(record for panel in panels for record in disagreements(panel)),
        worst=tuple(record for panel in whole for record in worst_candidates(panel, settings)),
        inputs=material.inputs(settings),
        planning=tuple(planning_records(material, settings)),
    )


def _place(row: MetricAgreement) -> tuple[Any, ...]:
    return (*row.key, row.correlation.level, row.correlation.coefficient, *row.source)


def _grouped(rows: Sequence[MetricAgreement]) -> list[list[MetricAgreement]]:
    """Rows of the same question, condition, level and coefficient together."""
    groups: dict[tuple[Any, ...], list[MetricAgreement]] = {}
    for row in rows:
        groups.setdefault(_place(row)[:5], []).append(row)
    return list(groups.values())


def _ranked(rows: Sequence[MetricAgreement]) -> list[float | None]:
    """The rank of each row among its group, in the order of the rows, which holds groups."""
    found: list[float | None] = []
    for group in _grouped(rows):
        values = ranks([row.correlation.value for row in group]).tolist()
        found += [plain_values({"rank": value})["rank"] for value in values]
    return found
