"""Records turned into the numbers of a table, each with its signature."""

from typing import Literal

from django.utils.translation import gettext_noop as _

from presentation.documents import Number, P
from validation.analysis.records import ComparisonRecord, CorrelationRecord
from validation.documents.signatures import number_signature
from validation.documents.terms import reason_in_words
from validation.results import Results

UNKNOWN = _("not computed")


def correlation(
    results: Results,
    record: CorrelationRecord | None,
    *,
    scale: float = 1,
    decimals: int = 2,
    with_interval: bool = True,
) -> Number:
    """A correlation's value times `scale`, with its interval if asked; a dash for no record."""
    if record is None:
        return Number(None, reason=UNKNOWN)
    low, high = (record.ci_low, record.ci_high) if with_interval else (None, None)
    return Number(
        _times(record.value, scale),
        decimals,
        _times(low, scale),
        _times(high, scale),
        reason_in_words(record.reason),
        signed(results, "correlation", record),
    )


def signed(results: Results, kind: str, record: object, **instead: object) -> str:
    """The signature of a record's value."""
    return number_signature(kind, record, results.settings, results.fingerprint, **instead)


def p_cell(results: Results, record: ComparisonRecord, name: Literal["p", "p_holm", "p_bh"]) -> P:
    reason = reason_in_words(record.reason)
    return P(getattr(record, name), reason, signed(results, f"comparison.{name}", record))


def _times(value: float | None, scale: float) -> float | None:
    return None if value is None else value * scale
