"""Speed of stats.aggregation beside plain Python: ``python -m benchmarks.aggregation``.

Each line is timed in one run on one machine; the ratio is what carries over to another.
"""

import sys
from collections import Counter, defaultdict
from math import exp, log

import numpy as np
import pandas as pd

from benchmarks.agreement import crowd, report, seconds
from stats.aggregation import METHODS, aggregate
from stats.annotators import annotator_quality, near_duplicates

ROUNDS = 3


def columns(frame: pd.DataFrame) -> tuple[pd.Series, pd.Series, pd.Series]:
    return frame["item"], frame["annotator"], frame["value"]


def plain_majority(frame: pd.DataFrame) -> dict[int, set[int]]:
    """The most frequent values of each item, by a loop over rows."""
    votes: dict[int, Counter[int]] = defaultdict(Counter)
    for item, _, value in frame.itertuples(index=False):
        votes[item][value] += 1
    return {
        item: {value for value, count in counts.items() if count == max(counts.values())}
        for item, counts in votes.items()
    }


def plain_dawid_skene(frame: pd.DataFrame, n_categories: int, rounds: int) -> np.ndarray:
    """The posterior after some rounds, by loops over rows as the published formulas read."""
    rows = list(frame.itertuples(index=False, name=None))
    by_item = defaultdict(list)
    for item, annotator, value in rows:
        by_item[item].append((annotator, value))
    classes = range(n_categories)
    posterior = {
        item: [sum(value == k for _, value in judgments) / len(judgments) for k in classes]
        for item, judgments in by_item.items()
    }
    for _ in range(rounds):
        prior = [sum(p[k] for p in posterior.values()) / len(posterior) for k in classes]
        counts: dict[tuple[int, int, int], float] = defaultdict(float)
        totals: dict[tuple[int, int], float] = defaultdict(float)
        for item, annotator, value in rows:
            for k in classes:
                counts[annotator, k, value] += posterior[item][k]
                totals[annotator, k] += posterior[item][k]
        for item, judgments in by_item.items():
            joint = [
                log(max(prior[k], 1e-300))
                + sum(
                    log(max(counts[a, k, v], 1e-300) / max(totals[a, k], 1e-300))
                    for a, v in judgments
                )
                for k in classes
            ]
            shares = [exp(term - max(joint)) for term in joint]
            posterior[item] = [share / sum(shares) for share in shares]
    return np.array([posterior[item] for item in sorted(posterior)])


def compare_majority(n_labels: int) -> None:
    """The majority of each item beside a counter an item."""
    frame = crowd(n_labels, 200, 5)
    own, result = seconds(lambda: aggregate(*columns(frame), method="majority"))
    other, winners = seconds(lambda: plain_majority(frame), repeats=1)
    wrong = sum(label not in winners[item] for item, label in result.label_by_item.items())
    report(f"majority, {n_labels:,} labels", own, other, float(wrong))


def compare_dawid_skene(n_labels: int) -> None:
    """Rounds of Dawid and Skene's EM beside loops over rows."""
    frame = crowd(n_labels, 200, 5)
    own, result = seconds(
        lambda: aggregate(*columns(frame), method="dawid_skene", tolerance=0, max_iterations=ROUNDS)
    )
    other, expected = seconds(lambda: plain_dawid_skene(frame, 5, ROUNDS + 1), repeats=1)
    difference = float(np.abs(result.probabilities.to_numpy() - expected).max())
    report(f"dawid_skene, {ROUNDS} rounds, {n_labels:,} labels", own, other, difference)


def time_to_the_end(n_labels: int) -> None:
    """Every method until it has converged, without a companion."""
    frame = crowd(n_labels, 200, 5)
    for method in METHODS:
        if method == "bradley_terry":
            continue  # its items are candidates, of which no crowd has 25,000
        own, result = seconds(lambda name=method: aggregate(*columns(frame), method=name), 1)
        state = {None: "", True: "converged", False: "not converged"}[result.converged]
        rounds = f"{result.iterations} rounds" if result.iterations else ""
        sys.stdout.write(f"{method:<20} {n_labels:,} labels {own:9.4f} s  {rounds} {state}\n")
    own, _ = seconds(lambda: annotator_quality(*columns(frame), level="nominal"), 1)
    sys.stdout.write(f"annotator_quality    {n_labels:,} labels {own:9.4f} s\n")
    own, _ = seconds(lambda: near_duplicates(*columns(frame)), 1)
    sys.stdout.write(f"near_duplicates      {n_labels:,} labels {own:9.4f} s\n")


def main() -> None:
    """Print one line a comparison."""
    for n_labels in (10_000, 100_000):
        compare_majority(n_labels)
        compare_dawid_skene(n_labels)
    time_to_the_end(100_000)


if __name__ == "__main__":
    main()
