from __future__ import annotations

import re
from math import isnan

from stats.arguments import (
    Column,
    coded_in_order,
    complete_numbers,
    require,
    require_at_least,
    require_same_length,
    sum_by,
)
from stats.libraries import np, pd

# Faster than anybody reads with understanding; people read about 240 words a minute.
WORDS_PER_MINUTE = 600.0
# Scripts that are written without spaces: about two characters a word.
UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
WORD = re.compile(r"\w+")


def count_words(text: str) -> int:
    """The words of a text; of scripts without spaces, half the characters.

    Parameters
    ----------
    text : str

    Returns
    -------
    int

    Examples
    --------
    >>> count_words("Well, it doesn't fit."), count_words("これは良い答えです"), count_words("")
    (5, 5, 0)
    """
    spaced, n_unspaced = UNSPACED.subn(" ", text)
    return len(WORD.findall(spaced)) + (n_unspaced + 1) // 2


def constant_pages(
    pages: Column,
    annotators: Column,
    values: Column,
    *,
    spread: float = 0.03,
    least_values: int = 3,
) -> pd.DataFrame:
    """The pages of each annotator with whether all their ratings are the same, or nearly.

    Parameters
    ----------
    pages, annotators : array-like, shape (n_ratings,)
        One row a rating.
    values : array-like of float, shape (n_ratings,)
        From 0 to 1: the share of its scale.
    spread : float
        How far apart the highest and the lowest of a page may be, as a share of the scale.
    least_values : int
        Pages with fewer ratings are left out, since those are alike too easily.

    Returns
    -------
    DataFrame
        A row a page of an annotator: ``page, annotator, n, is_constant``.

    Raises
    ------
    ValueError
        If the columns differ in length or hold a missing value, or `spread` is negative.

    Examples
    --------
    >>> table = constant_pages([1] * 6, list("aaabbb"), [0.5, 0.5, 0.51, 0.2, 0.5, 0.9])
    >>> table[["annotator", "is_constant"]]
      annotator  is_constant
    0         a         True
    1         b        False
    """
    require_at_least(0, spread=spread)
    require_same_length(pages=pages, annotators=annotators, values=values)
    page, page_names = coded_in_order(pages, "pages")
    who, names = coded_in_order(annotators, "annotators")
    value = complete_numbers(values, "values")
    cells, of_cell = np.unique(page * max(len(names), 1) + who, return_inverse=True)
    high, low = np.full(len(cells), -np.inf), np.full(len(cells), np.inf)
    np.maximum.at(high, of_cell, value)
    np.minimum.at(low, of_cell, value)
    n = sum_by(of_cell, np.ones(len(value)), len(cells)).astype(np.intp)
    table = pd.DataFrame(
        {
            "page": pd.Series(page_names, dtype=object).to_numpy()[cells // max(len(names), 1)],
            "annotator": pd.Series(names, dtype=object).to_numpy()[cells % max(len(names), 1)],
            "n": n,
            "is_constant": high - low <= spread + 1e-12,
        }
    )
    return table[table["n"] >= least_values].reset_index(drop=True)


def constant_chances(
    pages: Column, annotators: Column, values: Column, *, spread: float = 0.03
) -> pd.DataFrame:
    """The chance that an annotator's page is constant if their ratings fell on pages at random.

    Parameters
    ----------
    pages, annotators : array-like, shape (n_ratings,)
        One row a rating.
    values : array-like of float, shape (n_ratings,)
        From 0 to 1: the share of its scale.
    spread : float
        As in `constant_pages`.

    Returns
    -------
    DataFrame
        A row a page of an annotator: ``page, annotator, chance``.

    Notes
    -----
    With the lowest rating v, all m ratings of a page are in [v, v + spread]: the chance is the sum
    over v of ``P[v, v + spread]**m - P(v, v + spread]**m`` by the annotator's own ratings. It is
    great for who uses one end of the scale most of the time.

    Examples
    --------
    >>> constant_chances([1, 1, 2, 2], ["a"] * 4, [0, 0, 0, 1])["chance"].tolist()
    [0.625, 0.625]
    """
    rows = pd.DataFrame({"page": pages, "annotator": annotators, "value": values})
    parts = []
    for _, own in rows.groupby("annotator", observed=True, sort=True):
        value = np.sort(own["value"].to_numpy(dtype=np.float64))
        distinct = np.unique(value)
        to = np.searchsorted(value, distinct + spread + 1e-12, side="right")
        closed, opened = (
            (to - np.searchsorted(value, distinct, side=side)) / len(value)
            for side in ("left", "right")
        )
        sizes = own.groupby(["page", "annotator"], observed=True).size().rename("n").reset_index()
        powers = sizes["n"].to_numpy()[:, None]
        parts.append(sizes.assign(chance=(closed**powers - opened**powers).sum(axis=1)))
    table = pd.concat(parts) if parts else pd.DataFrame(columns=["page", "annotator", "chance"])
    return table[["page", "annotator", "chance"]].reset_index(drop=True)


def band_failed(value: float, expected: float, tolerance: float = 0.0) -> bool:
    """Whether a value lies further from the known one than is tolerated.

    Parameters
    ----------
    value, expected : float
        What was answered and what is right, in the units of the scale.
    tolerance : float
        How far off an answer may be, in the same units; its edges pass.

    Returns
    -------
    bool

    Raises
    ------
    ValueError
        If a number is NaN or the tolerance is negative.

    Examples
    --------
    >>> band_failed(70, expected=80, tolerance=15), band_failed(60, expected=80, tolerance=15)
    (False, True)
    """
    _require_numbers(value=value, expected=expected, tolerance=tolerance)
    return abs(value - expected) > tolerance


def repeat_failed(first: float, second: float, tolerance: float = 0.0) -> bool:
    """Whether two answers about the same thing lie further apart than is tolerated.

    Parameters
    ----------
    first, second : float
        Both answers, in the units of the scale.
    tolerance : float
        How far apart they may be, in the same units; its edges pass.

    Returns
    -------
    bool

    Raises
    ------
    ValueError
        If a number is NaN or the tolerance is negative.

    Examples
    --------
    >>> repeat_failed(55, 60, tolerance=10), repeat_failed(20, 60, tolerance=10)
    (False, True)
    """
    return band_failed(first, second, tolerance)


def degraded_failed(
    degraded: float, original: float, *, lowest: float, tolerance: float = 0.0
) -> bool:
    """Whether something made worse on purpose was not rated lower than what it was made of.

    Parameters
    ----------
    degraded, original : float
        Both ratings, in the units of the scale.
    lowest : float
        The low end of the scale: where both are there, nothing lower can be said, and it passes.
    tolerance : float
        By how much the degraded one may still be rated higher.

    Returns
    -------
    bool

    Raises
    ------
    ValueError
        If a number is NaN or the tolerance is negative.

    References
    ----------
    Y. Graham, T. Baldwin, A. Moffat and J. Zobel (2017). Can machine translation systems be
    evaluated by the crowd alone. Natural Language Engineering 23(1), 3-30.

    Examples
    --------
    >>> degraded_failed(20, 80, lowest=0), degraded_failed(80, 80, lowest=0)
    (False, True)
    >>> degraded_failed(0, 0, lowest=0)
    False
    """
    _require_numbers(degraded=degraded, original=original, lowest=lowest, tolerance=tolerance)
    if degraded == original == lowest:
        return False
    return degraded > original + tolerance if tolerance else degraded >= original


def _require_numbers(tolerance: float, **values: float) -> None:
    for name, value in {**values, "tolerance": tolerance}.items():
        require(not isnan(value), f"{name} must be a number, not NaN", code=f"{name}_missing")
    require_at_least(0, tolerance=tolerance)
