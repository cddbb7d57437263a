"""Precision and recall of quality flags by fault: ``python -m benchmarks.quality``.

Simulates studies (``--seeds``, 1,000 for the table of record) with careful annotators and one of
each fault, and prints how often each fault is flagged, how often each flag is right, and how often
careful annotators are flagged. ``--crowds`` names a folder of recorded crowds with gold
(``../shared/data/crowd``), of which ten items are taken as checks. The source's revision is
printed first. Takes about four minutes. ``--designs`` prints instead, over so many studies of each
design, how often honest annotators who differ are flagged, and how often random clickers and those
who answer by position are found, without checks.
"""

import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.commands import parse_options, source
from benchmarks.quality_crowds import FAULTS, NAMES, simulated_study
from stats.quality import FLAGS, Evidence, annotator_flags, band_failed

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
    groups = rest.groupby("annotator")
    enough = groups.size() >= LEAST_LABELS
    if is_rating:
        quality = groups[["value", "right"]].apply(lambda own: own["value"].corr(own["right"]))
        return (quality >= LEAST_CORRELATION)[enough]
    accuracy = groups[["value", "right"]].apply(lambda own: (own["value"] == own["right"]).mean())
    return (accuracy >= LEAST_ACCURACY)[enough]


def main() -> None:
    options = parse_options(
        __doc__,
        seeds=(1000, "studies"),
        first=(0, "the first seed"),
        noise=(1.0, "times that of the model"),
        crowds=(Path, "a folder of recorded crowds with gold"),
        designs=(0, "studies of each design"),
    )
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


HONEST = "honest"
RANDOM, FIRST = "random", "first"
FAULT_FLAGS = {RANDOM: "unrelated", FIRST: "position"}


@dataclass(frozen=True)
class Design:
    """A study: 12 annotators with 40 pages of four candidates each, three annotators per page."""

    # Of the rating scale; 2 for yes or no, 101 for a line, 0 if one candidate is preferred.
    points: int = 5
    n_annotators: int = 12
    # Of each annotator, unless `n_study_pages` is given.
    n_pages: int = 40
    n_study_pages: int = 0
    n_candidates: int = 4
    n_per_page: int = 3
    # Of each annotator, with a known answer.
    n_checks: int = 0
    # Of the ratings, in standard deviations of quality above the middle of the scale.
    center: float = 0.0
    # Standard deviation of an annotator's answers, between these, in those of quality.
    noise: tuple[float, float] = (0.5, 1.0)
    # So many annotators rate 1.5 standard deviations lower, or higher.
    n_severe: int = 0
    # So many annotators work on five pages only.
    n_few: int = 0
    n_words: tuple[int, int] = (120, 320)
    words_per_minute: tuple[float, float] = (160.0, 330.0)
    fault: str = RANDOM
    n_faulty: int = 0


DESIGNS: Mapping[str, Design] = {
    "five points": Design(),
    "five points, 5 checks each": Design(n_checks=5),
    "40 pages in all, 5 annotators each": Design(n_study_pages=40, n_per_page=5),
    "most ratings near the top": Design(center=1.5),
    "harsh and lenient raters, 4 of 12": Design(n_severe=4),
    "harsh and lenient, near the top": Design(center=1.5, n_severe=4),
    "few HITs, 4 of 12": Design(n_few=4),
    "fast readers, short texts": Design(n_words=(8, 40), words_per_minute=(350.0, 500.0)),
    "noisy": Design(noise=(1.0, 2.0)),
    "yes or no": Design(points=2),
    "line of 0-100": Design(points=101),
    "one candidate": Design(n_candidates=1, n_pages=80),
    "preferences, 2 candidates": Design(points=0, n_candidates=2),
    "preferences, 4 candidates": Design(points=0),
    "10 pages each": Design(n_pages=10),
}


