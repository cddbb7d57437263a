"""What the limits of agreement say, and what is said where there are none."""

import numpy as np
import pytest

from stats import agreement
from stats.agreement import CiMethod


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


@pytest.mark.parametrize(
    ("n_items", "n_positive", "clustered", "said"),
    [
        (15, 7, False, "only 15 items"),
        (60, 30, True, "only 12 clusters of items"),
        (60, 3, False, "only 3 items have the rarer category"),
        (60, 30, False, ""),
    ],
)
def test_alpha_of_a_small_sample_says_that_its_interval_is_a_rough_guide(
    n_items, n_positive, clustered, said
):
    items, annotators = np.indices((n_items, 3)).reshape(2, -1)
    values = (items < n_positive) ^ (np.random.default_rng(0).random(len(items)) < 0.02)
    clusters = items // 5 if clustered else None
    found = agreement.krippendorff_alpha(items, annotators, values.astype(int), clusters=clusters)
    rough = [text for text in found.warnings if "rough guide" in text]
    assert bool(rough) == bool(said)
    assert not said or rough[0].startswith(said)


def test_kappa_of_few_of_the_rarer_category_says_that_its_interval_is_a_rough_guide():
    first = np.arange(50) < 3
    found = agreement.cohen_kappa(first.astype(int), (np.arange(50) < 2).astype(int))
    assert any(text.startswith("only 3 items have the rarer") for text in found.warnings)
