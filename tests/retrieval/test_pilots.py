"""Topics against assessors at equal cost, and items that tell two metrics apart."""

import json
import tracemalloc
from io import StringIO
from typing import Any

import numpy as np
import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from scipy import stats

from retrieval.exceptions import TrecFileFaults
from retrieval.pilots import read_pilot
from stats.inference.generalisability import generalisability
from stats.inference.metric_pair_sizes import items_for_metric_pair, metric_pair_power
from tests.codes import refused, refused_naming
from tests.retrieval.conftest import WriteFile
from tests.stats.worked_examples import worked_example


def power(*options: str) -> dict[str, Any]:
    out = StringIO()
    call_command("power", *options, "--json", stdout=out)
    return json.loads(out.getvalue())  # type: ignore[no-any-return]


def pilot_text(values: np.ndarray) -> str:
    rows = [f"s{s},t{t},a{a},{value}" for (s, t, a), value in np.ndenumerate(values)]
    return "\n".join(["system,topic,assessor,value", *rows, ""])


def drawn(rng: np.random.Generator, shape: tuple[int, int, int]) -> tuple[np.ndarray, Any]:
    """Values with known components, and their Phi for so many topics and assessors."""
    spread = {"s": 0.1, "t": 0.15, "a": 0.03, "st": 0.1, "sa": 0.02, "ta": 0.05, "sta": 0.08}
    values = np.zeros(shape)
    for name, sd in spread.items():
        axes = ["sta".index(axis) for axis in name]
        size = [n if axis in axes else 1 for axis, n in enumerate(shape)]
        values = values + rng.normal(0, sd, size=size)
    return values, spread


def true_phi(spread: dict[str, float], n_topics: int, n_assessors: int) -> float:
    counts = {"t": n_topics, "a": n_assessors}
    errors = [
        sd**2 / np.prod([counts[axis] for axis in name if axis != "s"])
        for name, sd in spread.items()
        if name != "s"
    ]
    return float(spread["s"] ** 2 / (spread["s"] ** 2 + sum(errors)))


def test_components_and_plans_are_those_of_the_worked_example(file: WriteFile):
    example = worked_example(13)
    table = np.array(example["inputs"]["ratings_item_system_rater"]).transpose(1, 0, 2)
    expected = example["expected"]
    record = power("--pilot", str(file("p.csv", pilot_text(table))), "--budget", "150")
    ours = record["components"]
    named = {"system": "system", "topic": "item", "assessor": "rater", "residual": "residual"}
    named |= {"system_topic": "item_system", "system_assessor": "system_rater"}
    for name, theirs in (named | {"topic_assessor": "item_rater"}).items():
        assert ours[name] == pytest.approx(expected["components"][theirs], abs=1e-8)
    of_plan = {(each["n_topics"], each["n_assessors"]): each for each in record["plans"]}
    (first,) = [
        r for r in expected["d_study_negative_as_zero"] if (r["items"], r["raters"]) == (50, 3)
    ]
    plan = of_plan[50, 3]
    assert plan["generalizability"]["value"] == pytest.approx(
        first["generalizability_of_system_means"], abs=1e-8
    )
    assert plan["se_of_difference"] == pytest.approx(first["se_of_a_difference"], abs=1e-8)
    assert plan["cost"] == 150
    assert any("topic_assessor" in note for note in record["notes"])


def test_without_assessors_limits_are_the_exact_ones_of_f():
    values = np.random.default_rng(4).normal(size=(8, 25)) + np.arange(8)[:, None] * 0.3
    (plan,) = generalisability(values, [(25, 1)], n_draws=400_000).plans
    ms = 25 * values.mean(axis=1).var(ddof=1)
    residual = values - values.mean(axis=1, keepdims=True) - values.mean(axis=0) + values.mean()
    f = ms / (np.square(residual).sum() / (7 * 24))
    one = plan.generalizability
    assert one.value == pytest.approx(1 - 1 / f)
    assert one.ci_low == pytest.approx(1 - stats.f.ppf(0.975, 7, 168) / f, abs=0.005)
    assert one.ci_high == pytest.approx(1 - stats.f.ppf(0.025, 7, 168) / f, abs=0.005)


def test_limits_hold_the_reliability_of_simulated_collections():
    rng, held = np.random.default_rng(7), []
    for _ in range(300):
        values, spread = drawn(rng, (10, 30, 4))
        (plan,) = generalisability(values, [(100, 2)], n_draws=1000, rng=rng).plans
        truth = true_phi(spread, 100, 2)
        held.append(plan.dependability.ci_low <= truth <= plan.dependability.ci_high)
    assert 0.91 <= np.mean(held) <= 1.0


def test_plans_cost_the_same_and_the_most_dependable_is_named(file: WriteFile):
    values, _ = drawn(np.random.default_rng(1), (6, 20, 3))
    path = str(file("p.csv", pilot_text(values)))
    record = power("--pilot", path, "--budget", "300", "--topic-cost", "2")
    assert all(plan["cost"] <= 300 for plan in record["plans"])
    assert [plan["n_topics"] for plan in record["plans"]][:3] == [100, 75, 60]
    best = max(record["plans"], key=lambda plan: plan["dependability"]["value"])
    assert record["best"] == best
    out = StringIO()
    call_command("power", "--pilot", path, "--budget", "300", stdout=out)
    assert "300" in out.getvalue().splitlines()[0]
    assert "more_assessors" not in record["note_codes"]
    dear = power("--pilot", path, "--budget", "3000", "--topic-cost", "90")
    assert dear["best"]["n_assessors"] == 10
    assert dear["note_codes"][0] == "more_assessors"


