from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import combinations

from stats.aggregation.bradley_terry import Comparisons, aggregation_of, bradley_terry
from stats.aggregation.result import Aggregation, code_ratings, require_table, sign
from stats.arguments import (
    Column,
    Floats,
    Integers,
    coded,
    coded_in_order,
    pairs_within,
    require,
    require_same_length,
    series,
    sum_by,
)
from stats.libraries import np, pd

TIES = frozenset({"=", "tie"})
Pair = tuple[str, str, float]


def preference_strengths(
    items: Column,
    annotators: Column,
    values: Column,
    *,
    smoothing: float = 0.0,
    confidence: float = 0.95,
    max_iterations: int = 100,
) -> Aggregation:
    """Bradley-Terry strengths of candidates from preferences in a long frame.

    Parameters
    ----------
    items, annotators, values : array-like, shape (n_labels,)
        One row a judgment, in one of three forms, the same in all rows:

        - ``values`` are orders such as ``"a>b"``, ``"a=b"`` (a tie) or ``"best>c=d>worst"``;
          items are whatever was judged, such as a prompt.
        - ``items`` list the candidates shown, ``"a|b"`` or ``"a|b|c"``, and ``values`` name the
          preferred one, which beats the others, or are ``"="`` or ``"tie"``.
        - ``values`` are numbers and ``items`` the candidates: an annotator prefers what they
          gave the higher number; equal numbers are ties.
    smoothing, confidence, max_iterations
        As for `bradley_terry`.

    Returns
    -------
    Aggregation
        ``labels`` has a row a candidate, as for `bradley_terry`. ``annotators`` has
        ``n_labels`` and ``agreement``: the share of an annotator's comparisons, ties left out,
        that the stronger candidate won. Standard errors are clustered by row where a row
        implies several comparisons, and by annotator where values are numbers.

    Raises
    ------
    ValueError
        If the columns differ in length, hold a missing value or mix forms, a value does not
        name a candidate of its item, an order names a candidate twice, or in the third form
        an (item, annotator) pair repeats.

    References
    ----------
    R. A. Bradley and M. E. Terry (1952). Rank analysis of incomplete block designs I.
    Biometrika 39, 324-345.

    Examples
    --------
    >>> columns = ["p1", "p2", "p3"], ["x", "x", "y"], ["a>b", "a>b", "b>a"]
    >>> preference_strengths(*columns).labels[["item", "label"]].round(3)
      item  label
    0    a  0.347
    1    b -0.347
    >>> shown = preference_strengths(["a|b", "a|b", "a|b"], ["x", "x", "y"], ["a", "a", "b"])
    >>> shown.annotators["agreement"].tolist()
    [1.0, 0.0]
    """
    comparisons, annotator = _comparisons(items, annotators, values)
    row_annotator, names = coded_in_order(annotators, "annotators")
    result = aggregation_of(
        comparisons,
        method="bradley_terry",
        annotators=pd.DataFrame(
            {
                "annotator": pd.Series(names),
                "n_labels": np.bincount(row_annotator, minlength=len(names)),
            }
        ),
        smoothing=smoothing,
        confidence=confidence,
        max_iterations=max_iterations,
    )
    if result.reason is None:
        strength = result.labels["label"].to_numpy()
        result.annotators["agreement"] = _agreement(comparisons, annotator, strength, len(names))
    return result


def _comparisons(items: Column, annotators: Column, values: Column) -> tuple[Comparisons, Integers]:
    require_same_length(items=items, annotators=annotators, values=values)
    coded(items, "items")
    coded(values, "values")
    numeric = pd.to_numeric(series(values, "values"), errors="coerce")
    labels = series(items, "items").astype(str)
    if numeric.notna().all() and not labels.str.contains("|", regex=False).all():
        return _from_ratings(items, annotators, numeric)
    row, pairs = _from_text(labels, series(values, "values").astype(str))
    annotator, _ = coded_in_order(annotators, "annotators")
    ends, candidates = coded_in_order(
        [pair[0] for pair in pairs] + [pair[1] for pair in pairs], "values"
    )
    winner, loser = np.split(ends, 2)
    weight = np.array([pair[2] for pair in pairs], dtype=np.float64)
    return Comparisons(winner, loser, weight, row, candidates), annotator[row]


