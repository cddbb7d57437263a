import re
from math import ceil
from typing import get_args

import numpy as np
import pytest
from django.core.management.base import CommandError
from scipy import stats as scipy_stats
from statsmodels.stats.power import FTestAnovaPower, TTestPower

from retrieval import exceptions, sizes
from stats.inference import effect_sizes, sample_sizes
from stats.inference.correlation_sizes import (
    Method,
    items_for_metric_pair,
    items_for_power,
    metric_pair_power,
    power_for_correlation,
)
from stats.inference.generalisability import generalisability
from tests.annotation.importing import command_output
from tests.codes import refused, refused_naming
from tests.retrieval.conftest import record_of
from tests.stats.worked_examples import worked_example


def power(*options):
    return record_of("power", *options)


def test_the_published_sample_sizes_and_those_of_a_difference_that_nobody_could_miss():
    shoes = power("--correlation", "-0.423", "--alpha", ".05", "--power", ".90")
    assert (shoes["n"], shoes["rounded"]) == (54, None)
    assert shoes["power"] >= 0.9
    dresses = power("--correlation", "-0.281", "--alpha", ".05", "--power", ".90")
    assert dresses["n"] == 129
    assert dresses["rounded"] == {"n": 128, "power": pytest.approx(0.8997, abs=5e-5)}
    assert power("--correlation", "0.281", "--power", ".9")["n"] == 129
    for difference, n in ((5, 3), (20, 2)):
        assert power("--difference", str(difference), "--sd", "1")["n"] == n


def test_each_method_needs_the_items_that_the_reference_or_gpower_gives_it():
    for method, *expected in (
        ("cohen", 53.755, 128.132),
        ("fisher", 54.58, 129.01),
        ("spearman", 59.2, 134.0),
        ("spearman-fieller", 57.7, 136.6),
    ):
        items = [items_for_power(rho, method=method, power=0.9) for rho in (0.423, 0.281)]
        assert items == pytest.approx(expected, abs=0.05), method
    of_one_side = items_for_power(0.423, method="fisher", power=0.9, one_sided=True)
    assert of_one_side == pytest.approx(45.0, abs=0.05)
    for method, *expected in (("exact", 54, 129), ("point-biserial", 51, 125)):
        items = [items_for_power(rho, method=method, power=0.9) for rho in (0.423, 0.281)]
        assert list(map(ceil, items)) == expected, method


@pytest.mark.parametrize("method", get_args(Method))
@pytest.mark.parametrize("rho", [0.7, 0.9, 0.99])
def test_a_strong_correlation_takes_the_least_items_that_have_the_power(method, rho):
    for wanted, alpha in ((0.8, 0.05), (0.9, 0.05), (0.9, 0.001)):
        n = ceil(items_for_power(rho, method=method, power=wanted, alpha=alpha) - 1e-9)
        assert power_for_correlation(rho, n, method=method, alpha=alpha) >= wanted - 1e-9
        if n > 4:
            assert power_for_correlation(rho, n - 1, method=method, alpha=alpha) < wanted
    assert power("--correlation", str(rho), "--power", ".9", "--method", method)["n"] < 25


def test_two_or_several_systems_take_the_topics_that_statsmodels_says():
    record = power("--difference", ".05", "--sd", ".2", "--power", ".8")
    assert record["n"] == ceil(TTestPower().solve_power(effect_size=0.25, power=0.8, alpha=0.05))
    assert record["power"] == pytest.approx(TTestPower().power(0.25, record["n"], 0.05))
    for n_systems in (2, 5, 20):
        n = sample_sizes.topics_for_systems(0.1, 0.25, n_systems)
        effect = np.sqrt(0.1**2 / (2 * 0.25**2) / n_systems)
        less, enough = (
            FTestAnovaPower().power(effect, n_systems * topics, 0.05, k_groups=n_systems)
            for topics in (n - 1, n)
        )
        assert less < 0.8 <= enough


def test_intervals_of_as_many_topics_have_the_width_on_average():
    n = ceil(sample_sizes.topics_for_width(0.2, 0.25))
    spread = np.random.default_rng(3).normal(0, 0.25, size=(20_000, n)).std(axis=1, ddof=1)
    width = 2 * scipy_stats.t.ppf(0.975, n - 1) * spread / np.sqrt(n)
    assert width.mean() == pytest.approx(0.2, rel=0.02)


