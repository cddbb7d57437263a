"""Simulated dialogues and training of recommenders, timed: ``python -m benchmarks.simulation``.

Dialogues per second of one core, of 24 users over all targets, in a batch and one dialogue at a
time, with the embedding recommender; seconds per epoch of each trained kind. ``--experiment``
trains the three recommenders and prints the article's table, with what is due to the qrels and to
the user, for an oracle crowd that accepts what shares most attributes with a target.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

import numpy as np
import torch

from benchmarks.commands import parse_options
from simulation.catalogue import Attributes, Catalogue
from simulation.critics import AttributeCritic, Critic
from simulation.dialogues import simulate
from simulation.drawn_products import WEIGHTS, drawn_catalogue
from simulation.experiments import Settings, run_experiment
from simulation.recommenders import EmbeddingRecommender, RandomRecommender, Recommender
from simulation.recommenders.trained.settings import items_of, settings_of
from simulation.recommenders.trained.training import read_checkpoint, read_recommender, train
from simulation.reports import report_text
from simulation.targets import Targets, targets_of
from simulation.users import MetaUser, meta_sim_prob, meta_sim_tol, sim_base
from stats.arguments import Floats, Integers

KINDS = ("gru-sl", "gru-rl", "ege")
POOL = 14
# An oracle annotator accepts a pooled item that shares so much of what attributes make up.
LEAST_SHARED = 0.75


def users() -> list[MetaUser]:
    """24 settings: the base, five tolerances, three tolerances by six probabilities."""
    tolerances = [meta_sim_tol(tolerance) for tolerance in range(1, 6)]
    probabilities = (0.25, 0.5, 0.75, 0.85, 0.95, 1.0)
    switches = [meta_sim_prob(tau, p) for tau in range(1, 4) for p in probabilities]
    return [sim_base(), *tolerances, *switches]


def shares(catalogue: Catalogue, items: Integers, target: int) -> Floats:
    assert isinstance(catalogue.attributes, Attributes)
    codes, weights = catalogue.attributes.codes, np.array(WEIGHTS) / sum(WEIGHTS)
    return np.asarray(((codes[items] == codes[target]) * weights).sum(axis=1))


def oracle_targets(catalogue: Catalogue, items: np.ndarray) -> Targets:
    accepted, rejected = {}, {}
    for target in items:
        others = np.full(len(catalogue), target)
        distance = catalogue.squared_distance(np.arange(len(catalogue)), others)
        pool = np.argsort(distance)[1 : POOL + 1]
        shared = shares(catalogue, pool, target)
        name = catalogue.ids[target]
        accepted[name] = [catalogue.ids[item] for item in pool[shared >= LEAST_SHARED]]
        rejected[name] = [catalogue.ids[item] for item in pool[shared < LEAST_SHARED]]
    return targets_of(catalogue, accepted, rejected=rejected)


def time_dialogues(catalogue: Catalogue, critic: Critic, n_targets: int) -> None:
    items = np.random.default_rng(0).choice(len(catalogue), n_targets, replace=False)
    targets = oracle_targets(catalogue, items)
    recommender = EmbeddingRecommender(catalogue, critic)
    started = process_time()
    log = simulate(catalogue, targets, users(), recommender, critic)
    batched = log.n_dialogues / (process_time() - started)
    some = [(user, row) for user in users()[::6] for row in range(0, n_targets, 40)]
    started = process_time()
    for user, row in some:
        simulate(catalogue, targets.part(np.array([row])), [user], recommender, critic)
    alone = len(some) / (process_time() - started)
    sys.stdout.write(
        f"{len(catalogue):,} items, {n_targets} targets, 24 users, 10 turns: batched "
        f"{batched:,.0f} dialogues/s ({log.n_rankings:,} lists for "
        f"{log.n_dialogues * log.n_turns:,} turns), one by one {alone:,.1f}/s\n"
    )


def trained(
    catalogue: Catalogue, critic: Critic, folder: Path, epochs: dict[str, int]
) -> list[Recommender]:
    for kind, n in epochs.items():
        start = folder / "gru-sl.pt" if kind == "gru-rl" else None
        settings = settings_of(kind, epochs=n)
        path, started = folder / f"{kind}.pt", process_time()
        done = read_checkpoint(path).epoch if path.exists() else 0
        checkpoint = train(catalogue, critic, settings, path, start_from=start)
        seconds = (process_time() - started) / max(1, checkpoint.epoch - done)
        sys.stdout.write(
            f"{kind}: {seconds:.1f} s of one core per epoch on {len(catalogue):,} items, "
            f"validation nDCG@10 {checkpoint.origin()['best_validation']:.3f} after "
            f"{checkpoint.epoch} epochs\n"
        )
    return [read_recommender(folder / f"{kind}.pt", catalogue, critic) for kind in epochs]


def main() -> None:
    options = parse_options(
        __doc__,
        items=(5000, "of the drawn catalogue"),
        targets=(190, "of the dialogues"),
        experiment=(False, "print the article's table"),
        epochs=([1, 1, 1], "of each recommender"),
        folder=(Path, "where checkpoints are kept and gone on from"),
    )
    torch.set_num_threads(1)
    catalogue = drawn_catalogue(options.items)
    critic = AttributeCritic(catalogue)
    time_dialogues(catalogue, critic, options.targets)
    with TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        epochs = dict(zip(KINDS, options.epochs, strict=True))
        recommenders = trained(catalogue, critic, folder, epochs)
    if options.experiment:
        unseen = items_of(catalogue, critic, seed=0).test[: options.targets]
        everyone = [RandomRecommender(catalogue), *recommenders]
        experiment = run_experiment(
            catalogue,
            oracle_targets(catalogue, unseen),
            [sim_base(), meta_sim_tol(3), meta_sim_prob(3, 0.75)],
            [(one, critic) for one in everyone],
            Settings(),
        )
        sys.stdout.write(f"\n{report_text(experiment)}\n")


if __name__ == "__main__":
    main()
