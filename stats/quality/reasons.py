from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from stats.arguments import Column, coded_in_order, require, require_same_length, require_shares
from stats.libraries import np, pd, scipy
from stats.proportions import jeffreys_limits

LEAST_WORDS = 5
ROWS_AT_ONCE = 500
WORD = re.compile(r"\w+")
# What language models write about texts they compare, and people in a hurry do not.
MARKERS = (
    r"\boverall\b", r"\bfurthermore\b", r"\bmoreover\b", r"\badditionally\b", r"\bin contrast\b",
    r"\bin conclusion\b", r"\bdemonstrat\w+", r"\beffectively\b", r"\bconvey\w*\b",
    r"\bnuanced?\b", r"\bcomprehensive\b", r"\bcoheren\w+", r"\bcontextually\b",
    r"\baligns? (well |closely )?with\b", r"\bmaintain(s|ing)\b", r"\bensur(es|ing)\b",
    r"\bshowcas\w+", r"\bdelv\w+", r"\bprovid(es|ing) an?\b", r"\bwhile (also )?\w+ing\b",
    r"\bas an ai\b", r"\bboth \w+ and \w+\b", r"\bmaking it\b", r"\bnot only\b", r"—",
)  # fmt: skip
MARKER = re.compile("|".join(MARKERS), re.IGNORECASE)


def reason_similarity(annotators: Column, texts: Sequence[str]) -> pd.DataFrame:
    """How like each reason is to its annotator's other reasons, and to those of others.

    Parameters
    ----------
    annotators : array-like, shape (n_texts,)
        Who wrote it.
    texts : sequence of str, length n_texts

    Returns
    -------
    DataFrame
        A row a text, in the given order: ``annotator, n_words, own, others``: the greatest Jaccard
        similarity of its three-word shingles with another text of the same annotator, and with
        one of somebody else. NaN for texts of fewer than five words, which are alike too easily.

    Raises
    ------
    ValueError
        If the columns differ in length, or an annotator is missing.

    References
    ----------
    A. Z. Broder (1997). On the resemblance and containment of documents. Compression and
    Complexity of Sequences, 21-29.

    Examples
    --------
    >>> table = reason_similarity(list("aab"), ["it answers the question well enough",
    ...     "it answers the question well enough", "the tone is far too formal here"])
    >>> table[["annotator", "own", "others"]]
      annotator  own  others
    0         a  1.0     0.0
    1         a  1.0     0.0
    2         b  0.0     0.0
    """
    require_same_length(annotators=annotators, texts=texts)
    who, names = coded_in_order(annotators, "annotators")
    words = [WORD.findall(text.lower()) for text in texts]
    n_words = np.array([len(each) for each in words], dtype=np.intp)
    is_long = n_words >= LEAST_WORDS
    own, others = (np.where(is_long, 0.0, np.nan) for _ in range(2))
    matrix, sizes = _incidence(
        [each if long else [] for each, long in zip(words, is_long, strict=True)]
    )
    for start in range(0, matrix.shape[0], ROWS_AT_ONCE):
        shared = (matrix[start : start + ROWS_AT_ONCE] @ matrix.T).tocoo()
        row, column = shared.row + start, shared.col
        row, column, n = (each[row != column] for each in (row, column, shared.data))
        likeness = n / (sizes[row] + sizes[column] - n)
        same = who[row] == who[column]
        np.maximum.at(own, row[same], likeness[same])
        np.maximum.at(others, row[~same], likeness[~same])
    columns = {"n_words": n_words, "own": own, "others": others}
    return pd.DataFrame({"annotator": pd.Series(names, dtype=object).to_numpy()[who], **columns})


def _incidence(words: list[list[str]]) -> tuple[scipy.sparse.csr_array, np.ndarray]:
    codes: dict[tuple[str, ...], int] = {}
    columns: list[int] = []
    ends = [0]
    for each in words:
        triples = zip(each, each[1:], each[2:], strict=False)
        columns += sorted({codes.setdefault(triple, len(codes)) for triple in triples})
        ends.append(len(columns))
    shape = (len(words), max(len(codes), 1))
    incidence = scipy.sparse.csr_array((np.ones(len(columns)), columns, ends), shape=shape)
    return incidence, np.diff(ends).astype(np.float64)


def machine_like(text: str) -> bool:
    """Whether an English reason has at least two turns that language models are fond of.

    Parameters
    ----------
    text : str

    Returns
    -------
    bool

    Notes
    -----
    A list of words, no detector: people write like this too, and models can be told not to. It is
    worth something only as a share of one annotator's reasons beside the others' share.

    Examples
    --------
    >>> machine_like("Overall, the response effectively conveys a warm tone.")
    True
    >>> machine_like("sounds nice and it answers what was asked")
    False
    """
    return len({match.group().lower() for match in MARKER.finditer(text)}) >= 2


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
    require_shares(confidence=confidence)
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
    require(
        words and all(word.strip(" *") for word in words),
        f"terms must have words each, and {term!r} has none",
        code="empty_term",
    )
    options = (re.escape(word.strip()).replace(r"\*", r"\w*") for word in words)
    return re.compile(rf"(?<!\w)(?:{'|'.join(options)})(?!\w)", re.IGNORECASE)


def _share(n: int, total: int, confidence: float) -> tuple[float, float, float]:
    if not total:
        return np.nan, np.nan, np.nan
    return n / total, *jeffreys_limits(n, total, confidence)