def _from_ratings(
    items: Column, annotators: Column, values: pd.Series[float]
) -> tuple[Comparisons, Integers]:
    ratings = code_ratings(items, annotators, values, "count")
    require(
        not ratings.n_repeated,
        f"annotators rate a candidate more than once in {ratings.n_repeated} rows of items "
        "and annotators; leave them out",
        code="repeated_labels",
    )
    rated = ratings.labels_per_annotator
    require_table("values", comparisons=int(rated @ (rated - 1) / 2))
    left, right = pairs_within(ratings.annotator, len(ratings.annotators))
    gap = ratings.value[left] - ratings.value[right]
    tie = np.flatnonzero(gap == 0)
    winner = np.where(gap >= 0, ratings.item[left], ratings.item[right])
    loser = np.where(gap >= 0, ratings.item[right], ratings.item[left])
    weight = np.where(gap == 0, 0.5, 1.0)
    annotator = ratings.annotator[left]
    comparisons = Comparisons(
        np.concatenate([winner, loser[tie]]),
        np.concatenate([loser, winner[tie]]),
        np.concatenate([weight, weight[tie]]),
        np.concatenate([annotator, annotator[tie]]),
        ratings.items,
    )
    return comparisons, comparisons.judgment


def _from_text(rows: pd.Series[str], text: pd.Series[str]) -> tuple[Integers, list[Pair]]:
    """The comparisons of all rows, and the row of each; each distinct judgment is read once."""
    code, distinct = pd.factorize(pd.MultiIndex.from_arrays([rows, text]))
    read = [_read(item, value) for item, value in distinct]
    pairs = [pair for judgment in code for pair in read[judgment]]
    lengths = np.array([len(judgment) for judgment in read], dtype=np.intp)
    return np.repeat(np.arange(len(code)), lengths[code]), pairs


def _read(item: str, value: str) -> list[Pair]:
    if ">" in value or ("=" in value and value.strip() != "="):
        return ordered_pairs([tier.split("=") for tier in value.split(">")], value)
    candidates = [name.strip() for name in item.split("|")]
    require(
        len(candidates) >= 2,
        f"values must be orders such as 'a>b', names of a candidate of an item such as "
        f"'a|b', or numbers; {value!r} for item {item!r} is none of them",
        code="not_a_preference",
    )
    if value.strip().lower() in TIES:
        return ordered_pairs([candidates], item)
    require(
        value.strip() in candidates,
        f"values must name a candidate of their item: {value!r} is not in {item!r}",
        code="unknown_candidate",
    )
    return ordered_pairs(
        [[value], [name for name in candidates if name != value.strip()]], item, ties=False
    )


def ordered_pairs(tiers: Sequence[Sequence[str]], source: str, *, ties: bool = True) -> list[Pair]:
    """Each candidate beats those of lower tiers; with `ties`, equals win half each way."""
    names = [[name.strip() for name in tier] for tier in tiers]
    flat = [name for tier in names for name in tier]
    require(
        all(flat) and len(set(flat)) == len(flat) and len(flat) >= 2,
        f"values must name two or more candidates, each once: {source!r}",
        code="repeated_candidate",
    )
    pairs: list[Pair] = []
    for upper, lower in combinations(names, 2):
        pairs += [(winner, loser, 1.0) for winner in upper for loser in lower]
    if ties:
        for tier in names:
            for one, other in combinations(tier, 2):
                pairs += [(one, other, 0.5), (other, one, 0.5)]
    return pairs


def _agreement(
    comparisons: Comparisons, annotator: Integers, strength: Floats, n_annotators: int
) -> Floats:
    decided = comparisons.weight == 1
    right = decided & (strength[comparisons.winner] > strength[comparisons.loser])
    total = sum_by(annotator, decided * 1.0, n_annotators)
    with np.errstate(invalid="ignore"):
        return np.asarray(sum_by(annotator, right * 1.0, n_annotators) / total)


