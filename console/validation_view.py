"""A stored validation, and the question, measure and metric that an address asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import urlencode

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from console.assignment_prices import assignment_price
from console.templatetags.numbers import coefficient as coefficient_text
from console.templatetags.numbers import interval
from stats.correlation.result import LEAST_ITEMS
from validation.analysis.records import ComparisonRecord, CorrelationRecord, SystemRecord
from validation.analysis.settings import Settings
from validation.documents.comparison_tables import comparisons_table
from validation.documents.documents import Figure, Table
from validation.documents.figures import (
    forest_figure,
    heat_map_figure,
    ranks_figure,
    scatter_caption,
    scatter_figure,
    significance_figure,
)
from validation.documents.methods import methods_paragraph
from validation.documents.rated_systems import Verdict, verdicts
from validation.documents.sensitivity_tables import sensitivity_table
from validation.documents.system_tables import (
    disagreements_table,
    systems_table,
    worst_table,
)
from validation.documents.tables import ceilings_table, coverage_table
from validation.documents.terms import COEFFICIENTS, LEVELS, RESAMPLES, TESTS, family
from validation.documents.top_groups import names_of, top_groups
from validation.results import ALL, CONDITION
from validation.rows import StoredResults

MOST_QUESTIONS = 4


@dataclass(frozen=True)
class ChartText:
    """A chart on the page: its name in addresses, its title, and what it shows in words."""

    name: str
    title: str
    words: str


@dataclass(frozen=True)
class TableRow:
    """One metric against one question: a correlation per coefficient."""

    question: str
    metric: str
    signature: str
    shares_its_metric: bool
    cells: tuple[CorrelationRecord, ...]

    @property
    def first(self) -> CorrelationRecord:
        return self.cells[0]


@dataclass(frozen=True)
class ValidationView:
    """What is looked at: one question, level, coefficient, condition (none: all) and metric."""

    results: StoredResults
    question: str
    level: str
    coefficient: str
    condition: str
    metric: str
    shows_prices: bool = False

    @classmethod
    def from_query(
        cls, results: StoredResults, query: Mapping[str, str], *, shows_prices: bool = False
    ) -> ValidationView:
        """The view an address asks for; KeyError names what of it is not there."""
        labels = list(results.labels.values())
        options = {
            "question": (results.questions, results.questions[0]),
            "level": (results.levels, results.level),
            "coefficient": (results.coefficients, results.coefficient),
            "condition": (["", *results.conditions], ""),
            "metric": (labels, labels[0]),
        }
        values = {name: query.get(name) or default for name, (_, default) in options.items()}
        for name, (names, _default) in options.items():
            if values[name] not in names:
                raise KeyError(f"{name} {values[name]}")
        results.chosen_level, results.chosen_coefficient = values["level"], values["coefficient"]
        return cls(results, **values, shows_prices=shows_prices)

    @cached_property
    def verdicts(self) -> list[Verdict]:
        """Which system people rate higher, question by question; with what more costs for those
        who may see money."""
        price = assignment_price(self.results.version.study) if self.shows_prices else None
        return list(verdicts(self.results, price))

    @property
    def query(self) -> str:
        """What the address says, for the addresses of charts and tables."""
        names = ("question", "level", "coefficient", "condition", "metric")
        values = {name: getattr(self, name) for name in names}
        values["report"] = str(self.results.version.number)
        return urlencode(values | ({"variants": "1"} if self.results.with_variants else {}))

    @property
    def coefficients(self) -> list[tuple[str, str]]:
        return [(name, COEFFICIENTS.get(name, name)) for name in self.results.coefficients]

    @property
    def levels(self) -> list[tuple[str, str]]:
        return [(level, LEVELS.get(level, level)) for level in self.results.levels]

    @property
    def metrics(self) -> list[str]:
        return list(self.results.labels.values())

    @property
    def condition_filter(self) -> dict[str, str]:
        return {"scope": CONDITION if self.condition else ALL, "by": self.condition}

    @property
    def measure(self) -> dict[str, str]:
        return {"level": self.level, "coefficient": self.coefficient, "by": self.condition}

    @cached_property
    def correlations(self) -> list[TableRow]:
        """The table's rows, one for a question and metric."""
        groups: dict[tuple[str, str, str], list[CorrelationRecord]] = {}
        for row in self.results.rows(CorrelationRecord, level=self.level, **self.condition_filter):
            groups.setdefault((row.question, row.metric, row.signature), []).append(row)
        order = {source: number for number, source in enumerate(self.results.labels)}
        several = {source for source, label in self.results.labels.items() if label != source[0]}
        return [
            TableRow(*names, shares_its_metric=names[1:] in several, cells=tuple(cells))
            for names, cells in sorted(groups.items(), key=lambda group: order[group[0][1:]])
        ]

    @cached_property
    def charts(self) -> dict[str, ChartText]:
        """Those that there is something to draw of, by name; they draw themselves later."""
        texts = {name: text(self) for name, text in TEXTS.items()}
        return {name.replace("-", "_"): one for name, one in texts.items() if one is not None}

    def figure(self, name: str) -> Figure | None:
        """The chart of that name; None where there is none, or nothing to draw."""
        return CHARTS[name](self) if name in CHARTS else None

    @property
    def tables(self) -> list[tuple[str, str | Promise]]:
        """The tables beside the pictures: names in addresses, and titles."""
        return [(name, title) for name, (title, _) in TABLES.items()]

    def table(self, name: str) -> Table | None:
        """The table of that name, over all conditions; None where there is none."""
        return TABLES[name][1](self) if name in TABLES else None

    @property
    def methods(self) -> str:
        return methods_paragraph(self.results.settings, self.results.all_inputs)

    @property
    def family(self) -> str:
        return family(self.results.all_inputs)

    @property
    def n_variants(self) -> int:
        return len(self.results.all_inputs.variants)

    @property
    def source(self) -> tuple[str, str]:
        """The set of scores that the metric's name stands for."""
        return next(s for s, label in self.results.labels.items() if label == self.metric)


