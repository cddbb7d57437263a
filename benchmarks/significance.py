"""Rejection rates of stats.significance: ``python -m benchmarks.significance``.

The rates are of tests at .05 on simulated studies in which both metrics follow the human
ratings equally well, so that .05 is right and less is careful.
"""

import numpy as np

from benchmarks.commands import parse_options, say
from stats.significance import compare_metrics

ALPHA = 0.05
Study = dict[str, np.ndarray]


def null_study(rng: np.random.Generator, n_items: int, n_systems: int, together: float) -> Study:
    """Two metrics with independent noise of the same kind.

    `together` is how much of the human and the metrics' values the cells of one item share.
    """
    item, system = (axis.ravel() for axis in np.indices((n_items, n_systems)))
    shared = together * rng.normal(size=n_items)[item]
    human = shared + rng.normal(size=len(item)) + 0.3 * system
    # the noise of an item is shared as well: cells of one item are then not independent
    noise = rng.normal(size=(2, len(item))) + together * rng.normal(size=(2, n_items))[:, item]
    a, b = human + noise
    return {"human": human, "a": a, "b": b, "item": item, "system": system}


def p_value(study: Study, level: str, coefficient: str, test: str, seed: int) -> float:
    comparisons = compare_metrics(
        study["human"],
        {"a": study["a"], "b": study["b"]},
        level=level,
        coefficient=coefficient,
        items=study["item"],
        systems=study["system"],
        test=test,
        n_permutations=199,
        rng=seed,
    )
    return float(comparisons["p"].iloc[0])


def rejection_rate(trials: int, together: float, *test: str) -> float:
    rng = np.random.default_rng(1)
    studies = (null_study(rng, 30, 6, together) for _ in range(trials))
    return float(
        np.mean([p_value(study, *test, seed) < ALPHA for seed, study in enumerate(studies)])
    )


def report_rates(trials: int) -> None:
    error = np.sqrt(ALPHA * (1 - ALPHA) / trials)
    say(
        f"rejection at {ALPHA} on {trials} null studies, 30 items x 6 systems"
        f" (standard error {error:.3f})\n{'':40} independent  alike in items"
    )
    for test in (
        ("pooled", "pearson", "williams"),
        ("system", "pearson", "williams"),
        ("pooled", "pearson", "perm_both"),
        ("system", "pearson", "perm_both"),
        ("item", "pearson", "perm_both"),
        ("item", "kendall", "perm_both"),
        ("item", "kendall", "perm_items"),
        ("pooled", "pearson", "perm_items"),
    ):
        rates = [rejection_rate(trials, together, *test) for together in (0.0, 1.0)]
        say(f"{' '.join(test):40} {rates[0]:11.3f} {rates[1]:15.3f}")


def main() -> None:
    report_rates(parse_options(__doc__, trials=(500, "null studies of each test")).trials)


if __name__ == "__main__":
    main()
