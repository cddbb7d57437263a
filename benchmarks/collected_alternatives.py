"""Trained recommenders, evaluated with alternatives that a crowd gave through the whole loop:
``python -m benchmarks.collected_alternatives``.

The three recommenders are trained on drawn shoes; targets that none of them was trained on are
pooled from neighbours and from what two recommenders found, published at a marketplace in processes
of its own, answered there by a crowd that knows the attributes and errs now and then, collected and
exported. With the qrels the users are simulated: whether recommenders beat chance, learn over
turns, need their history and true critiques, and what evaluation by one target underestimates.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

import numpy as np
import torch

from benchmarks.commands import POSTGRES, parse_options, say, source
from benchmarks.marketplace_site import requester_and_marketplace
from simulation.catalogue import Catalogue, Targets, from_judgments, targets_of
from simulation.comparisons import causes
from simulation.critics import AttributeCritic, Critic
from simulation.dialogues import DialogueLog, simulate
from simulation.drawn_products import drawn_catalogue
from simulation.experiments import Experiment, Settings, outcomes, run_experiment
from simulation.recommenders import RandomRecommender, Recommender, ShuffledCritic, WithoutHistory
from simulation.recommenders.trained.settings import items_of, settings_of
from simulation.recommenders.trained.training import read_checkpoint, read_recommender, train
from simulation.reports import report_text
from simulation.users import meta_sim_prob, meta_sim_tol, sim_base
from stats.arguments import Floats
from stats.ranking import measure
from stats.ranking.topic_means import TopicDifference, compare_over_topics

NDCG = measure("nDCG@10")
LISTED = 50
KINDS = ("gru-sl", "gru-rl", "ege")
# Whose last lists are pooled: alternatives of the third are found by others or by chance.
POOLED = ("gru-sl", "ege")


@dataclass(frozen=True)
class Claim:
    """A difference of a recommender's means over targets that is to lie above 0."""

    recommender: str
    claim: str
    difference: TopicDifference

    @property
    def holds(self) -> bool:
        return bool(self.difference.ci_low > 0)


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
        say(
            f"{kind}: {seconds:.1f} s of one core per epoch on {len(catalogue):,} items, "
            f"validation nDCG@10 {checkpoint.origin()['best_validation']:.3f} after "
            f"{checkpoint.epoch} epochs"
        )
    return [read_recommender(folder / f"{kind}.pt", catalogue, critic) for kind in epochs]


def dialogues_of(
    catalogue: Catalogue, items: Sequence[int], recommenders: Sequence[Recommender], critic: Critic
) -> list[tuple[str, DialogueLog]]:
    """Of the base user with each recommender, with lists so long that a pool finds its quota."""
    targets = targets_of(catalogue, {catalogue.ids[item]: [] for item in items})
    return [
        (one.name, simulate(catalogue, targets, [sim_base()], one, critic, depth=LISTED))
        for one in recommenders
    ]


def judged(catalogue: Catalogue, qrels: Path) -> Targets:
    from retrieval.trec_files import read_qrels

    grades = read_qrels(qrels)
    accepted, rejected = from_judgments(
        grades.topics, grades.documents, grades.topic, grades.document, grades.grade
    )
    return targets_of(catalogue, accepted, rejected=rejected)


def evaluate(
    catalogue: Catalogue, targets: Targets, recommenders: Sequence[Recommender], critic: Critic
) -> Experiment:
    everyone = [RandomRecommender(catalogue), *recommenders]
    users = [sim_base(), meta_sim_tol(3), meta_sim_prob(3, 0.75)]
    return run_experiment(
        catalogue, targets, users, [(one, critic) for one in everyone], Settings()
    )


