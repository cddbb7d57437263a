"""The field's words for levels, coefficients, tests and reasons."""

from validation.analysis.records import Inputs

LEVELS = {"item": "by item", "system": "by system", "pooled": "pooled"}
LEVELS_TOLD = {
    "item": "over the candidates of each item, averaged over items (sample level)",
    "system": "of the systems' means",
    "pooled": "over all candidates at once",
}
COEFFICIENTS = {
    "pearson": "Pearson's r",
    "spearman": "Spearman's ρ",
    "kendall": "Kendall's τ-b",
    "kendall_c": "Stuart's τ-c",
    "acc_eq": "pairwise accuracy",
    "acc_star": "pairwise accuracy with calibrated ties",
    "spa": "soft pairwise accuracy",
}
SYMBOLS = {
    "pearson": "r",
    "spearman": "ρ",
    "kendall": "τ",
    "kendall_c": "τ-c",
    "acc_eq": "acc",
    "acc_star": "acc*",
    "spa": "SPA",
}
TESTS = {
    "perm_items": "a permutation test that swaps items",
    "perm_both": "a permutation test that swaps single candidates (PERM-BOTH)",
    "perm_systems": "a permutation test that swaps systems",
    "williams": "Williams' test",
    "paired_bootstrap": "a paired bootstrap",
    "auto": (
        "a permutation test that swaps items at the level of items, "
        "and a paired bootstrap elsewhere"
    ),
}
RESAMPLES = {"items": "items", "systems": "systems", "both": "items and systems"}
REASONS = {
    "too_few": "fewer than two values",
    "constant_human": "people gave all the same value",
    "constant_metric": "the metric gave all the same score",
    "no_defined_item": "no item has a defined correlation",
    "constant_items": "an item has a constant side",
    "undefined_correlation": "a correlation is undefined",
    "same_metric": "the two metrics score alike",
    "too_many_cells": "too many candidates for this test",
    "no_resamples": "no resamples were drawn",
    "no_such_test": "there is no such test of this coefficient",
}
POLICIES = {
    "undefined": "Undefined groups",
    "unparsed": "Scores that could not be read",
    "ratings": "Ratings",
    "judgments": "Judgments",
    "aggregation": "Several judgments of a candidate",
}
CHOICES = {
    "drop": "left out",
    "zero": "counted as 0",
    "nan": "make the result undefined",
    "raw": "as given",
    "zscore": "in each annotator's standard deviations",
    "accepted": "accepted only",
    "all": "rejected ones too",
    "trimmed_mean": "trimmed mean",
    "bias_precision": "mean weighted by annotators' precision, less their bias",
}


def family(inputs: Inputs) -> str:
    """Of what tests, corrections and ranks are, and how many tests that makes."""
    n = len(inputs.primary)
    size = f"{n} metric{'' if n == 1 else 's'}, {(n * (n - 1)) // 2} pairs"
    variants = len(inputs.variants)
    rest = f"; {variants} variant{'' if variants == 1 else 's'} of them not" if variants else ""
    return f"In the family of tests: {size} for each question{rest}."


def reason_in_words(reason: str | None) -> str:
    """Why a number is undefined; a reason without words of ours as it is."""
    return "" if reason is None else REASONS.get(reason, reason.replace("_", " "))


def statistic(coefficient: str, level: str) -> str:
    """A coefficient at a level, by name."""
    named = COEFFICIENTS.get(coefficient, coefficient)
    return f"{named[0].upper()}{named[1:]}, {LEVELS.get(level, level)}"


def listed(names: list[str]) -> str:
    """a, b and c."""
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)


def said(words: dict[str, str], name: str) -> str:
    """A name in the field's words, or as it is."""
    return words.get(name, name)
