"""Codes of results as people read them: reasons, ways to an interval, methods, levels."""

from __future__ import annotations

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

CODE_NAMES: dict[str, str | Promise] = {
    # Why a coefficient, a correlation, a test or a label is undefined.
    "no_labels": _("no labels"),
    "one_annotator": _("one annotator"),
    "no_overlap": _("no overlap"),
    "no_pairable_units": _("no pairable units"),
    "single_item": _("single item"),
    "single_category": _("single category"),
    "not_two_annotators": _("not two annotators"),
    "needs_order": _("needs order"),
    "needs_numbers": _("needs numbers"),
    "incomplete_design": _("incomplete design"),
    "too_many_categories": _("too many categories"),
    "no_item_variance": _("no item variance"),
    "too_few": _("too few"),
    "too_few_labels": _("too few labels"),
    "constant_human": _("constant human"),
    "constant_metric": _("constant metric"),
    "constant_items": _("constant items"),
    "constant_ratings": _("constant ratings"),
    "constant_others": _("constant others"),
    "no_defined_item": _("no defined item"),
    "undefined_correlation": _("undefined correlation"),
    "same_metric": _("same metric"),
    "too_few_systems": _("too few systems"),
    "undefined_resamples": _("undefined resamples"),
    "no_spread": _("no spread"),
    # How an interval was computed: agreement is over candidates, which items group.
    "jackknife-t-items": _("jackknife over candidates"),
    "jackknife-t-clusters": _("jackknife over items"),
    "bootstrap-percentile-items": _("bootstrap over candidates"),
    "bootstrap-percentile-clusters": _("bootstrap over items"),
    "asymptotic-normal": _("normal approximation"),
    "linearised-t": _("linearised variance"),
    "analytic-f": _("F distribution"),
    "dirichlet-posterior": _("posterior of the table"),
    "jeffreys": _("Jeffreys"),
    "none": _("none"),
    # How several judgments become one value, and how labels are made.
    "mean": _("mean"),
    "median": _("median"),
    "trimmed_mean": _("trimmed mean"),
    "bias_precision": _("bias precision"),
    "majority": _("majority"),
    "dawid_skene": _("dawid skene"),
    "one_coin": _("one coin"),
    "mace": _("mace"),
    "mace_em": _("mace by maximum likelihood"),
    "glad": _("glad"),
    "zscore": _("zscore"),
}
LEVEL_TITLES: dict[str, str | Promise] = {
    "item": _("Item level"),
    "system": _("System level"),
    "pooled": _("Pooled level"),
}


def code_name(code: object) -> str:
    """A code in words; one without an entry as it is, with spaces."""
    return str(CODE_NAMES.get(str(code), str(code).replace("_", " ")))
