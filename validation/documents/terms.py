from collections.abc import Iterator, Mapping

from django.utils.translation import gettext, gettext_noop as _, ngettext

from validation.analysis.records import Inputs


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
