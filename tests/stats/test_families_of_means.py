"""Degrees of freedom of means that are tested together, and how often equal ones are told apart."""

import numpy as np
import pytest

from benchmarks.coverage_families import pairs_of_systems
from stats.inference.crossed_means import mean_over_items_and_annotators, satterthwaite
from stats.inference.families_of_means import FamilyOfMeans, family_of_means
from stats.significance import holm

N_STUDIES = 60


@pytest.mark.parametrize("n_annotators", [4, 5])
def test_ten_equal_systems_are_told_apart_in_few_studies(n_annotators):
    rng = np.random.default_rng(n_annotators)
    together, alone = [], []
    for _ in range(N_STUDIES):
        means = pairs_of_systems(rng, 10, n_annotators)
        family = family_of_means(means)
        together.append(holm([mean.p_with(family.freedom_of(mean)) for mean in means]).min())
        alone.append(holm([mean.p for mean in means]).min())
    assert (np.array(together) < 0.05).mean() <= 0.05
    # Each p is right where its pair is the only one; the least of forty-five is not.
    assert (np.array(alone) < 0.05).mean() > 0.1


def mean_of(rng, shape=(30, 4), of_annotators=0.4):
    item, annotator = np.indices(shape).reshape(2, -1)
    y = of_annotators * rng.normal(size=shape[1])[annotator] + rng.normal(size=item.size)
    return mean_over_items_and_annotators(item, annotator, y)


def test_one_mean_alone_keeps_its_degrees_of_freedom():
    for seed in range(20):
        mean = mean_of(np.random.default_rng(seed), of_annotators=0.2)
        family = family_of_means([mean])
        assert family.freedom_of(mean) == pytest.approx(mean.freedom)


def test_of_tables_of_one_size_mean_squares_are_averaged():
    rng = np.random.default_rng(0)
    means = [mean_of(rng) for _ in range(5)]
    averaged = np.mean([(m.of_items, m.of_annotators, m.of_cells) for m in means], axis=0)
    expected = satterthwaite(*averaged, 30, 4)[1]
    assert family_of_means(means).freedom(30, 4) == pytest.approx(float(expected))


def test_a_mean_with_less_freedom_than_the_family_keeps_it():
    rng = np.random.default_rng(1)
    quiet, loud = [mean_of(rng, of_annotators=0.0) for _ in range(9)], mean_of(rng, of_annotators=3)
    family = family_of_means([*quiet, loud])
    assert family.freedom_of(loud) <= loud.freedom
    assert loud.freedom == pytest.approx(3, abs=0.1)


def test_incomplete_tables_are_no_part_of_it():
    rng = np.random.default_rng(2)
    item, annotator = np.indices((30, 4)).reshape(2, -1)
    kept = rng.random(item.size) < 0.7
    part = mean_over_items_and_annotators(item[kept], annotator[kept], rng.normal(size=kept.sum()))
    assert part.method == "two-way-clusters"
    assert family_of_means([part]) is None
    assert FamilyOfMeans(0.0, 1.0, 1.0).freedom_of(part) == part.freedom


def test_p_with_fewer_degrees_of_freedom_is_larger():
    mean = mean_of(np.random.default_rng(3))
    assert mean.p_with(mean.freedom) == mean.p
    assert mean.p_with(2.0) > mean.p_with(3.0)


def test_where_nothing_varies_there_is_no_p_with_any_freedom():
    item, annotator = np.indices((5, 4)).reshape(2, -1)
    same = mean_over_items_and_annotators(item, annotator, np.ones(20))
    assert np.isnan(same.p_with(1.0))
    assert family_of_means([same]) is not None
