from typing import Literal, Unpack

import numpy as np

from stats.agreement.alpha_sums import (
    Distance,
    Distances,
    OrdinalDistances,
    OrdinalSums,
    constant_left,
    distance_table,
    distances_from,
    influence,
    interval_sums,
    jaccard,
    labels_left,
    masi,
    nominal_sums,
    ordinal_distances,
    ratio_table,
    table_sums,
)
from stats.agreement.design import (
    NUMERIC_LEVELS,
    Design,
    Options,
    design_of,
    interval_request,
)
from stats.agreement.intervals import NO_FORMULA, Interval, Request, interval_of, linearised_t
from stats.agreement.result import Agreement, Reason, Sums, Units
from stats.arguments import Column, Floats

LevelOfMeasurement = Literal["nominal", "ordinal", "interval", "ratio", "set"]
# Of a dense table of distances, which then takes 128 MB.
MAX_TABLED_VALUES = 4000
_SET_DISTANCES: dict[str, Distance] = {"masi": masi, "jaccard": jaccard}


def krippendorff_alpha(
    items: Column,
    annotators: Column,
    values: Column,
    *,
    level: LevelOfMeasurement = "nominal",
    distance: Distance | Literal["masi", "jaccard"] | None = None,
    **options: Unpack[Options],
) -> Agreement:
    """Krippendorff's alpha for any number of annotators and an incomplete design.

    Parameters
    ----------
    items, annotators, values : array-like, shape (n_labels,)
        One row a label. A missing label is an absent row. Values may be anything hashable at
        the nominal level, sets (any iterables but text) at the set level, and are numbers at
        the others.
    level : {"nominal", "ordinal", "interval", "ratio", "set"}
        Level of measurement of the values, which sets the distance between two of them.
    distance : callable or {"masi", "jaccard"}, optional
        Another distance: of two values, symmetric and not negative, 0 for equal ones. It is
        used as it is, not squared. Sets are compared by MASI where none is given.
    **options : Options
        Clusters and the interval, as `stats.agreement.design.Options` says; `categories` make
        no difference.

    Returns
    -------
    Agreement
        `value` is NaN, and `reason` set, where there are no labels, one annotator, no item
        with two labels, one such item, or one category only; and at the ratio level, for sets
        and with a distance of your own, with over 4,000 different values. `observed` and
        `expected` are agreements: one minus the disagreement over the largest distance in the
        data.

    Raises
    ------
    ValueError
        If the columns differ in length, a value is missing or (beyond nominal) not a finite
        number, an annotator labels an item twice, an item lies in two clusters, `level` is
        unknown, a ratio is negative or an option is not usable.

    Notes
    -----
    Alpha is ``1 - D_o / D_e``. With m labels in a unit and n in all units of two labels or
    more, ``D_o`` averages the squared distances of pairs within a unit, each unit weighted by
    m, and ``D_e`` those of all pairs. The ordinal distance is that of the mid-ranks.

    The jackknife interval comes from sums of each unit, in time linear in the labels. It is
    left out, with a warning, where deleting one unit would leave alpha undefined. At the ordinal,
    interval and ratio level its limits are on Fisher's scale of an intraclass correlation, with
    fewer degrees of freedom where few units hold the spread. The analytic interval linearises
    alpha; at the ordinal level there is none.

    References
    ----------
    K. Krippendorff (2011). Computing Krippendorff's Alpha-Reliability. University of
    Pennsylvania, https://repository.upenn.edu/asc_papers/43.
    J. Hughes (2022). Toward improved inference for Krippendorff's Alpha agreement coefficient.
    arXiv:2210.13265.

    Examples
    --------
    >>> items = ["a", "a", "b", "b", "c", "c", "d", "d"]
    >>> annotators = ["ann", "bob"] * 4
    >>> result = krippendorff_alpha(items, annotators, [1, 1, 2, 2, 3, 3, 1, 3], level="interval")
    >>> round(result.value, 4), result.n_items, result.n_pairable
    (0.4167, 4, 8)
    """
    design = design_of(items, annotators, values, level=level, clusters=options.get("clusters"))
    return krippendorff_alpha_of_design(design, interval_request(options), distance)


def krippendorff_alpha_of_design(
    design: Design,
    request: Request,
    distance: Distance | Literal["masi", "jaccard"] | None = None,
) -> Agreement:
    name, units, level = "krippendorff_alpha", design.units, design.level
    reason = _reason(design, tabled=distance is not None or level in ("ratio", "set"))
    if reason is not None:
        return design.result(name, request, reason=reason, level=level)
    sums, distances = _sums(units, level, distance)
    n = units.n_labels
    if distances.between == 0:
        return design.result(name, request, reason=Reason.SINGLE_CATEGORY, level=level)
    value = 1 - (n - 1) * distances.within / distances.between
    interval = interval_of(
        value,
        sums,
        request,
        clustered=design.clustered,
        analytic=lambda: _linearised(value, sums, design, request.confidence),
        labels_per_item=n / units.n_units if distance is None and level in NUMERIC_LEVELS else None,
    )
    return design.result(
        name,
        request,
        value=value,
        observed=1 - distances.within / n / distances.largest,
        expected=1 - distances.between / (n * (n - 1)) / distances.largest,
        interval=interval,
        level=level,
    )


def _reason(design: Design, *, tabled: bool) -> Reason | None:
    if design.reason is not None:
        return design.reason
    if len(design.units.categories) == 1:
        return Reason.SINGLE_CATEGORY
    if tabled and len(design.units.categories) > MAX_TABLED_VALUES:
        return Reason.TOO_MANY_CATEGORIES
    return None


def _sums(
    units: Units, level: str, distance: Distance | Literal["masi", "jaccard"] | None
) -> tuple[Sums | OrdinalSums, Distances]:
    """What alpha is computed from, anew for every deletion or sample, and from all the data."""
    if distance is not None or level == "set":
        set_distance = _SET_DISTANCES[distance or "masi"] if not callable(distance) else distance
        return _tabled(units, distance_table(units.categories, set_distance))
    if level == "ratio":
        return _tabled(units, ratio_table(units.categories))
    if level == "ordinal":
        distances = ordinal_distances(units)
        return OrdinalSums(units, _ordinal_replicates(units, distances)), distances
    if level == "interval":
        sums, largest = interval_sums(units), float(np.ptp(np.array(units.categories))) ** 2
    else:
        sums, largest = nominal_sums(units), 1.0
    return sums, distances_from(sums, level, largest)


def _tabled(units: Units, table: Floats) -> tuple[Sums, Distances]:
    sums = table_sums(units, table)
    return sums, distances_from(sums, "ratio", float(table.max()))


def _ordinal_replicates(units: Units, distances: OrdinalDistances) -> Floats:
    if units.n_clusters < 2:
        return np.empty(0)
    undefined = constant_left(units) | ((units.n_units - np.bincount(units.cluster)) < 2)
    between = np.where(undefined, np.nan, distances.between_left)
    return 1 - (labels_left(units) - 1) * distances.within_left / between


def _linearised(
    value: float, sums: Sums | OrdinalSums, design: Design, confidence: float
) -> Interval:
    if isinstance(sums, OrdinalSums):
        return NO_FORMULA
    moved = influence(sums, "table" if sums.form is not None else design.level)
    return linearised_t(value, moved, confidence, freedom=design.n_clusters - 1)
