from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from django.utils.translation import gettext, gettext_noop as _, ngettext

from presentation.documents import Number, P
from validation.analysis.records import ComparisonRecord, CorrelationRecord, Inputs
from validation.analysis.settings import Settings
from validation.results import Results


class Words(Mapping[str, str]):
    def __init__(self, messages: dict[str, str]) -> None:
        self.messages = messages

    def __getitem__(self, code: str) -> str:
        return gettext(self.messages[code])

    def __iter__(self) -> Iterator[str]:
        return iter(self.messages)

    def __len__(self) -> int:
        return len(self.messages)


LEVELS = Words({"item": _("by item"), "system": _("by system"), "pooled": _("pooled")})
LEVEL_DESCRIPTIONS = Words(
    {
        "item": _("over the candidates of each item, averaged over items (sample level)"),
        "system": _("of the systems' means"),
        "pooled": _("over all candidates at once"),
    }
)
COEFFICIENTS = Words(
    {
        "pearson": _("Pearson's r"),
        "spearman": _("Spearman's ρ"),
        "kendall": _("Kendall's τ-b"),
        "kendall_c": _("Stuart's τ-c"),
        "acc_eq": _("pairwise accuracy"),
        "acc_star": _("pairwise accuracy with calibrated ties"),
        "spa": _("soft pairwise accuracy"),
    }
)
SYMBOLS = {
    "pearson": "r",
    "spearman": "ρ",
    "kendall": "τ",
    "kendall_c": "τ-c",
    "acc_eq": "acc",
    "acc_star": "acc*",
    "spa": "SPA",
}
TESTS = Words(
    {
        "perm_items": _("a permutation test that swaps items"),
        "perm_both": _("a permutation test that swaps single candidates (PERM-BOTH)"),
        "perm_systems": _("a permutation test that swaps systems"),
        "williams": _("Williams' test"),
        "paired_bootstrap": _("a paired bootstrap"),
        "auto": _("a paired bootstrap"),
    }
)
RESAMPLES = Words({"items": _("items"), "systems": _("systems"), "both": _("items and systems")})
REASONS = Words(
    {
        "too_few": _("fewer than two values"),
        "constant_human": _("annotators gave all the same value"),
        "constant_metric": _("the metric gave all the same score"),
        "no_defined_item": _("no item has a defined correlation"),
        "constant_items": _("an item has a constant side"),
        "undefined_correlation": _("a correlation is undefined"),
        "same_metric": _("the two metrics score alike"),
        "too_many_cells": _("too many candidates for this test"),
        "no_resamples": _("no resamples were drawn"),
        "too_few_systems": _("too few systems to speak of new ones"),
        "undefined_resamples": _("undefined in more than 5 % of the resamples"),
        "no_spread": _("the difference is the same in every resample"),
        "no_such_test": _("there is no such test of this coefficient"),
        "no_labels": _("nobody has rated any of these items"),
        "no_recorded_probabilities": _("the rated items were picked by hand, not drawn"),
        "too_few_labels": _("fewer than five rated items"),
        "too_few_of_a_class": _("fewer than five ratings of the rarer value"),
        "no_variation": _("all ratings are the same"),
    }
)
CEILING_WARNINGS = Words(
    {
        "severe_annotators": _(
            "annotators differ in severity and did not rate the same candidates"
        ),
        "top_heavy_scale": _("many ratings are at one end of the scale"),
        "one_point_heavy_scale": _("most ratings are at one point of the scale"),
        "tied_ratings": _("many ratings of the same item are equal"),
        "few_items": _("there are fewer than 20 items, or groups of items"),
    }
)
POLICIES = Words(
    {
        "undefined": _("Undefined groups"),
        "unparsed": _("Scores that could not be read"),
        "ratings": _("Ratings"),
        "judgments": _("Judgments"),
        "aggregation": _("Several judgments of a candidate"),
    }
)
CHOICES = Words(
    {
        "drop": _("left out"),
        "zero": _("counted as 0"),
        "nan": _("make the result undefined"),
        "raw": _("as given"),
        "zscore": _("in each annotator's standard deviations"),
        "accepted": _("accepted only"),
        "all": _("rejected ones too"),
        "trimmed_mean": _("trimmed mean"),
        "bias_precision": _("mean weighted by annotators' precision, less their bias"),
    }
)


def family(inputs: Inputs) -> str:
    n, n_variants = len(inputs.primary), len(inputs.variants)
    metrics = ngettext("%(n)d metric", "%(n)d metrics", n) % {"n": n}
    n_pairs = (n * (n - 1)) // 2
    pairs = ngettext("%(n)d pair", "%(n)d pairs", n_pairs) % {"n": n_pairs}
    sizes = {"metrics": metrics, "pairs": pairs, "n": n_variants}
    if not n_variants:
        text = gettext("In the family of tests: %(metrics)s, %(pairs)s for each question.")
    else:
        text = ngettext(
            "In the family of tests: %(metrics)s, %(pairs)s for each question; %(n)d variant of a "
            "metric, such as another unit or setting of it, is not tested.",
            "In the family of tests: %(metrics)s, %(pairs)s for each question; %(n)d variants of "
            "metrics, such as another unit or setting of one, are not tested.",
            n_variants,
        )
    return text % sizes


def reason_in_words(reason: str | None) -> str:
    return "" if reason is None else REASONS.get(reason, reason.replace("_", " "))


def statistic(coefficient: str, level: str) -> str:
    named = COEFFICIENTS.get(coefficient, coefficient)
    return f"{named[0].upper()}{named[1:]}, {LEVELS.get(level, level)}"


def percent_text(share: float) -> str:
    return f"{100 * share:g} %"


def name_of(words: Mapping[str, str], name: str) -> str:
    return words.get(name, name)


# A t interval knows no scale and may reach beyond it, if ratings are few or many are at one end.
# The mean lies on the scale, so a cut interval contains it exactly as often. Records keep intervals
# as they are computed. The same holds for differences of two coefficients of few items.

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
CUT = _("An interval that would reach beyond the scale ends with it, since no mean lies beyond.")
CUT_DIFFERENCES = _(
    "An interval that would reach beyond %(least)s or %(most)s ends there, since no two values of "
    "this coefficient lie further apart."
)
# Shares of pairs, from 0 to 1; other coefficients are from -1 to 1.
SHARES_OF_PAIRS = ("acc_eq", "acc_star", "spa")


def on_scale(value: float | None, limits: Limits, scale: tuple[float, float] | None) -> Limits:
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
