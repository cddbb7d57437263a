from dataclasses import dataclass
from typing import Literal, Unpack

from stats.agreement.design import Design, Options, design_of, interval_request
from stats.agreement.intervals import (
    NO_FORMULA,
    NO_INTERVAL,
    Interval,
    Request,
    interval_of,
)
from stats.agreement.result import Agreement, CiMethod, Reason, Sums, by_cluster, table_of
from stats.arguments import Column, Floats, require_one_of, sum_by
from stats.libraries import np, scipy

Model = Literal["icc1", "icc1k", "icc2", "icc2k", "icc3", "icc3k"]
MODELS: tuple[Model, ...] = ("icc1", "icc1k", "icc2", "icc2k", "icc3", "icc3k")
# As a share of the sum of squares: less variance than this is its rounding.
TINY = 1e-12


def icc(
    items: Column,
    annotators: Column,
    values: Column,
    *,
    model: Model = "icc1",
    **options: Unpack[Options],
) -> Agreement:
    """Intraclass correlation of one annotator's numbers, or of the mean of several.

    Parameters
    ----------
    items, annotators, values : array-like, shape (n_labels,)
        One row a label; values are numbers. A missing label is an absent row.
    model : {"icc1", "icc1k", "icc2", "icc2k", "icc3", "icc3k"}
        One-way, which annotators may rotate under; two-way with annotators a sample (absolute
        agreement); two-way with these annotators only (consistency). With ``k``, of the mean
        of an item's labels and not of a single one.
    **options : Options
        Clusters and the interval, as `stats.agreement.design.Options` says; `categories` are
        not used.

    Returns
    -------
    Agreement
        `value` is NaN, and `reason` set, where it is undefined: the two-way forms need every
        annotator on every item. `observed` and `expected` are NaN.

    Raises
    ------
    ValueError
        If the columns differ in length, a value is missing or not a finite number, an
        annotator labels an item twice, or `model` or an option is not usable.

    Notes
    -----
    Items labelled once are left out. With unequal numbers of labels the one-way form uses
    ``k0 = (N - sum(k**2) / N) / (n - 1)``. The analytic interval is that of the F
    distribution, exact for the balanced one-way and consistency forms; there is none for
    clustered items. The jackknife's limits are on Fisher's scale of an intraclass correlation.

    References
    ----------
    P. E. Shrout and J. L. Fleiss (1979). Intraclass correlations: uses in assessing rater
    reliability. Psychological Bulletin 86(2), 420-428.
    K. O. McGraw and S. P. Wong (1996). Forming inferences about some intraclass correlation
    coefficients. Psychological Methods 1(1), 30-46.

    Examples
    --------
    >>> result = icc([1, 1, 2, 2, 3, 3], list("ababab"), [1, 2, 4, 4, 6, 7])
    >>> round(result.value, 4), result.n_items
    (0.9481, 3)
    """
    require_one_of(model=(model, MODELS))
    clusters = options.get("clusters")
    design = design_of(items, annotators, values, level="interval", clusters=clusters)
    return icc_of_design(design, interval_request(options), model)


def icc_of_design(design: Design, request: Request, model: Model) -> Agreement:
    reason = _reason(design, model)
    if reason is not None:
        return design.result(model, request, reason=reason, level="interval")
    sums = _one_way(design, model) if model.startswith("icc1") else _two_way(design, model)
    value = sums.value()
    if np.isnan(value):
        return design.result(model, request, reason=Reason.NO_ITEM_VARIANCE, level="interval")
    interval = interval_of(
        value,
        sums,
        request,
        clustered=design.clustered,
        analytic=lambda: _by_f(design, sums, model, value, request.confidence),
        least=-np.inf,
        labels_per_item=1.0
        if model.endswith("k")
        else design.units.n_labels / design.units.n_units,
    )
    return design.result(model, request, value=value, interval=interval, level="interval")


def _reason(design: Design, model: Model) -> Reason | None:
    if design.reason is not None:
        return design.reason
    units = design.units
    if not model.startswith("icc1") and units.n_labels != units.n_units * len(
        design.labels.annotators
    ):
        return Reason.INCOMPLETE_DESIGN
    return Reason.SINGLE_CATEGORY if len(units.categories) == 1 else None


def _numbers(design: Design) -> Floats:
    values = np.array(design.units.categories, dtype=np.float64)[design.units.value]
    return np.asarray(values - values.mean())


def _item_sums(design: Design) -> Floats:
    units, numbers = design.units, _numbers(design)
    total = sum_by(units.unit, numbers, units.n_units)
    squares = sum_by(units.unit, np.square(numbers), units.n_units)
    k = units.size
    columns = (np.ones(len(k)), k, np.square(k), total, squares, np.square(total) / k)
    return by_cluster(units.cluster, units.n_clusters, *columns)


@dataclass(frozen=True)
class _OneWay:
    between: Floats
    within: Floats
    k: Floats

    @staticmethod
    def of(n: Floats, k: Floats, k2: Floats, x: Floats, x2: Floats, t2: Floats) -> "_OneWay":
        between = np.maximum(t2 - np.square(x) / k, 0) / (n - 1)
        within = np.maximum(x2 - t2, 0) / (k - n)
        scale = TINY * x2 / k
        return _OneWay(
            np.where(between > scale, between, 0),
            np.where(within > scale, within, 0),
            (k - k2 / k) / (n - 1),
        )


