"""How many topics: `power`, against published values, statsmodels and simulation."""

import json
import re
from io import StringIO
from math import ceil
from typing import Any, get_args

import numpy as np
import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from scipy import stats as scipy_stats

from stats.inference.correlation_sizes import Method, items_for_power, power_for_correlation
from stats.inference.effect_sizes import d_of_correlation, d_of_odds, effect_of_d
from stats.inference.topic_sizes import topics_for_systems, topics_for_width
from tests.codes import refused_naming


def power(*options: str) -> dict[str, Any]:
    out = StringIO()
    call_command("power", *options, "--json", stdout=out)
    return json.loads(out.getvalue())  # type: ignore[no-any-return]


def test_a_difference_that_nobody_could_miss_takes_few_topics():
    for difference, n in ((5, 3), (20, 2)):
        assert power("--difference", str(difference), "--sd", "1")["n"] == n


def test_the_command_says_of_how_many_sides_a_test_is_in_words():
    for options, said in (((), "two-sided"), (("--one-sided",), "one-sided")):
        out = StringIO()
        call_command("power", "--correlation", "0.3", *options, stdout=out)
        assert f"alpha 0.05, {said})." in out.getvalue()
        assert "one_sided" not in out.getvalue()


def test_the_published_sample_sizes_and_the_power_that_rounding_lost():
    shoes = power("--correlation", "-0.423", "--alpha", ".05", "--power", ".90")
    assert (shoes["n"], shoes["rounded"]) == (54, None)
    assert shoes["power"] >= 0.9
    dresses = power("--correlation", "-0.281", "--alpha", ".05", "--power", ".90")
    assert dresses["n"] == 129
    assert dresses["rounded"] == {"n": 128, "power": pytest.approx(0.8997, abs=5e-5)}
    assert power("--correlation", "0.281", "--power", ".9")["n"] == 129


@pytest.mark.parametrize(
    ("method", "of_423", "of_281"),
    [
        ("cohen", 53.755, 128.132),
        ("fisher", 54.58, 129.01),
        ("spearman", 59.2, 134.0),
        ("spearman-fieller", 57.7, 136.6),
    ],
)
def test_each_method_needs_the_items_that_the_reference_gives_it(
    method: Any, of_423: float, of_281: float
):
    for rho, expected in ((0.423, of_423), (0.281, of_281)):
        exact = items_for_power(rho, method=method, power=0.9)
        assert exact == pytest.approx(expected, abs=0.05)


@pytest.mark.parametrize(
    ("method", "of_423", "of_281"), [("exact", 54, 129), ("point-biserial", 51, 125)]
)
def test_exact_methods_need_what_gpower_says(method: Any, of_423: int, of_281: int):
    for rho, expected in ((0.423, of_423), (0.281, of_281)):
        assert ceil(items_for_power(rho, method=method, power=0.9)) == expected


@pytest.mark.parametrize("method", get_args(Method))
@pytest.mark.parametrize("rho", [0.7, 0.9, 0.99])
def test_a_strong_correlation_takes_the_least_items_that_have_the_power(method: Any, rho: float):
    for wanted, alpha in ((0.8, 0.05), (0.9, 0.05), (0.9, 0.001)):
        n = ceil(items_for_power(rho, method=method, power=wanted, alpha=alpha) - 1e-9)
        assert power_for_correlation(rho, n, method=method, alpha=alpha) >= wanted - 1e-9
        if n > 4:
            assert power_for_correlation(rho, n - 1, method=method, alpha=alpha) < wanted
    assert power("--correlation", str(rho), "--power", ".9", "--method", method)["n"] < 25


def test_one_side_takes_fewer():
    assert items_for_power(0.423, method="fisher", power=0.9, one_sided=True) == pytest.approx(
        45.0, abs=0.05
    )


@pytest.mark.parametrize("n", [8, 30])
def test_exact_power_is_what_simulation_finds(n: int):
    rng = np.random.default_rng(n)
    rho, studies = 0.5, 20_000
    x = rng.normal(size=(studies, n))
    y = rho * x + np.sqrt(1 - rho**2) * rng.normal(size=(studies, n))
    r = scipy_stats.pearsonr(x, y, axis=1)
    hit = float((r.pvalue < 0.05).mean())
    expected = power_for_correlation(rho, n, method="exact")
    assert hit == pytest.approx(expected, abs=4 * np.sqrt(expected * (1 - expected) / studies))


def test_two_systems_take_the_topics_that_statsmodels_says():
    from statsmodels.stats.power import TTestPower

    record = power("--difference", ".05", "--sd", ".2", "--power", ".8")
    expected = TTestPower().solve_power(effect_size=0.25, power=0.8, alpha=0.05)
    assert record["n"] == ceil(expected)
    of_n = TTestPower().power(0.25, record["n"], 0.05)
    assert record["power"] == pytest.approx(of_n)


