"""Speed of stats.agreement beside other programs.

Run ``python -m benchmarks.agreement``. Each line is timed in one run on one machine; only the
ratio carries over to another. A star marks loops timed in part and scaled up.
"""

import json
import resource
from collections.abc import Callable
from time import perf_counter
from typing import Any

import krippendorff
import numpy as np
import pandas as pd
from sklearn.metrics import cohen_kappa_score

from benchmarks.commands import parse_options, run_again, say
from stats.agreement import krippendorff_alpha, pairwise_kappa

PAIRS_TIMED = 300
RESAMPLES = 1_000
RESAMPLES_TIMED = {"nominal": 20, "interval": 1}
LEVELS = ("nominal", "ordinal", "interval")


def seconds(action: Callable[[], Any], repeats: int = 3) -> tuple[float, Any]:
    """The least time of a few runs, and what the action returned."""
    times, result = [], None
    for _ in range(repeats):
        start = perf_counter()
        result = action()
        times.append(perf_counter() - start)
    return min(times), result


def report(name: str, own: float, other: float, difference: float) -> None:
    say(f"{name:<46} {own:9.4f} s {other:9.4f} s {other / own:9.1f}x  max diff {difference:.1e}")


def crowd(n_labels: int, n_annotators: int, n_values: int, per_item: int = 4) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    n_items = n_labels // per_item
    annotators = rng.random((n_items, n_annotators)).argpartition(per_item, axis=1)[:, :per_item]
    truth = rng.integers(n_values, size=n_items).repeat(per_item)
    guess = rng.integers(n_values, size=len(truth))
    return pd.DataFrame(
        {
            "item": np.arange(n_items).repeat(per_item),
            "annotator": annotators.ravel(),
            "value": np.where(rng.random(len(truth)) < 0.6, truth, guess),
        }
    )


def columns(frame: pd.DataFrame) -> tuple[pd.Series, pd.Series, pd.Series]:
    return frame["item"], frame["annotator"], frame["value"]


def compare_alpha(level: str, n_values: int, n_labels: int) -> None:
    """Alpha, with its jackknife interval, beside krippendorff's alpha without one."""
    frame = crowd(n_labels, 200, n_values)
    counts = pd.crosstab(frame["item"], frame["value"])
    domain = counts.columns.to_numpy(float)
    own, result = seconds(lambda: krippendorff_alpha(*columns(frame), level=level))
    other, expected = seconds(
        lambda: krippendorff.alpha(
            value_counts=counts.to_numpy(), value_domain=domain, level_of_measurement=level
        ),
        repeats=1,
    )
    report(
        f"alpha {level}, {n_labels:,} labels, {n_values} values",
        own,
        other,
        abs(result.value - expected),
    )


def compare_bootstrap(level: str, n_values: int, n_labels: int) -> None:
    """A bootstrap interval beside krippendorff's alpha of resampled items, scaled up."""
    frame = crowd(n_labels, 200, n_values)
    counts = pd.crosstab(frame["item"], frame["value"])
    domain, table = counts.columns.to_numpy(float), counts.to_numpy()
    own, result = seconds(
        lambda: krippendorff_alpha(
            *columns(frame), level=level, ci="bootstrap", n_resamples=RESAMPLES
        )
    )
    rng = np.random.default_rng(1)
    draws = rng.integers(len(table), size=(RESAMPLES_TIMED[level], len(table)))
    other, values = seconds(
        lambda: [
            krippendorff.alpha(
                value_counts=table[draw], value_domain=domain, level_of_measurement=level
            )
            for draw in draws
        ],
        repeats=1,
    )
    report(
        f"{RESAMPLES:,} bootstraps {level}, {n_labels:,} labels*",
        own,
        other * RESAMPLES / len(draws),
        abs(result.value - float(np.mean(values))),
    )


def million(level: str) -> str:
    rng, item = np.random.default_rng(0), np.arange(250_000).repeat(4)
    annotator = (np.arange(1_000_000) * 7) % 500
    columns = (item, annotator, rng.integers(101 if level != "nominal" else 5, size=1_000_000))
    time, _ = seconds(lambda: krippendorff_alpha(*columns, level=level), repeats=1)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return f"alpha {level}, 1,000,000 labels: {time:.2f} s, peak {peak:.0f} MB"


def compare_pairs(n_labels: int, n_annotators: int) -> None:
    """Every pair's kappa beside a loop over scikit-learn, timed on some pairs and scaled up."""
    frame = crowd(n_labels, n_annotators, 5)
    own, table = seconds(lambda: pairwise_kappa(*columns(frame), min_overlap=2))
    by_annotator = {
        name: (rows["item"].to_numpy(), rows["value"].to_numpy())
        for name, rows in frame.groupby("annotator")
    }
    timed = table.dropna(subset="kappa").head(PAIRS_TIMED)

    def loop() -> list[float]:
        kappas = []
        for first, second in zip(timed["annotator_a"], timed["annotator_b"], strict=True):
            items_a, values_a = by_annotator[first]
            items_b, values_b = by_annotator[second]
            _, a, b = np.intersect1d(items_a, items_b, assume_unique=True, return_indices=True)
            kappas.append(cohen_kappa_score(values_a[a], values_b[b], labels=range(5)))
        return kappas

    other, expected = seconds(loop, repeats=1)
    difference = float(np.abs(timed["kappa"].to_numpy() - expected).max())
    name = f"kappa of {len(table):,} pairs, {n_labels:,} labels*"
    report(name, own, other * len(table) / len(timed), difference)


def main() -> None:
    options = parse_options(__doc__, million=(str, "alpha of a million labels at this level"))
    if options.million:
        say(json.dumps(million(options.million)))
        return
    for level in LEVELS:
        say(run_again("benchmarks.agreement", options, million=level))
    for n_labels in (1_000, 10_000, 100_000):
        compare_alpha("nominal", 5, n_labels)
    for n_labels in (1_000, 10_000):
        compare_alpha("ordinal", 101, n_labels)
    for n_labels in (1_000, 10_000, 100_000):
        compare_alpha("interval", 101, n_labels)
    compare_bootstrap("nominal", 5, 100_000)
    compare_bootstrap("interval", 101, 100_000)
    compare_pairs(10_000, 50)
    compare_pairs(100_000, 500)


if __name__ == "__main__":
    main()
