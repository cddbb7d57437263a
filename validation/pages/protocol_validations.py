"""What each version of the protocol says of the metrics, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.translation import ngettext

from annotation.models import Study
from annotation.study_results import loaded_fingerprint
from results.models import ResultPart
from validation.analysis.records import CorrelationRecord, Measure
from validation.models import ValidationOutcome
from validation.pages.metric_agreement import ValidationView
from validation.results import ALL, measure_of
from validation.study_results import OF_PROTOCOL
from validation.versions import unpack_table


@dataclass(frozen=True)
class ProtocolCell:
    """A metric's value over what was judged under one version."""

    value: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    n: int = 0


@dataclass(frozen=True)
class ProtocolValidations:
    """A row a metric, a cell a version; both in order."""

    numbers: list[int]
    rows: list[tuple[str, list[ProtocolCell]]]

    @property
    def finding(self) -> str:
        n = len(self.numbers)
        return ngettext("%(n)d version", "%(n)d versions", n) % {"n": n}


def protocol_validations(study: Study, view: ValidationView) -> ProtocolValidations | None:
    """By the measure that is looked at; None where everything was judged under one version."""
    outcomes = ValidationOutcome.objects.filter(study=study, name__startswith=OF_PROTOCOL)
    current = outcomes.filter(fingerprint=loaded_fingerprint(study), version__isnull=False)
    numbers = {
        version: int(name.removeprefix(OF_PROTOCOL))
        for name, version in current.values_list("name", "version")
    }
    if len(numbers) < 2:
        return None
    cells = _cells(view, numbers)
    in_order = sorted(numbers.values())
    rows = [
        (label, [cells.get((*source, number), ProtocolCell()) for number in in_order])
        for source, label in view.results.labels.items()
    ]
    return ProtocolValidations(in_order, rows)


def _cells(
    view: ValidationView, numbers: Mapping[int, int]
) -> dict[tuple[str, str, int], ProtocolCell]:
    """By metric, signature and number of the protocol's version."""
    measure = Measure(view.question, ALL, "", view.level, view.coefficient)
    tables = ResultPart.objects.filter(result__in=numbers, name="correlations")
    return {
        (row.metric, row.signature, numbers[table.result_id]): ProtocolCell(
            row.value, row.ci_low, row.ci_high, row.n_used
        )
        for table in tables
        for row in unpack_table(CorrelationRecord, table.content)
        if measure_of(row) == measure
    }
