import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests

from error_codes import InvalidValue
from stats.inference.alternative_annotator import alternative_annotator_test
from stats.significance import benjamini_hochberg, benjamini_yekutieli, holm, partial_conjunction
from tests.codes import refused
from tests.stats.worked_examples import worked_example


def long_frame(inputs):
    said = {**inputs["humans"], "judge": inputs["judge"]}
    rows = [(item, name, value) for name, of in said.items() for item, value in of.items()]
    return zip(*rows, strict=True)


def run(inputs, *, clusters=False, **options):
    items, annotators, values = long_frame(inputs)
    level = "nominal" if inputs["score"] == "accuracy" else "interval"
    cluster = [inputs["clusters"][item] for item in items] if clusters else None
    return alternative_annotator_test(
        list(items),
        list(annotators),
        list(values),
        judge="judge",
        level=level,
        epsilon=inputs["epsilon"],
        min_items=inputs["min_items_per_human"],
        clusters=cluster,
        n_resamples=200,
        n_shuffles=10,
        **options,
    )


@pytest.mark.parametrize("number", [1, 2])
def test_the_published_program_gives_the_same_numbers(number):
    example = worked_example(number)
    expected, result = example["expected"], run(example["inputs"])
    assert result.winning_rate == expected["winning_rate"]
    advantage = pytest.approx(expected["advantage_probability"], abs=1e-9)
    assert result.advantage_probability == advantage
    assert result.passes is expected["passes"]
    for test, row in zip(result.annotators, expected["annotators"], strict=True):
        assert (test.annotator, test.n) == (row["annotator"], row["n"])
        assert test.judge_wins == pytest.approx(row["llm_wins_or_ties"], abs=1e-9)
        assert test.annotator_wins == pytest.approx(row["human_wins_or_ties"], abs=1e-9)
        assert test.mean_difference == pytest.approx(row["mean_difference"], abs=1e-9)
        assert test.p == pytest.approx(row["p"], abs=1e-9)
    assert result.advantage_low < result.advantage_probability < result.advantage_high


def test_p_is_adjusted_for_any_dependence_and_widened_by_cluster_sums():
    example = worked_example(1)
    adjusted = [test.p_adjusted for test in run(example["inputs"]).annotators]
    assert adjusted == pytest.approx(example["expected"]["by_adjusted_p"], abs=1e-9)
    tests = run(example["inputs"], clusters=True).annotators
    expected = [row["p_clustered"] for row in example["expected"]["annotators"]]
    assert [test.p for test in tests] == pytest.approx(expected, abs=1e-9)
    assert {test.n_clusters for test in tests} == {12}


def crowd(rng, prevalence, n_items=100):
    truth = rng.random(n_items) < prevalence
    return [np.where(rng.random(n_items) < 0.3, ~truth, truth) for _ in range(3)]


def judged(names, said):
    n = len(said[0])
    return alternative_annotator_test(
        np.tile(np.arange(n), len(names)), np.repeat(names, n), np.concatenate(said), judge="J"
    )


def test_a_judge_that_always_says_the_commoner_class_passes_and_so_does_the_control():
    said = [*crowd(np.random.default_rng(3), 0.02), np.zeros(100, dtype=bool)]
    result = judged(list("abcJ"), said)
    assert result.passes
    assert result.controls["constant"].passes
    assert result.controls["constant"].value == 0


def test_two_annotators_are_too_few_and_an_unknown_judge_is_refused():
    result = judged(list("abJ"), crowd(np.random.default_rng(0), 0.5))
    assert not result.passes
    assert result.reason == "too_few_annotators"
    assert np.isnan(result.winning_rate)
    with refused(InvalidValue, "unknown_judge"):
        alternative_annotator_test([1, 1], ["a", "b"], [1, 1], judge="J")


def test_the_least_epsilon_is_where_the_judge_begins_to_pass():
    example = worked_example(2)["inputs"]
    least = run(example).least_epsilon
    assert run(example | {"epsilon": least}).passes
    assert least == 0 or not run(example | {"epsilon": least - 0.001}).passes


def test_adjustments_and_partial_conjunctions_are_the_published_ones():
    example = worked_example(19)
    p, expected = example["inputs"]["p"], example["expected"]
    assert holm(p) == pytest.approx(expected["holm"], abs=1e-9)
    assert benjamini_hochberg(p) == pytest.approx(expected["bh"], abs=1e-9)
    assert benjamini_yekutieli(p) == pytest.approx(expected["by"], abs=1e-9)
    of_first = partial_conjunction(p[: example["inputs"]["partial_conjunction_of_first"]])
    assert of_first == pytest.approx(expected["partial_conjunction_bonferroni"], abs=1e-9)
    assert np.count_nonzero(of_first <= 0.05) == expected["k_bonferroni"]
    p = np.random.default_rng(5).random(40) ** 2
    assert benjamini_yekutieli(p) == pytest.approx(multipletests(p, method="fdr_by")[1])