@pytest.mark.parametrize(
    ("content", "line", "code"),
    [
        ("system,topic\na,1\n", 1, "missing_column"),
        ("system,topic,value\na,1,x\n", 2, "not_a_number"),
        ("system,topic,value\na,1,nan\n", 2, "not_finite"),
        ("system,topic,value\na,1,1\na,1,2\n", 3, "twice"),
        ("system,topic,value\na,1,1\nb,2,2\n", None, "incomplete"),
        ("system,topic,value\n", None, "no_rows"),
        ("system,topic,value\na,1,1e200\n", 2, "too_large"),
        ("system,topic,value\na,1\n", 2, "not_a_number"),
        ("", 1, "missing_column"),
    ],
)
def test_pilots_that_cannot_be_used_are_refused_by_line(
    file: WriteFile, content: str, line: int | None, code: str
):
    with refused(TrecFileFaults, code, lines=[line]):
        power("--pilot", str(file("p.csv", content)), "--budget", "100")


def test_values_stand_where_their_names_do_whatever_the_order_of_lines_and_columns(file: WriteFile):
    lines = ["value,note,assessor,topic,system", "3,x,a,t2,s1", "1,x,b,t1,s1", "0,x,a,t1,s1"]
    lines += ["4,x,b,t2,s1", "", "8, y ,b, t2 ,s2", "5,y,a,t1,s2", "6,y,b,t1,s2", "7,y,a,t2,s2"]
    pilot = read_pilot(file("p.csv", "\n".join(lines)))
    assert (pilot.systems, pilot.topics, pilot.assessors) == (
        ["s1", "s2"],
        ["t1", "t2"],
        ["a", "b"],
    )
    assert pilot.values.tolist() == [[[0, 1], [3, 4]], [[5, 6], [7, 8]]]


def test_files_of_many_names_or_columns_cost_no_table_of_them(file: WriteFile):
    """The table of these would have 8 × 10^12 cells."""
    lines = [f"s{n},t{n},a{n},1" for n in range(20_000)]
    text = "\n".join(["system,topic,assessor,value", *lines])
    with refused_naming(TrecFileFaults, "7,999,999,980,000"):
        read_pilot(file("p.csv", text))
    wide = ",".join(["system,topic,value", *["more"] * 20_000])
    lines = [f"s{s},t{t},{s * t % 7}" for s in range(50) for t in range(200)]
    tracemalloc.start()
    pilot = read_pilot(file("p.csv", "\n".join([wide, *lines])))
    _now, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert pilot.values.shape == (50, 200)
    assert most < 30 * 1024**2


def test_two_metrics_take_what_gpower_says_and_what_steigers_test_takes():
    """G*Power 3.1 has 144 for .4 and .2, with .5 between, one-sided."""
    options = ("--correlation", ".4", "--other-correlation", ".2", "--between", ".5")
    record = power(*options, "--one-sided", "--power", ".8")
    assert record["variants"]["gpower"] == 144
    assert metric_pair_power(0.4, 0.2, 0.5, 144, one_sided=True, null="first") >= 0.8
    assert record["n"] == np.ceil(items_for_metric_pair(0.4, 0.2, 0.5, one_sided=True))
    assert record["power"] >= 0.8


def test_the_power_of_two_metrics_is_what_simulation_finds():
    rng, n, studies = np.random.default_rng(3), 175, 20_000
    first, second, between = 0.4, 0.2, 0.5
    matrix = np.array([[1, first, second], [first, 1, between], [second, between, 1]])
    data = rng.normal(size=(studies, n, 3)) @ np.linalg.cholesky(matrix).T
    data -= data.mean(axis=1, keepdims=True)
    products = np.einsum("sni,snj->sij", data, data)
    sd = np.sqrt(np.einsum("sii->si", products))
    r = products / (sd[:, :, None] * sd[:, None, :])
    a, b, c = r[:, 0, 1], r[:, 0, 2], r[:, 1, 2]
    mean = (a + b) / 2
    psi = c * (1 - 2 * mean**2) - mean**2 * (1 - 2 * mean**2 - c**2) / 2
    z = (np.arctanh(a) - np.arctanh(b)) * np.sqrt((n - 3) / (2 - 2 * psi / (1 - mean**2) ** 2))
    found = float((np.abs(z) > stats.norm.ppf(0.975)).mean())
    assert found == pytest.approx(metric_pair_power(first, second, between, n), abs=0.012)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ("--correlation .4 --other-correlation .2", ["--between"]),
        ("--correlation .4 --other-correlation .4 --between .5", []),
        ("--correlation .9 --other-correlation -.9 --between .9", []),
        ("--pilot p.csv", ["--budget"]),
        ("--pilot p.csv --kappa .5", ["--pilot", "--kappa"]),
    ],
)
def test_what_cannot_be_planned_is_refused(options: str, named: list[str]):
    with refused_naming(CommandError, *named):
        power(*options.split())
