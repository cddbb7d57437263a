"""Percent agreement, and the coefficients that differ only in what they take chance to be."""

from typing import Unpack

from stats.agreement.chance import (
    brennan_prediger_in,
    fleiss_kappa_in,
    gwet_ac1_in,
    gwet_ac2_in,
    percent_agreement_in,
    scott_pi_in,
)
from stats.agreement.design import Options, nominal_design, requested
from stats.agreement.kappa import Weights
from stats.agreement.result import Agreement
from stats.arguments import Column


def percent_agreement(
    items: Column, annotators: Column, values: Column, **options: Unpack[Options]
) -> Agreement:
    """Share of pairs of labels of one item that are equal, averaged over items.

    Parameters
    ----------
    items, annotators, values : array-like, shape (n_labels,)
        One row a label. A missing label is an absent row.
    **options : Options
        Clusters, categories and the interval, as `stats.agreement.design.Options` says.

    Returns
    -------
    Agreement
        `value` is NaN, and `reason` set, where it is undefined.

    Raises
    ------
    ValueError
        If the columns differ in length or hold a missing value, an annotator labels an item
        twice, or an option is not usable.

    Notes
    -----
    Nothing is taken off for chance: `expected` is 0, and one category throughout gives 1.

    References
    ----------
    K. L. Gwet (2014). Handbook of Inter-Rater Reliability, 4th edition, chapter 2.

    Examples
    --------
    >>> percent_agreement([1, 1, 2, 2], list("abab"), list("xxxy")).value
    0.5
    """
    design = nominal_design(items, annotators, values, options)
    return percent_agreement_in(design, requested(options))


def brennan_prediger(
    items: Column, annotators: Column, values: Column, **options: Unpack[Options]
) -> Agreement:
    """Brennan and Prediger's coefficient: chance picks every category alike.

    Parameters
    ----------
    items, annotators, values : array-like, shape (n_labels,)
        One row a label. A missing label is an absent row.
    **options : Options
        Clusters, categories and the interval, as `stats.agreement.design.Options` says.

    Returns
    -------
    Agreement
        `value` is NaN, and `reason` set, where it is undefined.

    Raises
    ------
    ValueError
        If the columns differ in length or hold a missing value, an annotator labels an item
        twice, or an option is not usable.

    Notes
    -----
    Expected agreement is one over the number of categories, so `categories` should list the
    unused ones. It is Bennett's S, and Randolph's free-marginal kappa.

    References
    ----------
    R. L. Brennan and D. J. Prediger (1981). Coefficient kappa: some uses, misuses, and
    alternatives. Educational and Psychological Measurement 41, 687-699.

    Examples
    --------
    >>> round(brennan_prediger([1, 1, 2, 2, 3, 3], list("ababab"), list("xxyyxy")).value, 4)
    0.3333
    """
    design = nominal_design(items, annotators, values, options)
    return brennan_prediger_in(design, requested(options))


def scott_pi(
    items: Column, annotators: Column, values: Column, **options: Unpack[Options]
) -> Agreement:
    """Scott's pi of two annotators, on the items both labelled.

    Parameters
    ----------
    items, annotators, values : array-like, shape (n_labels,)
        One row a label. A missing label is an absent row.
    **options : Options
        Clusters, categories and the interval, as `stats.agreement.design.Options` says.

    Returns
    -------
    Agreement
        `value` is NaN, and `reason` set, where it is undefined.

    Raises
    ------
    ValueError
        If the columns differ in length or hold a missing value, an annotator labels an item
        twice, or an option is not usable.

    Notes
    -----
    Chance draws both labels from the pooled labels of the two annotators.

    References
    ----------
    W. A. Scott (1955). Reliability of content analysis: the case of nominal scale coding.
    Public Opinion Quarterly 19(3), 321-325.

    Examples
    --------
    >>> round(scott_pi([1, 1, 2, 2, 3, 3], list("ababab"), list("xxyyxy")).value, 4)
    0.3333
    """
    design = nominal_design(items, annotators, values, options)
    return scott_pi_in(design, requested(options))


