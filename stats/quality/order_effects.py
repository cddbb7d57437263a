from __future__ import annotations

from stats.arguments import Column, coded_in_order, complete_numbers, require_same_length, sum_by
from stats.libraries import np, pd, scipy

GROUP = ["annotator", "question", "m"]
ROUNDING = 1e-12


def position_tests(
    annotators: Column, pages: Column, questions: Column, positions: Column, values: Column
) -> pd.DataFrame:
    """For each annotator and question, whether answers depend on the candidate's position.

    Parameters
    ----------
    annotators, pages, questions : array-like, shape (n_answers,)
        One row an answer about one candidate of a page. The order of a page's candidates was
        drawn without regard to what they are.
    positions : array-like of float, shape (n_answers,)
        Place among the candidates as they were shown.
    values : array-like of float, shape (n_answers,)
        The answer; 1 and 0 for chosen and not chosen.

    Returns
    -------
    DataFrame
        A row an annotator and question: ``annotator, question, n`` (pages whose answers differ),
        ``n_hits`` (those whose highest answer is at the position that is favored most),
        ``expected`` (as many by chance), ``concordance`` (0 if position does not matter, 1 if all
        pages are answered alike by position) and ``p_value``.

    Raises
    ------
    ValueError
        If the columns differ in length or hold a missing value.

    Notes
    -----
    Friedman's test with the answers themselves as scores: if the position does not matter, a
    page's answers are exchangeable. Its statistic over ``n (m - 1)`` is Kendall's coefficient of
    concordance. Pages with other numbers of candidates add their own statistic and degrees of
    freedom.

    References
    ----------
    M. Friedman (1937). The use of ranks to avoid the assumption of normality implicit in the
    analysis of variance. Journal of the American Statistical Association 32(200), 675-701.
    W. J. Conover (1999). Practical Nonparametric Statistics, 3rd edition, section 5.8. Wiley.

    Examples
    --------
    >>> table = position_tests(["a"] * 20, np.repeat(range(10), 2), ["q"] * 20, [0, 1] * 10,
    ...     [1, 0] * 10)
    >>> table[["n", "n_hits", "expected", "concordance", "p_value"]].round(4)
        n  n_hits  expected  concordance  p_value
    0  10      10       5.0          1.0   0.0016
    """
    n = require_same_length(
        annotators=annotators, pages=pages, questions=questions, positions=positions, values=values
    )
    who, names = coded_in_order(annotators, "annotators")
    page, _ = coded_in_order(pages, "pages")
    what, texts = coded_in_order(questions, "questions")
    position = complete_numbers(positions, "positions")
    value = complete_numbers(values, "values")
    key = np.stack([who, what, page], axis=1) if n else np.zeros((0, 3), dtype=np.intp)
    cells, cell = np.unique(key, axis=0, return_inverse=True)
    cell = cell.ravel()
    place, size = _places(cell, position, len(cells))
    centered = value - (sum_by(cell, value, len(cells)) / np.maximum(size, 1))[cell]
    spread = sum_by(cell, centered**2, len(cells))
    rows = pd.DataFrame(
        {
            "annotator": who,
            "question": what,
            "m": size[cell],
            "cell": cell,
            "place": place,
            "value": value,
            "centered": centered,
        }
    )[spread[cell] > ROUNDING]
    by_place = rows.groupby([*GROUP, "place"])["centered"].sum().reset_index()
    favored = by_place.loc[by_place.groupby(GROUP)["centered"].idxmax()]
    rows = rows.merge(favored[[*GROUP, "place"]], on=GROUP, suffixes=("", "_favored"))
    is_best = rows["value"] == rows.groupby("cell")["value"].transform("max")
    rows["best_share"] = is_best / rows["m"]
    rows["is_hit"] = is_best & (rows["place"] == rows["place_favored"])
    rows["square"] = rows["centered"] ** 2
    found = rows.groupby(GROUP, as_index=False).agg(
        n=("cell", "nunique"),
        n_hits=("is_hit", "sum"),
        expected=("best_share", "sum"),
        square=("square", "sum"),
    )
    sums = (by_place["centered"] ** 2).groupby([by_place[name] for name in GROUP]).sum()
    found["freedom"] = found["m"] - 1
    found["statistic"] = found["freedom"] * sums.to_numpy() / found["square"]
    found["most"] = found["n"] * found["freedom"]
    found = found.groupby(["annotator", "question"], as_index=False).sum()
    return pd.DataFrame(
        {
            "annotator": pd.Series(names, dtype=object).to_numpy()[found["annotator"]],
            "question": pd.Series(texts, dtype=object).to_numpy()[found["question"]],
            **{name: found[name] for name in ("n", "n_hits", "expected")},
            "concordance": found["statistic"] / found["most"],
            "p_value": scipy.stats.chi2.sf(found["statistic"], found["freedom"]),
        }
    )