def small_study(seed: int, design: Design) -> tuple[Evidence, list[int]]:
    rng = np.random.default_rng(seed)
    who, page = _assignments(rng, design)
    n, m = design.n_annotators, design.n_candidates
    n_pages = int(page.max()) + 1
    quality = rng.normal(0, 0.5, (n_pages, 1)) + rng.normal(0, 1, (n_pages, m))
    severity = rng.normal(0, 0.4, n)
    severity[: design.n_severe] += np.tile([-1.5, 1.5], n)[: design.n_severe]
    noise = rng.uniform(*design.noise, n)
    faulty = list(range(n // 2 - design.n_faulty // 2, n // 2 + (design.n_faulty + 1) // 2))
    position = rng.random((len(who), m)).argsort(axis=1)
    felt = quality[page] + noise[who][:, None] * rng.normal(size=(len(who), m))
    values = _answers(felt + design.center + severity[who][:, None], design.points)
    is_faulty = np.isin(who, faulty)
    clicks = 1.0 - position
    if design.fault == RANDOM:
        clicks = rng.random(values.shape)
        if design.points:
            clicks = rng.integers(0, design.points, values.shape) / (design.points - 1)
    elif design.points:
        clicks = _answers(clicks, design.points)
    values[is_faulty] = (clicks if design.points else _answers(clicks, 0))[is_faulty]
    return _evidence(rng, design, who, page, values, position, is_faulty), faulty


def _assignments(rng: np.random.Generator, design: Design) -> tuple[np.ndarray, np.ndarray]:
    n = design.n_annotators
    n_pages = design.n_study_pages or n * design.n_pages // design.n_per_page
    n_slots = n_pages * design.n_per_page
    who = np.concatenate([rng.permutation(n) for _ in range(n_slots // n + 1)])[:n_slots]
    page = np.repeat(np.arange(n_pages), design.n_per_page)
    _, first = np.unique(who * n_pages + page, return_index=True)
    first.sort()
    who, page = who[first], page[first]
    turn = pd.Series(who).groupby(who).cumcount().to_numpy()
    kept = (who < n - design.n_few) | (turn < 5)
    return who[kept], page[kept]


def _answers(felt: np.ndarray, points: int) -> np.ndarray:
    if not points:
        return (felt == felt.max(axis=1, keepdims=True)).astype(float)
    step = 4.0 / max(points - 1, 4)
    return np.clip(np.round(felt / step + (points - 1) / 2), 0, points - 1) / (points - 1)


def _evidence(
    rng: np.random.Generator,
    design: Design,
    who: np.ndarray,
    page: np.ndarray,
    values: np.ndarray,
    position: np.ndarray,
    is_faulty: np.ndarray,
) -> Evidence:
    m = design.n_candidates
    turn = pd.Series(who).groupby(who).cumcount().to_numpy()
    repeated = {"annotator": who, "page": page, "order": turn}
    ratings = pd.DataFrame({name: np.repeat(each, m) for name, each in repeated.items()})
    ratings = ratings.assign(
        question=0,
        unit=(page[:, None] * m + np.arange(m)).ravel(),
        value=values.ravel(),
        position=position.ravel().astype(float),
        is_compared=not design.points,
    )
    pace = rng.uniform(*design.words_per_minute, design.n_annotators)[who]
    words = rng.integers(*design.n_words, int(page.max()) + 1)[page]
    seconds = 60 * words / pace * rng.lognormal(0, 0.2, len(who)) + m * rng.lognormal(0, 0.3)
    pages = pd.DataFrame({"annotator": who, "page": page, "seconds": seconds, "words": words})
    return Evidence(
        checks=_checks(rng, design, np.unique(who[is_faulty])), ratings=ratings, pages=pages
    )


def _checks(rng: np.random.Generator, design: Design, faulty: np.ndarray) -> pd.DataFrame:
    people, check = np.indices((design.n_annotators, design.n_checks))
    known = np.where(check % 2, 90.0, 10.0)
    lapses = rng.random(known.shape) < 0.03
    given = np.clip(known + rng.normal(0, 9, known.shape), 0, 100)
    given = np.where(lapses | np.isin(people, faulty), rng.uniform(0, 100, known.shape), given)
    failed = [
        band_failed(one, right, 25) for one, right in zip(given.ravel(), known.ravel(), strict=True)
    ]
    return pd.DataFrame({"annotator": people.ravel(), "check": check.ravel(), "is_failed": failed})


def flag_counts(design: Design, n_seeds: int, first: int = 0) -> dict[str, Counter[str]]:
    counts: dict[str, Counter[str]] = {HONEST: Counter(), design.fault: Counter()}
    for seed in range(first, first + n_seeds):
        evidence, faulty = small_study(seed, design)
        flags = annotator_flags(evidence)
        counts[design.fault]["all"] += len(faulty)
        counts[HONEST]["all"] += design.n_annotators - len(faulty)
        for annotator, flag in zip(flags["annotator"], flags["flag"], strict=True):
            counts[design.fault if annotator in faulty else HONEST][flag] += 1
    return counts


def design_rows(n_seeds: int) -> Iterator[str]:
    titles = ["design", "honest flagged, most often by", "2 random", "6 random", "2 by position"]
    yield f"\n| {' | '.join(titles)} |\n|{'---|' * len(titles)}\n"
    for name, design in DESIGNS.items():
        honest = flag_counts(design, n_seeds)[HONEST]
        worst = max(FLAGS, key=lambda flag: honest[flag])
        cells = [name, f"{honest[worst] / honest['all']:.4f} {worst if honest[worst] else ''}"]
        cells += [
            f"{found_share(replace(design, fault=fault, n_faulty=n), n_seeds):.3f}"
            for fault, n in ((RANDOM, 2), (RANDOM, 6), (FIRST, 2))
        ]
        yield f"| {' | '.join(cells)} |\n"


def found_share(design: Design, n_seeds: int, first: int = 0) -> float:
    counts = flag_counts(design, n_seeds, first)[design.fault]
    return counts[FAULT_FLAGS[design.fault]] / counts["all"]


if __name__ == "__main__":
    main()
