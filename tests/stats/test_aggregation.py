import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from error_codes import InvalidValue
from stats.aggregation import METHODS, Aggregation, Reason, aggregate, majority
from stats.aggregation.dawid_skene import dawid_skene
from stats.aggregation.glad import _Model as GladModel
from tests.codes import codes_of, refused
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
    assert result.warnings[0].code == "repeated_labels"


@pytest.mark.shared_data
def test_on_rte_and_bluebirds_dawid_skene_beats_the_majority(shared_data):
    labels, gold = crowd(shared_data, "rte")
    votes = of(labels, "majority")
    tied = votes.labels["tied"].to_numpy()
    right = votes.labels["label"].to_numpy() == gold[votes.labels["item"]].to_numpy()
    assert np.where(tied, 0.5, right).mean() == pytest.approx(0.897, abs=5e-4)
    assert accuracy(votes, gold) == pytest.approx(0.897, abs=3e-3)
    assert votes.n_ties == 65
    assert accuracy(of(labels, "dawid_skene"), gold) == pytest.approx(0.928, abs=1e-3)
    labels, gold = crowd(shared_data, "bluebirds")
    # the published priors of mace pull annotators who err alike towards the majority
    published = {"majority": 0.759, "dawid_skene": 0.898, "mace_em": 0.898, "mace": 0.861}
    for method, share in published.items():
        assert accuracy(of(labels, method), gold) == pytest.approx(share, abs=5e-4)


def test_tied_items_take_turns_and_thin_annotators_are_warned_of():
    result = majority(np.repeat(np.arange(10), 2), list("ab") * 10, ["no", "yes"] * 10)
    assert result.n_ties == 10
    assert result.labels["label"].value_counts().to_dict() == {"no": 5, "yes": 5}
    assert result.labels["probability"].tolist() == [0.5] * 10
    assert result.annotators["agreement"].isna().all()
    result = dawid_skene([1, 2], ["a", "b"], ["x", "y"])
    assert "thin_annotators" in codes_of(result.warnings)


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
    assert "not_converged" in codes_of(stopped.warnings)
    finished = of(frame, method)
    assert finished.converged is True
    assert finished.log_likelihood > stopped.log_likelihood


def test_dawid_skene_stops_where_it_is_stationary():
    frame = random_crowd(np.random.default_rng(2))
    result = of(frame, "dawid_skene")
    further = of(frame, "dawid_skene", tolerance=0, max_iterations=5000)
    assert result.log_likelihood == pytest.approx(further.log_likelihood, abs=1e-5)
    assert np.abs(result.probabilities - further.probabilities).to_numpy().max() < 1e-2


def rare_crowd(seed, n_items=500):
    """Positive items are 12 %, and annotators miss more of them than they invent."""
    rng = np.random.default_rng(seed)
    truth = rng.random(n_items) < 0.12
    hit, right = rng.beta(6, 3, size=60), rng.beta(9, 1, size=60)
    annotator = np.array([rng.choice(60, size=3, replace=False) for _ in range(n_items)])
    positive = np.where(truth[:, None], hit[annotator], 1 - right[annotator])
    value = (rng.random((n_items, 3)) < positive).astype(int)
    columns = np.arange(n_items).repeat(3), annotator.ravel(), value.ravel()
    return columns, truth


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_a_model_that_loses_to_the_majority_on_a_rare_class_says_that_it_contradicts_it(seed):
    columns, truth = rare_crowd(seed)
    right = {}
    for name in ("majority", "mace", "mace_em"):
        result = METHODS[name](*columns)
        right[name] = (result.labels["label"] == truth).mean()
        contradicts = "contradicts_majority" in codes_of(result.warnings)
        assert contradicts or right[name] > right["majority"] - 0.05
    assert right["mace"] > right["mace_em"] + 0.04


def test_glad_recovers_planted_orders_by_a_gradient_that_is_that_of_its_loss():
    rng = np.random.default_rng(6)
    ability, ease = np.linspace(-0.5, 3, 20), np.exp(rng.normal(size=300))
    chance = 1 / (1 + np.exp(-ability * ease[:, None]))
    truth = rng.integers(2, size=300)
    value = np.where(rng.random(chance.shape) < chance, truth[:, None], 1 - truth[:, None])
    item, annotator = (axis.ravel() for axis in np.indices(value.shape))
    frame = pd.DataFrame({"item": item, "annotator": annotator, "value": value.ravel()})
    result = of(frame, "glad")
    assert np.corrcoef(result.annotators["ability"], ability)[0, 1] > 0.95
    ranks = result.labels["difficulty"].corr(pd.Series(1 / ease), method="spearman")
    assert ranks > 0.5
    assert (result.labels["label"] == truth).mean() > 0.95
    from scipy.optimize import check_grad

    from stats.aggregation.result import code_votes

    frame = random_crowd(np.random.default_rng(7), n_items=6, n_annotators=4)
    model = GladModel(code_votes(frame["item"], frame["annotator"], frame["value"], "refuse"))
    point = model.start() + np.random.default_rng(8).normal(size=len(model.start()))
    error = check_grad(lambda x: model.loss(x)[0], lambda x: model.loss(x)[1], point)
    assert error < 1e-4


