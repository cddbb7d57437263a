from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any

from stats.aggregation.result import code_ratings
from stats.annotators.quality import peer_mean
from stats.annotators.similar_pairs import colluding_pairs
from stats.arguments import require
from stats.libraries import np, pd
from stats.quality.order_effects import late_change, position_tests
from stats.quality.pages import WORDS_PER_MINUTE, constant_chances, constant_pages
from stats.quality.peers import excess_hits, unrelated_annotators
from stats.quality.reasons import machine_like, reason_similarity

FAILED_CHECKS, STRAIGHT_LINES, TOO_FAST = "failed_checks", "straight_lines", "too_fast"
COPIED_REASONS, MACHINE_LIKE, COLLUDING = "copied_reasons", "machine_like", "colluding"
LATE_CHANGE, UNRELATED, POSITION = "late_change", "unrelated", "position"
CONTRADICTORY_TIMES = "contradictory_times"
FLAGS = (
    *(FAILED_CHECKS, STRAIGHT_LINES, TOO_FAST, COPIED_REASONS),
    *(MACHINE_LIKE, COLLUDING, LATE_CHANGE, UNRELATED, POSITION),
    CONTRADICTORY_TIMES,
)
COLUMNS = ["annotator", "flag", "n", "n_hits", "expected", "value", "p_value", "other"]
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
    CONTRADICTORY_TIMES: 0.25,
}
# What is expected of careful annotators where no others are there to show it.
PRIOR_RATES = {
    FAILED_CHECKS: 0.08,
    STRAIGHT_LINES: 0.05,
    TOO_FAST: 0.02,
    COPIED_REASONS: 0.05,
    MACHINE_LIKE: 0.05,
    CONTRADICTORY_TIMES: 0.02,
}
# Similarity from which a reason is a copy.
ALIKE = 0.8
# Of the departures after a change beside those before it.
LEAST_GROWTH = 1.5
LEAST_AFTER = 5
# Chance of so low an agreement among careful annotators. It is larger than that of other flags,
# since an annotator must also be within the limit of random answers.
UNRELATED_ALPHA = 0.005
# Of the answers of an annotator's pages by position, as if one position were favored on three of
# four pairs. Real annotators favor what they read first a little.
LEAST_CONCORDANCE = 0.25
LEAST_POSITIONED = 8
# Of constant pages, how many the annotator's own distribution of ratings may explain.
MOST_OWN_SHARE = 0.5


def _empty_frame(*columns: str) -> pd.DataFrame:
    return pd.DataFrame(columns=columns)