def test_sizes_of_kappas_clusters_and_high_correlations_are_known():
    """Of 560 candidates judged twice at prevalence .17, kappa .87 has a standard error of .028."""
    options = ("--kappa", ".87", "--width", "0.10976", "--prevalence", ".17")
    record = power(*options)
    assert record["n"] == pytest.approx(560, rel=0.02)
    clustered = power(*options, "--per-target", "14", "--icc-of-target", ".1")
    assert clustered["n"] == pytest.approx(record["n_exact"] * 2.3, abs=1)
    assert power("--correlation", "0.99999")["effect"] == {}
    assert power("--correlation", "0.99999")["n"] < 10
    asked = ("--difference", ".1", "--sd", ".25")
    of_two, of_three = (power(*asked, "--systems", n)["method"] for n in ("2", "3"))
    assert of_two != of_three


def test_one_effect_in_its_four_forms():
    original, simulated = effect_sizes.effect_of_d(1.13), effect_sizes.effect_of_d(0.62)
    assert original.odds_ratio == pytest.approx(7.765, abs=1e-3)
    assert original.probability == pytest.approx(0.886, abs=1e-3)
    assert simulated.probability == pytest.approx(0.7548, abs=5e-5)
    assert effect_sizes.d_of_correlation(simulated.r) == pytest.approx(0.62)
    rng = np.random.default_rng(1)
    wins = (rng.normal(0.62, 1, 200_000) > rng.normal(0, 1, 200_000)).mean()
    assert simulated.superiority == pytest.approx(wins, abs=0.005)


def test_people_read_the_size_its_power_its_sides_and_the_other_methods():
    text = command_output("power", "--correlation", "-0.281", "--power", ".9")
    assert text.startswith("129 ")
    assert {"128", ".8997", "130."} <= set(re.findall(r"[.\d]+", text))
    for options, said in (((), "two-sided"), (("--one-sided",), "one-sided")):
        out = command_output("power", "--correlation", "0.3", *options)
        assert f"alpha 0.05, {said})." in out
        assert "one_sided" not in out


SIZE = "--difference .05 --sd .2"
KAPPA = "--kappa .6 --width .2 --prevalence .2"


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ("", ["--correlation", "--kappa", "--difference", "--width", "--pilot"]),
        ("--correlation 0", ["--correlation"]),
        (f"{SIZE} --one-sided", ["--one-sided"]),
        (f"{SIZE} --width .1", ["--difference", "--width"]),
        ("--width .1 --sd .2 --power .9", ["--power", "--width"]),
        (f"{KAPPA} --icc-of-target .1", ["--icc-of-target", "--per-target"]),
        ("--correlation .3 --between .5", ["--other-correlation"]),
        ("--correlation 1", ["-1"]),
        ("--correlation 0.00001", []),
        ("--kappa .5", ["--width", "--prevalence"]),
        ("--difference .1", ["--sd"]),
        ("--difference .1 --sd -1", ["sd"]),
        ("--width .1 --sd 0", []),
        (f"{KAPPA} --per-target=14 --icc-of-target=2", ["--per-target", "--icc-of-target"]),
        (f"{SIZE} --systems=1", ["--systems", 2, 1]),
        ("--correlation .4 --other-correlation .2", ["--between"]),
        ("--correlation .4 --other-correlation .4 --between .5", []),
        ("--correlation .9 --other-correlation -.9 --between .9", []),
        ("--pilot p.csv", ["--budget"]),
    ],
)
def test_what_cannot_be_planned_is_refused_with_the_option(options, named):
    with refused_naming(CommandError, *named):
        power(*options.split())


def pilot_text(values):
    rows = [f"s{s},t{t},a{a},{value}" for (s, t, a), value in np.ndenumerate(values)]
    return "\n".join(["system,topic,assessor,value", *rows, ""])


def drawn(rng, shape):
    spread = {"s": 0.1, "t": 0.15, "a": 0.03, "st": 0.1, "sa": 0.02, "ta": 0.05, "sta": 0.08}
    values = np.zeros(shape)
    for name, sd in spread.items():
        axes = ["sta".index(axis) for axis in name]
        size = [n if axis in axes else 1 for axis, n in enumerate(shape)]
        values = values + rng.normal(0, sd, size=size)
    return values