@pytest.mark.parametrize("n_systems", [2, 5, 20])
def test_several_systems_take_the_topics_that_statsmodels_says(n_systems: int):
    from statsmodels.stats.power import FTestAnovaPower

    n = topics_for_systems(0.1, 0.25, n_systems)
    effect = np.sqrt(0.1**2 / (2 * 0.25**2) / n_systems)
    powers = [
        FTestAnovaPower().power(effect, n_systems * topics, 0.05, k_groups=n_systems)
        for topics in (n - 1, n)
    ]
    assert powers[0] < 0.8 <= powers[1]


def test_intervals_of_as_many_topics_have_the_width_on_average():
    n = ceil(topics_for_width(0.2, 0.25))
    rng = np.random.default_rng(3)
    spread = rng.normal(0, 0.25, size=(20_000, n)).std(axis=1, ddof=1)
    width = 2 * scipy_stats.t.ppf(0.975, n - 1) * spread / np.sqrt(n)
    assert width.mean() == pytest.approx(0.2, rel=0.02)


def test_sizes_of_kappas_clusters_and_high_correlations_are_known():
    """Of 560 candidates judged twice at prevalence .17, kappa .87 has a standard error of .028."""
    record = power("--kappa", ".87", "--width", "0.10976", "--prevalence", ".17")
    assert record["n"] == pytest.approx(560, rel=0.02)
    clustered = power(
        *("--kappa", ".87", "--width", "0.10976", "--prevalence", ".17"),
        *("--per-target", "14", "--icc-of-target", ".1"),
    )
    assert clustered["n"] == pytest.approx(record["n_exact"] * 2.3, abs=1)
    assert power("--correlation", "0.99999")["effect"] == {}
    assert power("--correlation", "0.99999")["n"] < 10
    asked = ("--difference", ".1", "--sd", ".25")
    of_two, of_three = (power(*asked, "--systems", n)["method"] for n in ("2", "3"))
    assert of_two != of_three


def test_one_effect_in_its_four_forms():
    original, simulated = effect_of_d(1.13), effect_of_d(0.62)
    assert original.odds_ratio == pytest.approx(7.765, abs=1e-3)
    assert original.probability == pytest.approx(0.886, abs=1e-3)
    assert simulated.probability == pytest.approx(0.7548, abs=5e-5)
    assert d_of_odds(simulated.odds_ratio) == pytest.approx(0.62)
    assert d_of_correlation(simulated.r) == pytest.approx(0.62)
    rng = np.random.default_rng(1)
    wins = (rng.normal(0.62, 1, 200_000) > rng.normal(0, 1, 200_000)).mean()
    assert simulated.superiority == pytest.approx(wins, abs=0.005)


def test_people_read_the_size_its_power_and_the_other_methods():
    out = StringIO()
    call_command("power", "--correlation", "-0.281", "--power", ".9", stdout=out)
    text = out.getvalue()
    assert text.startswith("129 ")
    assert {"128", ".8997", "130."} <= set(re.findall(r"[.\d]+", text))


SIZE = "--difference .05 --sd .2"
KAPPA = "--kappa .6 --width .2 --prevalence .2"


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ("", ["--correlation", "--kappa", "--difference", "--width", "--pilot"]),
        ("--correlation 0", ["--correlation"]),
        (f"{SIZE} --one-sided", ["--one-sided"]),
        (f"{SIZE} --method exact", ["--method"]),
        (f"{SIZE} --width .1", ["--difference", "--width"]),
        ("--width .1 --sd .2 --power .9", ["--power", "--width"]),
        (f"{KAPPA} --power .99", ["--power", "--kappa"]),
        (f"{KAPPA} --icc-of-target .1", ["--icc-of-target", "--per-target"]),
        ("--correlation .3 --between .5", ["--other-correlation"]),
        ("--correlation 1", ["-1"]),
        ("--correlation 0.00001", []),
        ("--correlation .3 --kappa .5", ["--correlation", "--kappa"]),
        ("--kappa .5", ["--width", "--prevalence"]),
        ("--difference .1", ["--sd"]),
        ("--difference .1 --sd -1", ["sd"]),
        ("--width .1 --sd 0", []),
        (f"{KAPPA} --per-target=14 --icc-of-target=2", ["--per-target", "--icc-of-target"]),
        (f"{SIZE} --systems=1", ["--systems", 2, 1]),
    ],
)
def test_what_cannot_be_planned_is_refused_with_the_option(options: str, named: list[object]):
    with refused_naming(CommandError, *named):
        power(*options.split())
