"""A validation in lines of text, for a terminal."""

from collections.abc import Iterator

from validation.analysis.records import CeilingRecord, CorrelationRecord, SensitivityRecord
from validation.documents.rated_systems import verdicts
from validation.documents.tables import ceiling_warnings
from validation.documents.terms import family
from validation.results import Results

SCOPES = {"all": "all", "mean_of_conditions": "mean"}


def lines_of(results: Results) -> Iterator[str]:
    """Every correlation, the family, then the policies that would have moved a rank."""
    for verdict in verdicts(results):
        yield " ".join(verdict.sentences)
    yield from (_correlation(row) for row in results.rows(CorrelationRecord))
    yield from (f"Note: {warning}" for warning in ceiling_warnings(results.rows(CeilingRecord)))
    if len(results.all_inputs.score_sets) > 1:
        yield family(results.all_inputs)
    if results.settings.labels:
        named = ", ".join(f"{one.question}: labels {one.version}" for one in results.inputs.labels)
        yield f"Human values: {named}."
    moved = results.rows(SensitivityRecord, moves_rank=True)
    if moved:
        yield "Ranks that another policy would have changed:"
        yield from (_moved(row) for row in moved)


def _correlation(row: CorrelationRecord) -> str:
    estimate = f"undefined ({row.reason})"
    if row.value is not None:
        estimate = f"{row.value:.3f}"
        if row.ci_low is not None:
            estimate += f" [{row.ci_low:.3f}, {row.ci_high:.3f}]"
        if row.new_systems_low is not None:
            limits = f"[{row.new_systems_low:.3f}, {row.new_systems_high:.3f}]"
            estimate += f", for new systems {limits}"
        if row.share_of_ceiling is not None:
            estimate += f", {row.share_of_ceiling:.0%} of the ceiling"
    return f"{_label(row)} {estimate}, {row.n_used} of {row.n_groups} groups"


def _moved(row: SensitivityRecord) -> str:
    before, now = _number(row.base_value), _number(row.value)
    ranks = f"rank {_rank(row.base_rank)} -> {_rank(row.rank)}"
    return f"{_label(row)} {row.setting}={row.choice}: {before} -> {now}, {ranks}"


def _label(row: CorrelationRecord | SensitivityRecord) -> str:
    scope = row.by or SCOPES[row.scope]
    return f"{row.question:20} {scope:12} {row.metric:20} {row.level:7} {row.coefficient:9}"


def _number(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.3f}"


def _rank(rank: float | None) -> str:
    return "none" if rank is None else f"{rank:g}"