def _places(cell: np.ndarray, position: np.ndarray, n_cells: int) -> tuple[np.ndarray, np.ndarray]:
    order = np.lexsort((position, cell))
    size = np.bincount(cell, minlength=n_cells)
    starts = np.cumsum(size) - size
    place = np.empty(len(cell), dtype=np.intp)
    place[order] = np.arange(len(cell)) - starts[cell[order]]
    return place, size


def late_change(
    annotators: Column, order: Column, departures: Column, *, least_pages: int = 10
) -> pd.DataFrame:
    """For each annotator when departures from the others grew, and the chance of that.

    Parameters
    ----------
    annotators : array-like, shape (n_pages,)
        One row a page.
    order : array-like of float, shape (n_pages,)
        When it was worked on; only the order within an annotator counts.
    departures : array-like of float, shape (n_pages,)
        How far its ratings lie from the others' means.
    least_pages : int
        Annotators with fewer pages have no `p_value`.

    Returns
    -------
    DataFrame
        A row an annotator, by annotator: ``annotator, n, n_before`` (pages before the change),
        ``before, after`` (mean departures) and ``p_value``; NaN with too few pages.

    Raises
    ------
    ValueError
        If the columns differ in length or hold a missing value.

    Notes
    -----
    The cumulative sum of the ranks of the departures, less their mean, is lowest where they change
    from small to great. Over the standard deviation and the root of n it is a Brownian bridge if
    nothing changes, whose least value is below -x with chance exp(-2 x^2).

    References
    ----------
    A. N. Pettitt (1979). A non-parametric approach to the change-point problem. Applied
    Statistics 28(2), 126-135.

    Examples
    --------
    >>> table = late_change(["a"] * 20, range(20), [0.1] * 10 + [0.4] * 10)
    >>> table[["annotator", "n_before", "p_value"]].round(4)
      annotator  n_before  p_value
    0         a        10      0.0
    """
    require_same_length(annotators=annotators, order=order, departures=departures)
    who, names = coded_in_order(annotators, "annotators")
    when = complete_numbers(order, "order")
    departure = complete_numbers(departures, "departures")
    in_turn = np.lexsort((when, who))
    starts = np.searchsorted(who[in_turn], np.arange(len(names) + 1))
    rows = []
    for number, name in enumerate(names):
        own = departure[in_turn[starts[number] : starts[number + 1]]]
        rows.append((name, len(own), *_change(own, least_pages)))
    return pd.DataFrame(rows, columns=["annotator", "n", "n_before", "before", "after", "p_value"])


def _change(own: np.ndarray, least_pages: int) -> tuple[int, float, float, float]:
    ranks = scipy.stats.rankdata(own)
    spread = ranks.std()
    if len(own) < least_pages or not spread:
        return len(own), float(own.mean()), np.nan, np.nan
    sums = np.cumsum(ranks - ranks.mean())[:-1]
    split = int(sums.argmin()) + 1
    depth = max(-sums[split - 1], 0.0) / (spread * np.sqrt(len(own)))
    p = float(np.exp(-2 * depth**2))
    return split, float(own[:split].mean()), float(own[split:].mean()), p
