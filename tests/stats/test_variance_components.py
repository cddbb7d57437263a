import numpy as np
import pytest

from error_codes import InvalidValue
from stats.inference.generalisability import decision_study
from stats.inference.variance_components import variance_components
from tests.codes import refused
from tests.stats.worked_examples import worked_example


def crossed(table):
    table = np.asarray(table)
    codes = np.indices(table.shape).reshape(table.ndim, -1)
    return [*codes, table.ravel()]


def test_items_by_raters_have_the_components_of_moments_and_of_likelihood():
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
    example = worked_example(12)
    items, annotators, values = zip(*example["inputs"]["unbalanced_rows"], strict=True)
    found = variance_components(list(items), list(annotators), list(values))
    expected = example["expected"]["reml_unbalanced"]
    assert found.method == "reml"
    assert not found.balanced
    for name, upstream in {"item": "i", "annotator": "r", "residual": "residual"}.items():
        assert found.raw[name] == pytest.approx(expected[upstream], abs=0.005)


def test_items_by_systems_by_raters_and_what_more_would_buy():
    example = worked_example(13)
    items, systems, annotators, values = crossed(example["inputs"]["ratings_item_system_rater"])
    found = variance_components(items, annotators, values, systems=systems)
    for name, value in example["expected"]["components"].items():
        own = name.replace("rater", "annotator")
        assert found.raw[own] == pytest.approx(value, abs=1e-8)
    assert found.components["item_annotator"] == 0
    negative = [note for note in found.notes if getattr(note, "code", "") == "negative_component"]
    assert any("item_annotator" in note for note in negative)
    for row in example["expected"]["d_study_negative_as_zero"]:
        plan = decision_study(found.components, n_items=row["items"], n_annotators=row["raters"])
        assert plan.se_of_difference == pytest.approx(row["se_of_a_difference"], abs=1e-8)
        assert plan.generalizability == pytest.approx(
            row["generalizability_of_system_means"], abs=1e-8
        )


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


def test_three_unbalanced_facets_maximise_the_restricted_likelihood():
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


def test_moments_are_unbiased_in_unbalanced_designs():
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


def test_annotators_of_one_item_each_cannot_be_told_from_the_residual():
    found = variance_components(np.repeat(np.arange(30), 3), np.arange(90), np.arange(90) % 7)
    assert found.confounded == {"annotator": "residual"}
    assert np.isnan(found.raw["annotator"])
    assert "annotator" not in found.components
    with refused(InvalidValue, "too_few_levels"):
        variance_components([1, 2, 3], ["a", "a", "a"], [1, 2, 3])
