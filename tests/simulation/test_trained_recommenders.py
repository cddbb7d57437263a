from dataclasses import replace

import numpy as np
import pytest
import torch

from simulation import critics, dialogues, drawn_products, exceptions, recommenders, users
from simulation.experiments import outcomes
from simulation.recommenders.trained import training
from simulation.recommenders.trained.settings import items_of, settings_of
from simulation.recommenders.trained.tracker import (
    Batch,
    Dialogue,
    Tracker,
    Trainer,
    nearest,
    target_ranks,
)
from stats.ranking import measure, topic_means
from tests.codes import refused_naming

N_ITEMS, WIDTH = 500, 32
EPOCHS = {"gru-sl": 20, "gru-rl": 2, "ege": 10}


@pytest.fixture(scope="module")
def catalogue():
    return drawn_products.drawn_catalogue(N_ITEMS)


@pytest.fixture(scope="module")
def critic(catalogue):
    return critics.AttributeCritic(catalogue)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, catalogue, critic):
    path = tmp_path_factory.mktemp("checkpoints")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    for kind, epochs in EPOCHS.items():
        start = path / "gru-sl.pt" if kind == "gru-rl" else None
        settings = settings_of(kind, width=WIDTH, epochs=epochs, batch_size=64)
        training.train(catalogue, critic, settings, path / f"{kind}.pt", start_from=start)
    torch.set_num_threads(threads)
    return path


def values(catalogue, recommender, critic):
    items = items_of(catalogue, critic, seed=0)
    targets = training.held_out(catalogue, np.concatenate([items.validation, items.test]), seed=5)
    log = dialogues.simulate(catalogue, targets, [users.sim_base()], recommender, critic)
    return np.asarray(outcomes(log, (measure("nDCG@10"),), qrels="target").values[0, 0, 0])


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(EPOCHS))
def test_a_trained_recommender_beats_chance_and_learns_over_turns(catalogue, critic, folder, kind):
    own = values(
        catalogue, training.read_recommender(folder / f"{kind}.pt", catalogue, critic), critic
    )
    chance = values(catalogue, recommenders.RandomRecommender(catalogue), critic)
    assert topic_means.compare_over_topics(own[:, 9], chance[:, 9]).ci_low > 0.1
    assert own[:, 9].mean() > 4 * chance[:, 9].mean()
    assert topic_means.compare_over_topics(own[:, 9], own[:, 0]).ci_low > 0.03


@pytest.mark.parametrize("kind", list(EPOCHS))
def test_it_loses_without_its_history_and_by_shuffled_critiques(catalogue, critic, folder, kind):
    recommender = training.read_recommender(folder / f"{kind}.pt", catalogue, critic)
    own = values(catalogue, recommender, critic)[:, 9]
    without = values(catalogue, recommenders.WithoutHistory(recommender), critic)[:, 9]
    shuffled = values(catalogue, recommender, recommenders.ShuffledCritic(critic, catalogue))[:, 9]
    assert topic_means.compare_over_topics(own, without).ci_low > 0
    assert topic_means.compare_over_topics(own, shuffled).ci_low > 0.1


def test_trained_dialogues_are_the_same_one_by_one(catalogue, critic, folder):
    recommender = training.read_recommender(folder / "ege.pt", catalogue, critic)
    targets = training.held_out(catalogue, np.arange(30), seed=1)
    whole = dialogues.simulate(catalogue, targets, [users.sim_base()], recommender, critic)
    for row in range(0, 30, 5):
        part = targets.part(np.array([row]))
        alone = dialogues.simulate(catalogue, part, [users.sim_base()], recommender, critic)
        assert (alone.shown[0, 0, 0] == whole.shown[0, 0, row]).all()


def test_training_that_was_interrupted_ends_as_if_it_had_not_been(catalogue, critic, tmp_path):
    for kind in ("gru-sl", "ege"):
        settings = settings_of(kind, width=16, epochs=4, n_turns=3)
        whole = training.train(catalogue, critic, settings, tmp_path / f"{kind}-whole.pt")
        part = tmp_path / f"{kind}-part.pt"
        training.train(catalogue, critic, replace(settings, epochs=2), part)
        resumed = training.train(catalogue, critic, settings, part)
        assert [each["loss"] for each in resumed.history] == [
            each["loss"] for each in whole.history
        ]
        assert all(torch.equal(resumed.latest[name], whole.latest[name]) for name in whole.latest)
        # Done already: nothing is trained again.
        assert training.train(catalogue, critic, settings, part).history == resumed.history


def test_the_best_epoch_by_validation_is_kept(folder):
    checkpoint = training.read_checkpoint(folder / "gru-sl.pt")
    scores = [each["validation"] for each in checkpoint.history]
    assert checkpoint.origin()["best_validation"] == max(scores)
    assert len(scores) == EPOCHS["gru-sl"]
    is_last = all(torch.equal(checkpoint.best[n], checkpoint.latest[n]) for n in checkpoint.best)
    assert is_last == (scores.index(max(scores)) == len(scores) - 1)


