from __future__ import annotations

from dataclasses import astuple, dataclass

from stats.arguments import (
    Column,
    Floats,
    Integers,
    coded_in_order,
    complete_numbers,
    require,
    require_same_length,
    require_shares,
    series,
    sum_by,
)
from stats.libraries import np, pd, scipy

MOST_ROUNDS = 5


def excess_hits(
    annotators: Column,
    hits: Column,
    *,
    units: Column | None = None,
    prior_rate: float = 0.02,
    prior_weight: float = 10.0,
    alpha: float = 0.002,
) -> pd.DataFrame:
    """How many hits each annotator has, and the chance of so many by the others' rates.

    Parameters
    ----------
    annotators : array-like, shape (n_rows,)
        One row an opportunity, such as a check that an annotator answered.
    hits : array-like of bool, shape (n_rows,)
        Whether it was hit, such as a check that was failed.
    units : array-like, shape (n_rows,), optional
        What the opportunity was, such as which check; each has a rate of its own. Without it all
        share one rate.
    prior_rate : float
        The rate where nobody else says anything, strictly between 0 and 1.
    prior_weight : float
        How many opportunities the prior, and for a unit the rate over all units, counts as.
    alpha : float
        Annotators with a smaller `p_value` are left out of the rates of the others.

    Returns
    -------
    DataFrame
        A row an annotator, by annotator: ``annotator, n, n_hits, expected`` (hits by the rates of
        the others) and ``p_value``, of that many hits or more.

    Raises
    ------
    ValueError
        If the columns differ in length, hold a missing value, or an option is out of range.

    Notes
    -----
    A unit's rate is that of the other annotators, drawn towards the rate over all units, which is
    drawn towards the prior. So a check that everybody fails speaks against the check. Rates are
    taken again without annotators below `alpha` until these stay the same, since bad ones would
    otherwise hide each other. ``p_value`` is the binomial tail at the mean of an annotator's
    rates, which bounds that of unequal chances (Hoeffding, 1956) where there are more hits than
    expected, averaged over what the others' opportunities leave open of that mean (a
    beta-binomial tail): five annotators' checks say little of what is usual.

    References
    ----------
    W. Hoeffding (1956). On the distribution of the number of successes in independent trials.
    Annals of Mathematical Statistics 27(3), 713-721.

    Examples
    --------
    >>> names = [name for name in "abcdefgh" for _ in range(10)]
    >>> table = excess_hits(names, [name == "h" for name in names])
    >>> table.loc[table["p_value"] <= 0.002, ["annotator", "n", "n_hits"]]
      annotator   n  n_hits
    7         h  10      10
    """
    require_shares(prior_rate=prior_rate)
    require(
        prior_weight > 0,
        f"prior_weight must be more than 0, not {prior_weight}",
        code="prior_weight_out_of_range",
    )
    require_same_length(annotators=annotators, hits=hits)
    who, names = coded_in_order(annotators, "annotators")
    hit = _booleans(hits)
    what = np.zeros(len(who), dtype=np.intp)
    if units is not None:
        require_same_length(annotators=annotators, units=units)
        what, _ = coded_in_order(units, "units")
    n, n_hits = (sum_by(who, amount, len(names)) for amount in (np.ones(len(who)), hit))
    trusted = np.ones(len(names), dtype=bool)
    expected, p = np.zeros(len(names)), np.ones(len(names))
    for _ in range(MOST_ROUNDS):
        rates = _rates(who, what, hit, trusted, prior_rate, prior_weight)
        expected = sum_by(who, rates, len(names))
        mean = np.minimum(expected / np.maximum(n, 1), 1.0)
        weight = prior_weight + (trusted[who].sum() - trusted * n)
        tail = scipy.stats.betabinom.sf(n_hits - 1, n, mean * weight, (1 - mean) * weight)
        p = np.where(n_hits > expected, tail, 1.0)
        is_same = np.array_equal(trusted, p > alpha)
        trusted = p > alpha
        if is_same:
            break
    return pd.DataFrame(
        {
            "annotator": pd.Series(names, dtype=object),
            "n": n.astype(np.intp),
            "n_hits": n_hits.astype(np.intp),
            "expected": expected,
            "p_value": p,
        }
    )


def _booleans(hits: Column) -> Floats:
    column = series(hits, "hits")
    require(
        not column.isna().any(),
        f"hits has {int(column.isna().sum())} missing values; leave them out",
        code="hits_missing",
    )
    return column.to_numpy(dtype=bool).astype(np.float64)


def _rates(
    who: Integers, what: Integers, hit: Floats, trusted: np.ndarray, rate: float, weight: float
) -> Floats:
    counts = trusted[who].astype(np.float64)
    n_people, n_units = int(who.max(initial=-1)) + 1, int(what.max(initial=-1)) + 1
    own_all = (sum_by(who, amount, n_people)[who] for amount in (counts, counts * hit))
    n_all, hits_all = (
        total.sum() - own for total, own in zip((counts, counts * hit), own_all, strict=True)
    )
    overall = (hits_all + rate * weight) / (n_all + weight)
    distinct, of_cell = np.unique(what * n_people + who, return_inverse=True)
    n_unit, hits_unit = (
        sum_by(what, amount, n_units)[what] - sum_by(of_cell, amount, len(distinct))[of_cell]
        for amount in (counts, counts * hit)
    )
    return np.asarray((hits_unit + overall * weight) / (n_unit + weight))