def correlations_of(results: StoredResults) -> list[CorrelationRecord]:
    """Every correlation but means of conditions, a metric's together."""
    rows = results.rows(CorrelationRecord, scope=(ALL, CONDITION))
    order = {source: number for number, source in enumerate(results.labels)}
    return sorted(rows, key=lambda row: order[row.metric, row.signature])


def top_group_figures(results: StoredResults) -> Iterator[tuple[str, str, str]]:
    """By question, the metrics that no test tells from the greatest: label, value, and test."""
    of = {"scope": ALL, "level": "item", "coefficient": "spearman"}
    rows = top_groups(results, **of)
    questions = [row.question for row in results.rows(ComparisonRecord, **of) if row.p is not None]
    for measure, group in list(rows.items())[:MOST_QUESTIONS]:
        first = group[0]
        which = (
            _("Agrees best") if len(group) == 1 else _("No significant difference among the best")
        )
        label = f"{which}, {measure.question}: {names_of(results, group)}"
        pairs = questions.count(measure.question)
        size = {"n": f"{first.n_used:,}"}
        n = ngettext("n = %(n)s item, Spearman", "n = %(n)s items, Spearman", first.n_used) % size
        yield (
            label,
            coefficient_text(first.value),
            f"{interval(first)}, {n}{_test_text(test_name(results.settings), pairs)}"
            f"{_few_items(min(first.n_used, first.n_units or first.n_used))}",
        )


def test_name(settings: Settings) -> str:
    """The test behind p, with what it drew, as the methods paragraph describes it."""
    if settings.test in ("auto", "paired_bootstrap"):
        drawn = RESAMPLES.get(settings.resample, settings.resample)
        return _("a paired bootstrap of %(drawn)s") % {"drawn": drawn}
    return TESTS.get(settings.test, settings.test)


def _few_items(n_items: int) -> str:
    """The caveat of a figure that rests on few items."""
    if n_items >= LEAST_ITEMS:
        return ""
    text = ngettext(
        "with %(n)d item only this is a rough guide; rate %(least)d or more",
        "with %(n)d items only this is a rough guide; rate %(least)d or more",
        n_items,
    )
    return f"; {text % {'n': n_items, 'least': LEAST_ITEMS}}"


def _test_text(test: str, pairs: int) -> str:
    if not pairs:
        return ""
    text = ngettext(
        "by %(test)s, Holm's p over %(n)d pair", "by %(test)s, Holm's p over %(n)d pairs", pairs
    )
    return f"; {text % {'test': test, 'n': pairs}}"


def _significance(view: ValidationView) -> Figure | None:
    if len(view.results.inputs.primary) < 2:
        return None
    return significance_figure(view.results, view.question, **view.measure)


def _ranks(view: ValidationView) -> Figure | None:
    if len(view.results.rows(SystemRecord, question=view.question, **view.condition_filter)) < 2:
        return None
    return ranks_figure(view.results, view.question, by=view.condition)


def _scatter(view: ValidationView) -> Figure | None:
    rows = view.results.scatter(view.question, *view.source)
    if rows is None:
        return None
    return scatter_figure(view.results, view.question, view.metric, rows)


def _scatter_text(view: ValidationView) -> ChartText | None:
    """Without the points, which the picture's own address hands out."""
    words = view.results.scatter_words(view.question, *view.source)
    if words is None:
        return None
    return ChartText("scatter", scatter_caption(view.question, view.metric), words)


Draw = Callable[[ValidationView], Figure | None]
CHARTS: dict[str, Draw] = {
    "heat-map": lambda view: heat_map_figure(view.results, **view.measure),
    "forest": lambda view: forest_figure(view.results, view.question, **view.measure),
    "significance": _significance,
    "ranks": _ranks,
    "scatter": _scatter,
}


def _text_of(name: str) -> Callable[[ValidationView], ChartText | None]:
    def text(view: ValidationView) -> ChartText | None:
        figure = CHARTS[name](view)
        return None if figure is None else ChartText(name, figure.caption, figure.words)

    return text


TEXTS: dict[str, Callable[[ValidationView], ChartText | None]] = {
    name: _text_of(name) for name in CHARTS
} | {"scatter": _scatter_text}
TABLES: dict[str, tuple[str | Promise, Callable[[ValidationView], Table]]] = {
    "comparisons": (
        gettext_lazy("Metrics tested pair by pair"),
        lambda view: comparisons_table(view.results, view.question),
    ),
    "systems": (
        gettext_lazy("The systems by human ratings and by metrics"),
        lambda view: systems_table(view.results, view.question),
    ),
    "disagreements": (
        gettext_lazy("Pairs of systems that a metric orders otherwise than human ratings do"),
        lambda view: disagreements_table(view.results),
    ),
    "worst": (
        gettext_lazy("Candidates on which each metric is most wrong"),
        lambda view: worst_table(view.results),
    ),
    "sensitivity": (
        gettext_lazy("What other policies would give"),
        lambda view: sensitivity_table(view.results),
    ),
    "ceilings": (
        gettext_lazy("What a perfect metric could reach, given how well people agree"),
        lambda view: ceilings_table(view.results),
    ),
    "coverage": (gettext_lazy("Coverage"), lambda view: coverage_table(view.results)),
}
