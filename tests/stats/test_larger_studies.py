from dataclasses import replace

import numpy as np
import pytest

from error_codes import InvalidValue
from stats.inference.crossed_means import MeanOfCells, mean_over_items_and_annotators, satterthwaite
from stats.inference.generalisability import decision_study
from stats.inference.larger_studies import (
    FamilyOfMeans,
    family_of_means,
    least_distinguishable,
    least_with_items,
    purchase_to_distinguish,
)
from stats.inference.variance_components import variance_components
from tests.codes import refused
from tests.stats.worked_examples import worked_example

DIFFERENCE, ITEMS, ANNOTATORS, CELLS = 0.4, 1.0, 0.1, 1.0


def drawn(rng, n_items, n_annotators):
    """Differences of two systems that differ by 0.4: item, annotator and value of each cell."""
    item, annotator = np.indices((n_items, n_annotators)).reshape(2, -1)
    values = (
        DIFFERENCE
        + ITEMS * rng.normal(size=n_items)[item]
        + ANNOTATORS * rng.normal(size=n_annotators)[annotator]
        + CELLS * rng.normal(size=len(item))
    )
    return item, annotator, values


def known(n_annotators, n_items=30):
    """A mean whose variances are those that `drawn` draws by."""
    of_cells = CELLS**2 / (n_items * n_annotators)
    of_items = ITEMS**2 / n_items + of_cells
    of_annotators = ANNOTATORS**2 / n_annotators + of_cells
    return MeanOfCells(
        value=DIFFERENCE, se=(of_items + of_annotators - of_cells) ** 0.5, ci_low=0.0, ci_high=1.0,
        freedom=4.0, p=0.1, method="quasi-f", n_items=n_items, n_annotators=n_annotators,
        n=n_items * n_annotators, of_items=of_items, of_annotators=of_annotators, of_cells=of_cells,
    )  # fmt: skip


@pytest.mark.parametrize(("n_annotators", "alpha"), [(3, 0.05), (4, 0.05 / 6), (6, 0.05)])
def test_as_many_items_as_are_named_show_the_difference_four_times_in_five(n_annotators, alpha):
    n_items = int(purchase_to_distinguish(known(n_annotators), DIFFERENCE, alpha=alpha).items)
    rng, n_studies = np.random.default_rng(2), 400
    means = (
        mean_over_items_and_annotators(*drawn(rng, n_items, n_annotators))
        for _study in range(n_studies)
    )
    shown = sum(mean.p < alpha and mean.value > 0 for mean in means) / n_studies
    assert 0.74 < shown < 0.86


def test_of_items_that_few_of_many_rate_as_many_annotators_as_are_named_show_the_difference():
    """Two of twenty rate an item; more annotators are as many times the ratings an item."""
    pilots = np.random.default_rng(7)
    n_items, n_annotators, an_item = 60, 20, 2

    def rated(rng, n_people, k):
        item = np.repeat(np.arange(n_items), k)
        annotator = np.concatenate(
            [rng.choice(n_people, k, replace=False) for _item in range(n_items)]
        )
        values = 0.5 + 1.2 * rng.normal(size=n_items)[item]
        values += 0.3 * rng.normal(size=n_people)[annotator] + rng.normal(size=len(item))
        return item, annotator, values

    # The components as a pilot of this size has them on average.
    means = [
        mean_over_items_and_annotators(*rated(pilots, n_annotators, an_item)) for _ in range(200)
    ]
    known_mean = replace(
        means[0],
        **{
            name: float(np.mean([getattr(one, name) for one in means]))
            for name in ("of_items", "of_annotators", "of_cells")
        },
    )
    assert known_mean.method == "two-way-clusters"
    n_people = int(purchase_to_distinguish(known_mean, 0.5).annotators)
    k = round(an_item * n_people / n_annotators)
    studies = np.random.default_rng(8)
    shown = [mean_over_items_and_annotators(*rated(studies, n_people, k)).p for _ in range(200)]
    assert 0.7 < np.mean(np.array(shown) < 0.05) < 0.9


