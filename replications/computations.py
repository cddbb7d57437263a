"""What manifests compute from published data that have no module of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import nan
from pathlib import Path
from typing import Any

from django.utils.module_loading import import_string

from annotation.readers.tables import read_rows
from replications.published_data import DatasetIncomplete, Published
from retrieval.audit.collections import audit_collection
from retrieval.audit.records import UNEXPLAINED
from stats.aggregation import majority
from stats.correlation import Coefficient, Level, correlation_at_level
from stats.libraries import np, pd

# Names of the counts of `audit_collection`.
COUNTS = {
    "assessed": "targets assessed",
    "with_relevant": "targets with an alternative",
    "mean_relevant": "alternatives per target",
    "judged_per_topic": "judgments per target",
}


def correlations(
    *paths: Path,
    reader: str,
    pairs: Mapping[str, str],
    levels: Mapping[Level, Sequence[Coefficient]],
) -> Iterator[dict[str, Any]]:
    """Correlate the mean ratings of each question with the scores of its metric."""
    published = import_string(reader)(*paths)
    for question, metric in pairs.items():
        cells = _mean_ratings(published, question, metric)
        for level, coefficients in levels.items():
            for coefficient in coefficients:
                result = correlation_at_level(
                    cells["value"], cells["score"], level=level, coefficient=coefficient,
                    items=cells["item"], systems=cells["system"], n_resamples=0,
                )  # fmt: skip
                n = {"pooled": len(cells), "system": cells["system"].nunique()}
                yield {
                    "question": question,
                    "level": level,
                    "coefficient": coefficient,
                    "value": result.value,
                    "n": n.get(level, result.n_used),
                    "ratings_mean": float(cells["value"].mean()),
                }


def _mean_ratings(published: Published, question: str, metric: str) -> pd.DataFrame:
    """One row per candidate: its mean rating and its score, turned so that higher is better."""
    scores = next((each for each in published.scores if each.metric == metric), None)
    if scores is None:
        raise DatasetIncomplete(f"The data contain no scores of {metric}.")
    sign = 1 if scores.higher_is_better else -1
    systems = {
        (item.key, candidate.key): candidate.system
        for item in published.study.items
        for candidate in item.candidates
    }
    ratings = pd.DataFrame(
        [
            {"item": one.item, "candidate": judgment.candidate, "value": judgment.value}
            for one in published.study.submissions
            for judgment in one.judgments
            if judgment.question == question
        ]
    )
    means = ratings.groupby(["item", "candidate"], sort=False)["value"].mean().reset_index()
    keys = list(zip(means["item"], means["candidate"], strict=True))
    return means.assign(
        score=[sign * scores.values.get(key, nan) for key in keys],
        system=[systems[key] for key in keys],
    ).dropna(subset=["score"])


def judged_pools(*paths: Path, claims: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Count the judgments of a test collection, and how a printed count came about."""
    pools, *_others = paths
    audit = audit_collection(paths, claims={pools.name: claims})
    [audited] = [one for one in audit.files if one.path == pools]
    if not audited.claims:
        raise DatasetIncomplete(f"{pools} is not a table of judged pools.")
    for claim in audited.claims:
        explained = claim.explanation not in ("", UNEXPLAINED)
        yield {
            "quantity": COUNTS[claim.name],
            "statistic": "value",
            "value": claim.counted,
            "n": audited.n_rows,
            "as_printed": claim.claimed if explained else None,
            "reason": claim.explanation,
        }


def majority_accuracy(labels: Path, gold: Path) -> Iterator[dict[str, Any]]:
    """Percentage of gold labels that the majority label equals; a tie counts as one half."""
    known = {row.text("item"): row.text("gold") for row in read_rows(gold, ("item", "gold"))}
    rows = list(read_rows(labels, ("item", "annotator", "label")))
    columns = ([row.text(name) for row in rows] for name in ("item", "annotator", "label"))
    result = majority(*columns).labels
    result = result[result["item"].isin(known)]
    is_right = result["label"].to_numpy() == result["item"].map(known).to_numpy()
    points = np.where(result["tied"], 0.5, is_right)
    n_labels = int(result["n_labels"].median())
    yield {
        "label": f"majority of {n_labels}",
        "statistic": "accuracy",
        "value": 100 * float(points.mean()),
        "n": len(result),
    }
