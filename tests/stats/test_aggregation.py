"""Aggregation of categories: published values, real crowds, oracles and degenerate input."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stats.aggregation import METHODS, Aggregation, Reason, aggregate, glad, mace, majority
from stats.aggregation.dawid_skene import dawid_skene
from stats.aggregation.glad import _Model as GladModel
from tests.stats.conftest import random_crowd

CATEGORICAL = ["majority", "dawid_skene", "one_coin", "mace", "mace_em", "glad"]
ITERATIVE = CATEGORICAL[1:]


def of(frame: pd.DataFrame, method: str, **options) -> Aggregation:
    columns = frame["item"], frame["annotator"], frame["value"]
    return aggregate(*columns, method=method, **options)


def crowd(shared_data, name: str) -> tuple[pd.DataFrame, pd.Series]:
    folder = shared_data / "crowd" / name
    labels = pd.read_csv(folder / "labels.csv").rename(columns={"label": "value"})
    return labels, pd.read_csv(folder / "gold.csv").set_index("item")["gold"]


def accuracy(result: Aggregation, gold: pd.Series) -> float:
    return float((result.labels["label"].to_numpy() == gold[result.labels["item"]]).mean())


def test_dawid_and_skene_get_their_published_values(worked_example):
    frame, published = worked_example("dawid_skene1979")
    result = of(frame.rename(columns={"label": "value"}), "dawid_skene")
    assert result.converged
    shares = result.probabilities.mean().to_numpy()
    assert shares.round(2).tolist() == published["class_marginals"]
    first = result.confusions[result.confusions["annotator"] == 1]
    rates = first.pivot(index="truth", columns="label", values="probability").round(2)
    assert rates.to_numpy().tolist() == published["observer1_error_rates(rows=true,cols=response)"]
    posterior = result.probabilities.head(6).round(2).to_numpy()
    assert posterior.tolist() == published["patients_1_to_6"]
    assert "repeat" in result.warnings[0]


@pytest.mark.shared_data
def test_on_rte_dawid_skene_beats_the_majority(shared_data):
    labels, gold = crowd(shared_data, "rte")
    votes = of(labels, "majority")
    tied = votes.labels["tied"].to_numpy()
    right = votes.labels["label"].to_numpy() == gold[votes.labels["item"]].to_numpy()
    assert np.where(tied, 0.5, right).mean() == pytest.approx(0.897, abs=5e-4)
    assert accuracy(votes, gold) == pytest.approx(0.897, abs=3e-3)
    assert votes.n_ties == 65
    assert accuracy(of(labels, "dawid_skene"), gold) == pytest.approx(0.928, abs=1e-3)


@pytest.mark.shared_data
def test_on_bluebirds_dawid_skene_beats_the_majority(shared_data):
    labels, gold = crowd(shared_data, "bluebirds")
    assert accuracy(of(labels, "majority"), gold) == pytest.approx(0.759, abs=5e-4)
    assert accuracy(of(labels, "dawid_skene"), gold) == pytest.approx(0.898, abs=5e-4)
    assert accuracy(of(labels, "mace_em"), gold) == pytest.approx(0.898, abs=5e-4)
    # the published priors pull annotators who err alike towards the majority
    assert accuracy(of(labels, "mace"), gold) == pytest.approx(0.861, abs=5e-4)


def test_tied_items_take_turns_so_that_no_category_is_favoured():
    result = majority(np.repeat(np.arange(10), 2), list("ab") * 10, ["no", "yes"] * 10)
    assert result.n_ties == 10
    assert result.labels["label"].value_counts().to_dict() == {"no": 5, "yes": 5}
    assert result.labels["probability"].tolist() == [0.5] * 10
    assert result.annotators["agreement"].isna().all()


@pytest.mark.parametrize("method", ["dawid_skene", "one_coin", "mace_em"])
@pytest.mark.parametrize("smoothing", [0.0, 0.5])
def test_the_likelihood_never_falls(method, smoothing):
    frame = random_crowd(np.random.default_rng(1))
    reached = [
        of(frame, method, smoothing=smoothing, tolerance=0, max_iterations=n).log_likelihood
        for n in range(1, 25)
    ]
    assert (np.diff(reached) >= -1e-9).all()
    assert reached[-1] > reached[0]


@pytest.mark.parametrize("method", ITERATIVE)
def test_too_few_iterations_are_reported(method):
    frame = random_crowd(np.random.default_rng(1))
    stopped = of(frame, method, max_iterations=1)
    assert stopped.converged is False
    assert any("not converged" in warning for warning in stopped.warnings)
    finished = of(frame, method)
    assert finished.converged is True
    assert finished.log_likelihood > stopped.log_likelihood


def test_dawid_skene_stops_where_the_likelihood_is_stationary():
    frame = random_crowd(np.random.default_rng(2))
    result = of(frame, "dawid_skene")
    further = of(frame, "dawid_skene", tolerance=0, max_iterations=5000)
    assert result.log_likelihood == pytest.approx(further.log_likelihood, abs=1e-5)
    assert np.abs(result.probabilities - further.probabilities).to_numpy().max() < 1e-2


def brute_force_dawid_skene(frame: pd.DataFrame, rounds: int) -> np.ndarray:
    """The posterior by plain loops over items, annotators and categories."""
    items, annotators, categories = (sorted(frame[c].unique()) for c in frame)
    counts = np.zeros((len(items), len(annotators), len(categories)))
    for item, annotator, value in frame.itertuples(index=False):
        where = items.index(item), annotators.index(annotator), categories.index(value)
        counts[where] += 1
    posterior = counts.sum(axis=1) / counts.sum(axis=(1, 2))[:, None]
    for _ in range(rounds):
        prior = posterior.mean(axis=0)
        weights = np.einsum("ik,ial->akl", posterior, counts)
        confusion = weights / weights.sum(axis=2, keepdims=True)
        joint = prior * np.prod(confusion[None] ** counts[:, :, None, :], axis=(1, 3))
        posterior = joint / joint.sum(axis=1, keepdims=True)
    return posterior


def test_dawid_skene_equals_a_loop_over_the_published_formulas():
    frame = random_crowd(np.random.default_rng(3), n_annotators=5, n_categories=3, share=0.9)
    result = of(frame, "dawid_skene", tolerance=0, max_iterations=20)
    expected = brute_force_dawid_skene(frame, result.iterations + 1)
    assert result.probabilities.to_numpy() == pytest.approx(expected, abs=1e-9)


def planted(
    rng: np.random.Generator, correct: np.ndarray, *, n_items: int = 300, n_categories: int = 3
) -> tuple[pd.DataFrame, np.ndarray]:
    """Every annotator labels every item, right with a chance per item and annotator."""
    truth = rng.integers(n_categories, size=n_items)
    wrong = (truth[:, None] + rng.integers(1, n_categories, size=correct.shape)) % n_categories
    value = np.where(rng.random(correct.shape) < correct, truth[:, None], wrong)
    item, annotator = np.indices(value.shape)
    columns = {"item": item.ravel(), "annotator": annotator.ravel(), "value": value.ravel()}
    return pd.DataFrame(columns), truth


def test_one_coin_and_dawid_skene_recover_planted_accuracies():
    rng = np.random.default_rng(4)
    skill = np.linspace(0.35, 0.95, 10)
    frame, truth = planted(rng, np.broadcast_to(skill, (300, 10)))
    for method in ("one_coin", "dawid_skene"):
        result = of(frame, method)
        assert result.annotators["accuracy"].to_numpy() == pytest.approx(skill, abs=0.1)
        assert (result.labels["label"] == truth).mean() > 0.97


def test_mace_recovers_planted_competences():
    rng = np.random.default_rng(5)
    competence = np.linspace(0.05, 0.95, 10)
    truth = rng.integers(3, size=400)
    spam = rng.choice(3, p=[0.6, 0.3, 0.1], size=(400, 10))
    value = np.where(rng.random((400, 10)) < competence, truth[:, None], spam)
    item, annotator = np.indices(value.shape)
    result = mace(item.ravel(), annotator.ravel(), value.ravel())
    assert result.annotators["competence"].to_numpy() == pytest.approx(competence, abs=0.12)
    assert (result.labels["label"] == truth).mean() > 0.97


def rare_crowd(seed, n_items=1500):
    """Positive items are 12 %, and annotators miss more of them than they invent."""
    rng = np.random.default_rng(seed)
    truth = rng.random(n_items) < 0.12
    hit, right = rng.beta(6, 3, size=60), rng.beta(9, 1, size=60)
    annotator = np.array([rng.choice(60, size=3, replace=False) for _ in range(n_items)])
    positive = np.where(truth[:, None], hit[annotator], 1 - right[annotator])
    value = (rng.random((n_items, 3)) < positive).astype(int)
    columns = np.arange(n_items).repeat(3), annotator.ravel(), value.ravel()
    return columns, truth


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_model_that_loses_to_the_majority_on_a_rare_class_says_that_it_contradicts_it(seed):
    columns, truth = rare_crowd(seed)
    right = {}
    for name in ("majority", "mace", "mace_em"):
        result = METHODS[name](*columns)
        right[name] = (result.labels["label"] == truth).mean()
        contradicts = any("contradicts the majority" in text for text in result.warnings)
        assert contradicts or right[name] > right["majority"] - 0.05
    assert right["mace"] > right["mace_em"] + 0.04


def test_glad_recovers_the_order_of_planted_abilities_and_difficulties():
    rng = np.random.default_rng(6)
    ability, ease = np.linspace(-0.5, 3, 20), np.exp(rng.normal(size=300))
    chance = 1 / (1 + np.exp(-ability * ease[:, None]))
    frame, truth = planted(rng, chance, n_categories=2)
    result = of(frame, "glad")
    assert np.corrcoef(result.annotators["ability"], ability)[0, 1] > 0.95
    ranks = result.labels["difficulty"].corr(pd.Series(1 / ease), method="spearman")
    assert ranks > 0.5
    assert (result.labels["label"] == truth).mean() > 0.95


def test_glads_gradient_is_that_of_its_loss():
    from scipy.optimize import check_grad

    from stats.aggregation.crowd import code_votes

    frame = random_crowd(np.random.default_rng(7), n_items=6, n_annotators=4)
    model = GladModel(code_votes(frame["item"], frame["annotator"], frame["value"], "refuse"))
    point = model.start() + np.random.default_rng(8).normal(size=len(model.start()))
    error = check_grad(lambda x: model.loss(x)[0], lambda x: model.loss(x)[1], point)
    assert error < 1e-4


@settings(max_examples=15)
@given(seed=st.integers(0, 10_000), method=st.sampled_from(CATEGORICAL))
def test_the_order_of_the_rows_does_not_matter(seed, method):
    rng = np.random.default_rng(seed)
    frame = random_crowd(rng, n_items=15, n_annotators=5, n_categories=3)
    result, shuffled = of(frame, method), of(frame.sample(frac=1, random_state=seed), method)
    assert shuffled.probabilities.to_numpy() == pytest.approx(
        result.probabilities.to_numpy(), abs=1e-4
    )
    assert shuffled.labels["item"].tolist() == result.labels["item"].tolist()


@settings(max_examples=10)
@given(seed=st.integers(0, 10_000), method=st.sampled_from(CATEGORICAL))
def test_the_names_of_annotators_and_categories_do_not_matter(seed, method):
    rng = np.random.default_rng(seed)
    frame = random_crowd(rng, n_items=15, n_annotators=5, n_categories=3)
    renamed = frame.assign(annotator=-frame["annotator"], value=-frame["value"])
    expected = of(frame, method).probabilities.to_numpy()
    probabilities = of(renamed, method).probabilities.to_numpy()[:, ::-1]
    assert probabilities == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("method", CATEGORICAL)
def test_probabilities_sum_to_one_and_give_the_label(method):
    frame = random_crowd(np.random.default_rng(9))
    result = of(frame, method)
    assert result.probabilities.sum(axis=1).to_numpy() == pytest.approx(1)
    best = result.probabilities.max(axis=1).to_numpy()
    assert result.labels["probability"].to_numpy() == pytest.approx(best)
    assert (result.labels["n_labels"] == frame.groupby("item").size().to_numpy()).all()
    assert result.signature.startswith(f"{method}|")


@pytest.mark.parametrize("method", list(METHODS))
def test_without_labels_there_is_a_reason(method):
    result = aggregate([], [], [], method=method)
    assert result.reason is Reason.NO_LABELS
    assert result.labels.empty
    assert result.label_by_item == {}


@pytest.mark.parametrize("method", CATEGORICAL)
def test_a_single_category_is_certain(method):
    result = aggregate([1, 1, 2], list("aba"), ["x"] * 3, method=method)
    assert result.labels["label"].tolist() == ["x", "x"]
    assert result.labels["probability"].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("method", CATEGORICAL)
def test_one_item_and_one_annotator_are_enough(method):
    result = aggregate(["i"], ["a"], ["x"], method=method)
    assert result.label_by_item == {"i": "x"}


@pytest.mark.parametrize("method", [m for m in METHODS if m != "dawid_skene"])
def test_repeated_labels_are_refused(method):
    with pytest.raises(ValueError, match="more than once in 1 rows"):
        aggregate([1, 1, 2], list("aaa"), [1.0, 2.0, 3.0], method=method)


@pytest.mark.parametrize("method", [m for m in METHODS if m != "bradley_terry"])
def test_repeated_labels_count_where_that_is_asked_for(method):
    columns = [1, 1, 1, 2, 2], list("aabab"), [1.0, 1.0, 2.0, 3.0, 4.0]
    result = aggregate(*columns, method=method, repeats="count")
    assert result.labels["n_labels"].tolist() == [3, 2]
    assert any("1 labels repeat" in warning for warning in result.warnings)


def test_thin_annotators_are_warned_of():
    result = dawid_skene([1, 2], ["a", "b"], ["x", "y"])
    assert any("2 of 2 annotators gave fewer than 5" in warning for warning in result.warnings)


@pytest.mark.parametrize("method", list(METHODS))
def test_missing_values_and_unequal_columns_are_refused(method):
    with pytest.raises(ValueError, match="values has 1 missing"):
        aggregate([1, 2], ["a", "b"], [1.0, None], method=method)
    with pytest.raises(ValueError, match="same length"):
        aggregate([1, 2], ["a"], [1.0, 2.0], method=method)


def test_unknown_methods_and_options_are_refused():
    with pytest.raises(ValueError, match="method must be one of majority, dawid_skene"):
        aggregate([1], [1], [1], method="median_of_medians")
    with pytest.raises(ValueError, match="mean has no option smoothing; it has confidence"):
        aggregate([1], [1], [1], method="mean", smoothing=1)
    for method in ("dawid_skene", "one_coin", "mace_em"):
        with pytest.raises(ValueError, match="smoothing must not be negative"):
            aggregate([1], [1], [1], method=method, smoothing=-1)
    with pytest.raises(ValueError, match="tolerance must not be negative"):
        glad([1], [1], [1], tolerance=-1)
    with pytest.raises(ValueError, match="max_iterations must be at least 1"):
        mace([1], [1], [1], max_iterations=0)
    with pytest.raises(ValueError, match="repeats must be"):
        majority([1], [1], [1], repeats="drop")