@dataclass(frozen=True)
class Evidence:
    """What there is about annotators; a table that is empty gives no flags.

    `checks`: a row a check that was answered, whether `is_failed`. `ratings`: a row a rating, its
    `value` as a share of the scale, when its page was worked on (`order`), and the candidate's
    `position` on the page (NaN if candidates are not shown in an order drawn at random); a `unit`
    is what was rated under which `question`, and `is_compared` if the answer compares the page's
    candidates. `choices`: a row a choice among three unordered categories or more, whose `value`
    is the category's number. `pages`: how long each took, the `words` on it and, as an optional
    column `is_contradictory`, whether its answer contradicts the measured time. `reasons`: what was
    written.
    """

    checks: pd.DataFrame = field(
        default_factory=lambda: _empty_frame("annotator", "check", "is_failed")
    )
    ratings: pd.DataFrame = field(
        default_factory=lambda: _empty_frame(
            *("annotator", "page", "question", "unit", "value"),
            *("order", "position", "is_compared"),
        )
    )
    choices: pd.DataFrame = field(
        default_factory=lambda: _empty_frame("annotator", "question", "unit", "value")
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
        Without a missing value, except `seconds` and `position`.
    alpha : float
        Largest chance, by what the other annotators do, of what is flagged; between 0 and 1. That
        of ``unrelated`` is .005, as it also has to be within the limit of random answers.

    Returns
    -------
    DataFrame
        A row a flag, by annotator, in the order of `FLAGS`: ``annotator, flag, n``
        (opportunities), ``n_hits, expected, value, p_value, other`` (the annotator whose ratings
        are near; else None). Of ``late_change``, ``n_hits`` is the number of pages after the
        change, and ``expected`` NaN. Of ``unrelated``, ``n_hits`` is the number of answers,
        ``value`` the correlation with the others' and ``expected`` theirs; of ``position``,
        ``value`` is the concordance of pages by position; NaN for other flags.

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
    require(
        0 <= alpha <= 1, f"alpha must lie between 0 and 1, not {alpha}", code="alpha_out_of_range"
    )
    tables = [
        _of_checks(evidence, alpha),
        _of_lines(evidence, alpha),
        _of_speed(evidence, alpha),
        _of_times(evidence, alpha),
        *_of_reasons(evidence, alpha),
        _of_pairs(evidence, alpha),
        _of_change(evidence, alpha),
        _of_peers(evidence),
        _of_positions(evidence, alpha),
    ]
    filled = [table for table in tables if len(table)]
    if not filled:
        return pd.DataFrame(columns=COLUMNS)
    table = pd.concat(filled, ignore_index=True).reindex(columns=COLUMNS)
    rank = table["flag"].map({flag: number for number, flag in enumerate(FLAGS)})
    return table.iloc[np.lexsort((rank, table["annotator"].astype(str)))].reset_index(drop=True)


def _excess(flag: str, annotators: Any, hits: Any, alpha: float, units: Any = None) -> pd.DataFrame:
    if not len(annotators):
        return pd.DataFrame(columns=COLUMNS)
    table = excess_hits(annotators, hits, units=units, prior_rate=PRIOR_RATES[flag], alpha=alpha)
    is_enough = table["n_hits"] >= np.maximum(LEAST_HITS, LEAST_SHARES[flag] * table["n"])
    return table[is_enough & (table["p_value"] <= alpha)].assign(flag=flag, other=None)


def _of_checks(evidence: Evidence, alpha: float) -> pd.DataFrame:
    checks = evidence.checks
    hits = checks["is_failed"].astype(bool)
    return _excess(FAILED_CHECKS, checks["annotator"], hits, alpha, checks["check"])


def _of_lines(evidence: Evidence, alpha: float) -> pd.DataFrame:
    """Annotators whose constant pages neither the others nor their own use of the scale explain.

    A harsh or lenient annotator has constant pages at one end of the scale: as many as so many
    answers there give by chance, while the other answers still follow the content of the page.
    """
    ratings = evidence.ratings
    columns = [ratings[name] for name in ("page", "annotator", "value")]
    pages = constant_pages(*columns)
    rows = _excess(STRAIGHT_LINES, pages["annotator"], pages["is_constant"], alpha, pages["page"])
    if rows.empty:
        return rows
    chances = constant_chances(*columns).merge(pages, on=["page", "annotator"])
    own = chances.groupby("annotator", observed=True)["chance"].sum()
    # Within pages, and over all of them: an annotator at one end of the scale differs rarely.
    follows = {
        name for blocks in ("page", "question") for name in _related(ratings, ratings[blocks])
    }
    is_explained = rows["annotator"].map(own) > MOST_OWN_SHARE * rows["n_hits"]
    return rows[~(is_explained & rows["annotator"].isin(follows))]


def _related(ratings: pd.DataFrame, blocks: pd.Series[Any]) -> Iterator[Hashable]:
    table = unrelated_annotators(ratings["annotator"], ratings["unit"], blocks, ratings["value"])
    yield from table.loc[table["agreement"] > table["by_chance"], "annotator"]


def _of_speed(evidence: Evidence, alpha: float) -> pd.DataFrame:
    pages = evidence.pages[evidence.pages["seconds"].notna()]
    least = pages["words"].to_numpy(dtype=np.float64) * (60 / WORDS_PER_MINUTE)
    pages = pages.assign(is_fast=pages["seconds"].to_numpy(dtype=np.float64) < least)
    compared = [pages]
    if "is_contradictory" in pages:
        compared.append(pages[~pages["is_contradictory"].astype(bool)])
    rows = [_excess(TOO_FAST, one["annotator"], one["is_fast"], alpha) for one in compared]
    filled = [one for one in rows if len(one)]
    return pd.concat(filled).drop_duplicates("annotator") if filled else rows[0]


def _of_times(evidence: Evidence, alpha: float) -> pd.DataFrame:
    pages = evidence.pages
    if "is_contradictory" not in pages:
        return _excess(CONTRADICTORY_TIMES, [], [], alpha)
    hits = pages["is_contradictory"].astype(bool)
    return _excess(CONTRADICTORY_TIMES, pages["annotator"], hits, alpha)


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
    ratings = evidence.ratings
    pairs = colluding_pairs(ratings["unit"], ratings["annotator"], ratings["value"], alpha=alpha)
    n_expected = pairs["expected_share"] * pairs["n_shared"]
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
        for one, another in [("annotator_a", "annotator_b"), ("annotator_b", "annotator_a")]
    ]
    # An annotator is flagged once, with the nearest other.
    return pd.concat(rows).drop_duplicates("annotator")


def _of_change(evidence: Evidence, alpha: float) -> pd.DataFrame:
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


def _of_peers(evidence: Evidence) -> pd.DataFrame:
    ratings, choices = evidence.ratings, evidence.choices
    # Answers that compare candidates could have been exchanged on their own page only.
    page = ratings["page"].where(ratings["is_compared"].astype(bool), -1)
    blocks = ratings.groupby([ratings["question"], page], observed=True).ngroup()
    parts = pd.concat(
        [
            ratings[["annotator", "value"]].assign(block=blocks, unit=ratings["unit"], kind=0),
            choices[["annotator", "value"]].assign(
                block=choices["question"], unit=choices["unit"], kind=1
            ),
        ]
    )
    blocks, units = (parts.groupby(["kind", name]).ngroup() for name in ("block", "unit"))
    table = unrelated_annotators(
        parts["annotator"], units, blocks, parts["value"], parts["kind"] == 1
    )
    flagged = table[table["p_value"] <= UNRELATED_ALPHA]
    return flagged.rename(columns={"agreement": "value", "typical": "expected"}).assign(
        flag=UNRELATED, n_hits=flagged["n"], other=None
    )


def _of_positions(evidence: Evidence, alpha: float) -> pd.DataFrame:
    rows = evidence.ratings[evidence.ratings["position"].notna()]
    table = position_tests(
        *(rows[name] for name in ("annotator", "page", "question", "position", "value"))
    )
    n_questions = table.groupby("annotator")["question"].transform("size")
    table = table.assign(p_value=np.minimum(table["p_value"] * n_questions, 1.0))
    is_strong = (table["concordance"] >= LEAST_CONCORDANCE) & (table["n"] >= LEAST_POSITIONED)
    flagged = table[is_strong & (table["p_value"] <= alpha)].sort_values("p_value", kind="stable")
    # An annotator is flagged once, for the question that depends on positions most clearly.
    return flagged.drop_duplicates("annotator").assign(
        flag=POSITION, value=flagged["concordance"], other=None
    )
