from dataclasses import dataclass
from enum import StrEnum
from math import isnan

from error_codes import note_if

PREVALENCE_WORTH_A_WARNING = 0.8
# Below so many items, or clusters of them, intervals hold less often than they say.
FEW_ITEMS = 20
FEW_OF_A_CLASS = 5
# Items that carry the spread of ratings, below which their interval is a rough guide.
LEAST_SPREAD = 5.0


class Reason(StrEnum):
    NO_LABELS = "no_labels"
    ONE_ANNOTATOR = "one_annotator"
    NO_OVERLAP = "no_overlap"
    NO_PAIRABLE_UNITS = "no_pairable_units"
    SINGLE_ITEM = "single_item"
    SINGLE_CATEGORY = "single_category"
    NOT_TWO_ANNOTATORS = "not_two_annotators"
    NEEDS_ORDER = "needs_order"
    NEEDS_NUMBERS = "needs_numbers"
    INCOMPLETE_DESIGN = "incomplete_design"
    TOO_MANY_CATEGORIES = "too_many_categories"
    NO_ITEM_VARIANCE = "no_item_variance"


class CiMethod(StrEnum):
    JACKKNIFE_ITEMS = "jackknife-t-items"
    JACKKNIFE_CLUSTERS = "jackknife-t-clusters"
    BOOTSTRAP_ITEMS = "bootstrap-percentile-items"
    BOOTSTRAP_CLUSTERS = "bootstrap-percentile-clusters"
    NORMAL = "asymptotic-normal"
    LINEARISED = "linearised-t"
    F = "analytic-f"
    POSTERIOR = "dirichlet-posterior"
    JEFFREYS = "jeffreys"
    NONE = "none"


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """A coefficient of agreement, its interval, and what it rests on.

    Attributes
    ----------
    name : str
        The coefficient, with its weights, such as ``cohen_kappa_linear``.
    value : float
        The coefficient; NaN where undefined, and then `reason` says why.
    se, ci_low, ci_high : float
        Standard error and confidence limits; NaN where they cannot be computed.
    ci_method : CiMethod
        How the limits were computed.
    confidence : float
        The confidence level of the limits, between 0 and 1.
    observed, expected : float
        Observed and chance agreement, so that
        ``value == (observed - expected) / (1 - expected)``. Where distances count (weighted
        kappa; ordinal and interval alpha) a pair agrees by one minus its distance over the
        largest distance in the data or, for kappa, among the categories.
    n_items : int
        Items the coefficient rests on.
    n_items_dropped : int
        Items left out because only one annotator labelled them.
    n_annotators, n_labels : int
        Annotators and labels handed in.
    n_pairable : int
        Labels on the items the coefficient rests on.
    prevalence : float
        Share of the most frequent category; NaN for interval values.
    reason : Reason or None
        Why `value` is undefined; None where it is defined.
    level : str or None
        Level of measurement the coefficient takes the values to have: nominal, ordinal,
        interval, ratio or set.
    n_resamples : int
        Bootstrap samples behind the interval; 0 where it is not a bootstrap.
    seed : int or None
        Seed of the bootstrap; None where there is none, or a generator was handed in.
    warnings : tuple of str
        What a reader should know before trusting the value.
    """

    name: str
    value: float
    se: float
    ci_low: float
    ci_high: float
    ci_method: CiMethod
    confidence: float
    observed: float
    expected: float
    n_items: int
    n_items_dropped: int
    n_annotators: int
    n_labels: int
    n_pairable: int
    prevalence: float
    reason: Reason | None = None
    level: str | None = None
    n_resamples: int = 0
    seed: int | None = None
    warnings: tuple[str, ...] = ()

    @property
    def is_defined(self) -> bool:
        return not isnan(self.value)


def prevalence_warnings(prevalence: float) -> tuple[str, ...]:
    return note_if(
        prevalence > PREVALENCE_WORTH_A_WARNING,
        f"one category holds {prevalence:.0%} of the labels: chance agreement is high, "
        "and the coefficient low even where annotators mostly agree",
        "prevalence",
    )


def few_items_warnings(n_items: int, n_clusters: int | None = None) -> tuple[str, ...]:
    is_apart = n_clusters is None or n_clusters == n_items
    where = "" if is_apart else f" in {n_clusters} clusters"
    return note_if(
        n_items < FEW_ITEMS,
        f"only {n_items} items{where} have two labels: the interval is a rough guide",
        "few_items",
    ) or note_if(
        n_clusters is not None and n_clusters < FEW_ITEMS,
        f"only {n_clusters} clusters of items: the interval is a rough guide",
        "few_clusters",
    )


def rare_class_warnings(n_rarer: int | None) -> tuple[str, ...]:
    return note_if(
        n_rarer is not None and n_rarer < FEW_OF_A_CLASS,
        f"only {n_rarer} items have the rarer category from half their annotators or more: the "
        "interval is a rough guide",
        "rare_category",
    )


def rare_label_warnings(
    n_labels: int, *, n_annotators: int, n_categories: int = 2
) -> tuple[str, ...]:
    """The warning that categories deserve of which annotators gave one to few items each.

    Where one in ten of 50 items has the rarer category at kappa .4, the studies with five labels of
    it an annotator hold the truth in .96; with items that either gave it counted, .92.

    Examples
    --------
    >>> rare_label_warnings(9, n_annotators=2)
    ('only 9 labels are of the rarer category, 4.5 an annotator: the interval is a rough guide',)
    """
    each = n_labels / n_annotators
    which = "rarer" if n_categories == 2 else "rarest"
    return note_if(
        each < FEW_OF_A_CLASS,
        f"only {n_labels} labels are of the {which} category, {each:g} an annotator: the "
        "interval is a rough guide",
        "rare_labels",
    )


def carried_by_few_warnings(n_carrying: float) -> tuple[str, ...]:
    """The warning that numbers deserve whose spread is that of a few items.

    Examples
    --------
    >>> carried_by_few_warnings(2.6)[0][:47]
    'most of the spread of the ratings is that of ab'
    """
    return note_if(
        n_carrying < LEAST_SPREAD,
        f"most of the spread of the ratings is that of about {max(1, n_carrying):.0f} "
        "items, as where few are unlike the rest: the interval is a rough guide",
        "few_carry_spread",
    )
