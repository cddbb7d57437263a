import numpy as np
import pandas as pd
import pytest

from stats.aggregation import dawid_skene, glad, mace, mace_em, majority, one_coin
from stats.aggregation.mace import _LikelihoodModel as MaceModel, _Parameters as MaceParameters
from stats.aggregation.result import code_votes
from tests.stats.conftest import columns, random_crowd
from tests.stats.worked_examples import worked_example

NEVER = -1.0  # crowd-kit would stop at the first round that lowers its bound
pytestmark = pytest.mark.filterwarnings("ignore::pandas.errors.Pandas4Warning")  # crowd-kit's


@pytest.fixture(scope="module")
def crowd() -> pd.DataFrame:
    return random_crowd(np.random.default_rng(7), n_items=120, n_annotators=9, n_categories=3)


@pytest.fixture
def theirs(crowd):
    """The crowd in crowd-kit's columns."""
    return crowd.rename(columns={"item": "task", "annotator": "worker", "value": "label"})


def in_order(table):
    return table.sort_index().sort_index(axis=1).to_numpy()


@pytest.mark.slow
def test_the_majority_dawid_skene_and_one_coin_equal_crowd_kits(crowd, theirs):
    from crowdkit.aggregation import DawidSkene, MajorityVote, OneCoinDawidSkene

    ours = majority(*columns(crowd))
    oracle = MajorityVote().fit_predict_proba(theirs)
    assert in_order(ours.probabilities) == pytest.approx(in_order(oracle))
    # crowd-kit adds 1e-10 to every probability, which moves those near 0 or 1 a little.
    ours = dawid_skene(*columns(crowd), tolerance=1e-13)
    oracle = DawidSkene(n_iter=100, tol=NEVER).fit(theirs)
    assert in_order(ours.probabilities) == pytest.approx(in_order(oracle.probas_), abs=2e-3)
    confusions = ours.confusions.set_index(["annotator", "label", "truth"])["probability"]
    estimated = oracle.errors_.stack().rename_axis(["annotator", "label", "truth"])
    both = pd.concat([confusions, estimated], axis=1, join="inner").to_numpy()
    assert len(both) == 9 * 3 * 3
    assert both[:, 0] == pytest.approx(both[:, 1], abs=2e-3)
    ours = one_coin(*columns(crowd), tolerance=1e-13)
    oracle = OneCoinDawidSkene(n_iter=100, tol=NEVER).fit(theirs)
    assert in_order(ours.probabilities) == pytest.approx(in_order(oracle.probas_), abs=1e-5)
    accuracies = ours.annotators.set_index("annotator")["accuracy"]
    assert accuracies.to_numpy() == pytest.approx(oracle.skills_.sort_index().to_numpy(), abs=1e-5)


def test_mace_is_the_variational_bayes_of_its_authors():
    example = worked_example(20)
    expected = example["expected"]
    rows = zip(*example["inputs"]["rows_item_annotator_label"], strict=True)
    items, annotators, labels = (list(column) for column in rows)
    result = mace(items, annotators, labels)
    assert result.labels["label"].tolist() == expected["labels"]
    first = result.probabilities.to_numpy()[:5]
    assert first == pytest.approx(np.array(expected["posterior_of_first_5"]), abs=1e-5)
    assert result.log_likelihood == pytest.approx(expected["log_marginal_likelihood"], abs=1e-5)
    # they print exp(E log), normalised; here the posterior mean is reported, which is near it
    competence = result.annotators["competence"].to_numpy()
    assert competence == pytest.approx(np.array(expected["competence"]), abs=0.03)
    ranks = np.argsort(competence).tolist()
    assert ranks == np.argsort(expected["knowing_exp_digamma"]).tolist()


@pytest.mark.slow
def test_mace_em_and_glad_come_near_crowd_kits(crowd, theirs):
    from crowdkit.aggregation import GLAD, MACE

    smoothing = 0.01 / 3  # crowd-kit's own, whatever is requested
    ours = mace_em(*columns(crowd), smoothing=smoothing)
    oracle = MACE(n_restarts=2, n_iter=50, method="em", random_state=0).fit(theirs)
    model = MaceModel(code_votes(*columns(crowd), "refuse"), smoothing)
    _, objective = model.expect(MaceParameters(oracle.spamming_[:, 1], oracle.thetas_))
    assert ours.log_likelihood >= objective - 0.5
    agreement = in_order(ours.probabilities).argmax(1) == in_order(oracle.probas_).argmax(1)
    assert agreement.mean() >= 0.9
    # The priors differ (crowd-kit's of log ease is N(1, 1), ours N(0, 1)), so the scales do.
    ours = glad(*columns(crowd))
    oracle = GLAD(n_iter=15, silent=True).fit(theirs)
    agreement = in_order(ours.probabilities).argmax(1) == in_order(oracle.probas_).argmax(1)
    assert agreement.mean() >= 0.95
    abilities = oracle.alphas_.sort_index().to_numpy()
    assert np.corrcoef(ours.annotators["ability"], abilities)[0, 1] > 0.95