@pytest.mark.parametrize("n_annotators", [3, 5])
def test_a_purchase_agrees_with_what_a_study_of_that_size_is_said_to_show(n_annotators):
    mean = known(n_annotators)
    items = purchase_to_distinguish(mean, DIFFERENCE).items
    assert least_with_items(mean, items) <= DIFFERENCE < least_with_items(mean, items - 1)


def test_a_study_of_the_size_there_is_has_its_precision_and_chance_or_one_item_tells_nothing():
    rng = np.random.default_rng(5)
    for n_annotators, n_missing in ((1, 0), (2, 0), (3, 0), (6, 0), (4, 7)):
        item, annotator, values = (column[n_missing:] for column in drawn(rng, 20, n_annotators))
        mean = mean_over_items_and_annotators(item, annotator, values)
        now = least_distinguishable(mean.se, mean.freedom)
        assert least_with_items(mean, mean.n_items) == pytest.approx(now)
    rng = np.random.default_rng(9)
    item = np.arange(60)
    mean = mean_over_items_and_annotators(item, item % 10, rng.normal(size=60))
    assert mean.method == "two-way-clusters"
    assert purchase_to_distinguish(mean, 0.2).annotators == np.inf
    assert purchase_to_distinguish(known(2), DIFFERENCE).items == np.inf
    assert np.isfinite(purchase_to_distinguish(known(2, n_items=100), DIFFERENCE).annotators)
    mean = known(3)
    with refused(InvalidValue, "alpha_out_of_range"):
        purchase_to_distinguish(mean, 0.4, alpha=0.0)
    with refused(InvalidValue, "difference_out_of_range"):
        purchase_to_distinguish(mean, 0.0)
    with refused(InvalidValue, "n_items_out_of_range"):
        least_with_items(mean, 1)


def mean_of(rng, shape=(30, 4), of_annotators=0.4):
    item, annotator = np.indices(shape).reshape(2, -1)
    y = of_annotators * rng.normal(size=shape[1])[annotator] + rng.normal(size=item.size)
    return mean_over_items_and_annotators(item, annotator, y)


def test_families_of_means_share_freedom_and_p_is_larger_with_less_of_it():
    for seed in range(20):
        mean = mean_of(np.random.default_rng(seed), of_annotators=0.2)
        family = family_of_means([mean])
        assert family.freedom_of(mean) == pytest.approx(mean.freedom)
    rng = np.random.default_rng(0)
    means = [mean_of(rng) for _ in range(5)]
    averaged = np.mean([(m.of_items, m.of_annotators, m.of_cells) for m in means], axis=0)
    expected = satterthwaite(*averaged, 30, 4)[1]
    assert family_of_means(means).freedom(30, 4) == pytest.approx(float(expected))
    rng = np.random.default_rng(1)
    quiet, loud = [mean_of(rng, of_annotators=0.0) for _ in range(9)], mean_of(rng, of_annotators=3)
    family = family_of_means([*quiet, loud])
    assert family.freedom_of(loud) <= loud.freedom
    assert loud.freedom == pytest.approx(3, abs=0.1)
    rng = np.random.default_rng(2)
    item, annotator = np.indices((30, 4)).reshape(2, -1)
    kept = rng.random(item.size) < 0.7
    part = mean_over_items_and_annotators(item[kept], annotator[kept], rng.normal(size=kept.sum()))
    assert part.method == "two-way-clusters"
    assert family_of_means([part]) is None
    assert FamilyOfMeans(0.0, 1.0, 1.0).freedom_of(part) == part.freedom
    mean = mean_of(np.random.default_rng(3))
    assert mean.p_with(mean.freedom) == mean.p
    assert mean.p_with(2.0) > mean.p_with(3.0)
    item, annotator = np.indices((5, 4)).reshape(2, -1)
    same = mean_over_items_and_annotators(item, annotator, np.ones(20))
    assert np.isnan(same.p_with(1.0))
    assert family_of_means([same]) is not None


def crossed(table):
    table = np.asarray(table)
    codes = np.indices(table.shape).reshape(table.ndim, -1)
    return [*codes, table.ravel()]


