"""Precision and recall of quality flags by fault: ``python -m benchmarks.quality``.

Simulates studies (``--seeds``, 1,000 for the table of record) with careful annotators and one of
each fault, and prints how often each fault is flagged, how often each flag is right, and how often
careful annotators are flagged. ``--crowds`` names a folder of recorded crowds with gold
(``../shared/data/crowd``), of which ten items are taken as checks. The source's revision is
printed first. Takes about four minutes. ``--designs`` prints instead, over so many studies of each
design, how often honest annotators who differ are flagged, and how often random clickers and those
who answer by position are found, without checks.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.coverage import source
from benchmarks.quality_crowds import FAULTS, NAMES, simulated_study
from benchmarks.quality_designs import design_rows
from stats.quality import FLAGS, Evidence, annotator_flags

# Which flag is meant for which fault.
MEANT = {
    "random": "failed_checks",
    "straight_line": "straight_lines",
    "fast": "too_fast",
    "copy_paste": "copied_reasons",
    "machine_like": "machine_like",
    "colluding": "colluding",
    "late": "late_change",
}
CAREFUL = "careful"
N_CHECKS, DRAWS, LEAST_LABELS = 10, 20, 20
# How far a rating may be from the experts' mean, as a share of the scale, and whose answers count
# as careful: of the other items, not of the checks.
TOLERANCE, LEAST_CORRELATION, LEAST_ACCURACY = 0.4, 0.5, 0.65


def simulated_counts(n_seeds: int, first: int = 0, noise: float = 1.0) -> dict[str, Counter[str]]:
    """For careful annotators and each fault, how many have each flag, and how many there are."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for seed in range(first, first + n_seeds):
        study = simulated_study(seed, noise)
        flags = annotator_flags(study.evidence)
        checks = study.evidence.checks
        careful = checks[checks["annotator"].str.startswith(CAREFUL)]["is_failed"]
        counts[CAREFUL].update({"checks": len(careful), "failed": int(careful.sum())})
        by_name = flags.groupby("annotator")["flag"].agg(set).to_dict()
        for name in NAMES:
            found = by_name.get(name, set())
            counts[study.faults.get(name, CAREFUL)].update(
                [*found, "all", *(["any"] if found else [])]
            )
    return counts


def simulated_tables(counts: dict[str, Counter[str]]) -> Iterator[str]:
    yield "| fault | flag | recall of the flag | recall of any flag |\n|---|---|---|---|\n"
    for fault in FAULTS:
        hits = counts[fault]
        recall, by_any = hits[MEANT[fault]] / hits["all"], hits["any"] / hits["all"]
        yield f"| {fault} | {MEANT[fault]} | {recall:.3f} | {by_any:.3f} |\n"
    careful = counts[CAREFUL]
    share = careful["failed"] / careful["checks"]
    yield f"\nCareful annotators failed {share:.4f} of {careful['checks']:,} checks.\n"
    yield "\n| flag | precision | careful annotators flagged | share |\n|---|---|---|---|\n"
    for flag in (*FLAGS, "any"):
        n = sum(each[flag] for each in counts.values())
        precision = 1 - careful[flag] / n if n else np.nan
        share = careful[flag] / careful["all"]
        of = f"{careful[flag]} of {careful['all']:,}"
        yield f"| {flag} | {precision:.3f} | {of} | {share:.4f} |\n"


def recorded_rows(folder: Path) -> Iterator[str]:
    """How many annotators of recorded crowds are flagged who do well by the gold."""
    yield (
        "\n| crowd | annotators | careful by gold | careful flagged | others flagged | by flag |\n"
        "|---|---|---|---|---|---|\n"
    )
    for name in ("affect", "bluebirds", "rte"):
        labels = pd.read_csv(folder / name / "labels.csv", dtype={"item": str})
        gold = pd.read_csv(folder / name / "gold.csv", dtype={"item": str})
        yield _recorded_row(name, labels, gold.set_index("item")["gold"])


def _recorded_row(name: str, labels: pd.DataFrame, gold: pd.Series) -> str:
    labels = labels.assign(truth=labels["item"].map(gold))
    is_rating = name == "affect"
    low = labels["item"].str.startswith("valence") * -100.0 if is_rating else 0.0
    width = 100.0 - low if is_rating else 1.0
    labels = labels.assign(
        value=(labels["label"] - low) / width, right=(labels["truth"] - low) / width
    )
    # A headline is a page with its seven ratings; a picture or a pair of sentences one by itself.
    page = labels["item"].str.split(":").str[-1] if is_rating else labels["item"]
    labels = labels.assign(page=page, order=labels.groupby("annotator").cumcount())
    careful, flagged, n_people, by_flag = 0, Counter[bool](), 0, Counter[str]()
    for seed in range(DRAWS):
        rng = np.random.default_rng(seed)
        drawn = labels.sample(frac=1, random_state=rng).groupby("annotator").head(N_CHECKS)
        rest = labels.drop(drawn.index)
        is_careful = _careful(rest, is_rating)
        people = is_careful.index
        drawn, rest = (part[part["annotator"].isin(people)] for part in (drawn, rest))
        apart = (drawn["value"] - drawn["right"]).abs()
        checks = pd.DataFrame(
            {
                "annotator": drawn["annotator"],
                "check": drawn["item"],
                "is_failed": apart > (TOLERANCE if is_rating else 0.5),
            }
        )
        question = rest["item"].str.split(":").str[0] if is_rating else 0
        ratings = rest.assign(question=question, position=np.nan, is_compared=False)
        ratings = ratings.rename(columns={"item": "unit"})
        flags = annotator_flags(Evidence(checks=checks, ratings=ratings))
        by_flag.update(flags["flag"])
        careful, n_people = careful + int(is_careful.sum()), n_people + len(people)
        flagged.update(is_careful[name] for name in flags["annotator"].unique())
    others = n_people - careful
    parts = ", ".join(f"{flag} {n / DRAWS:.1f}" for flag, n in sorted(by_flag.items())) or "none"
    return (
        f"| {name} | {n_people // DRAWS} | {careful / DRAWS:.1f} | "
        f"{flagged[True] / max(careful, 1):.3f} | {flagged[False] / max(others, 1):.3f} | "
        f"{parts} |\n"
    )


def _careful(rest: pd.DataFrame, is_rating: bool) -> pd.Series:
    """Who of those with enough labels does well by the gold of what is no check."""
    groups = rest.groupby("annotator")
    enough = groups.size() >= LEAST_LABELS
    if is_rating:
        quality = groups[["value", "right"]].apply(lambda own: own["value"].corr(own["right"]))
        return (quality >= LEAST_CORRELATION)[enough]
    accuracy = groups[["value", "right"]].apply(lambda own: (own["value"] == own["right"]).mean())
    return (accuracy >= LEAST_ACCURACY)[enough]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--noise", type=float, default=1.0, help="times that of the model")
    parser.add_argument("--crowds", type=Path, help="a folder of recorded crowds with gold")
    parser.add_argument("--designs", type=int, default=0, help="studies of each design")
    options = parser.parse_args()
    if options.designs:
        sys.stdout.write(f"source {source()}, {options.designs:,} studies of each design\n")
        sys.stdout.writelines(design_rows(options.designs))
        return
    sys.stdout.write(f"source {source()}, {options.seeds:,} seeds from {options.first}")
    sys.stdout.write(f", noise times {options.noise:g}\n\n")
    counts = simulated_counts(options.seeds, options.first, options.noise)
    sys.stdout.writelines(simulated_tables(counts))
    if options.crowds:
        sys.stdout.writelines(recorded_rows(options.crowds))


if __name__ == "__main__":
    main()