def fleiss_kappa(
    items: Column, annotators: Column, values: Column, **options: Unpack[Options]
) -> Agreement:
    """Fleiss' kappa, with any number of labels an item.

    Parameters
    ----------
    items, annotators, values : array-like, shape (n_labels,)
        One row a label. A missing label is an absent row.
    **options : Options
        Clusters, categories and the interval, as `stats.agreement.design.Options` says.

    Returns
    -------
    Agreement
        `value` is NaN, and `reason` set, where it is undefined.

    Raises
    ------
    ValueError
        If the columns differ in length or hold a missing value, an annotator labels an item
        twice, or an option is not usable.

    Notes
    -----
    Gwet's form for unequal numbers of labels: observed agreement is the mean over items of two
    labels or more; chance uses the mean over all items, also those labelled once, of each
    item's shares of labels. With equal numbers it is Fleiss' own.

    References
    ----------
    J. L. Fleiss (1971). Measuring nominal scale agreement among many raters. Psychological
    Bulletin 76(5), 378-382.
    K. L. Gwet (2014). Handbook of Inter-Rater Reliability, 4th edition, chapter 2.

    Examples
    --------
    >>> round(fleiss_kappa([1, 1, 2, 2, 3, 3], list("abbcac"), list("xxyyxy")).value, 4)
    0.3333
    """
    design = nominal_design(items, annotators, values, options)
    return fleiss_kappa_in(design, requested(options))


def gwet_ac1(
    items: Column, annotators: Column, values: Column, **options: Unpack[Options]
) -> Agreement:
    """Gwet's AC1, which lopsided categories do not pull down.

    Parameters
    ----------
    items, annotators, values : array-like, shape (n_labels,)
        One row a label. A missing label is an absent row.
    **options : Options
        Clusters, categories and the interval, as `stats.agreement.design.Options` says.

    Returns
    -------
    Agreement
        `value` is NaN, and `reason` set, where it is undefined.

    Raises
    ------
    ValueError
        If the columns differ in length or hold a missing value, an annotator labels an item
        twice, or an option is not usable.

    Notes
    -----
    Chance is taken to strike only on items that are hard to label: expected agreement is
    ``sum(p * (1 - p)) / (q - 1)`` over the q categories.

    References
    ----------
    K. L. Gwet (2008). Computing inter-rater reliability and its variance in the presence of
    high agreement. British Journal of Mathematical and Statistical Psychology 61, 29-48.

    Examples
    --------
    >>> round(gwet_ac1([1, 1, 2, 2, 3, 3], list("ababab"), list("xxxxxy")).value, 4)
    0.5385
    """
    design = nominal_design(items, annotators, values, options)
    return gwet_ac1_in(design, requested(options))


def gwet_ac2(
    items: Column,
    annotators: Column,
    values: Column,
    *,
    weights: Weights = "quadratic",
    **options: Unpack[Options],
) -> Agreement:
    """Gwet's AC2: AC1 with weights for near misses.

    Parameters
    ----------
    items, annotators, values : array-like, shape (n_labels,)
        One row a label. A missing label is an absent row.
    weights : {"linear", "quadratic"}
        Whether disagreements count by the distance of two categories or by its square.
    **options : Options
        Clusters, categories and the interval, as `stats.agreement.design.Options` says.

    Returns
    -------
    Agreement
        `value` is NaN, and `reason` set, where it is undefined.

    Raises
    ------
    ValueError
        If the columns differ in length or hold a missing value, an annotator labels an item
        twice, or an option is not usable.

    Notes
    -----
    Weights go by the numbers where all categories are numbers, else by their positions.

    References
    ----------
    K. L. Gwet (2014). Handbook of Inter-Rater Reliability, 4th edition, chapters 3 and 4.

    Examples
    --------
    >>> round(gwet_ac2([1, 1, 2, 2, 3, 3], list("ababab"), [1, 1, 2, 3, 3, 3]).value, 4)
    0.7857
    """
    design = nominal_design(items, annotators, values, options)
    return gwet_ac2_in(design, requested(options), weights)