def test_a_checkpoint_of_something_else_is_refused(catalogue, critic, folder, tmp_path):
    other = drawn_products.drawn_catalogue(N_ITEMS, seed=1)
    with refused_naming(exceptions.CheckpointUnfit, catalogue.source):
        training.read_recommender(folder / "ege.pt", other, critics.AttributeCritic(other))
    with refused_naming(exceptions.CheckpointUnfit, "ege.pt"):
        training.train(catalogue, critic, settings_of("ege", width=32), folder / "ege.pt")
    with refused_naming(ValueError, "start_from"):
        training.train(catalogue, critic, settings_of("gru-rl"), tmp_path / "rl.pt")
    wide = settings_of("gru-rl", width=64)
    with pytest.raises(exceptions.CheckpointUnfit):
        training.train(catalogue, critic, wide, tmp_path / "rl.pt", start_from=folder / "gru-sl.pt")


def small_trainer(catalogue, critic, kind, **choices):
    settings = settings_of(kind, width=16, **choices)
    items = items_of(catalogue, critic, seed=0)
    torch.manual_seed(1)
    return Trainer(Tracker(items.features.shape[1], critic.width, settings), items, settings)


def batch(n=8):
    rng = torch.Generator().manual_seed(3)
    return Batch(torch.arange(n), torch.arange(n) + 20, rng)


def test_training_sees_no_item_that_is_held_out(catalogue, critic):
    items = items_of(catalogue, critic, seed=0)
    parts = [set(part.tolist()) for part in (items.training, items.validation, items.test)]
    assert set.union(*parts) == set(range(N_ITEMS))
    assert sum(map(len, parts)) == N_ITEMS
    trainer = small_trainer(catalogue, critic, "gru-sl")
    assert set(trainer.training.tolist()) == parts[0]
    assert torch.equal(trainer.features, items.features[items.training])


@torch.no_grad()
def test_the_supervised_loss_is_the_margin_by_which_another_item_is_not_further(catalogue, critic):
    trainer = small_trainer(catalogue, critic, "gru-sl", n_turns=1)
    loss = float(trainer.loss(batch()))
    others = torch.randint(len(trainer.training), (8,), generator=torch.Generator().manual_seed(3))
    points = trainer.tracker.items(trainer.features)
    critiques = trainer.items.critiques(
        trainer.training[batch().start], trainer.training[batch().target]
    )
    joined = points[batch().start] + trainer.tracker.critique(critiques)
    state = trainer.tracker.cell(trainer.tracker.response(joined), torch.zeros(8, 16))
    query = trainer.tracker.head(state)
    near = ((query - points[:8]) ** 2).sum(dim=1)
    far = ((query - points[others]) ** 2).sum(dim=1)
    assert loss == pytest.approx(float((near - far + 0.1).clamp(min=0).mean()), rel=1e-5)


@torch.no_grad()
def test_looking_ahead_takes_the_item_that_the_least_ranks_follow(catalogue, critic):
    trainer = small_trainer(catalogue, critic, "gru-rl", n_turns=3)
    tracker, target = trainer.tracker, batch().target
    points = tracker.items(trainer.features)
    state = torch.randn(8, 16, generator=torch.Generator().manual_seed(0)) / 4
    query = tracker.query(state)
    best = trainer._best_next(Dialogue(points, state, batch().start), query, batch(), 2)
    candidates = nearest(query, points, 4)
    for row in range(8):
        goal, sums = target[row : row + 1], []
        for candidate in candidates[row]:
            here, now = state[row : row + 1], candidate[None]
            total = int(target_ranks(points[now], points, goal))
            for _ in range(2):
                critique = trainer.items.critiques(trainer.training[now], trainer.training[goal])
                here = tracker.step(here, points[now], critique)
                total += int(target_ranks(tracker.query(here), points, goal))
                now = nearest(tracker.query(here), points, 1)[:, 0]
            sums.append(total)
        assert int(best[row]) == int(candidates[row][int(np.argmin(sums))])


@torch.no_grad()
def test_the_released_program_of_ege_counts_the_last_turn_for_every_turn(catalogue, critic):
    intended, released = (
        small_trainer(catalogue, critic, "ege", policy_terms=terms)
        for terms in ("each turn", "last turn")
    )
    terms, rewards, _, critiques = intended._policy(batch(), one_more=True)
    assert (len(terms), len(rewards), len(critiques)) == (10, 10, 11)
    difference = float(intended.loss(batch())) - float(released.loss(batch()))
    expected = torch.stack(terms).mean() - terms[-1].mean()
    assert difference == pytest.approx(float(expected), abs=1e-5)


def test_every_kind_goes_on_from_the_supervised_one(catalogue, critic, tmp_path):
    alike = {"width": 16, "join": "concatenation", "unit_length": True, "n_turns": 3}
    start = tmp_path / "sl.pt"
    supervised = training.train(catalogue, critic, settings_of("gru-sl", epochs=8, **alike), start)
    later = settings_of("gru-rl-later", epochs=2, **alike)
    checkpoint = training.train(catalogue, critic, later, tmp_path / "later.pt", start_from=start)
    assert checkpoint.origin()["started_from"] == "sl.pt"
    best = supervised.origin()["best_validation"]
    assert checkpoint.history[0]["validation"] > best / 2
