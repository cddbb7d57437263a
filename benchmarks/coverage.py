"""Coverage of 95 % intervals and type I error of tests: ``python -m benchmarks.coverage``.

Each row simulates studies of which the truth is known. An interval's row has the share that
holds the truth, their mean width, and how often there was none, with a reason; a test's the share
of rejections at .05 where nothing differs, and where something does, and how often there was no
p, or one with a note that this study's data are too few for it.

It runs in parts: ``--part`` names one or more (all by default), ``--trials`` how many studies a
row (by default each part's own: 2,000 where a study is cheap), ``--minutes`` when to stop. Rows
are kept in ``--rows FILE`` as they are done, each with the source it was run on, and a later run
goes on from there; ``--table`` prints what is kept.
"""

import argparse
import json
import os
import sys
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from time import monotonic

import django
import numpy as np

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from benchmarks.commands import run_git, source  # noqa: E402
from benchmarks.interval_cases.agreement import agreement_intervals  # noqa: E402
from benchmarks.interval_cases.cases import IntervalCase, TestCase  # noqa: E402
from benchmarks.interval_cases.correlations import (  # noqa: E402
    correlation_intervals,
    metric_tests,
    report_intervals,
    report_tests,
)
from benchmarks.interval_cases.crowds import crowd_intervals, crowd_tests  # noqa: E402
from benchmarks.interval_cases.judges import judge_intervals, judge_tests, powered_intervals  # noqa: E402
from benchmarks.interval_cases.means import family_tests, mean_intervals, mean_tests  # noqa: E402
from benchmarks.interval_cases.rankings import pool_intervals, ranking_intervals, topic_intervals  # noqa: E402
from benchmarks.interval_cases.switching import (  # noqa: E402
    outcome_intervals,
    outcome_tests,
    switching_intervals,
    switching_tests,
)

ROWS = Path(__file__).with_name("coverage_rows.jsonl")
INTERVALS = (
    *agreement_intervals(),
    *correlation_intervals(),
    *report_intervals(),
    *powered_intervals(),
    *mean_intervals(),
    *crowd_intervals(),
    *judge_intervals(),
    *topic_intervals(),
    *pool_intervals(),
    *ranking_intervals(),
    *switching_intervals(),
    *outcome_intervals(),
)
TESTS = (
    *mean_tests(), *crowd_tests(), *family_tests(), *metric_tests(), *report_tests(),
    *judge_tests(), *switching_tests(), *outcome_tests(),
)  # fmt: skip
# Studies a row where 2,000 would take too long.
TRIALS = {
    "kappa": 300, "kappa_clusters": 400, "alpha": 1000, "correlation": 400,
    "correlation_of_many_cells": 100,
    "new_systems": 200, "ceilings": 200, "metrics": 200, "metrics_drawn": 100,
    "preferences": 300, "alt_test": 300, "agreement_of_many": 1000, "powered_quantiles": 300,
    "powered_correlations": 1000, "pool_bias": 500, "rankings": 400, "switching": 200,
    "outcomes": 1000, "equal_systems": 400, "crowd_ratings": 4000, "crowd_ordinal": 4000,
    "crowd_preferences": 4000, "crowd_powered": 4000,
}  # fmt: skip

LEAST_COVERAGE, LEAST_MEAN, MOST_REJECTED = 0.92, 0.94, 0.07
# Where more studies have no interval than have one, those that have are not a random part.
MOSTLY_REFUSED = 0.5


@dataclass(frozen=True)
class Row:
    """A row of a table: `first` and `second` are coverage and width, or type I error and power."""

    kind: str
    part: str
    setting: str
    first: float
    second: float
    none: float
    trials: int
    seed: int
    source: str
    noted: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        return self.kind, self.part, self.setting

    @property
    def error(self) -> float:
        """The standard error of a share that is as it should be."""
        target = 0.95 if self.kind == "interval" else 0.05
        return float(np.sqrt(target * (1 - target) / self.trials))

    def line(self) -> str:
        cells = [self.part, self.setting, *(_cell(value) for value in (self.first, self.second))]
        cells += [f"{self.none:.2f}", str(self.trials), self.noted]
        return "| " + " | ".join(cells) + " |\n"

    @property
    def counts(self) -> bool:
        """Whether the row is of sizes at which the product says what it says without a note."""
        return not self.noted and self.none <= MOSTLY_REFUSED


def require_published() -> None:
    named = source()
    if named == "unknown" or named.endswith("-dirty"):
        sys.exit(f"The source is {named}: commit what was changed, so that rows can name it.")
    for branch in ("origin/main", "main"):
        if run_git("rev-parse", "--verify", "--quiet", branch):
            if run_git("rev-list", "-1", named, f"^{branch}"):
                sys.exit(
                    f"{named} is not on {branch}: bring it there first, since a row names the "
                    "source that others can run again."
                )
            return


