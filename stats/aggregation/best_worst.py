"""Best-worst scaling: which candidate of each set is best, and which worst."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from error_codes import InvalidValue
from stats.aggregation.bradley_terry import bradley_terry
from stats.aggregation.result import Aggregation, sign
from stats.arguments import Column, require_same_length, series
from stats.libraries import pd


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
    signature = sign(
        "best_worst", smoothing=smoothing, confidence=confidence, max_iterations=max_iterations
    )
    labels = fit.labels.assign(score=_scores(fit.labels["item"], sets, best, worst) if n else [])
    return Aggregation(
        method="best_worst",
        signature=signature,
        labels=labels,
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
    if len(set(names)) < len(names) or len(names) < 2:
        raise InvalidValue(
            f"sets must list two or more candidates, each once: row {judgment}", code="set_unfit"
        )
    if top == bottom or top not in names or bottom not in names:
        raise InvalidValue(
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
