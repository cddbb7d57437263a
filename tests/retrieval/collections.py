from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from django.core.files.uploadedfile import SimpleUploadedFile

from accounts.models import Team, User
from results import computing, kinds, models
from retrieval import collections, file_readings
from retrieval.models import Collection, CollectionFile
from retrieval.result_kinds import audit, comparison, evaluation, pools, report, reuse
from retrieval.result_kinds.machine import MachineKind
from retrieval.stored_files import store_file
from work.execution import run_job
from work.models import Job

N_DOCUMENTS = 30


def run_text(tag: str, *, n_topics: int = 25, skill: float = 1.0, seed: int = 1) -> str:
    """A run that finds the relevant documents, the first five of each topic, by its skill."""
    rng = np.random.default_rng(seed)
    lines = []
    for topic in range(n_topics):
        scores = rng.normal(size=N_DOCUMENTS) + skill * (np.arange(N_DOCUMENTS) < 5)
        order = np.argsort(-scores)[:20]
        lines += [
            f"t{topic} Q0 d{document} {rank} {scores[document]:.4f} {tag}"
            for rank, document in enumerate(order, 1)
        ]
    return "\n".join(lines) + "\n"


def qrels_text(*, n_topics: int = 25, relevant: int = 5, judged: int = 30) -> str:
    """The first documents of each topic are relevant."""
    return "".join(
        f"t{topic} 0 d{document} {int(document < relevant)}\n"
        for topic in range(n_topics)
        for document in range(judged)
    )


def sent(name: str, text: str | bytes) -> SimpleUploadedFile:
    return SimpleUploadedFile(name, text.encode() if isinstance(text, str) else text)


def add_file(
    collection: Collection, name: str, text: str | bytes, **options: str
) -> CollectionFile:
    file = store_file(collection=collection, file=sent(name, text), actor=None, **options)
    file_readings.read_file(file)
    return file


SKILLS = (("dense", 3.0, 1), ("bm25", 0.5, 2), ("rm3", 0.5, 3))


def run_options(folder: Path) -> Iterator[str]:
    for tag, skill, seed in sorted(SKILLS):
        (folder / f"{tag}.run").write_text(run_text(tag, skill=skill, seed=seed))
        yield from ("--run", str(folder / f"{tag}.run"))


def content_of(file: CollectionFile) -> bytes:
    return b"".join(bytes(part.content) for part in file.parts.all())


def filled_collection(team: Team, owner: User, *, name: str = "Tracks") -> Collection:
    collection = collections.create_collection(name=name, team=team, actor=owner)
    add_file(collection, "qrels.txt", qrels_text())
    for tag, skill, seed in SKILLS:
        add_file(collection, f"{tag}.run", run_text(tag, skill=skill, seed=seed))
    return collection


RULES = {"measures": ["nDCG@10", "RR@10"], "primary": ["nDCG@10"]}


def evaluated_collection(team: Team, owner: User) -> Collection:
    collection = filled_collection(team, owner)
    second = add_file(collection, "second.txt", qrels_text(relevant=7))
    machine = add_file(collection, "machine.txt", qrels_text(relevant=9))
    machine.made_by = CollectionFile.MadeBy.MACHINE
    machine.save()
    collection.files.filter(name__in=["bm25", "rm3"]).update(family="lexical")
    files = collection.files.all()
    qrels, runs = files.get(name="qrels.txt"), list(files.runs())
    dense = [one for one in runs if one.name == "dense"]

    def request(kind: kinds.ResultKind[Collection], depth: int | None = None, **chosen: Any) -> Job:
        settings = RULES | ({"pool_depth": depth} if depth else {})
        return computing.request_result(
            kind=kind,
            subject=collection,
            chosen={"runs": runs, **chosen},
            settings=settings,
            actor=owner,
        )

    jobs = [
        request(evaluation.EvaluationKind(), qrels=[qrels]),
        request(comparison.ComparisonKind(), qrels=list(files.qrels()), assessors=[]),
        request(reuse.ReuseKind(), 10, qrels=[qrels]),
        request(MachineKind(), qrels=[second], machine=[machine], sharing=dense),
        audit.request_audit(files=[qrels, second, *runs], collection=collection, actor=owner),
    ]
    for job in jobs:
        run_job(job.pk)
        job.refresh_from_db()
        assert job.state == Job.State.DONE, job.message
    add_pool(collection, owner)
    run_job(report.request_report(collection=collection, actor=owner).pk)
    return collection


def add_pool(collection: Collection, owner: User) -> None:
    runs = list(collection.files.runs())
    quotas = {run.name: 3 for run in runs}
    job = pools.request_pool(
        collection=collection, files=runs, rules={"quotas": quotas, "seed": 7}, actor=owner
    )
    run_job(job.pk)
    add_sample(collection, owner)
    version = models.Result.objects.get(collection=collection, kind="pool")
    job = collections.request_study(
        version=version,
        title="Pooled",
        template="graded_relevance",
        allowed=["hub", "quota", "short"],
        actor=owner,
    )
    run_job(job.pk)


def add_sample(collection: Collection, owner: User) -> None:
    rules = {"n": 10, "strata": 2, "allocation": "equal", "seed": 7, "predictor": "nqc"}
    run = collection.files.runs()[0]
    run_job(pools.request_sample(collection=collection, files=[run], rules=rules, actor=owner).pk)
