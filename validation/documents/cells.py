"""Records turned into the numbers of a table, each with its signature, on the scale that it is of.

A t interval knows no scale, and of few ratings, or many at one end, it may reach beyond it. The
mean lies on the scale, so that the interval without what is beyond holds it exactly as often:
coverage is that of the interval as it is computed, which records keep. The same holds of the
difference of two coefficients, of few items.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from django.utils.translation import gettext, gettext_noop, gettext_noop as _

from presentation.documents import Number, P
from validation.analysis.records import ComparisonRecord, CorrelationRecord
from validation.analysis.settings import Settings
from validation.documents.terms import reason_in_words
from validation.results import Results

# As much of the input's hash as tells two inputs of a study apart.
DIGEST_CHARACTERS = 12
RULES = ("round", "judgments", "ratings", "aggregation", "undefined", "unparsed")
KEY = ("question", "scope", "system", "level", "coefficient", "setting", "choice")
METRICS = {"metric": "signature", "metric_a": "signature_a", "metric_b": "signature_b"}


def number_signature(
    kind: str, record: object, settings: Settings, fingerprint: str, **instead: object
) -> str:
    """`instead` are fields that replace, or are added to, the record's own."""
    fields = _Fields(record, instead)
    own = _pairs(_key(fields) | _drawn(fields))
    # A number of a varied report was computed with that one setting changed.
    varied = {fields["setting"]: fields["choice"]} if fields["setting"] else {}
    return "|".join([kind, *own, shared_rules(settings, fingerprint, varied)])


def plain_signature(kind: str, **fields: object) -> str:
    return "|".join([kind, *_pairs(fields)])


def shared_rules(
    settings: Settings, fingerprint: str, varied: Mapping[str, object] | None = None
) -> str:
    rules: dict[str, object] = {name: getattr(settings, name) for name in RULES}
    if settings.labels:
        rules["labels"] = ",".join(map(str, settings.labels))
    return "|".join(_pairs(rules | dict(varied or {}) | {"input": fingerprint[:DIGEST_CHARACTERS]}))


class _Fields:
    """A missing field is None."""

    def __init__(self, record: object, instead: Mapping[str, object]) -> None:
        self.record = record
        self.instead = instead

    def __getitem__(self, name: str) -> Any:
        return self.instead[name] if name in self.instead else getattr(self.record, name, None)


def _pairs(fields: Mapping[str, object]) -> list[str]:
    return [f"{name}:{value}" for name, value in fields.items() if value not in (None, "")]


def _key(fields: _Fields) -> dict[str, object]:
    metrics = {name: fields[signature] for name, signature in METRICS.items()}
    return {**{name: fields[name] for name in KEY}, "condition": fields["by"], **metrics}


def _drawn(fields: _Fields) -> dict[str, object]:
    if fields["test"] is not None:
        return {"test": fields["test"], "draws": fields["n_draws"], "seed": fields["seed"]}
    if fields["n_splits"] is not None:
        return {"splits": fields["n_splits"], "seed": fields["seed"]}
    if fields["ci_method"] not in (None, "none"):
        drawn = {"ci": fields["ci_method"], "confidence": fields["confidence"]}
        return drawn | {"draws": fields["n_resamples"], "seed": fields["seed"]}
    return {}


Limits = tuple[float | None, float | None]
CUT = gettext_noop(
    "An interval that would reach beyond the scale ends with it, since no mean lies beyond."
)
CUT_DIFFERENCES = gettext_noop(
    "An interval that would reach beyond %(least)s or %(most)s ends there, since no two values of "
    "this coefficient lie further apart."
)
# Shares of pairs, from 0 to 1; other coefficients are from -1 to 1.
SHARES_OF_PAIRS = ("acc_eq", "acc_star", "spa")


def on_scale(value: float | None, limits: Limits, scale: tuple[float, float] | None) -> Limits:
    """Cut limits outside the scale, if the value is on it."""
    low, high = limits
    if scale is None or value is None or low is None or high is None:
        return limits
    if not scale[0] <= value <= scale[1]:
        return limits
    return max(low, scale[0]), min(high, scale[1])


def mean_on_scale(
    results: Results, question: str, value: float | None, limits: Limits, decimals: int, reason: str
) -> Number:
    low, high = on_scale(value, limits, results.scales.get(question))
    return Number(value, decimals, low, high, reason=reason)


def note_of_cuts(results: Results, means: Iterable[tuple[str, float | None, Limits]]) -> str:
    """Table note on cut intervals, or ""."""
    is_cut = any(
        on_scale(value, limits, results.scales.get(question)) != limits
        for question, value, limits in means
    )
    return gettext(CUT) if is_cut else ""


def widest_difference(coefficient: str) -> float:
    return 1.0 if coefficient in SHARES_OF_PAIRS else 2.0


def difference_within(delta: float | None, limits: Limits, coefficient: str) -> Limits:
    most = widest_difference(coefficient)
    return on_scale(delta, limits, (-most, most))


def note_of_cut_differences(
    coefficient: str, differences: Iterable[tuple[float | None, Limits]]
) -> str:
    if all(
        difference_within(delta, limits, coefficient) == limits for delta, limits in differences
    ):
        return ""
    most = f"{widest_difference(coefficient):g}"
    return gettext(CUT_DIFFERENCES) % {"least": f"\N{MINUS SIGN}{most}", "most": most}


UNKNOWN = _("not computed")


def correlation(
    results: Results,
    record: CorrelationRecord | None,
    *,
    scale: float = 1,
    decimals: int = 2,
    with_interval: bool = True,
) -> Number:
    """A correlation times `scale`, with its interval if asked; a dash for no record."""
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
    return number_signature(kind, record, results.settings, results.fingerprint, **instead)


def p_cell(results: Results, record: ComparisonRecord, name: Literal["p", "p_holm", "p_bh"]) -> P:
    reason = reason_in_words(record.reason)
    return P(getattr(record, name), reason, signed(results, f"comparison.{name}", record))


def _times(value: float | None, scale: float) -> float | None:
    return None if value is None else value * scale