COLUMNS = ["annotator", "n", "agreement", "by_chance", "typical", "p_value"]
LEAST_ANSWERS = 12
LEAST_REFERENCE = 3
# Share of random answerers whose correlation with the others is above the limit.
CHANCE = 0.01
# Chance below which an annotator is left out of what the others are compared with.
SUSPECT = 0.05
# Careful annotators differ in how well they agree, even if a study has too few to show it: the
# assumed standard deviation of their correlations, and how many annotators it counts as.
PRIOR_SPREAD, PRIOR_WEIGHT = 0.07, 10.0
MOST_PASSES = 6


@dataclass(frozen=True)
class Answers:
    """Answers as a matrix: one column of a number, or one per category.

    `block` groups the answers of an annotator that random answering could have exchanged: those
    to one question, or those on one page if an answer compares the candidates of a page.
    """

    who: Integers
    unit: Integers
    block: Integers
    value: Floats

    def peer_sums(self, n_people: int, is_trusted: np.ndarray) -> PeerSums:
        """Covariances of each annotator's answers with the means of the trusted others."""
        weight = is_trusted[self.who].astype(np.float64)
        n_units = int(self.unit.max(initial=-1)) + 1
        count = sum_by(self.unit, weight, n_units)[self.unit] - weight
        kept = count > 0
        who, value = self.who[kept], self.value[kept]
        columns = range(value.shape[1])
        peers = np.empty_like(value)
        for k in columns:
            total = sum_by(self.unit, weight * self.value[:, k], n_units)[self.unit]
            peers[:, k] = (total - weight * self.value[:, k])[kept] / count[kept]
        n_blocks = int(self.block.max(initial=-1)) + 1
        cells, cell = np.unique(who * n_blocks + self.block[kept], return_inverse=True)
        size = np.bincount(cell, minlength=len(cells)).astype(np.float64)
        for matrix in (value := value.copy(), peers):
            for k in columns:
                matrix[:, k] -= (sum_by(cell, matrix[:, k], len(cells)) / size)[cell]
        together, variance = np.zeros(len(cells)), np.zeros(len(cells))
        own, theirs = np.zeros(len(cells)), np.zeros(len(cells))
        for k in columns:
            together += sum_by(cell, value[:, k] * peers[:, k], len(cells))
            own += sum_by(cell, value[:, k] ** 2, len(cells))
            theirs += sum_by(cell, peers[:, k] ** 2, len(cells))
            for other in columns:
                variance += sum_by(cell, value[:, k] * value[:, other], len(cells)) * sum_by(
                    cell, peers[:, k] * peers[:, other], len(cells)
                )
        person = cells // max(n_blocks, 1)
        parts = (together, variance / np.maximum(size - 1, 1), np.sqrt(own * theirs), size)
        return PeerSums(*(sum_by(person, part, n_people) for part in parts))


@dataclass(frozen=True)
class PeerSums:
    """Of each annotator: the covariance with the others, its variance if the answers are
    exchanged at random, what it is for perfect agreement, and how many answers it is made of."""

    together: Floats
    variance: Floats
    perfect: Floats
    n: Floats

    def __add__(self, other: PeerSums) -> PeerSums:
        pairs = zip(astuple(self), astuple(other), strict=True)
        return PeerSums(*(mine + theirs for mine, theirs in pairs))

    @property
    def correlation(self) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.together / self.perfect)

    @property
    def error(self) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.sqrt(self.variance) / self.perfect)


