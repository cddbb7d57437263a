"""A crowd that knows what drawn products are: it ticks what shares enough of a target's attributes,
and errs now and then. Its answers come through the platform's own loop, as anybody's do."""

import csv
from collections.abc import Sequence
from decimal import Decimal
from io import StringIO
from pathlib import Path
from random import Random

import numpy as np
from django.core.management import call_command

from annotation.models import Study
from hits.crowd.replay import crowd_names, replay_group
from hits.crowd.simulated import SimulatedAnswers
from hits.models import Batch
from hits.requirements import countries_of
from simulation.catalogue import Attributes, Catalogue
from simulation.dialogues import DialogueLog
from simulation.drawn_products import WEIGHTS, drawing, title
from stats.arguments import Floats, Integers

# An oracle annotator accepts a pooled item that shares so much of what attributes make up.
LEAST_SHARED = 0.75


def shares(catalogue: Catalogue, items: Integers, target: int) -> Floats:
    assert isinstance(catalogue.attributes, Attributes)
    codes, weights = catalogue.attributes.codes, np.array(WEIGHTS) / sum(WEIGHTS)
    return np.asarray(((codes[items] == codes[target]) * weights).sum(axis=1))


class OracleAnswers(SimulatedAnswers):
    """Annotators who tick what an oracle accepts, and err with a probability on each candidate."""

    def __init__(self, study: Study, catalogue: Catalogue, *, seed: int, errs: float) -> None:
        super().__init__(study, seed=seed)
        self.errs = errs
        number = {name: at for at, name in enumerate(catalogue.ids)}
        self.accepts: dict[tuple[str, str], bool] = {}
        for item in study.items.prefetch_related("candidates"):
            keys = [one.key for one in item.candidates.all()]
            shared = shares(catalogue, np.array([number[key] for key in keys]), number[item.key])
            for key, share in zip(keys, shared.tolist(), strict=True):
                self.accepts[item.key, key] = share >= LEAST_SHARED

    def _share(self, names: tuple[str, ...], blind_key: str | None, bias: float) -> float:
        worker, _question, item, _key = names
        target, candidate = self.texts[item, blind_key or ""]
        chance = Random(f"{self.seed} {worker} {target.key} {candidate.key}")
        ticks = self.accepts[target.key, candidate.key] != (chance.random() < self.errs)
        return 0.9 if ticks else 0.1


def collect_alternatives(
    catalogue: Catalogue,
    targets: Sequence[int],
    logs: Sequence[tuple[str, DialogueLog]],
    folder: Path,
    *,
    site_url: str,
    neighbours: int = 8,
    retrieved: int = 3,
    assignments: int = 3,
    errs: float = 0.05,
    seed: int = 0,
) -> tuple[Path, dict[str, int]]:
    """Pool, publish, have answered, collect and export, by the commands that a researcher has.

    `logs` are of dialogues about the same targets: the lists that each recommender ended with are
    the runs of the pool.
    """
    _write_catalogue(catalogue, folder)
    np.save(folder / "vectors.npy", catalogue.embeddings.astype(np.float32))
    (folder / "vectors.ids").write_text("".join(f"{name}\n" for name in catalogue.ids))
    (folder / "targets.txt").write_text("".join(f"{catalogue.ids[one]}\n" for one in targets))
    quotas = [("neighbours", neighbours), *((name, retrieved) for name, _ in logs)]
    for name, log in logs:
        (folder / f"{name}.run").write_text(_run_text(name, log))
    call_command(
        "pool_candidates",
        run=[(name, str(folder / f"{name}.run")) for name, _ in logs],
        embeddings=[("neighbours", str(folder / "vectors.npy"))],
        targets=folder / "targets.txt",
        catalogue=folder / "catalogue.csv",
        quota=quotas,
        alternatives=folder / "pools.jsonl",
        cap=max(3, len(targets) // 20),
        seed=seed,
        stdout=StringIO(),
    )
    slug = "alternatives"
    call_command("import_alternatives", folder / "pools.jsonl", study=slug, stdout=StringIO())
    study = Study.objects.get(slug=slug)
    call_command(
        "publish_study", slug, reward=Decimal("0.05"), assignments=assignments, stdout=StringIO()
    )
    batch = Batch.objects.get(study=study)
    oracle = OracleAnswers(study, catalogue, seed=seed, errs=errs)
    total = assignments * study.items.count()
    replayed = replay_group(
        hit_type_id=batch.hit_type_id,
        names=crowd_names(assignments, seed=seed),
        source=oracle,
        site_url=site_url,
        countries=countries_of(batch),
        total=total,
    )
    call_command("collect_study", slug, stdout=StringIO())
    qrels = folder / "alternatives.qrels"
    call_command("export_qrels", slug, output=qrels, rule="majority", stdout=StringIO())
    rows = [line.split() for line in qrels.read_text().splitlines()]
    accepted = {(topic, key): int(grade) > 0 for topic, _, key, grade in rows}
    return qrels, {
        "n_targets": len({topic for topic, _ in accepted}),
        "n_answers": replayed.n_submitted,
        "n_judgments": len(accepted),
        "n_accepted": sum(accepted.values()),
        "n_as_the_oracle": sum(oracle.accepts[pair] == value for pair, value in accepted.items()),
    }


def _write_catalogue(catalogue: Catalogue, folder: Path) -> None:
    assert isinstance(catalogue.attributes, Attributes)
    (folder / "pictures").mkdir()
    with (folder / "catalogue.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("docno", "title", "image"))
        for number, name in enumerate(catalogue.ids):
            described = catalogue.attributes.describe(number)
            (folder / "pictures" / f"{name}.svg").write_text(drawing(described))
            writer.writerow((name, title(described), f"pictures/{name}.svg"))


def _run_text(name: str, log: DialogueLog) -> str:
    ids, lists = log.catalogue.ids, log.rankings(log.n_turns)[0, 0]
    return "".join(
        f"{ids[target]} Q0 {ids[item]} {rank} {-rank} {name}\n"
        for target, listed in zip(log.targets.target.tolist(), lists.tolist(), strict=True)
        for rank, item in enumerate(listed, 1)
    )
