"""What speaks against annotators, as one table: a row a flag, each a count with its chance."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from error_codes import InvalidValue
from stats.aggregation.crowd import code_ratings
from stats.annotators.peers import peer_mean
from stats.quality.collusion import colluding_pairs
from stats.quality.excess import excess_hits
from stats.quality.late_change import late_change
from stats.quality.pages import constant_pages, reading_seconds
from stats.quality.reasons import machine_like, reason_similarity

if TYPE_CHECKING:
    import pandas as pd


FAILED_CHECKS, STRAIGHT_LINES, TOO_FAST = "failed_checks", "straight_lines", "too_fast"
COPIED_REASONS, MACHINE_LIKE, COLLUDING = "copied_reasons", "machine_like", "colluding"
LATE_CHANGE = "late_change"
FLAGS = (
    *(FAILED_CHECKS, STRAIGHT_LINES, TOO_FAST, COPIED_REASONS),
    *(MACHINE_LIKE, COLLUDING, LATE_CHANGE),
)
COLUMNS = ["annotator", "flag", "n", "n_hits", "expected", "p_value", "other"]
ALPHA = 0.002
LEAST_HITS = 3
# Share of hits below which no number of them is a flag: real annotators differ more among
# themselves than chance alone explains.
LEAST_SHARES = {
    FAILED_CHECKS: 0.25,
    STRAIGHT_LINES: 0.5,
    TOO_FAST: 0.3,
    COPIED_REASONS: 0.5,
    MACHINE_LIKE: 0.6,
}
# What is expected of careful annotators where no others are there to show it.
PRIOR_RATES = {
    FAILED_CHECKS: 0.08,
    STRAIGHT_LINES: 0.05,
    TOO_FAST: 0.02,
    COPIED_REASONS: 0.05,
    MACHINE_LIKE: 0.05,
}
ALIKE = 0.8
"""Similarity from which a reason is a copy."""
LEAST_GROWTH = 1.5
"""Of the departures after a change beside those before it."""
LEAST_AFTER = 5


def _empty_frame(*columns: str) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(columns=columns)


@dataclass(frozen=True)
class Evidence:
    """What there is about annotators; a table that is empty gives no flags.

    `checks`: a row a check that was answered, whether `is_failed`. `ratings`: a row a rating, its
    `value` as a share of the scale, when its page was worked on (`order`); a `unit` is what was
    rated under which question. `pages`: how long each took, and the `words` on it. `reasons`: what
    was written.
    """

    checks: pd.DataFrame = field(
        default_factory=lambda: _empty_frame("annotator", "check", "is_failed")
    )
    ratings: pd.DataFrame = field(
        default_factory=lambda: _empty_frame("annotator", "page", "unit", "value", "order")
    )
    pages: pd.DataFrame = field(
        default_factory=lambda: _empty_frame("annotator", "page", "seconds", "words")
    )
    reasons: pd.DataFrame = field(default_factory=lambda: _empty_frame("annotator", "text"))


def annotator_flags(evidence: Evidence, *, alpha: float = ALPHA) -> pd.DataFrame:
    """Every flag of every annotator.

    Parameters
    ----------
    evidence : Evidence
        Without a missing value, but for `seconds`, where a page was not timed.
    alpha : float
        Largest chance, by what the other annotators do, of what is flagged; between 0 and 1.

    Returns
    -------
    DataFrame
        A row a flag, by annotator, in the order of `FLAGS`: ``annotator, flag, n``
        (opportunities), ``n_hits, expected, p_value, other`` (the annotator whose ratings are near;
        else None). Of ``late_change``, ``n_hits`` is the number of pages after the change, and
        ``expected`` NaN.

    Raises
    ------
    ValueError
        If `alpha` is out of range or a column is not as described.

    Notes
    -----
    ``benchmarks/quality.py`` measures how often each flag hits careful annotators, and
    ``docs/quality.md`` holds the table.

    Examples
    --------
    >>> import pandas as pd
    >>> names = [name for name in "abcdef" for _ in range(10)]
    >>> checks = pd.DataFrame({"annotator": names, "check": list(range(10)) * 6,
    ...     "is_failed": [name == "f" for name in names]})
    >>> annotator_flags(Evidence(checks=checks))[["annotator", "flag", "n", "n_hits"]]
      annotator           flag   n  n_hits
    0         f  failed_checks  10      10
    """
    import pandas as pd

    if not 0 <= alpha <= 1:
        raise InvalidValue(
            f"alpha must lie between 0 and 1, not {alpha}", code="alpha_out_of_range"
        )
    tables = [
        _of_checks(evidence, alpha),
        _of_lines(evidence, alpha),
        _of_speed(evidence, alpha),
        *_of_reasons(evidence, alpha),
        _of_pairs(evidence, alpha),
        _of_change(evidence, alpha),
    ]
    filled = [table for table in tables if len(table)]
    if not filled:
        return pd.DataFrame(columns=COLUMNS)
    table = pd.concat(filled, ignore_index=True)[COLUMNS]
    rank = table["flag"].map({flag: number for number, flag in enumerate(FLAGS)})
    order = np.lexsort((rank, table["annotator"].astype(str)))
    return table.iloc[order].reset_index(drop=True)


def _excess(flag: str, annotators: Any, hits: Any, alpha: float, units: Any = None) -> pd.DataFrame:
    """The annotators with more hits than others explain, and with enough of them."""
    import pandas as pd

    if not len(annotators):
        return pd.DataFrame(columns=COLUMNS)
    table = excess_hits(annotators, hits, units=units, prior_rate=PRIOR_RATES[flag], alpha=alpha)
    is_enough = table["n_hits"] >= np.maximum(LEAST_HITS, LEAST_SHARES[flag] * table["n"])
    rows = table[is_enough & (table["p_value"] <= alpha)]
    return rows.assign(flag=flag, other=None)


def _of_checks(evidence: Evidence, alpha: float) -> pd.DataFrame:
    checks = evidence.checks
    hits = checks["is_failed"].astype(bool)
    return _excess(FAILED_CHECKS, checks["annotator"], hits, alpha, checks["check"])


def _of_lines(evidence: Evidence, alpha: float) -> pd.DataFrame:
    ratings = evidence.ratings
    pages = constant_pages(ratings["page"], ratings["annotator"], ratings["value"])
    return _excess(STRAIGHT_LINES, pages["annotator"], pages["is_constant"], alpha, pages["page"])


def _of_speed(evidence: Evidence, alpha: float) -> pd.DataFrame:
    pages = evidence.pages[evidence.pages["seconds"].notna()]
    least = pages["words"].to_numpy(dtype=np.float64) * reading_seconds(1)
    hits = pages["seconds"].to_numpy(dtype=np.float64) < least
    return _excess(TOO_FAST, pages["annotator"], hits, alpha)


def _of_reasons(evidence: Evidence, alpha: float) -> list[pd.DataFrame]:
    texts = evidence.reasons["text"].tolist()
    table = reason_similarity(evidence.reasons["annotator"], texts)
    likeness = table[["own", "others"]].max(axis=1)
    is_long = likeness.notna()
    who = table["annotator"][is_long]
    machine = np.array([machine_like(text) for text in texts], dtype=bool)
    return [
        _excess(COPIED_REASONS, who, likeness[is_long] >= ALIKE, alpha),
        _excess(MACHINE_LIKE, who, machine[is_long.to_numpy(dtype=bool)], alpha),
    ]


def _of_pairs(evidence: Evidence, alpha: float) -> pd.DataFrame:
    import pandas as pd

    ratings = evidence.ratings
    pairs = colluding_pairs(ratings["unit"], ratings["annotator"], ratings["value"], alpha=alpha)
    n_expected = pairs["expected_share"] * pairs["n_shared"]
    sides = [("annotator_a", "annotator_b"), ("annotator_b", "annotator_a")]
    rows = [
        pd.DataFrame(
            {
                "annotator": pairs[one],
                "flag": COLLUDING,
                "n": pairs["n_shared"],
                "n_hits": pairs["n_near"],
                "expected": n_expected,
                "p_value": pairs["p_value"],
                "other": pairs[another],
            }
        )
        for one, another in sides
    ]
    # An annotator is flagged once, with the nearest other.
    return pd.concat(rows).drop_duplicates("annotator")


def _of_change(evidence: Evidence, alpha: float) -> pd.DataFrame:
    import pandas as pd

    ratings = evidence.ratings
    if ratings.empty:
        return pd.DataFrame(columns=COLUMNS)
    crowd = code_ratings(ratings["unit"], ratings["annotator"], ratings["value"], "refuse")
    apart = np.abs(crowd.value - peer_mean(crowd).value)
    rows = ratings.assign(apart=apart).dropna(subset=["apart"])
    pages = rows.groupby(["annotator", "page"], observed=True, as_index=False).agg(
        apart=("apart", "mean"), order=("order", "first")
    )
    table = late_change(pages["annotator"], pages["order"], pages["apart"])
    n_after = table["n"] - table["n_before"]
    is_great = (table["after"] >= LEAST_GROWTH * table["before"]) & (n_after >= LEAST_AFTER)
    flagged = table[is_great & (table["p_value"] <= alpha)]
    after = (flagged["n"] - flagged["n_before"]).astype(np.intp)
    return flagged.assign(flag=LATE_CHANGE, n_hits=after, expected=np.nan, other=None)