def unrelated_annotators(
    annotators: Column,
    units: Column,
    blocks: Column,
    values: Column,
    is_category: Column | None = None,
) -> pd.DataFrame:
    """How well each annotator's answers agree with the others', beside chance and beside them.

    Parameters
    ----------
    annotators, units : array-like, shape (n_answers,)
        One row an answer; a unit is a candidate under one question.
    blocks : array-like, shape (n_answers,)
        Groups whose answers random answering could have exchanged: a question, or a question on
        one page if it compares the page's candidates.
    values : array-like of float, shape (n_answers,)
        The answer as a share of its scale, or the number of its category.
    is_category : array-like of bool, shape (n_answers,), optional
        Whether the value is one of unordered categories, which either agree or not.

    Returns
    -------
    DataFrame
        A row an annotator, by annotator: ``annotator, n`` (answers with another's beside them),
        ``agreement`` (the correlation with the others' means), ``by_chance`` (its upper limit if
        answers are random), ``typical`` (the mean correlation of the other annotators) and
        ``p_value``: the chance of so low a correlation for an annotator like the others, and 1
        above the limit of chance. NaN, and ``p_value`` 1, with fewer than 12 answers, with fewer
        than three annotators to compare with, or if the answers are all the same.

    Raises
    ------
    ValueError
        If the columns differ in length or hold a missing value.

    Notes
    -----
    If answers are exchanged at random within blocks, their covariance with the others' means has
    mean 0 and the variance ``tr(S_x S_y) / (m - 1)`` of each block (Mantel's test), so that no
    permutation has to be drawn. An annotator within the limit of chance is compared with the
    rest: their correlations have a mean and, beyond what chance explains, a variance between
    annotators (DerSimonian and Laird, with a prior of ten annotators). Suspects are left out of
    the others' means and of this comparison, and each is tested again, until the suspects stay the
    same: else random answers would hide each other. In a study whose annotators all agree little
    nobody is unlike the others.

    References
    ----------
    N. Mantel (1967). The detection of disease clustering and a generalized regression approach.
    Cancer Research 27(2), 209-220.
    R. DerSimonian and N. Laird (1986). Meta-analysis in clinical trials. Controlled Clinical
    Trials 7(3), 177-188.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> quality = rng.random(40)
    >>> values = np.clip(quality + 0.1 * rng.normal(size=(6, 40)), 0, 1)
    >>> values[5] = rng.random(40)
    >>> annotator, unit = np.indices(values.shape)
    >>> table = unrelated_annotators(
    ...     annotator.ravel(), unit.ravel(), np.zeros(values.size), values.ravel()
    ... )
    >>> table.loc[table["p_value"] < 0.005, "annotator"].tolist()
    [5]
    """
    n_rows = require_same_length(annotators=annotators, units=units, blocks=blocks, values=values)
    who, names = coded_in_order(annotators, "annotators")
    unit, _ = coded_in_order(units, "units")
    block, _ = coded_in_order(blocks, "blocks")
    value = complete_numbers(values, "values")
    nominal = np.zeros(n_rows, dtype=bool)
    if is_category is not None:
        nominal = np.asarray(is_category, dtype=bool)
    parts = [
        Answers(who[rows], unit[rows], block[rows], as_matrix(value[rows]))
        for rows, as_matrix in ((~nominal, _one_column), (nominal, _one_per_category))
        if rows.any()
    ]
    if not parts:
        return pd.DataFrame(columns=COLUMNS)
    sums, typical, p = _compared(parts, len(names))
    is_compared = sums.n >= LEAST_ANSWERS
    return pd.DataFrame(
        {
            "annotator": pd.Series(names, dtype=object),
            "n": sums.n.astype(np.intp),
            "agreement": np.where(is_compared, sums.correlation, np.nan),
            "by_chance": np.where(is_compared, _limit() * sums.error, np.nan),
            "typical": typical,
            "p_value": p,
        }
    )


def _one_column(value: Floats) -> Floats:
    return value[:, None]


def _one_per_category(value: Floats) -> Floats:
    return np.asarray(value[:, None] == np.unique(value), dtype=np.float64)


def _limit() -> float:
    return float(scipy.stats.norm.isf(CHANCE))


def _compared(parts: list[Answers], n_people: int) -> tuple[PeerSums, float, Floats]:
    """The sums beside those who are no suspects, the mean correlation of these, and the chances."""
    trusted = np.ones(n_people, dtype=bool)
    for number in range(MOST_PASSES):
        sums, *others = (part.peer_sums(n_people, trusted) for part in parts)
        for other in others:
            sums = sums + other
        is_compared = (sums.n >= LEAST_ANSWERS) & (sums.variance > 0)
        with np.errstate(invalid="ignore"):
            is_random = is_compared & (sums.correlation < _limit() * sums.error)
        # The first time, those who are surely not random: half of the crowd may be.
        reference = is_compared & (trusted if number else ~is_random)
        if reference.sum() < LEAST_REFERENCE:
            return sums, np.nan, np.ones(n_people)
        typical, p = _tails(sums, reference)
        p = np.where(is_random, p, 1.0)
        is_same = number and np.array_equal(trusted, p > SUSPECT)
        trusted = p > SUSPECT
        if is_same:
            break
    return sums, typical, p


def _tails(sums: PeerSums, reference: np.ndarray) -> tuple[float, Floats]:
    n = int(reference.sum())
    r, error = sums.correlation[reference], sums.error[reference]
    weight = error**-2
    apart = (weight * (r - np.average(r, weights=weight)) ** 2).sum()
    scale = weight.sum() - (weight**2).sum() / weight.sum()
    between = max((apart - (n - 1)) / scale, 0.0)
    freedom = n - 1 + PRIOR_WEIGHT
    between = (PRIOR_WEIGHT * PRIOR_SPREAD**2 + (n - 1) * between) / freedom
    weight = 1 / (error**2 + between)
    typical = float(np.average(r, weights=weight))
    with np.errstate(divide="ignore", invalid="ignore"):
        t = (sums.correlation - typical) / np.sqrt(sums.error**2 + between + 1 / weight.sum())
    return typical, np.asarray(scipy.stats.t.cdf(t, freedom))
