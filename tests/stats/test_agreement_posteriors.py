import numpy as np
import pytest

from stats.agreement import cohen_kappa, krippendorff_alpha, percent_agreement
from stats.agreement.posterior import kappa_posterior, share_posterior
from tests.codes import codes_of
from tests.stats.worked_examples import worked_example

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
    found = percent_agreement(
        np.tile(items, 2), np.repeat(["x", "y"], len(items)), np.concatenate([first, second])
    )
    assert [found.ci_low, found.ci_high] == pytest.approx([interval.low, interval.high])


def test_perfect_agreement_is_not_certain():
    labels = list("aabbabaabb")
    kappa = cohen_kappa(labels, labels)
    assert kappa.value == kappa.ci_high == 1
    assert 0.4 < kappa.ci_low < 0.7
    assert kappa.ci_method == "dirichlet-posterior"
    alpha = krippendorff_alpha(list(range(10)) * 2, list("x" * 10 + "y" * 10), labels * 2)
    assert np.isnan(alpha.ci_low)
    assert "no_spread" in codes_of(alpha.warnings)


@pytest.mark.parametrize(
    ("kappa", "margins", "n"),
    [(0.8, (0.5, 0.5), 10), (0.8, (0.1, 0.9), 20), (0.8, (0.2,) * 5, 20), (0.4, (0.5, 0.5), 40)],
)
def test_kappas_default_interval_covers_as_often_as_it_says(kappa, margins, n):
    margins = np.array(margins)
    table = (1 - kappa) * np.outer(margins, margins) + kappa * np.diag(margins)
    rng = np.random.default_rng(n)
    covered, trials = [], 100
    for _ in range(trials):
        cells = rng.choice(table.size, p=table.ravel(), size=n)
        found = cohen_kappa(cells // len(margins), cells % len(margins))
        if not np.isnan(found.ci_low):
            covered.append(found.ci_low <= kappa <= found.ci_high)
    assert np.mean(covered) >= 0.89
