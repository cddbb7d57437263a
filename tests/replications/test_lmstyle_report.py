"""The LMStyle Benchmark as a study: its validation report holds Table 1, and what it rests on."""

import json

import pandas as pd
import pytest

from annotation.imports import import_study
from metrics.stored_scores import write_scores
from replications.lmstyle import BATCH, QUESTION_OF, SCORES, read_batch
from validation.analysis import Settings
from validation.analysis.ceilings import NO_SECOND_RATING
from validation.study_validation import study_report

pytestmark = [pytest.mark.shared_data, pytest.mark.django_db]

SETTINGS = Settings(
    levels=("item",),
    coefficients=("pearson", "kendall"),
    n_resamples=100,
    questions_of=tuple((metric, (question,)) for metric, question in QUESTION_OF.items()),
)


@pytest.fixture
def folder(shared_data):
    return shared_data / "lmstyle"


@pytest.fixture
def report(folder):
    batch = read_batch(folder)
    study = import_study(
        draft=batch, path=folder / BATCH, slug="lmstyle", title="LMStyle Benchmark"
    ).study
    table = pd.read_csv(folder / SCORES, keep_default_na=False)
    table["input"] = table["input"].str.strip()
    rows = table.set_index(["dataset", "task", "input", "model"]).to_dict("index")
    scores = {
        (item.key, candidate.key): rows[
            (*item.key.split("-")[:2], item.context.strip(), candidate.key)
        ]
        for item in batch.items
        for candidate in item.candidates
    }
    for metric in QUESTION_OF:
        values = {key: float(row[metric]) for key, row in scores.items()}
        write_scores(study=study, metric=metric, signature=f"{metric}|v:1", values=values)
    return study_report(study, SETTINGS)


@pytest.mark.slow
def test_the_report_holds_table_1_and_says_what_moves_it(report, folder):
    known = json.loads((folder / "table1.json").read_text())
    cells = [row for row in report.correlations if row.scope == "condition"]
    assert len(cells) == 40
    for cell in cells:
        printed = known[f"published_{cell.coefficient}"][cell.metric]
        assert round(cell.value * 100, 1) == printed[known["columns"].index(cell.by)]
    moved = {
        one.coefficient: (one.base_value * 100, one.value * 100)
        for one in report.sensitivity
        if (one.metric, one.scope) == ("ChatGPT", "mean_of_conditions")
        and (one.setting, one.choice) == ("undefined", "zero")
    }
    assert [round(value, 1) for value in moved["pearson"]] == [23.1, 18.3]
    # Printed as 20.2: the paper's last column is the mean of its rounded ones.
    assert moved["kendall"] == pytest.approx((20.15, 16.0), abs=0.05)
    [overall] = [
        row
        for row in report.correlations
        if (row.metric, row.scope, row.coefficient) == ("ChatGPT", "mean_of_conditions", "pearson")
    ]
    assert (overall.n_groups, overall.n_items_of_one_score) == (397, 76)
    # In one more item it is people who tell nothing apart.
    assert overall.n_undefined == 77
    assert report.inputs.n_rejected > 0
    assert {one.reason for one in report.ceilings} == {NO_SECOND_RATING}
