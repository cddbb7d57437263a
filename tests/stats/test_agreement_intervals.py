"""What the limits of agreement say, and what is said where there are none."""

import numpy as np
import pytest

from stats import agreement
from stats.agreement import CiMethod


@pytest.mark.parametrize("ci", ["jackknife", "analytic"])
def test_the_interval_of_percent_agreement_begins_at_nought(ci):
    agreed = agreement.percent_agreement([1, 1, 2, 2, 3, 3], list("ababab"), list("xxyxyx"), ci=ci)
    assert (agreed.ci_low, agreed.ci_high) == (0.0, 1.0)


@pytest.mark.parametrize("ci", ["jackknife", "analytic"])
def test_an_interval_holds_its_coefficient_also_below_minus_one(ci):
    weights = 1 - np.roll(np.eye(10), 1, axis=1)  # only a step to the next category disagrees
    first = np.arange(10).repeat(3)
    kappa = agreement.cohen_kappa(first, (first + 1) % 10, weights=weights, ci=ci)
    pairs = np.tile([0, 1, 2, 3, 4, 5, 6, 7], 3)
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


def test_a_missing_analytic_interval_is_not_blamed_on_the_data():
    rng = np.random.default_rng(0)
    crowd = (np.arange(40).repeat(3), list("abc") * 40, rng.integers(5, size=120))
    options = {"level": "ordinal", "ci": "analytic"}
    [warning] = agreement.krippendorff_alpha(*crowd, **options).warnings
    assert warning.startswith("no interval: there is no analytic one")
    clusters = np.arange(120) // 12
    [warning] = agreement.icc(*crowd, ci="analytic", clusters=clusters).warnings
    assert warning.startswith("no interval: there is no analytic one")


def test_a_kappa_of_thousands_of_categories_has_the_analytic_interval():
    names = [f"answer {n}" for n in range(2001)]
    values = [name for name in names for _ in "ab"]
    values[1] = values[3]
    kappa = agreement.conger_kappa(np.arange(2001).repeat(2), list("ab") * 2001, values)
    assert kappa.ci_method is CiMethod.LINEARISED
    assert kappa.ci_low < kappa.value < kappa.ci_high