def best_worst(
    sets: Sequence[Sequence[Hashable]],
    best: Column,
    worst: Column,
    *,
    smoothing: float = 0.0,
    confidence: float = 0.95,
    max_iterations: int = 100,
) -> Aggregation:
    """Strengths of candidates from the best and the worst of sets of them.

    Parameters
    ----------
    sets : sequence of sequences, length n_judgments
        The candidates of the set each judgment was made on.
    best, worst : array-like, shape (n_judgments,)
        The best and the worst candidate of each set.
    smoothing, confidence, max_iterations
        As for `bradley_terry`.

    Returns
    -------
    Aggregation
        As for `bradley_terry`, with standard errors clustered by judgment, and in addition
        ``score``: times best minus times worst, over times listed.

    Raises
    ------
    ValueError
        If the columns differ in length, a set names a candidate twice or fewer than two, or
        best and worst are not two different candidates of the set.

    Notes
    -----
    Of n candidates the best beats n - 1 and the worst loses to the n - 2 others too; nothing
    is said of the rest among themselves.

    References
    ----------
    J. J. Louviere, T. N. Flynn and A. A. J. Marley (2015). Best-worst scaling. Cambridge.
    S. Kiritchenko and S. M. Mohammad (2017). Best-worst scaling more reliable than rating
    scales. ACL, 465-470 (the score).

    Examples
    --------
    >>> result = best_worst([["a", "b", "c"]] * 3, ["a", "a", "b"], ["c", "b", "a"])
    >>> result.labels[["item", "score"]].round(2)
      item  score
    0    a   0.33
    1    b   0.00
    2    c  -0.33
    """
    n = require_same_length(sets=sets, best=best, worst=worst)
    rows: list[tuple[Hashable, Hashable, int]] = []
    choices = zip(sets, series(best, "best"), series(worst, "worst"), strict=True)
    for judgment, (names, top, bottom) in enumerate(choices):
        _require_choice(names, top, bottom, judgment)
        rest = [name for name in names if name not in (top, bottom)]
        rows.append((top, bottom, judgment))
        rows += [(top, name, judgment) for name in rest]
        rows += [(name, bottom, judgment) for name in rest]
    fit = bradley_terry(
        [row[0] for row in rows],
        [row[1] for row in rows],
        judgments=[row[2] for row in rows],
        smoothing=smoothing,
        confidence=confidence,
        max_iterations=max_iterations,
    )
    return Aggregation(
        method="best_worst",
        signature=sign(
            "best_worst", smoothing=smoothing, confidence=confidence, max_iterations=max_iterations
        ),
        labels=fit.labels.assign(score=_scores(fit.labels["item"], sets, best, worst) if n else []),
        annotators=fit.annotators,
        converged=fit.converged,
        iterations=fit.iterations,
        log_likelihood=fit.log_likelihood,
        warnings=fit.warnings,
        reason=fit.reason,
    )


def _require_choice(
    names: Sequence[Hashable], top: Hashable, bottom: Hashable, judgment: int
) -> None:
    require(
        len(set(names)) == len(names) and len(names) >= 2,
        f"sets must list two or more candidates, each once: row {judgment}",
        code="set_unfit",
    )
    require(
        top != bottom and top in names and bottom in names,
        f"best and worst must be two candidates of the set: row {judgment} has "
        f"{top!r} and {bottom!r} of {list(names)!r}",
        code="not_in_set",
    )


def _scores(
    candidates: pd.Series[str], sets: Sequence[Sequence[Hashable]], best: Column, worst: Column
) -> pd.Series[float]:
    times_listed = pd.Series([name for names in sets for name in names]).value_counts()
    balance = (
        series(best, "best").value_counts().sub(series(worst, "worst").value_counts(), fill_value=0)
    )
    score = (balance.reindex(times_listed.index, fill_value=0) / times_listed).reindex(candidates)
    return score.reset_index(drop=True)
