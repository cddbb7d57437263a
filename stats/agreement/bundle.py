from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np

from error_codes import CodedText, note_if
from stats.agreement.chance_corrected import (
    MAX_WEIGHTED_CATEGORIES,
    brennan_prediger,
    fleiss_kappa,
    gwet_ac1,
    gwet_ac2_of_design,
    percent_agreement,
    scott_pi,
)
from stats.agreement.cohen import cohen_kappa_of_codes, kappa_name
from stats.agreement.conger import conger_kappa
from stats.agreement.design import Coefficient, Design, design_of
from stats.agreement.icc import MODELS, Model, icc_of_design
from stats.agreement.intervals import CiChoice, Request
from stats.agreement.kappa import Weights
from stats.agreement.krippendorff import LevelOfMeasurement, krippendorff_alpha_of_design
from stats.agreement.result import Agreement, Reason
from stats.arguments import Column
from stats.label_sampling import compare_labeled, label_columns

# Numbers with more distinct values are measured, and rarely equal.
MAX_CATEGORIES = 20


def coefficients_at_level(
    items: Column,
    annotators: Column,
    values: Column,
    *,
    level: LevelOfMeasurement,
    clusters: Column | None = None,
    categories: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
    ci: CiChoice = "jackknife",
    n_resamples: int = 1000,
    rng: int | np.random.Generator = 0,
) -> tuple[Agreement, ...]:
    """All coefficients of one set of labels, in one fixed order.

    Parameters
    ----------
    items, annotators, values : array-like, shape (n_labels,)
        One row a label. A missing label is an absent row.
    level : {"nominal", "ordinal", "interval", "ratio", "set"}
        Level of measurement of the values; sets are compared by MASI.
    clusters : array-like, shape (n_labels,), optional
        The cluster of each row's item, where items are not independent.
    categories : sequence, optional
        All categories of the scale, in order; without it, those that occur, ascending.
    confidence : float
        Confidence level of the intervals, between 0 and 1.
    ci : {"jackknife", "analytic", "bootstrap"}
        How the intervals are made.
    n_resamples : int
        Bootstrap samples.
    rng : int or Generator
        Seed or generator of the bootstrap.

    Returns
    -------
    tuple of Agreement
        Always percent_agreement, cohen_kappa, cohen_kappa_linear, cohen_kappa_quadratic,
        scott_pi, fleiss_kappa, conger_kappa, krippendorff_alpha, gwet_ac1, gwet_ac2_quadratic,
        brennan_prediger, icc1, icc1k, icc2, icc2k, icc3, icc3k. What does not apply is NaN
        with its reason: Cohen's and Scott's need exactly two annotators, the weighted ones
        order, the ICC numbers (interval or ratio level) and, two-way, a complete design. At
        the interval and ratio levels what counts equality needs 20 categories or fewer.
        With a warning where items with several labels have other labels than items with one.

    Raises
    ------
    ValueError
        If the columns differ in length, a value is missing or not of the kind the level
        needs, an annotator labels an item twice, or an option is not usable.

    References
    ----------
    K. L. Gwet (2014). Handbook of Inter-Rater Reliability, 4th edition.

    Examples
    --------
    >>> found = coefficients_at_level(
    ...     [1, 1, 2, 2, 3, 3], list("ababab"), list("xxyyxy"), level="nominal"
    ... )
    >>> [(result.name, round(result.value, 3)) for result in found if result.is_defined][:3]
    [('percent_agreement', 0.667), ('cohen_kappa', 0.4), ('scott_pi', 0.333)]
    >>> found[-1].name, str(found[-1].reason)
    ('icc3k', 'needs_numbers')
    """
    request = Request(confidence, ci, n_resamples, rng)
    design = design_of(
        items, annotators, values, level=level, clusters=clusters, categories=categories
    )
    guessed = categories is None
    found = (
        _by_equality(percent_agreement, design, request),
        _cohen(design, request, None, guessed=False),
        _cohen(design, request, "linear", guessed=guessed),
        _cohen(design, request, "quadratic", guessed=guessed),
        _by_equality(scott_pi, design, request),
        _by_equality(fleiss_kappa, design, request),
        _by_equality(conger_kappa, design, request),
        krippendorff_alpha_of_design(design, request),
        _by_equality(gwet_ac1, design, request),
        _ac2(design, request),
        _by_equality(brennan_prediger, design, request),
        *(_icc(design, request, model) for model in MODELS),
    )
    notes = _sampling_warnings(design)
    return tuple(
        replace(one, warnings=one.warnings + notes) if one.is_defined else one for one in found
    )


def _sampling_warnings(design: Design) -> tuple[CodedText, ...]:
    has_several = design.size[design.labels.item] > 1
    if design.level == "set" or has_several.all():
        return ()
    columns = label_columns(design.value, design.domain, has_order=design.level != "nominal")
    cluster = design.cluster if design.clustered else np.arange(design.labels.n_items)
    sampling = compare_labeled(has_several, columns, cluster=cluster[design.labels.item])
    return note_if(
        not sampling.is_random,
        f"items with several labels differ from items with one in {sampling.column} "
        f"({sampling.p_text}), unlike a random sample: agreement may be different on the others",
        "overlap_not_random",
    )


def _by_equality(coefficient: Coefficient, design: Design, request: Request) -> Agreement:
    if design.reason is None and _too_many(design):
        return design.result(coefficient.__name__, request, reason=Reason.TOO_MANY_CATEGORIES)
    return coefficient.of_design(design, request)


def _too_many(design: Design) -> bool:
    return design.level in ("interval", "ratio") and len(design.domain) > MAX_CATEGORIES


def _cohen(
    design: Design, request: Request, weights: Weights | None, *, guessed: bool
) -> Agreement:
    level = "nominal" if weights is None else "ordinal"
    reason = _reason_against_cohen(design, weights)
    if reason is not None:
        return design.result(kappa_name(weights), request, reason=reason, level=level)
    labels = design.labels
    paired = design.size[labels.item] == 2
    order = np.lexsort((labels.annotator[paired], labels.item[paired]))
    codes = design.value[paired][order]
    cluster = None
    if design.clustered:
        cluster = np.unique(design.cluster[labels.item[paired][order][::2]], return_inverse=True)[1]
    result = cohen_kappa_of_codes(
        codes[::2],
        codes[1::2],
        len(design.domain),
        weights,
        request,
        cluster=cluster,
        guessed=guessed,
    )
    dropped = design.labels.n_items - result.n_items
    return replace(result, n_items_dropped=dropped, n_labels=len(labels.item))


def _reason_against_cohen(design: Design, weights: Weights | None) -> Reason | None:
    if design.reason is not None:
        return design.reason
    if len(design.labels.annotators) != 2:
        return Reason.NOT_TWO_ANNOTATORS
    if weights is not None and design.level in ("nominal", "set"):
        return Reason.NEEDS_ORDER
    too_many = (
        _too_many(design) if weights is None else len(design.domain) > MAX_WEIGHTED_CATEGORIES
    )
    return Reason.TOO_MANY_CATEGORIES if too_many else None


def _ac2(design: Design, request: Request) -> Agreement:
    if design.reason is None and design.level in ("nominal", "set"):
        reason = Reason.NEEDS_ORDER
        return design.result("gwet_ac2_quadratic", request, reason=reason, level="ordinal")
    return gwet_ac2_of_design(design, request)


def _icc(design: Design, request: Request, model: Model) -> Agreement:
    if design.reason is None and design.level not in ("interval", "ratio"):
        return design.result(model, request, reason=Reason.NEEDS_NUMBERS, level="interval")
    return icc_of_design(design, request, model)