def interval_row(case: IntervalCase, trials: int, seed: int) -> Row:
    rng = _rng(case.part, case.setting, seed)
    held, widths = [], []
    for _ in range(trials):
        low, high, truth = case.draw(rng)
        if not np.isnan(low):
            held.append(low - 1e-9 <= truth <= high + 1e-9)
            widths.append(high - low)
    share, width = (float(np.mean(x)) if x else float("nan") for x in (held, widths))
    none = 1 - len(held) / trials
    return Row(
        "interval", case.part, case.setting, share, width, none, trials, seed, source(), case.noted
    )


def test_row(case: TestCase, trials: int, seed: int) -> Row:
    rng = _rng(case.part, case.setting, seed)
    drawn = [np.array([case.draw(rng, how) for _ in range(trials)]) for how in (False, True)]
    known = [p[~np.isnan(p)] for p in drawn]
    shares = [float((p < 0.05).mean()) if len(p) else float("nan") for p in known]
    none = 1 - len(known[0]) / trials
    return Row("test", case.part, case.setting, *shares, none, trials, seed, source(), case.noted)


def stored_rows(path: Path) -> dict[tuple[str, str, str], Row]:
    if not path.exists():
        return {}
    rows = [Row(**json.loads(line)) for line in path.read_text().splitlines()]
    return {row.key: row for row in rows}


def computed_rows(
    parts: list[str], trials: int | None, seed: int, known: dict[tuple[str, str, str], Row]
) -> Iterator[Row]:
    """The rows that are not known with as many trials; each depends on its name and seed only."""
    for kind, cases, compute in (
        ("interval", INTERVALS, interval_row),
        ("test", TESTS, test_row),
    ):
        for case in cases:
            wanted = trials or TRIALS.get(case.part, 2000)
            kept = known.get((kind, case.part, case.setting))
            is_known = kept is not None and kept.trials >= wanted and kept.seed == seed
            if case.part in parts and not is_known:
                yield compute(case, wanted, seed)  # type: ignore[arg-type]


def tables(rows: list[Row]) -> Iterator[str]:
    for kind, head in (
        ("interval", "| interval | setting | coverage | mean width | none | studies | noted |\n"),
        ("test", "| test | setting | type I error | power | none | studies | noted |\n"),
    ):
        of_kind = [row for row in rows if row.kind == kind]
        if of_kind:
            yield "\n" + head + "|---" * (head.count("|") - 1) + "|\n"
            yield from (row.line() for row in of_kind)
    yield from _verdict([row for row in rows if row.counts])


def _verdict(rows: list[Row]) -> Iterator[str]:
    covered = [row for row in rows if row.kind == "interval"]
    tests = [row for row in rows if row.kind == "test"]
    if covered:
        mean = float(np.mean([row.first for row in covered]))
        low = [row for row in covered if row.first < LEAST_COVERAGE]
        yield f"\n{len(covered)} intervals without a note cover {mean:.3f} on average"
        yield f" ({LEAST_MEAN} wanted); below {LEAST_COVERAGE}: {_named(low)}.\n"
    if tests:
        high = [row for row in tests if row.first > MOST_REJECTED]
        yield f"{len(tests)} tests without a note; type I error above {MOST_REJECTED}: "
        yield f"{_named(high)}.\n"
    sources = sorted({row.source for row in rows})
    if sources:
        yield f"Source: {', '.join(sources)}.\n"


def _named(rows: list[Row]) -> str:
    return "; ".join(f"{row.part} {row.setting} ({row.first:.3f})" for row in rows) or "none"


def _cell(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.3f}"


def _rng(part: str, setting: str, seed: int) -> np.random.Generator:
    return np.random.default_rng([seed, zlib.crc32(f"{part} {setting}".encode())])


def main() -> None:
    known_parts = list(dict.fromkeys(case.part for case in [*INTERVALS, *TESTS]))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", action="append", choices=known_parts)
    parser.add_argument("--trials", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--rows", type=Path, default=ROWS)
    parser.add_argument("--table", action="store_true", help="print the rows kept, compute none")
    options = parser.parse_args()
    parts, kept = options.part or known_parts, stored_rows(options.rows)
    until = monotonic() + 60 * options.minutes
    if not options.table:
        require_published()
        for row in computed_rows(parts, options.trials, options.seed, kept):
            kept[row.key] = row
            with options.rows.open("a") as file:
                file.write(json.dumps(asdict(row)) + "\n")
            sys.stderr.write(row.line())
            if monotonic() > until:
                break
    order = {("interval", c.part, c.setting): n for n, c in enumerate(INTERVALS)}
    order |= {("test", c.part, c.setting): n for n, c in enumerate(TESTS)}
    rows = [row for row in kept.values() if row.part in parts and row.key in order]
    for text in tables(sorted(rows, key=lambda row: order[row.key])):
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