def _one_way(design: Design, model: Model) -> Sums:
    def evaluate(*sums: Floats) -> Floats:
        components = _OneWay.of(*sums)
        spread = components.between - components.within
        if model == "icc1k":
            return np.asarray(spread / components.between)
        return np.asarray(spread / (components.between + (components.k - 1) * components.within))

    return Sums(_item_sums(design), evaluate)


@dataclass(frozen=True)
class _TwoWay:
    rows: Floats
    columns: Floats
    error: Floats

    @staticmethod
    def of(k: int, n: Floats, x: Floats, x2: Floats, t2: Floats, form: Floats) -> "_TwoWay":
        centre = np.square(x) / (n * k)
        rows, columns = t2 - centre, form / n - centre
        error = x2 - centre - rows - columns
        freedom = (n - 1, k - 1, (n - 1) * (k - 1))
        scale = TINY * x2
        return _TwoWay(
            *(
                np.where(part > scale, part, 0) / free
                for part, free in zip((rows, columns, error), freedom, strict=True)
            )
        )


def _two_way(design: Design, model: Model) -> Sums:
    units, r = design.units, len(design.labels.annotators)
    is_paired = design.size[design.labels.item] >= 2
    rows = units.cluster[units.unit]
    shape = (units.n_clusters, r)
    table = table_of(rows, design.labels.annotator[is_paired], _numbers(design), shape)

    def evaluate(
        n: Floats, k: Floats, k2: Floats, x: Floats, x2: Floats, t2: Floats, form: Floats
    ) -> Floats:
        return _two_way_value(_TwoWay.of(r, n, x, x2, t2, form), model, n, r)

    return Sums(_item_sums(design), evaluate, scipy.sparse.csr_array(table))


def _two_way_value(components: _TwoWay, model: Model, n: Floats, k: int) -> Floats:
    spread = components.rows - components.error
    bias = components.columns - components.error
    below = {
        "icc2": components.rows + (k - 1) * components.error + k * bias / n,
        "icc2k": components.rows + bias / n,
        "icc3": components.rows + (k - 1) * components.error,
        "icc3k": components.rows,
    }
    scale = np.abs(components.rows) + np.abs(components.error) + np.abs(components.columns)
    return np.asarray(np.where(below[model] > 1e-9 * scale, spread / below[model], np.nan))


def _by_f(design: Design, sums: Sums, model: Model, value: float, confidence: float) -> Interval:
    if design.clustered:
        return NO_FORMULA
    totals = sums.linear.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        if model.startswith("icc1"):
            low, high = _one_way_limits(totals, model, confidence)
        else:
            form = sums.total_form()
            assert form is not None
            low, high = _two_way_limits(totals, form, design, model, value, confidence)
    if np.isnan([low, high]).any():
        return NO_INTERVAL
    return Interval(np.nan, float(low), float(high), CiMethod.F)


def _one_way_limits(totals: Floats, model: Model, confidence: float) -> tuple[float, float]:
    components, tail = _OneWay.of(*totals), (1 + confidence) / 2
    n, labels = totals[:2]
    ratio = components.between / components.within
    low = ratio / scipy.stats.f.ppf(tail, n - 1, labels - n)
    high = ratio * scipy.stats.f.ppf(tail, labels - n, n - 1)
    return _from_f(low, high, float(components.k), average=model == "icc1k")


def _from_f(low: float, high: float, k: float, *, average: bool) -> tuple[float, float]:
    if average:
        return 1 - 1 / low, 1 - 1 / high
    return (low - 1) / (low + k - 1), (high - 1) / (high + k - 1)


def _two_way_limits(
    totals: Floats, form: Floats, design: Design, model: Model, value: float, confidence: float
) -> tuple[float, float]:
    n, _, _, x, x2, t2 = totals
    k, tail = len(design.labels.annotators), (1 + confidence) / 2
    components = _TwoWay.of(k, n, x, x2, t2, form)
    rows, columns, error = (
        float(np.ravel(part)[0]) for part in (components.rows, components.columns, components.error)
    )
    freedom = (n - 1) * (k - 1)
    if model.startswith("icc3"):
        low = rows / error / scipy.stats.f.ppf(tail, n - 1, freedom)
        high = rows / error * scipy.stats.f.ppf(tail, freedom, n - 1)
        return _from_f(low, high, k, average=model == "icc3k")
    single = float(_two_way_value(components, "icc2", n, k).ravel()[0])
    a = k * single / (n * (1 - single))
    b = 1 + k * single * (n - 1) / (n * (1 - single))
    v = (a * columns + b * error) ** 2 / ((a * columns) ** 2 / (k - 1) + (b * error) ** 2 / freedom)
    f_low, f_high = scipy.stats.f.ppf(tail, n - 1, v), scipy.stats.f.ppf(tail, v, n - 1)
    rest = k * columns + (k * n - k - n) * error
    low = n * (rows - f_low * error) / (f_low * rest + n * rows)
    high = n * (f_high * rows - error) / (rest + n * f_high * rows)
    if model == "icc2k":
        low, high = k * low / (1 + (k - 1) * low), k * high / (1 + (k - 1) * high)
    return float(low), float(high)
