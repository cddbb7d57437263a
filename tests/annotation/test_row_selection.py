"""`--where` and several `--item` columns of the commands that read plain tables."""

import csv
import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from annotation.exceptions import TableRefused
from tests.codes import refused, refused_naming

HEADER = ["item", "candidate", "question", "annotator", "value"]
ROWS = [
    [item, candidate, question, annotator, value]
    for question, scale in (("style", 1), ("=sense", 10))
    for item, candidate, values in (
        ("d0", "alpha", (1, 2)),
        ("d0", "beta", (5, 4)),
        ("d1", "alpha", (2, 2)),
        ("d1", "beta", (3, 5)),
    )
    for annotator, value in zip(("ann", "bob"), (scale * v for v in values), strict=True)
]
NAMED = ("--annotator", "annotator", "--value", "value")
BOTH = ("--item", "item", "--item", "candidate")


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "judgments.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([HEADER, *ROWS])
    return str(path)


def run(command, *arguments):
    out = StringIO()
    call_command(command, *arguments, "--json", stdout=out)
    return json.loads(out.getvalue())


def means(path, *options):
    return run("aggregate", path, *NAMED, "--method", "mean", *options)["labels"]


def test_rows_are_chosen_by_values_and_units_named_by_columns(path):
    labels = means(path, *BOTH, "--where", "question=style")
    assert labels == {"d0 | alpha": 1.5, "d0 | beta": 4.5, "d1 | alpha": 2, "d1 | beta": 4}
    # A value may hold an equals sign.
    assert means(path, *BOTH, "--where", "question==sense")["d1 | beta"] == 40
    # Of several columns all must fit, and of one column any value.
    chosen = ("--where", "candidate=alpha", "--where", "question=style")
    assert means(path, "--item", "item", *chosen) == {"d0": 1.5, "d1": 2}
    either = ("--where", "question=style", "--where", "question==sense")
    assert len(means(path, *BOTH, "--item", "question", *either)) == 8


def test_agreement_is_that_of_the_chosen_rows(path, tmp_path):
    level = ("--level", "interval")
    record = run("agreement", path, *BOTH, *NAMED, *level, "--where", "question=style")
    alone = tmp_path / "alone.csv"
    with alone.open("w", newline="") as file:
        rows = [[f"{row[0]}/{row[1]}", row[3], row[4]] for row in ROWS if row[2] == "style"]
        csv.writer(file).writerows([["item", "annotator", "value"], *rows])
    expected = run("agreement", str(alone), "--item", "item", *NAMED, *level)
    assert (record.pop("reading")["n_used"], expected.pop("reading")["n_used"]) == (8, 8)
    assert record == expected
    assert (record["n_items"], record["n_judgments"]) == (4, 8)


def test_a_selection_that_does_not_fit_is_refused(path, tmp_path):
    with refused(TableRefused, "repeated_label", line=4) as caught:
        means(path, "--item", "item", "--where", "question=style")
    assert all(named in str(caught.value) for named in ("'d0'", "line 2", "--item", "--where"))
    with refused(TableRefused, "unknown_value", field="question") as caught:
        means(path, *BOTH, "--where", "question=styel")
    assert all(named in str(caught.value) for named in ("'styel'", "'=sense', 'style'"))
    with refused(TableRefused, "missing_columns") as caught:
        means(path, *BOTH, "--where", "round=1")
    assert "round" in str(caught.value)
    for where in ("question", "=style", ""):
        with refused_naming(CommandError, "--where", f"'{where}'"):
            means(path, *BOTH, "--where", where)
    labels = tmp_path / "labels.csv"
    labels.write_text("a,b,annotator,value\nx | y,z,ann,1\nx,y | z,ann,2\n")
    with refused(TableRefused, "ambiguous_unit", line=3):
        means(str(labels), "--item", "a", "--item", "b")


def test_a_table_with_metrics_is_chosen_from_as_well(tmp_path):
    path = tmp_path / "table.csv"
    header = ["study", "item", "system", "question", "human", "bleu"]
    rows = [
        [study, item, system, question, human * scale, bleu]
        for question, scale in (("style", 1), ("sense", -1))
        for study in ("s", "t")
        for item in ("d0", "d1")
        for system, human, bleu in (("a", 1, 0.1), ("b", 2, 0.2), ("c", 3, 0.4))
    ]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    options = ("--item", "study", "--item", "item", "--system", "system", "--human", "human")
    options += ("--metric", "bleu", "--level", "sample", "--coefficient", "spearman")
    for question, value in (("style", 1), ("sense", -1)):
        answer = run("correlate", str(path), *options, "--where", f"question={question}")
        (record,) = answer["correlations"]
        assert record["value"] == pytest.approx(value)
        assert record["n_groups"] == 4
    with refused_naming(TableRefused, "'wit'"):
        run("correlate", str(path), *options, "--where", "question=wit")