def claims(
    catalogue: Catalogue, targets: Targets, recommenders: Sequence[Recommender], critic: Critic
) -> Iterator[Claim]:
    """What must hold of trained recommenders, with SimBase and the target alone relevant."""
    last = -1

    def values(recommender: Recommender, by: Critic = critic) -> Floats:
        log = simulate(catalogue, targets, [sim_base()], recommender, by)
        return np.asarray(outcomes(log, (NDCG,), qrels="target").values[0, 0, 0])

    chance = values(RandomRecommender(catalogue))[:, last]
    for one in recommenders:
        own = values(one)
        others = {
            "beats random": chance,
            "learns from turn 1 to 10": own[:, 0],
            "loses without its history": values(WithoutHistory(one))[:, last],
            "loses by shuffled critiques": values(one, ShuffledCritic(critic, catalogue))[:, last],
        }
        for claim, other in others.items():
            yield Claim(one.name, claim, compare_over_topics(own[:, last], other))


def tables(made: Sequence[Claim], experiment: Experiment) -> Iterator[str]:
    yield "| recommender | with SimBase and the target alone | difference in nDCG@10 |"
    yield "|---|---|---|"
    for one in made:
        yield f"| {one.recommender} | {one.claim} | {_interval(one.difference)} |"
    yield ""
    yield (
        "| recommender | measure | SimBase, target | SimBase, all | MetaSimProb, target "
        "| MetaSimProb, all | underestimated by | of it the qrels | of it the user |"
    )
    yield "|---|---|---|---|---|---|---|---|---|"
    for row in causes(experiment):
        if row.user == experiment.users[-1].name:
            means = [f"{mean:.3f}" for pair in row.means for mean in pair]
            effects = [_interval(each) for each in (row.total, row.of_qrels, row.of_user)]
            cells = [row.recommender, row.measure.name, *means, *effects]
            yield f"| {' | '.join(cells)} |"


def _interval(one: TopicDifference) -> str:
    interval = "" if isnan(one.ci_low) else f" [{one.ci_low:+.3f}, {one.ci_high:+.3f}]"
    return f"{one.delta:+.3f}{interval}"


def main() -> None:
    options = parse_options(
        __doc__,
        items=(5000, "of the drawn catalogue"),
        targets=(190, "that no recommender was trained on"),
        epochs=([15, 1, 8], "of each recommender"),
        checkpoints=(Path, "a folder in which they are kept and gone on from"),
        errs=(0.05, "annotators', of each candidate"),
        **POSTGRES,
    )
    torch.set_num_threads(1)
    catalogue = drawn_catalogue(options.items)
    critic = AttributeCritic(catalogue)
    with TemporaryDirectory() as temporary:
        checkpoints = options.checkpoints or Path(temporary)
        checkpoints.mkdir(parents=True, exist_ok=True)
        epochs = dict(zip(KINDS, options.epochs, strict=True))
        recommenders = trained(catalogue, critic, checkpoints, epochs)
        items = items_of(catalogue, critic, seed=0).test[: options.targets].tolist()
        pooled = [one for one, kind in zip(recommenders, KINDS, strict=True) if kind in POOLED]
        logs = dialogues_of(catalogue, items, pooled, critic)
        collected, targets = _collected(options, catalogue, items, logs)
    made = list(claims(catalogue, targets, recommenders, critic))
    experiment = evaluate(catalogue, targets, recommenders, critic)
    said = ", ".join(f"{name} {value}" for name, value in collected.items())
    say(f"commit {source()}: {said}\n\n{report_text(experiment)}\n")
    say("\n".join(tables(made, experiment)))
    if broken := [one for one in made if not one.holds]:
        sys.exit(f"does not hold: {broken}")


def _collected(
    options: argparse.Namespace,
    catalogue: Catalogue,
    items: Sequence[int],
    logs: list[tuple[str, DialogueLog]],
) -> tuple[dict[str, Any], Targets]:
    with (
        requester_and_marketplace(
            options.postgres, processes=1, threads=4, deposit_usd=1000
        ) as marketplace,
        TemporaryDirectory() as folder,
    ):
        from benchmarks.oracle_crowd import collect_alternatives

        site = marketplace.site
        qrels, counts = collect_alternatives(
            catalogue,
            items,
            logs,
            Path(folder),
            site_url=f"http://{site.host}:{site.port}",
            errs=options.errs,
        )
        if faults := site.faults():
            sys.exit("\n".join(faults[-5:]))
        return {"qrels": qrels.name} | counts, judged(catalogue, qrels)


if __name__ == "__main__":
    main()
