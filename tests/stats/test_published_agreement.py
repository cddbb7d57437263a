"""Every published value of the worked examples, to its printed digits."""

from decimal import Decimal
from math import sqrt

import numpy as np
import pytest

from stats.agreement import (
    Agreement,
    Reason,
    category_agreement,
    coefficients_at_level,
    cohen_kappa,
    krippendorff_alpha,
)
from tests.codes import codes_of

CONTINGENCY = {
    "artstein_poesio2008_p568": {
        "po": "percent_agreement",
        "S": "brennan_prediger",
        "alpha_nominal": "krippendorff_alpha",
        "scott_pi": "scott_pi",
        "cohen_kappa": "cohen_kappa",
    },
    "cohen1960_p45": {"po": "percent_agreement", "cohen_kappa": "cohen_kappa"},
    "gwet_cont3x3abstractors": {
        "pa": "percent_agreement",
        "cohen_kappa": "cohen_kappa",
        "scott_pi": "scott_pi",
        "gwet_ac1": "gwet_ac1",
        "brennan_prediger": "brennan_prediger",
        "alpha_nominal": "krippendorff_alpha",
    },
    "fleiss1971_diagnoses": {
        "po": "percent_agreement",
        "fleiss_kappa": "fleiss_kappa",
        "R_irr_kappam.fleiss": "fleiss_kappa",
    },
    "krippendorff2011": {
        "alpha_nominal": "krippendorff_alpha",
        "gwet_ac1(R)": "gwet_ac1",
        "fleiss(R)": "fleiss_kappa",
        "conger(R)": "conger_kappa",
        "brennan_prediger(R)": "brennan_prediger",
        "percent_agreement(R)": "percent_agreement",
    },
    "paradox_feinstein_cicchetti_1": {"po": "percent_agreement", "cohen_kappa": "cohen_kappa"},
    "paradox_feinstein_cicchetti_2": {"po": "percent_agreement", "cohen_kappa": "cohen_kappa"},
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


def coefficients(frame, level="nominal", **options) -> dict[str, Agreement]:
    columns = (frame["item"], frame["annotator"], frame["label"])
    return {
        coefficient.name: coefficient
        for coefficient in coefficients_at_level(*columns, level=level, **options)
    }


@pytest.mark.parametrize("example", CONTINGENCY)
def test_the_published_coefficients_are_met(worked_example, example):
    frame, published = worked_example(example)
    coefficient = coefficients(frame)
    for printed_name, name in CONTINGENCY[example].items():
        assert coefficient[name].value == printed(published[printed_name]), printed_name


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


def test_published_kappas_of_categories_and_intraclass_correlations_are_met(worked_example):
    frame, published = worked_example("fleiss1971_diagnoses")
    table = category_agreement(frame["item"], frame["annotator"], frame["label"])
    for kappa, expected in zip(table["kappa"], published["category_kappa"], strict=True):
        assert kappa == printed(expected)
    frame, published = worked_example("shrout_fleiss1979")
    by_name = coefficients(frame, "interval")
    for model in (1, 2, 3):
        assert by_name[f"icc{model}"].value == printed(published[f"ICC({model},1)"])
        assert by_name[f"icc{model}k"].value == printed(published[f"ICC({model},4)"])


def test_published_weights_and_distances_of_ones_own_are_met(worked_example):
    frame, published = worked_example("cohen1968_weighted")
    table = frame.pivot(index="item", columns="annotator", values="label")
    disagreement = np.array([[0, 1, 3], [1, 0, 6], [3, 6, 0]])
    kappa = cohen_kappa(table["A"], table["B"], weights=1 - disagreement / 6)
    assert kappa.value == printed(published["weighted_kappa"])
    frame, published = worked_example("artstein_poesio2008_p568")

    def distance(first: int, second: int) -> float:
        return 0.0 if first == second else 0.5 if 3 in (first, second) else 1.0

    columns = (frame["item"], frame["annotator"], frame["label"])
    alpha = krippendorff_alpha(*columns, distance=distance)
    assert alpha.value == printed(published["alpha_custom(Chck=.5)"])
    table = frame.pivot(index="item", columns="annotator", values="label")
    weights = [[1 - distance(row, column) for column in (1, 2, 3)] for row in (1, 2, 3)]
    kappa = cohen_kappa(table["A"], table["B"], weights=weights)
    assert kappa.value == printed(published["weighted_kappa_custom"])
    frame, _ = worked_example("paradox_feinstein_cicchetti_2")
    by_name = coefficients(frame)
    assert by_name["gwet_ac1"].value == pytest.approx(0.81, abs=5e-3)
    assert "prevalence" in codes_of(by_name["cohen_kappa"].warnings)
    assert by_name["icc1"].reason is Reason.NEEDS_NUMBERS
