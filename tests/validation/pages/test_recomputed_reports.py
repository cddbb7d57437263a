"""Every kind of number in a report, computed again from the study's exports by pandas and scipy.

Nothing of `stats` or `validation` is asked for a value here: the functions below are the
formulas of the field, on judgments.csv and scores.csv as they are downloaded.
"""

import io
import json
import math

import numpy as np
import pandas as pd
import pytest
from django.test import Client
from django.urls import reverse
from scipy import stats

from accounts.models import User
from annotation.result_kinds.base import find_study_kind
from annotation.study_facts import AGREEMENT, REPORT, VALIDATION
from tests.console.sample_study import rated_sample

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]

COEFFICIENTS = {
    "pearson": lambda x, y: stats.pearsonr(x, y)[0],
    "spearman": lambda x, y: stats.spearmanr(x, y)[0],
    "kendall": lambda x, y: stats.kendalltau(x, y, variant="b")[0],
}


@pytest.fixture(scope="module")
def files(stored_for_module):
    owner = User.objects.create_user("rosa")
    study = rated_sample(owner)
    client = Client()
    client.force_login(owner)

    def read(page, name):
        answer = client.get(reverse(f"console:{page}", args=[study.slug, name]))
        assert answer.status_code == 200, name
        return b"".join(answer.streaming_content) if answer.streaming else answer.content

    for result in (AGREEMENT, VALIDATION, REPORT):
        find_study_kind(result).compute_now(study)
    return {
        "judgments": pd.read_csv(io.BytesIO(read("download", "judgments.csv"))),
        "scores": pd.read_csv(io.BytesIO(read("download", "scores.csv"))),
        "agreement": json.loads(read("download", "agreement.json")),
        "validation": json.loads(read("download", "validation.json")),
        "report": json.loads(read("report-file", "report.json")),
    }


def judged(files, question):
    frame = files["judgments"]
    return frame[(frame["question"] == question) & (frame["round"] == 1)]


def human(files, question):
    rows = judged(files, question)
    return rows.groupby(["item", "candidate", "system"], as_index=False)["value"].mean()


def alpha_of_intervals(rows):
    """Krippendorff's alpha for interval data: 1 - observed over expected disagreement, from the
    pairs of values within units and among all pairable values (Krippendorff 2011)."""
    units = [group["value"].to_numpy() for _, group in rows.groupby(["item", "candidate"])]
    units = [values for values in units if len(values) > 1]
    pairable = np.concatenate(units)
    n = len(pairable)

    def disagreement(values):
        return ((values[:, None] - values[None, :]) ** 2).sum()

    observed = sum(disagreement(values) / (len(values) - 1) for values in units) / n
    return 1 - observed / (disagreement(pairable) / (n * (n - 1)))


@pytest.mark.slow
def test_rejected_judgments_are_in_no_export(files):
    # 4 annotators, 11 of 12 items each, 4 candidates, 2 questions, less one rejected page.
    assert len(files["judgments"]) == (4 * 11 - 1) * 4 * 2


def test_ratings_of_systems_and_agreement(files):
    systems = files["report"]["rated_systems"]
    assert len(systems) == 8
    for row in systems:
        rows = judged(files, row["question"])
        values = rows.loc[rows["system"] == row["system"], "value"]
        assert row["mean"] == pytest.approx(values.mean(), rel=1e-9)
        assert row["n_ratings"] == len(values)
    pairs = files["report"]["rated_pairs"]
    assert len(pairs) == 12
    for row in pairs:
        rows = judged(files, row["question"])
        wide = rows.pivot(index=["item", "annotator"], columns="system", values="value")
        assert row["delta"] == pytest.approx((wide[row["a"]] - wide[row["b"]]).mean(), rel=1e-9)
    found = 0
    for row in files["agreement"]["coefficients"]:
        if row["name"] != "krippendorff_alpha" or row["by"]:
            continue
        rows = judged(files, row["question"])
        assert row["value"] == pytest.approx(alpha_of_intervals(rows), rel=1e-12)
        found += 1
    assert found >= 2
    shown = files["report"]["tables"]["agreement"]["rows"]
    for row in shown:
        rows = judged(files, row["Question"])
        assert row["Krippendorff's alpha"] == pytest.approx(alpha_of_intervals(rows), rel=1e-12)
    assert len(shown) == 2


def correlation(frame, level, coefficient):
    """At the level of systems' means, of candidates pooled, or the mean over items."""
    compute = COEFFICIENTS[coefficient]
    if level == "pooled":
        return compute(frame["human"], frame["score"])
    if level == "system":
        means = frame.groupby("system")[["human", "score"]].mean()
        return compute(means["human"], means["score"])
    values = [
        compute(group["human"], group["score"])
        for _, group in frame.groupby("item")
        if group["human"].nunique() > 1 and group["score"].nunique() > 1
    ]
    return float(np.mean(values))


@pytest.mark.slow
def test_correlations(files):
    rows = [row for row in files["validation"]["rows"] if not row["by"]]
    assert {row["level"] for row in rows} >= {"item", "system", "pooled"}
    compared = 0
    for row in rows:
        if row["value"] is None:
            assert row["reason"]
            continue
        scores = files["scores"]
        scores = scores[
            (scores["metric"] == row["metric"]) & (scores["signature"] == row["signature"])
        ]
        frame = human(files, row["question"]).rename(columns={"value": "human"})
        frame = frame.merge(
            scores[["item", "candidate", "value"]].rename(columns={"value": "score"}),
            on=["item", "candidate"],
        ).dropna()
        expected = correlation(frame, row["level"], row["coefficient"])
        if not row["higher_is_better"]:
            expected = -expected
        assert row["value"] == pytest.approx(expected, abs=1e-9), row
        assert math.isfinite(expected)
        compared += 1
    assert compared >= 5 * 2 * 3 * 3
