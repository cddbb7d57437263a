"""How many written reasons mention what, for what is relevant and for what is not."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from error_codes import InvalidValue
from stats.arguments import require_same_length
from stats.libraries import pd
from stats.proportions import jeffreys_limits


def reason_terms(
    texts: Sequence[str],
    is_relevant: Sequence[bool],
    terms: Mapping[str, Sequence[str]],
    *,
    confidence: float = 0.95,
) -> pd.DataFrame:
    """How many reasons mention each term, among those for relevant documents and for others.

    Parameters
    ----------
    texts : sequence of str, length n_texts
        The reasons; one that mentions a term twice counts once.
    is_relevant : sequence of bool, length n_texts
        Whether what it is about was found relevant by whoever wrote it.
    terms : mapping of str to sequence of str
        Words that count as a term. They are matched whole and whatever their case; ``*`` stands
        for further letters, as in ``strip*``.
    confidence : float
        Confidence level of the intervals, between 0 and 1.

    Returns
    -------
    DataFrame
        A row a term, the most mentioned first, then by name: ``term, n, n_relevant, n_other,
        share_relevant, low_relevant, high_relevant, share_other, low_other, high_other``. Shares
        are of all reasons for relevant documents and of all others, with Jeffreys limits, which
        take reasons for independent; NaN where there is no such reason.

    Raises
    ------
    ValueError
        If the columns differ in length, a term has no word, or `confidence` is not between 0
        and 1.

    References
    ----------
    L. D. Brown, T. T. Cai and A. DasGupta (2001). Interval estimation for a binomial proportion.
    Statistical Science 16(2), 101-133.

    Examples
    --------
    >>> table = reason_terms(["Same heel, same colour", "Another colour", "too flat"],
    ...     [True, False, False], {"colour": ["colo*r*"], "heel": ["heel*", "flat"]})
    >>> table[["term", "n_relevant", "n_other", "share_relevant", "share_other"]]
         term  n_relevant  n_other  share_relevant  share_other
    0  colour           1        1             1.0          0.5
    1    heel           1        1             1.0          0.5
    """
    require_same_length(texts=texts, is_relevant=is_relevant)
    if not 0 < confidence < 1:
        raise InvalidValue(
            f"confidence must be between 0 and 1, not {confidence}", code="confidence_out_of_range"
        )
    relevant = np.asarray(is_relevant, dtype=bool)
    totals = int(relevant.sum()), int((~relevant).sum())
    rows = []
    for term, words in terms.items():
        pattern = term_pattern(term, words)
        mentions = np.array([pattern.search(text) is not None for text in texts], dtype=bool)
        counts = int((mentions & relevant).sum()), int((mentions & ~relevant).sum())
        shares = [_share(n, total, confidence) for n, total in zip(counts, totals, strict=True)]
        rows.append((term, sum(counts), *counts, *shares[0], *shares[1]))
    limits = (f"{name}_{of}" for of in ("relevant", "other") for name in ("share", "low", "high"))
    table = pd.DataFrame(rows, columns=["term", "n", "n_relevant", "n_other", *limits])
    return table.sort_values(["n", "term"], ascending=[False, True], ignore_index=True)


def term_pattern(term: str, words: Sequence[str]) -> re.Pattern[str]:
    """What a text mentions that mentions a term.

    Parameters
    ----------
    term : str
        The term, for the message.
    words : sequence of str
        As in `reason_terms`.

    Returns
    -------
    re.Pattern

    Raises
    ------
    ValueError
        If there is no word.

    Examples
    --------
    >>> pattern = term_pattern("pattern", ["strip*"])
    >>> bool(pattern.search("Striped too")), bool(pattern.search("an airstrip"))
    (True, False)
    """
    if not words or not all(word.strip(" *") for word in words):
        raise InvalidValue(f"terms must have words each, and {term!r} has none", code="empty_term")
    options = (re.escape(word.strip()).replace(r"\*", r"\w*") for word in words)
    return re.compile(rf"(?<!\w)(?:{'|'.join(options)})(?!\w)", re.IGNORECASE)


def _share(n: int, total: int, confidence: float) -> tuple[float, float, float]:
    if not total:
        return np.nan, np.nan, np.nan
    return n / total, *jeffreys_limits(n, total, confidence)
