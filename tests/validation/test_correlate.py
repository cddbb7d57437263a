import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.core.management import CommandError

from annotation.exceptions import TableRefused
from metrics.exceptions import ColumnsUnfit
from stats.correlation import correlation_at_level
from stats.significance import compare_metrics
from tests.annotation.importing import command_output
from tests.codes import refused, refused_naming
from tests.validation.validation_tables import written
from validation.plain_table import COEFFICIENTS

ROOT = Path(__file__).resolve().parents[2]
NAMED = ("--human=human", "--metric=a", "--item=item", "--system=system")
FIELDS = {"by", "metric", "level", "coefficient", "value", "ci_low", "ci_high"}
FIELDS |= {"n_groups", "n_used", "reason"}
Write = Callable[..., Path]


def table(n_items: int = 12, n_systems: int = 4, seed: int = 0) -> list[dict[str, Any]]:
    rng, noises = np.random.default_rng(seed), (("a", 1.0), ("b", 3.0))
    rows = []
    for item in range(n_items):
        for system in range(n_systems):
            value = int(rng.integers(1, 6)) + system
            scores = {name: round(value + rng.normal(0, noise), 2) for name, noise in noises}
            style = "formal" if item % 2 else "informal"
            rows.append({"item": item, "system": system, "style": style, "human": value, **scores})
    return rows


def correlated(path: Path, *options: str, named: tuple[str, ...] = NAMED) -> dict[str, Any]:
    output = command_output("correlate", path, *named, "--json", "--resamples=50", *options)
    records = json.loads(output)
    del records["reading"]
    return records


def columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    return {"items": [row["item"] for row in rows], "systems": [row["system"] for row in rows]}


def at_level(rows: list[dict[str, Any]], **options: Any) -> Any:
    human, scores = ([row[name] for row in rows] for name in ("human", "a"))
    return correlation_at_level(human, scores, **columns(rows), **options)


def compared(rows: list[dict[str, Any]], **options: Any) -> Any:
    scores = {name: [cell[name] for cell in rows] for name in "ab"}
    human = [cell["human"] for cell in rows]
    return compare_metrics(human, scores, n_permutations=99, **columns(rows), **options).iloc[0]


def test_without_a_level_every_level_and_coefficient_is_reported(tmp_path):
    records = correlated(written(tmp_path / "t.csv", table()))
    assert set(records) == {"correlations", "comparisons"}
    assert records["comparisons"] == []
    measures = [(row["level"], row["coefficient"]) for row in records["correlations"]]
    assert measures == [
        (level, coefficient)
        for level in ("sample", "system", "pooled")
        for coefficient in COEFFICIENTS
        if coefficient != "spa" or level == "system"
    ]
    assert all(set(row) >= FIELDS and row["by"] == "" for row in records["correlations"])


@pytest.mark.parametrize(("level", "own"), [("sample", "item"), ("system",) * 2, ("pooled",) * 2])
def test_the_numbers_are_those_of_stats(tmp_path, level, own):
    rows = table()
    records = correlated(written(tmp_path / "t.csv", rows), f"--level={level}", "--resample=both")
    for row in records["correlations"]:
        measure = {"level": own, "coefficient": row["coefficient"]}
        expected = at_level(rows, **measure, resample="both", n_resamples=50)
        assert [row["value"], row["ci_low"], row["ci_high"]] == pytest.approx(
            [expected.value, expected.ci_low, expected.ci_high]
        )


