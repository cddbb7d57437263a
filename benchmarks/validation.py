"""Speed and soundness of a validation report: ``python -m benchmarks.validation``.

The report is of 10 metrics and 4,000 candidates with 1,000 resamples, with its ceilings, tests
and variations. Beside it stands what a loop over scipy takes for the intervals alone, timed on a
few resamples and scaled up. Then: how often the report's tests reject at .05 where two metrics
follow human ratings equally well.
"""

import os
import warnings
from collections import Counter
from time import perf_counter

import django
import numpy as np
import pandas as pd

from benchmarks.commands import parse_options, say
from benchmarks.significance import ALPHA, SCIPY

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from validation.analysis import Settings, report_from_tables  # noqa: E402

RESAMPLES = 1000
TIMED = {"item": 2, "system": 20, "pooled": 20}


def study(
    n_items: int, n_systems: int, n_annotators: int, noise: list[float], seed: int = 0
) -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(seed)
    item, system = (axis.ravel() for axis in np.indices((n_items, n_systems)))
    latent = rng.normal(size=len(item)) + 0.3 * system
    ratings = np.clip(
        np.round(3 + latent[:, None] + rng.normal(size=(len(item), n_annotators))), 1, 5
    )
    cells = pd.DataFrame({"item": item.astype(str), "system": system.astype(str)})
    human = cells.loc[cells.index.repeat(n_annotators)].assign(
        annotator=np.tile(np.arange(n_annotators), len(item)).astype(str), value=ratings.ravel()
    )
    scores = [
        cells.assign(metric=f"m{number}", value=latent + spread * rng.normal(size=len(item)))
        for number, spread in enumerate(noise)
    ]
    return human, pd.concat(scores, ignore_index=True)


def loop_seconds(human: pd.DataFrame, scores: pd.DataFrame) -> float:
    one = scores[scores["metric"] == "m0"]
    means = human.groupby(["item", "system"], sort=False)["value"].mean().to_numpy()
    n_systems = one["system"].nunique()
    tables = means.reshape(-1, n_systems), one["value"].to_numpy().reshape(-1, n_systems)
    rng, total = np.random.default_rng(0), 0.0
    for level, timed in TIMED.items():
        start = perf_counter()
        for drawn in rng.integers(len(tables[0]), size=(timed, len(tables[0]))):
            x, y = (table[drawn] for table in tables)
            for function in SCIPY.values():
                if level == "item":
                    np.nanmean([function(a, b).statistic for a, b in zip(x, y, strict=True)])
                elif level == "system":
                    function(x.mean(axis=0), y.mean(axis=0))
                else:
                    function(x.ravel(), y.ravel())
        total += (perf_counter() - start) / timed
    return total * RESAMPLES * scores["metric"].nunique()


def report_speed() -> None:
    human, scores = study(1000, 4, 3, [1 + number / 5 for number in range(10)])
    start = perf_counter()
    report = report_from_tables(human, scores, Settings(n_resamples=RESAMPLES))
    own = perf_counter() - start
    counts = ", ".join(
        f"{len(getattr(report, name))} {name}" for name in ("correlations", "comparisons")
    )
    say(f"10 metrics x 4,000 candidates x 1,000 resamples ({counts}): {own:.2f} s")
    other = loop_seconds(human, scores)
    say(f"a loop over scipy, intervals alone: {other:.0f} s, {other / own:.0f}x")


def report_rates(trials: int) -> None:
    settings = Settings(coefficients=("pearson", "kendall"), n_resamples=500, n_splits=0)
    rejected: Counter[tuple[str, str, str]] = Counter()
    for seed in range(trials):
        report = report_from_tables(*study(60, 6, 2, [1.0, 1.0], seed), settings)
        for pair in report.comparisons:
            rejected[pair.level, pair.coefficient, pair.test] += pair.p < ALPHA
    error = np.sqrt(ALPHA * (1 - ALPHA) / trials)
    say(
        f"rejection at {ALPHA} on {trials} null studies, 60 items x 6 systems"
        f" (standard error {error:.3f})"
    )
    for name, count in rejected.items():
        say(f"{' '.join(name):36} {count / trials:.3f}")


def main() -> None:
    trials = parse_options(__doc__, trials=(200, "null studies")).trials
    warnings.simplefilter("ignore")  # scipy's, of constant groups
    report_speed()
    if trials:
        report_rates(trials)


if __name__ == "__main__":
    main()