def test_components_of_crossed_designs_are_those_of_moments_and_of_likelihood():
    example = worked_example(12)
    items, annotators, values = crossed(example["inputs"]["ratings"])
    found, expected = variance_components(items, annotators, values), example["expected"]
    names = {"item": "item", "annotator": "rater", "residual": "residual"}
    for name, upstream in names.items():
        assert found.raw[name] == pytest.approx(expected["balanced"][upstream], abs=1e-8)
    for row in expected["balanced"]["d_study"]:
        plan = decision_study(found.components, n_annotators=row["raters"])
        assert plan.generalizability == pytest.approx(row["generalizability"], abs=1e-8)
        assert plan.dependability == pytest.approx(row["dependability"], abs=1e-8)
        assert plan.se_of_mean**2 == pytest.approx(row["absolute_error"], abs=1e-8)
    items, annotators, values = zip(*example["inputs"]["unbalanced_rows"], strict=True)
    found = variance_components(list(items), list(annotators), list(values))
    expected = example["expected"]["reml_unbalanced"]
    assert found.method == "reml"
    assert not found.balanced
    for name, upstream in {"item": "i", "annotator": "r", "residual": "residual"}.items():
        assert found.raw[name] == pytest.approx(expected[upstream], abs=0.005)


def restricted_log_likelihood(y, incidences, components):
    """Of a dense covariance matrix, term by term: what the estimates must maximise."""
    covariance = components["residual"] * np.eye(len(y))
    for name, incidence in incidences.items():
        covariance += components[name] * incidence @ incidence.T
    inverse, ones = np.linalg.inv(covariance), np.ones(len(y))
    information = ones @ inverse @ ones
    residual = y - (ones @ inverse @ y) / information
    return -0.5 * (
        np.linalg.slogdet(covariance)[1] + np.log(information) + residual @ inverse @ residual
    )


def test_unbalanced_facets_maximise_the_likelihood_and_moments_are_unbiased():
    rng = np.random.default_rng(2)
    items, systems, annotators = (axis.ravel() for axis in np.indices((12, 4, 6)))
    values = rng.normal(size=12)[items] + rng.normal(size=4)[systems]
    values = values + 0.7 * rng.normal(size=6)[annotators] + rng.normal(size=len(items))
    values = values + 0.8 * rng.normal(size=(12, 4))[items, systems]
    kept = rng.random(len(items)) < 0.7
    i, s, r, y = items[kept], systems[kept], annotators[kept], values[kept]
    found = variance_components(i, r, y, systems=s)
    assert found.method == "reml"
    codes = {"item": i, "system": s, "annotator": r}
    codes |= {"item_system": 4 * i + s, "item_annotator": 6 * i + r, "system_annotator": 6 * s + r}
    incidences = {name: (c[:, None] == np.unique(c)).astype(float) for name, c in codes.items()}
    best = restricted_log_likelihood(y, incidences, found.components)
    for name in found.components:
        for factor in (0.8, 0.95, 1.05, 1.25):
            moved = found.components | {name: found.components[name] * factor + 1e-3}
            assert restricted_log_likelihood(y, incidences, moved) < best + 1e-6
    rng = np.random.default_rng(3)
    items, annotators = (axis.ravel() for axis in np.indices((40, 8)))
    sums = np.zeros(3)
    for _ in range(200):
        kept = rng.random(len(items)) < 0.4
        values = 1.5 * rng.normal(size=40)[items] + rng.normal(size=8)[annotators]
        values = values + 0.5 * rng.normal(size=len(items))
        found = variance_components(items[kept], annotators[kept], values[kept], method="anova")
        sums += [found.raw[name] for name in ("item", "annotator", "residual")]
    assert sums / 200 == pytest.approx([2.25, 1.0, 0.25], rel=0.12)
    found = variance_components(np.repeat(np.arange(30), 3), np.arange(90), np.arange(90) % 7)
    assert found.confounded == {"annotator": "residual"}
    assert np.isnan(found.raw["annotator"])
    assert "annotator" not in found.components
    with refused(InvalidValue, "too_few_levels"):
        variance_components([1, 2, 3], ["a", "a", "a"], [1, 2, 3])
