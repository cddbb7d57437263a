"""A study's stored validation, and the question, measure and metric that an address asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

import pandas as pd
from django.utils.safestring import SafeString, mark_safe

from console.agreement_parts import Content as Stored
from validation.charts.scatter import points_or_parts
from validation.documents.content import ALL, CONDITION, Content
from validation.documents.documents import Figure
from validation.documents.figures import (
    forest_figure,
    heat_map_figure,
    ranks_figure,
    scatter_figure,
    scatter_words,
    significance_figure,
)
from validation.documents.full import Cells
from validation.documents.html import table_html
from validation.documents.methods import methods_paragraph
from validation.documents.system_tables import (
    disagreements_table,
    systems_table,
    worst_table,
)
from validation.documents.tables import (
    ceilings_table,
    comparisons_table,
    coverage_table,
    sensitivity_table,
)
from validation.documents.wording import COEFFICIENTS, LEVELS


def scatter_parts(content: Content, cells: Cells) -> Stored:
    """What the scatters of a page are drawn from: at most 2,000 points, or counts of parts."""
    found = [
        {
            "question": question,
            "metric": label,
            "words": scatter_words(question, label, of_one),
            "rows": _records(points_or_parts(of_one)),
        }
        for (question, metric, signature), of_one in cells.items()
        for label in [content.label({"metric": metric, "signature": signature})]
    ]
    return {"scatters": found}


def _records(rows: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(k): v for k, v in row.items()} for row in rows.to_dict(orient="records")]


@dataclass(frozen=True)
class Shown:
    """A chart on the page: its name in addresses, its title, and what it shows in words."""

    name: str
    title: str
    words: str


@dataclass(frozen=True)
class ValidationView:
    """What is looked at: one question, level, coefficient, condition (none: all) and metric."""

    content: Content
    scatters: list[Stored]
    question: str
    level: str
    coefficient: str
    condition: str
    metric: str

    @classmethod
    def asked(
        cls, content: Content, scatters: list[Stored], query: Mapping[str, str]
    ) -> ValidationView:
        """The view an address asks for; KeyError names what of it is not there."""
        labels = list(content.labels.values())
        known = {
            "question": (content.questions, content.questions[0]),
            "level": (content.levels, content.level),
            "coefficient": (content.coefficients, content.coefficient),
            "condition": (["", *content.conditions], ""),
            "metric": (labels, labels[0]),
        }
        chosen = {name: query.get(name) or default for name, (_, default) in known.items()}
        for name, (names, _) in known.items():
            if chosen[name] not in names:
                raise KeyError(f"{name} {chosen[name]}")
        return cls(content, scatters, **chosen)

    @property
    def query(self) -> str:
        """What the address says, for the addresses of the charts."""
        names = ("question", "level", "coefficient", "condition", "metric")
        return urlencode({name: getattr(self, name) for name in names})

    @property
    def coefficients(self) -> list[tuple[str, str]]:
        return [(name, COEFFICIENTS.get(name, name)) for name in self.content.coefficients]

    @property
    def levels(self) -> list[tuple[str, str]]:
        return [(level, LEVELS.get(level, level)) for level in self.content.levels]

    @property
    def metrics(self) -> list[str]:
        return list(self.content.labels.values())

    @cached_property
    def charts(self) -> dict[str, Shown]:
        """Those that there is something to draw of, by name."""
        made = {name: self.figure(name) for name in CHARTS}
        return {
            name.replace("-", "_"): Shown(name, figure.caption, figure.words)
            for name, figure in made.items()
            if figure is not None
        }

    def figure(self, name: str) -> Figure | None:
        """The chart of that name; None where there is none, or nothing to draw."""
        return CHARTS[name](self) if name in CHARTS else None

    @cached_property
    def tables(self) -> list[SafeString]:
        """The tables beside the pictures, over all conditions, as escaped HTML."""
        content = replace(
            self.content, chosen_level=self.level, chosen_coefficient=self.coefficient
        )
        made = [
            comparisons_table(content, self.question),
            systems_table(content, self.question),
            disagreements_table(content),
            worst_table(content),
            sensitivity_table(content),
            ceilings_table(content),
            coverage_table(content),
        ]
        return [mark_safe(table_html(table, longest=0)) for table in made if table.rows]

    @property
    def methods(self) -> str:
        return methods_paragraph(self.content.settings, self.content.inputs)

    @property
    def measure(self) -> dict[str, Any]:
        return {"level": self.level, "coefficient": self.coefficient, "by": self.condition}

    @property
    def scope(self) -> dict[str, Any]:
        return {
            "question": self.question,
            "scope": CONDITION if self.condition else ALL,
            "by": self.condition,
        }


def _significance(view: ValidationView) -> Figure | None:
    if len(view.metrics) < 2:
        return None
    return significance_figure(view.content, view.question, **view.measure)


def _ranks(view: ValidationView) -> Figure | None:
    if len(view.content.records("systems", **view.scope)) < 2:
        return None
    return ranks_figure(view.content, view.question, by=view.condition)


def _scatter(view: ValidationView) -> Figure | None:
    for found in view.scatters:
        if (found["question"], found["metric"]) == (view.question, view.metric) and found["rows"]:
            rows = pd.DataFrame(found["rows"])
            words = found["words"]
            return scatter_figure(view.content, view.question, view.metric, rows, words)
    return None


CHARTS: dict[str, Callable[[ValidationView], Figure | None]] = {
    "heat-map": lambda view: heat_map_figure(view.content, **view.measure),
    "forest": lambda view: forest_figure(view.content, view.question, **view.measure),
    "significance": _significance,
    "ranks": _ranks,
    "scatter": _scatter,
}
