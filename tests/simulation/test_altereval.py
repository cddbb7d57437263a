"""Fashion-AlterEval's judgments of shoes drive the users over the ids they were made of.

The products' own embeddings are not at hand: these are stand-ins, so that counts of the judgments
are facts, and what recommenders reach is not.
"""

import re

import numpy as np
import pytest

from simulation.critics import AttributeCritic
from simulation.drawn_products import stand_in_catalogue
from simulation.experiments import Settings, run_experiment
from simulation.recommenders import EmbeddingRecommender
from simulation.targets import read_dialogues
from simulation.users import meta_sim_prob

pytestmark = pytest.mark.shared_data


@pytest.fixture
def shoes(shared_data):
    names = (shared_data / "shoes_captions" / "eval_im_names.txt").read_text().split()
    categories = [re.sub(r"^img_womens_|_\d+\.jpg$", "", name) for name in names]
    catalogue = stand_in_catalogue(names, categories)
    folder = shared_data / "altereval"
    return catalogue, read_dialogues(
        catalogue, folder / "alter_target_ids_shoes.csv", folder / "input_shoes_CRS_df.csv"
    )


def test_the_dialogues_are_those_of_the_release(shoes):
    catalogue, targets = shoes
    assert (len(catalogue), len(targets)) == (4658, 190)
    assert (targets.alternatives[:, 0] == targets.target).sum() == 13
    n_alternatives = (targets.alternatives >= 0).sum(axis=1)
    assert (n_alternatives == 1).sum() == 68
    # Itself alone, once or twice.
    assert ((targets.accepted >= 0).sum(axis=1) == 1).sum() == 10


def test_the_release_switches_far_more_often_than_the_article(shoes):
    catalogue, targets = shoes
    critic = AttributeCritic(catalogue)
    users = [meta_sim_prob(1, 1.0), meta_sim_prob(1, 1.0, mode="released")]
    recommenders = [(EmbeddingRecommender(catalogue, critic, recency=0.9), critic)]
    log = run_experiment(catalogue, targets, users, recommenders, Settings()).logs["embedding"]
    paper, released = log.n_switches()
    assert released > 4 * paper
    own = targets.alternatives[:, 0] == targets.target
    assert not log.switched[1, :, own].any()
    assert np.isfinite(log.delta[..., 1:]).all()