def test_components_and_plans_are_those_of_the_worked_example(file):
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
    size, plan = {"items": 50, "raters": 3}, of_plan[50, 3]
    (first,) = [r for r in expected["d_study_negative_as_zero"] if r | size == r]
    theirs = pytest.approx(first["generalizability_of_system_means"], abs=1e-8)
    assert plan["generalizability"]["value"] == theirs
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
    assert one.ci_low == pytest.approx(1 - scipy_stats.f.ppf(0.975, 7, 168) / f, abs=0.005)
    assert one.ci_high == pytest.approx(1 - scipy_stats.f.ppf(0.025, 7, 168) / f, abs=0.005)


def test_plans_cost_the_same_and_the_most_dependable_is_named(file):
    path = str(file("p.csv", pilot_text(drawn(np.random.default_rng(1), (6, 20, 3)))))
    record = power("--pilot", path, "--budget", "300", "--topic-cost", "2")
    assert all(plan["cost"] <= 300 for plan in record["plans"])
    assert [plan["n_topics"] for plan in record["plans"]][:3] == [100, 75, 60]
    assert record["best"] == max(record["plans"], key=lambda plan: plan["dependability"]["value"])
    assert "300" in command_output("power", "--pilot", path, "--budget", "300").splitlines()[0]
    assert "more_assessors" not in record["note_codes"]
    dear = power("--pilot", path, "--budget", "3000", "--topic-cost", "90")
    assert dear["best"]["n_assessors"] == 10
    assert dear["note_codes"][0] == "more_assessors"


@pytest.mark.parametrize(
    ("content", "line", "code"),
    [
        ("system,topic\na,1\n", 1, "missing_columns"),
        ("system,topic,value\na,1,x\n", 2, "not_number"),
        ("system,topic,value\na,1,nan\n", 2, "not_finite"),
        ("system,topic,value\na,1,1\na,1,2\n", 3, "twice"),
        ("system,topic,value\na,1,1\nb,2,2\n", None, "incomplete"),
        ("system,topic,value\n", None, "no_rows"),
        ("system,topic,value\na,1,1e200\n", 2, "out_of_range"),
        ("system,topic,value\na,1\n", 2, "field_count"),
        ("", None, "empty_file"),
    ],
)
def test_pilots_that_cannot_be_used_are_refused_by_line(file, content, line, code):
    with refused(exceptions.TrecFileFaults, code, lines=[line]):
        power("--pilot", str(file("p.csv", content)), "--budget", "100")


def test_values_stand_where_their_names_do_and_many_names_cost_no_table_of_them(file):
    lines = ["value,note,assessor,topic,system", "3,x,a,t2,s1", "1,x,b,t1,s1", "0,x,a,t1,s1"]
    lines += ["4,x,b,t2,s1", "", "8, y ,b, t2 ,s2", "5,y,a,t1,s2", "6,y,b,t1,s2", "7,y,a,t2,s2"]
    pilot = sizes.read_pilot(file("p.csv", "\n".join(lines)))
    assert (pilot.systems, pilot.topics) == (["s1", "s2"], ["t1", "t2"])
    assert pilot.assessors == ["a", "b"]
    assert pilot.values.tolist() == [[[0, 1], [3, 4]], [[5, 6], [7, 8]]]
    lines = [f"s{n},t{n},a{n},1" for n in range(20_000)]
    text = "\n".join(["system,topic,assessor,value", *lines])
    with refused_naming(exceptions.TrecFileFaults, "7,999,999,980,000"):
        sizes.read_pilot(file("p.csv", text))


def test_two_metrics_take_what_gpower_says():
    """G*Power 3.1 has 144 for .4 and .2, with .5 between, one-sided."""
    options = ("--correlation", ".4", "--other-correlation", ".2", "--between", ".5")
    record = power(*options, "--one-sided", "--power", ".8")
    assert record["variants"]["gpower"] == 144
    assert metric_pair_power(0.4, 0.2, 0.5, 144, one_sided=True, null="first") >= 0.8
    assert record["n"] == np.ceil(items_for_metric_pair(0.4, 0.2, 0.5, one_sided=True))
    assert record["power"] >= 0.8