def test_by_gives_the_whole_and_each_part(tmp_path):
    rows = table()
    options = ("--by=style", "--level=sample", "--coefficient=kendall")
    correlations = correlated(written(tmp_path / "t.csv", rows), *options)["correlations"]
    assert [row["by"] for row in correlations] == ["", "informal", "formal"]
    assert [row["n_groups"] for row in correlations] == [12, 6, 6]
    # An item of one part is not that of another.
    halves = [row | {"item": row["item"] // 2} for row in rows]
    whole, *_ = correlated(written(tmp_path / "h.csv", halves), *options)["correlations"]
    assert whole["n_groups"] == 12
    part = [row for row in rows if row["style"] == "formal"]
    expected = at_level(part, level="item", coefficient="kendall", n_resamples=0)
    assert correlations[2]["value"] == pytest.approx(expected.value)


def test_metrics_are_compared_and_items_swapped_where_asked(tmp_path):
    rows = table()
    named = (*NAMED, "--metric=b")
    path = written(tmp_path / "t.csv", rows)
    by_name = ("--compare", "--permutations=99", "--permute=both", "--williams")
    comparisons = correlated(path, *by_name, "--resamples=99", named=named)["comparisons"]
    assert {(row["metric_a"], row["metric_b"]) for row in comparisons} == {("a", "b")}
    tests = {(row["level"], row["coefficient"], row["test"]) for row in comparisons}
    assert {("pooled", "pearson", "williams"), ("pooled", "pearson", "perm_both")} <= tests
    assert {("system", "spa", "perm_both"), ("sample", "acc_star", "perm_both")} <= tests
    assert ("sample", "pearson", "williams") not in tests
    assert ("sample", "kendall", "bootstrap_items") in tests
    assert ("sample", "kendall", "bootstrap_both") in tests
    measure = ("sample", "kendall", "perm_both")
    row = next(r for r in comparisons if (r["level"], r["coefficient"], r["test"]) == measure)
    expected = compared(rows, level="item", coefficient="kendall")
    assert row["delta"] == pytest.approx(expected["delta"])
    assert (row["p"], row["p_holm"]) == (expected["p"], expected["p_holm"])
    options = ("--level=pooled", "--coefficient=pearson", "--compare", "--permutations=99")
    swaps = ("--permute=both", "--permute=items", "--williams") * 2  # named twice, done once
    comparisons = correlated(path, *options, *swaps, named=(*NAMED, "--metric=b"))["comparisons"]
    tests = ["bootstrap_items", "bootstrap_both", "williams", "perm_both", "perm_items"]
    assert [row["test"] for row in comparisons] == tests
    expected = compared(rows, level="pooled", coefficient="pearson", test="perm_items")
    assert comparisons[-1]["p"] == expected["p"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "lines",
    [
        ["1,x,2,0.5,1"],
        ["1,x,2,0.5,1", "2,x,3,0.1,4", "3,x,1,0.2,2"],
        ["1,x,2,0.5,1", "1,y,3,0.1,4", "1,z,1,0.2,2"],
        ["1,x,2,7,1", "1,y,3,7,4", "2,x,1,7,2", "2,y,2,7,1"],
        ["1,x,2,7,1", "1,y,2,7,4", "2,x,2,8,2", "2,y,2,9,1"],
        ["1,x,2,,1", "1,y,3,,4", "2,x,1,,2", "2,y,2,,1"],
        ["1,x,,1,1", "1,y,,2,4"],
    ],
    ids=["cell", "system", "item", "constant metric", "constant human", "no score", "no human"],
)
@pytest.mark.parametrize(
    ("undefined", "resample"), [("drop", "both"), ("zero", "items"), ("nan", "systems")]
)
def test_a_table_of_almost_nothing_is_reported_with_reasons(write, lines, undefined, resample):
    path = write("item,system,human,a,b", *lines)
    rules = (f"--undefined={undefined}", f"--resample={resample}", "--compare", "--permutations=5")
    swaps = [f"--permute={swap}" for swap in ("both", "items", "systems")]
    records = correlated(path, *rules, *swaps, "--resamples=9", named=(*NAMED, "--metric=b"))
    assert records["comparisons"]
    for row in records["correlations"]:
        assert (row["value"] is None) == (row["reason"] is not None)
    for row in records["comparisons"]:
        assert (row["p"] is None) == (row["reason"] is not None)


def test_several_rows_are_several_annotators_and_a_metric_better_lower_is_turned_round(tmp_path):
    rows = table()
    twice = [row | {"human": row["human"] + shift} for shift in (-0.5, 0.5) for row in rows]
    once = correlated(written(tmp_path / "once.csv", rows))
    assert correlated(written(tmp_path / "twice.csv", twice)) == once
    path = written(tmp_path / "t.csv", table())
    options = ("--level=pooled", "--coefficient=pearson")
    up = correlated(path, *options)["correlations"][0]
    down = correlated(path, *options, "--lower-is-better=a")["correlations"][0]
    assert down["value"] == pytest.approx(-up["value"])


def test_missing_cells_are_counted_and_undefined_numbers_have_a_reason(write):
    path = write("item,system,human,a", "1,x,2,0.5", "1,y,,0.1", "1,z,3,", "1,w,4,0.9")
    row = correlated(path, "--level=pooled", "--coefficient=pearson")["correlations"][0]
    assert (row["n_missing"], row["n_rows"], row["value"]) == (2, 2, pytest.approx(1))
    path = write("item,system,human,a", "1,x,2,7", "1,y,1,7", "2,x,1,7", "2,y,3,7")
    rows = correlated(path, "--coefficient=kendall")["correlations"]
    assert [row["value"] for row in rows] == [None] * 3
    assert [row["ci_low"] for row in rows] == [None] * 3
    reasons = [row["reason"] for row in rows]
    assert reasons == ["no_defined_item", "constant_metric", "constant_metric"]
    zeroed = correlated(path, "--coefficient=kendall", "--undefined=zero")["correlations"]
    assert [(row["value"], row["undefined"]) for row in zeroed] == [(0, "zero")] * 3


@pytest.mark.parametrize("resample", ["items", "systems", "both"])
@pytest.mark.parametrize("column", ["human", "a"])
def test_an_item_without_a_value_is_left_out_with_a_note(write, column, resample):
    gap = [row | {column: ""} if row["item"] == 3 else row for row in table(n_items=4, n_systems=3)]
    lines = [",".join(str(row[name]) for name in ("item", "system", "human", "a")) for row in gap]
    path = write("item,system,human,a", *lines)
    options = (f"--resample={resample}", "--compare")
    records = correlated(path, *options)["correlations"]
    text = command_output("correlate", path, *NAMED, *options)
    assert {(row["n_empty_items"], row["n_items"], row["n_missing"]) for row in records} == {
        (1, 3, 3)
    }
    whole = correlated(write("item,system,human,a", *lines[:9]), *options)["correlations"]
    numbers = ("coefficient", "value", "ci_low", "ci_high", "n_units")
    assert [[row[name] for name in numbers] for row in records] == [
        [row[name] for name in numbers] for row in whole
    ]
    notes = set(records[0]["notes"]) - set(whole[0]["notes"])
    assert len(notes) == 1
    assert notes.pop() in text


def test_there_is_a_table_to_read_and_what_it_lacks_or_does_not_fit_is_refused(write):
    path = write("item,system,human,a,b", "1,x,2,7,1", "1,y,1,7,0", "2,x,1,7,2", "2,y,3,7,4")
    options = ("--metric=b", "--level=sample", "--coefficient=kendall", "--compare")
    lines = command_output("correlate", path, *NAMED, *options).split("\nRead 4 ")[0].splitlines()
    assert lines[0].split()[:5] == ["by", "metric", "level", "coefficient", "value"]
    assert "no_defined_item" in lines[1]
    assert "1.000" in lines[2]
    assert "2/2" in lines[2]
    comparisons = [line.split() for line in lines if " a - b " in line]
    assert {cells.count("–") for cells in comparisons} == {4}
    assert all(cells[-1] == "undefined_correlation" for cells in comparisons)
    for lines, line, field in (
        (["item,system,human", "1,x,2"], 1, None),
        (["item,system,human,a", "1,x,good,1"], 2, "human"),
        (["item,system,human,a", "1,x,1,1", ",x,1,1"], 3, "item"),
        (["item,system,human,a"], None, None),
        (["item,system,human,a", "1,x,2,0.5", "1,y,2,0.1", "1,x,3,0.7"], 4, "a"),
        (["item,system,c,human,a", "1,x,p,2,0.5", "1,y,q,2,0.1"], 3, "c"),
    ):
        cluster = ["--cluster=c"] if ",c," in lines[0] else []
        with refused(TableRefused, line=line, field=field):
            command_output("correlate", write(*lines), *NAMED, *cluster)
    path = write("item,system,human,a", "1,x,1,1")
    with refused(ColumnsUnfit, "column_twice"):
        command_output("correlate", path, *NAMED, "--metric=a")
    with refused(ColumnsUnfit, "metric_unknown"):
        correlated(path, "--lower-is-better=c")
    for option in ("--resamples", "--permutations"):
        with refused_naming(CommandError, option, "100,000"):
            command_output("correlate", path, *NAMED, f"{option}=1000000000000")


def biased_metrics() -> list[dict[str, Any]]:
    """Two metrics that each favour systems of their own: on other systems either may win."""
    rng = np.random.default_rng(1)
    quality, bias = rng.normal(size=8), rng.normal(size=(2, 8))
    human = quality + rng.normal(size=(40, 8))
    a, b = (quality + favour + rng.normal(size=(40, 8)) for favour in bias)
    return [
        {"item": i, "system": s, "human": human[i, s], "a": a[i, s], "b": b[i, s]}
        for i, s in np.ndindex(40, 8)
    ]


def test_what_is_resampled_reaches_the_comparisons_and_clusters_widen_the_intervals(tmp_path):
    path = written(tmp_path / "t.csv", biased_metrics())
    options = ("--metric=b", "--level=system", "--coefficient=pearson", "--compare")
    rows = {}
    for resample in ("items", "systems", "both"):
        records = correlated(path, *options, f"--resample={resample}")["comparisons"]
        rows |= {row["test"]: row for row in records}
    assert {rows["bootstrap_items"]["estimand"], rows["bootstrap_both"]["estimand"]} == {
        "these systems",
        "new systems",
    }
    width = {name: row["ci_high"] - row["ci_low"] for name, row in rows.items()}
    assert width["bootstrap_both"] > 3 * width["bootstrap_items"]
    assert width["bootstrap_both"] >= 0.9 * width["bootstrap_systems"]
    # a two-way bootstrap by hand gives [-.63, .93]; the draws have a long tail
    both = rows["bootstrap_both"]
    assert both["ci_low"] < -0.4
    assert both["ci_high"] > 0.7
    for row in rows.values():
        assert (row["p"] < 0.05) == (not row["ci_low"] <= 0 <= row["ci_high"])
    rng = np.random.default_rng(3)
    rows = []
    for item in range(60):
        if item % 6 == 0:
            shared = rng.normal(size=(4, 2))
        cells = shared + 0.3 * rng.normal(size=(4, 2))
        rows += [
            {"item": item, "dialogue": item // 6, "system": s, "human": x, "a": y}
            for s, (x, y) in enumerate(cells.tolist())
        ]
    path = written(tmp_path / "t.csv", rows)
    for level in ("pooled", "sample", "system"):
        measure = (f"--level={level}", "--coefficient=pearson")
        [alone] = correlated(path, *measure)["correlations"]
        [clustered] = correlated(path, *measure, "--cluster=dialogue")["correlations"]
        assert clustered["value"] == alone["value"]
        widths = [row["ci_high"] - row["ci_low"] for row in (clustered, alone)]
        assert widths[0] > 1.2 * widths[1]


@pytest.mark.slow
def test_a_wrong_table_is_exit_code_2_without_a_traceback_or_a_database(write):
    path = write("item,system,human,a", "1,x,'bad',1")
    done = subprocess.run(
        [sys.executable, "manage.py", "correlate", str(path), *NAMED],
        cwd=ROOT,
        env={"PATH": "", "DATABASE_URL": "sqlite:////nonexistent/db.sqlite3"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "scores.csv" in done.stderr
    assert "'bad'" in done.stderr
    assert "Traceback" not in done.stderr


def test_soft_pairwise_accuracy_of_clustered_items_is_less_sure(tmp_path):
    rng = np.random.default_rng(8)
    rows = []
    for dialogue in range(12):
        shared = rng.normal(size=6)
        for turn in range(8):
            for system in range(6):
                human, metric = shared[system] + 0.3 * rng.normal(size=2)
                named = {"dialogue": dialogue, "item": f"{dialogue}-{turn}", "system": system}
                rows.append(named | {"human": round(human, 3), "a": round(metric, 3)})
    path = written(tmp_path / "dialogues.csv", rows)
    asked = (path, "--level=system", "--coefficient=spa", "--resamples=300")
    [alone] = correlated(*asked)["correlations"]
    [clustered] = correlated(*asked, "--cluster=dialogue")["correlations"]
    assert clustered["value"] == alone["value"]
    wider = clustered["ci_high"] - clustered["ci_low"]
    assert wider > 1.4 * (alone["ci_high"] - alone["ci_low"])
    assert len(clustered["notes"]) == 1


@pytest.mark.parametrize("resample", ["systems", "both"])
def test_of_three_systems_nothing_is_said_of_new_ones(tmp_path, resample):
    path = written(tmp_path / "three.csv", table(n_items=30, n_systems=3))
    asked = (f"--resample={resample}", "--resamples=50", "--coefficient=pearson")
    rows = correlated(path, *asked)["correlations"]
    assert [row["ci_low"] for row in rows] == [None] * 3
    assert {row["ci_reason"] for row in rows} == {"too_few_systems"}
    assert "too_few_systems" in command_output("correlate", path, *NAMED, *asked)
