"""The ready-made layout gives the LMStyle Benchmark's own tables, of a validation of its data."""

import json

import pandas as pd
import pytest

from replications.lmstyle import QUESTION_OF, SCORES, read_batch
from replications.lmstyle_tables import table_3
from validation.analysis import Settings, report_from_tables
from validation.documents.layouts import lmstyle_correlations, lmstyle_ratings
from validation.results import TableResults

pytestmark = pytest.mark.shared_data
SETTINGS = Settings(
    levels=("item",),
    coefficients=("pearson", "kendall"),
    n_resamples=0,
    n_permutations=1,
    n_splits=0,
    questions_of=tuple((metric, (question,)) for metric, question in QUESTION_OF.items()),
)


@pytest.fixture(scope="module")
def content():
    from tests.conftest import SHARED_DATA

    folder = SHARED_DATA / "lmstyle"
    if not folder.is_dir():
        pytest.skip(f"research data is not at {folder}")
    draft = read_batch(folder)
    contexts = {item.key: item.context.strip() for item in draft.items}
    judgments = pd.DataFrame(
        [
            {
                "question": judgment.question,
                "condition": submission.item.split("-")[1],
                "item": submission.item,
                "system": judgment.candidate,
                "annotator": submission.annotator,
                "value": judgment.value,
            }
            for submission in draft.submissions
            if submission.status == "approved"
            for judgment in submission.judgments
        ]
    )
    cells = judgments[["item", "system"]].drop_duplicates()
    parts = cells["item"].str.split("-", expand=True)
    joined = cells.assign(
        dataset=parts[0], task=parts[1], model=cells["system"], input=cells["item"].map(contexts)
    )
    table = pd.read_csv(folder / SCORES)
    table["input"] = table["input"].str.strip()
    scores = joined.merge(table, on=["dataset", "task", "model", "input"], how="left")
    long = scores.melt(["item", "system"], list(QUESTION_OF), "metric", "value")
    return folder, TableResults("lmstyle", report_from_tables(judgments, long, SETTINGS))


def test_its_first_table_has_the_forty_published_cells(content):
    folder, results = content
    known = json.loads((folder / "table1.json").read_text())
    layout = lmstyle_correlations(results)
    symbols = {"r": "published_pearson", "τ": "published_kendall"}
    cells = [
        (row[1], column, cell)
        for row in layout.rows
        for column, cell in zip(layout.columns[2:], row[2:], strict=True)
        if column.group != "Overall"
    ]
    assert len(cells) == 40
    for metric, column, cell in cells:
        printed = known[symbols[column.title]][metric]
        assert cell.text == f"{printed[known['columns'].index(column.group)]:.1f}"


def test_its_third_table_has_human_means(content):
    folder, results = content
    layout = lmstyle_ratings(results)
    titles = [column.title for column in layout.columns]
    known = {
        (cell["question"], cell["system"], cell["by"]): cell["value"] for cell in table_3(folder)
    }
    checked = 0
    for row in layout.rows:
        for title, cell in zip(titles[2:], row[2:], strict=True):
            if (row[0], row[1], title) in known:
                assert cell.value == pytest.approx(known[row[0], row[1], title])
                checked += 1
    assert checked == len(known)
