import re
from decimal import Decimal
from math import sqrt

import numpy as np
import pytest

from stats import agreement, jackknife
from stats.agreement.intervals import jackknife_z, kappa_posterior, share_posterior
from tests.codes import codes_of
from tests.stats.worked_examples import worked_example


@pytest.mark.parametrize("ci", ["jackknife", "analytic"])
def test_the_interval_of_percent_agreement_begins_at_nought(ci):
    agreed = agreement.percent_agreement([1, 1, 2, 2, 3, 3], list("ababab"), list("xxyxyx"), ci=ci)
    assert 0 <= agreed.ci_low < 0.05
    assert 0.8 < agreed.ci_high <= 1


@pytest.mark.parametrize("ci", ["jackknife", "analytic"])
def test_an_interval_holds_its_coefficient_also_below_minus_one(ci):
    weights = 1 - np.roll(np.eye(10), 1, axis=1)  # only a step to the next category disagrees
    first = np.arange(10).repeat(3)
    second = (first + 1) % 10
    second[0] = 0  # one agrees, so that something varies
    kappa = agreement.cohen_kappa(first, second, weights=weights, ci=ci)
    pairs = np.tile([0, 1, 2, 3, 4, 5, 6, 7], 3)
    pairs[1] = 0
    alpha = agreement.krippendorff_alpha(
        np.arange(12).repeat(2),
        list("ab") * 12,
        pairs,
        distance=lambda one, other: float(one // 2 == other // 2 and one != other),
        ci=ci,
    )
    for agreed in (kappa, alpha):
        assert agreed.value < -1
        assert agreed.ci_low <= agreed.value + 1e-9 <= agreed.ci_high + 2e-9


def test_missing_analytic_intervals_and_rare_categories_have_their_notes():
    rng = np.random.default_rng(0)
    crowd = (np.arange(40).repeat(3), list("abc") * 40, rng.integers(5, size=120))
    options = {"level": "ordinal", "ci": "analytic"}
    assert codes_of(agreement.krippendorff_alpha(*crowd, **options).warnings) == ["no_formula"]
    clusters = np.arange(120) // 12
    clustered = agreement.icc(*crowd, ci="analytic", clusters=clusters)
    assert codes_of(clustered.warnings) == ["no_formula"]
    names = [f"answer {n}" for n in range(2001)]
    values = [name for name in names for _ in "ab"]
    values[1] = values[3]
    kappa = agreement.conger_kappa(np.arange(2001).repeat(2), list("ab") * 2001, values)
    assert kappa.ci_method is agreement.CiMethod.LINEARISED
    assert kappa.ci_low < kappa.value < kappa.ci_high
    first = np.arange(50) < 3
    found = agreement.cohen_kappa(first.astype(int), (np.arange(50) < 2).astype(int))
    assert any((one.code, "5" in one) == ("rare_labels", True) for one in found.warnings)


@pytest.mark.parametrize(
    ("n_items", "n_positive", "clustered", "code", "numbers"),
    [
        (15, 7, False, "few_items", ["15"]),
        (15, 7, True, "few_items", ["15", "3"]),
        (60, 30, True, "few_clusters", ["12"]),
        (60, 3, False, "rare_category", ["3"]),
        (60, 30, False, "", []),
    ],
)
def test_alpha_of_a_small_sample_says_that_its_interval_is_a_rough_guide(
    n_items, n_positive, clustered, code, numbers
):
    items, annotators = np.indices((n_items, 3)).reshape(2, -1)
    values = (items < n_positive) ^ (np.random.default_rng(0).random(len(items)) < 0.02)
    clusters = items // 5 if clustered else None
    found = agreement.krippendorff_alpha(items, annotators, values.astype(int), clusters=clusters)
    rough = [one for one in found.warnings if one.code != "prevalence"]
    assert codes_of(rough[:1]) == ([code] if code else [])
    assert not code or re.findall(r"\d+", rough[0]) == numbers


def ratings(n_items, unlike, rng):
    """Three annotators' ratings of items of which some few are unlike the rest."""
    items, annotators = np.indices((n_items, 3)).reshape(2, -1)
    return items, annotators, 12.0 * (items < unlike) + rng.normal(size=len(items))


def test_few_items_have_a_note_and_limits_of_few_clusters_are_fishers():
    def numbers(found):
        notes = [one for one in found.warnings if one.code == "few_carry_spread"]
        return [re.findall(r"\d+", note) for note in notes]

    for unlike, expected in ((2, [["2"]]), (20, [])):
        columns = ratings(40, unlike, np.random.default_rng(0))
        assert numbers(agreement.krippendorff_alpha(*columns, level="interval")) == expected
        assert numbers(agreement.icc(*columns, model="icc1")) == expected
    items, annotators, values = ratings(100, 10, np.random.default_rng(0))
    clustered = agreement.krippendorff_alpha(
        items, annotators, values, level="interval", clusters=items // 4
    )
    assert numbers(clustered) == [["3"]]
    widths = []
    for unlike in (20, 2):
        replicates = 0.7 + 0.01 * np.where(np.arange(40) < unlike, 1, -unlike / (40 - unlike))
        replicates = 0.7 + (replicates - 0.7) / np.std(replicates) * 0.01  # one standard error
        found = jackknife_z(0.7, replicates, 0.95, 3)
        widths.append(found.high - found.low)
    assert widths[1] > 1.3 * widths[0]
    columns = ratings(30, 15, np.random.default_rng(1))
    one, mean = agreement.icc(*columns, model="icc1"), agreement.icc(*columns, model="icc1k")
    stepped = [3 * limit / (1 + 2 * limit) for limit in (one.ci_low, one.ci_high)]
    assert [mean.ci_low, mean.ci_high] == pytest.approx(stepped, abs=1e-9)
    # On kappa's own scale the truth lies below the lower limit ten times as often as above.
    from sklearn.metrics import cohen_kappa_score

    rng = np.random.default_rng(1)
    target = np.repeat(np.arange(40), 14)
    truth = rng.random(len(target)) < 0.17
    error = rng.beta(0.18, 8.82, 40)[target]
    first, second = (truth ^ (rng.random(len(target)) < error) for _ in range(2))
    found = agreement.cohen_kappa(first, second, clusters=target)
    without = np.array(
        [cohen_kappa_score(first[target != one], second[target != one]) for one in range(40)]
    )
    expected = jackknife.jackknife_limits(cohen_kappa_score(first, second), without, 0.95)
    assert (found.ci_low, found.ci_high) == pytest.approx(expected)
    assert found.value - found.ci_low > 1.5 * (found.ci_high - found.value)
    assert found.se == pytest.approx(np.sqrt(39 * np.var(without)))


CASES = worked_example(11)["expected"]


@pytest.mark.parametrize("case", CASES)
def test_kappas_posterior_has_the_quantiles_of_two_million_draws(case):
    interval = kappa_posterior(np.array(case["table"]), draws=200_000)
    if case["kappa"] is None:
        assert np.isnan(interval.low)
        return
    expected = case["perks"]
    assert interval.low == pytest.approx(min(expected["low"], case["kappa"]), abs=0.006)
    high = 1.0 if case["kappa"] == 1 else expected["high"]
    assert interval.high == pytest.approx(high, abs=0.006)


@pytest.mark.parametrize("case", [case for case in CASES if "percent_agreement" in case])
def test_percent_agreement_has_jeffreys_interval(case):
    table, expected = np.array(case["table"]), case["percent_agreement"]["jeffreys"]
    interval = share_posterior(np.trace(table), table.sum())
    high = 1.0 if np.trace(table) == table.sum() else expected[1]
    assert [interval.low, interval.high] == pytest.approx([expected[0], high], abs=1e-9)
    first, second = (axis.repeat(table.ravel()) for axis in np.indices(table.shape).reshape(2, -1))
    items = np.arange(table.sum())
    found = agreement.percent_agreement(
        np.tile(items, 2), np.repeat(["x", "y"], len(items)), np.concatenate([first, second])
    )
    assert [found.ci_low, found.ci_high] == pytest.approx([interval.low, interval.high])


def test_perfect_agreement_is_not_certain():
    labels = list("aabbabaabb")
    kappa = agreement.cohen_kappa(labels, labels)
    assert kappa.value == kappa.ci_high == 1
    assert 0.4 < kappa.ci_low < 0.7
    assert kappa.ci_method == "dirichlet-posterior"


COEFFICIENTS = {
    **dict.fromkeys(("po", "pa", "percent_agreement(R)"), "percent_agreement"),
    **dict.fromkeys(("S", "brennan_prediger(R)"), "brennan_prediger"),
    **dict.fromkeys(("R_irr_kappam.fleiss", "fleiss(R)"), "fleiss_kappa"),
    "alpha_nominal": "krippendorff_alpha",
    "gwet_ac1(R)": "gwet_ac1",
    "conger(R)": "conger_kappa",
}
CONTINGENCY = {
    "artstein_poesio2008_p568": "po S alpha_nominal scott_pi cohen_kappa",
    "cohen1960_p45": "po cohen_kappa",
    "gwet_cont3x3abstractors": "pa cohen_kappa scott_pi gwet_ac1 brennan_prediger alpha_nominal",
    "fleiss1971_diagnoses": "po fleiss_kappa R_irr_kappam.fleiss",
    "krippendorff2011": "alpha_nominal gwet_ac1(R) fleiss(R) conger(R) brennan_prediger(R) "
    "percent_agreement(R)",
    "paradox_feinstein_cicchetti_1": "po cohen_kappa",
    "paradox_feinstein_cicchetti_2": "po cohen_kappa",
}
STANDARD_ERRORS = {
    "gwet_ac1_se(R)": "gwet_ac1",
    "fleiss_se(R)": "fleiss_kappa",
    "conger_se(R)": "conger_kappa",
    "bp_se(R)": "brennan_prediger",
    "alpha_se(R irrCAC)": "krippendorff_alpha",
}


def printed(value: float):
    """The value as far as it is printed, give or take one in the last place."""
    return pytest.approx(value, abs=1.01 * 10 ** Decimal(str(value)).as_tuple().exponent)


def coefficients(frame, level="nominal", **options) -> dict[str, agreement.Agreement]:
    columns = (frame["item"], frame["annotator"], frame["label"])
    return {
        coefficient.name: coefficient
        for coefficient in agreement.coefficients_at_level(*columns, level=level, **options)
    }


@pytest.mark.parametrize("example", CONTINGENCY)
def test_the_published_coefficients_are_met(worked_example, example):
    frame, published = worked_example(example)
    coefficient = coefficients(frame)
    for name in CONTINGENCY[example].split():
        assert coefficient[COEFFICIENTS.get(name, name)].value == printed(published[name]), name


def test_published_expectations_and_standard_errors_are_met(worked_example):
    frame, published = worked_example("cohen1960_p45")
    assert coefficients(frame)["cohen_kappa"].expected == printed(published["pe"])
    frame, published = worked_example("fleiss1971_diagnoses")
    assert coefficients(frame)["fleiss_kappa"].expected == pytest.approx(published["pe"], abs=2e-4)
    frame, published = worked_example("krippendorff2011")
    by_name = coefficients(frame, ci="analytic")
    for printed_name, name in STANDARD_ERRORS.items():
        assert by_name[name].se == printed(published[printed_name]), printed_name
    low, high = published["alpha_ci(R irrCAC)"]
    alpha = by_name["krippendorff_alpha"]
    assert (alpha.ci_low, alpha.ci_high) == (printed(low), high)
    frame, published = worked_example("gwet_cont3x3abstractors")
    by_name = coefficients(frame, ci="analytic")
    by_table = sqrt(99 / 100)  # the published ones divide by n, those of single labels by n - 1
    assert by_name["gwet_ac1"].se * by_table == printed(published["gwet_ac1_se"])
    assert by_name["krippendorff_alpha"].se * by_table == printed(published["alpha_se"])
    assert by_name["cohen_kappa"].se == printed(published["cohen_kappa_se"])
    low, high = published["gwet_ac1_ci"]
    assert (by_name["gwet_ac1"].ci_low, by_name["gwet_ac1"].ci_high) == (
        printed(low),
        printed(high),
    )


def test_published_kappas_of_categories_icc_weights_and_distances_are_met(worked_example):
    frame, published = worked_example("fleiss1971_diagnoses")
    table = agreement.category_agreement(frame["item"], frame["annotator"], frame["label"])
    for kappa, expected in zip(table["kappa"], published["category_kappa"], strict=True):
        assert kappa == printed(expected)
    frame, published = worked_example("shrout_fleiss1979")
    by_name = coefficients(frame, "interval")
    for model in (1, 2, 3):
        assert by_name[f"icc{model}"].value == printed(published[f"ICC({model},1)"])
        assert by_name[f"icc{model}k"].value == printed(published[f"ICC({model},4)"])
    frame, published = worked_example("cohen1968_weighted")
    table = frame.pivot(index="item", columns="annotator", values="label")
    disagreement = np.array([[0, 1, 3], [1, 0, 6], [3, 6, 0]])
    kappa = agreement.cohen_kappa(table["A"], table["B"], weights=1 - disagreement / 6)
    assert kappa.value == printed(published["weighted_kappa"])
    frame, published = worked_example("artstein_poesio2008_p568")

    def distance(first: int, second: int) -> float:
        return 0.0 if first == second else 0.5 if 3 in (first, second) else 1.0

    columns = (frame["item"], frame["annotator"], frame["label"])
    alpha = agreement.krippendorff_alpha(*columns, distance=distance)
    assert alpha.value == printed(published["alpha_custom(Chck=.5)"])
    table = frame.pivot(index="item", columns="annotator", values="label")
    weights = [[1 - distance(row, column) for column in (1, 2, 3)] for row in (1, 2, 3)]
    kappa = agreement.cohen_kappa(table["A"], table["B"], weights=weights)
    assert kappa.value == printed(published["weighted_kappa_custom"])
    frame, _ = worked_example("paradox_feinstein_cicchetti_2")
    by_name = coefficients(frame)
    assert by_name["gwet_ac1"].value == pytest.approx(0.81, abs=5e-3)
    assert "prevalence" in codes_of(by_name["cohen_kappa"].warnings)
    assert by_name["icc1"].reason is agreement.Reason.NEEDS_NUMBERS