@pytest.mark.slow
@settings(max_examples=15)
@given(seed=st.integers(0, 10_000), method=st.sampled_from(CATEGORICAL))
def test_neither_the_order_of_rows_nor_names_matter(seed, method):
    rng = np.random.default_rng(seed)
    frame = random_crowd(rng, n_items=15, n_annotators=5, n_categories=3)
    result, shuffled = of(frame, method), of(frame.sample(frac=1, random_state=seed), method)
    expected = result.probabilities.to_numpy()
    assert shuffled.probabilities.to_numpy() == pytest.approx(expected, abs=1e-4)
    assert shuffled.labels["item"].tolist() == result.labels["item"].tolist()
    renamed = of(frame.assign(annotator=-frame["annotator"], value=-frame["value"]), method)
    assert renamed.probabilities.to_numpy()[:, ::-1] == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("method", CATEGORICAL)
def test_probabilities_sum_to_one_and_give_the_label(method):
    frame = random_crowd(np.random.default_rng(9))
    result = of(frame, method)
    assert result.probabilities.sum(axis=1).to_numpy() == pytest.approx(1)
    best = result.probabilities.max(axis=1).to_numpy()
    assert result.labels["probability"].to_numpy() == pytest.approx(best)
    assert (result.labels["n_labels"] == frame.groupby("item").size().to_numpy()).all()
    assert result.signature.startswith(f"{method}|")
    # A single category is certain, and one item and one annotator are enough.
    single = aggregate([1, 1, 2], list("aba"), ["x"] * 3, method=method).labels
    assert single["label"].tolist() == ["x", "x"]
    assert single["probability"].tolist() == [1.0, 1.0]
    assert aggregate(["i"], ["a"], ["x"], method=method).label_by_item == {"i": "x"}


@pytest.mark.parametrize("method", list(METHODS))
def test_without_labels_there_is_a_reason_and_unfit_columns_are_refused(method):
    result = aggregate([], [], [], method=method)
    assert result.reason is Reason.NO_LABELS
    assert result.labels.empty
    assert result.label_by_item == {}
    with refused(InvalidValue, "values_missing"):
        aggregate([1, 2], ["a", "b"], [1.0, None], method=method)
    with refused(InvalidValue, "unequal_lengths"):
        aggregate([1, 2], ["a"], [1.0, 2.0], method=method)
    if method != "dawid_skene":
        with refused(InvalidValue, "repeated_labels"):
            aggregate([1, 1, 2], list("aaa"), [1.0, 2.0, 3.0], method=method)


@pytest.mark.parametrize("method", [m for m in METHODS if m != "bradley_terry"])
def test_repeated_labels_count_where_that_is_asked_for(method):
    columns = [1, 1, 1, 2, 2], list("aabab"), [1.0, 1.0, 2.0, 3.0, 4.0]
    result = aggregate(*columns, method=method, repeats="count")
    assert result.labels["n_labels"].tolist() == [3, 2]
    assert "repeated_labels" in codes_of(result.warnings)


def test_unknown_methods_and_options_are_refused():
    for options, code in (
        ({"method": "median_of_medians"}, "unknown_method"),
        ({"method": "mean", "smoothing": 1}, "unknown_option"),
        ({"method": "dawid_skene", "smoothing": -1}, "smoothing_out_of_range"),
        ({"method": "one_coin", "smoothing": -1}, "smoothing_out_of_range"),
        ({"method": "mace_em", "smoothing": -1}, "smoothing_out_of_range"),
        ({"method": "glad", "tolerance": -1}, "tolerance_out_of_range"),
        ({"method": "mace", "max_iterations": 0}, "max_iterations_out_of_range"),
        ({"method": "majority", "repeats": "drop"}, "unknown_repeats"),
    ):
        with refused(InvalidValue, code):
            aggregate([1], [1], [1], **options)
