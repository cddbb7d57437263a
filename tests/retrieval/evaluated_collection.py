"""A collection with every result that its pages show."""

from typing import Any

from accounts.models import Team, User
from results.computing import request_result
from results.kinds import ResultKind
from results.models import Result
from retrieval.collections import request_study
from retrieval.models import Collection, CollectionFile
from retrieval.result_kinds.audit import request_audit
from retrieval.result_kinds.comparison import ComparisonKind
from retrieval.result_kinds.evaluation import EvaluationKind
from retrieval.result_kinds.machine import MachineKind
from retrieval.result_kinds.pool import request_pool
from retrieval.result_kinds.report import request_report
from retrieval.result_kinds.reuse import ReuseKind
from retrieval.result_kinds.targets import request_sample
from tests.retrieval.collections import add_file, filled_collection, qrels_text
from work.execution import run_job
from work.models import Job

RULES = {"measures": ["nDCG@10", "RR@10"], "primary": ["nDCG@10"]}


def evaluated_collection(team: Team, owner: User) -> Collection:
    """Its first job evaluates; every one is done."""
    collection = filled_collection(team, owner)
    second = add_file(collection, "second.txt", qrels_text(relevant=7))
    machine = add_file(collection, "machine.txt", qrels_text(relevant=9))
    machine.made_by = CollectionFile.MadeBy.MACHINE
    machine.save()
    collection.files.filter(name__in=["bm25", "rm3"]).update(family="lexical")
    files = collection.files.all()
    qrels, runs = files.get(name="qrels.txt"), list(files.runs())
    dense = [one for one in runs if one.name == "dense"]

    def request(kind: ResultKind[Collection], depth: int | None = None, **chosen: Any) -> Job:
        settings = RULES | ({"pool_depth": depth} if depth else {})
        return request_result(
            kind=kind,
            subject=collection,
            chosen={"runs": runs, **chosen},
            settings=settings,
            actor=owner,
        )

    jobs = [
        request(EvaluationKind(), qrels=[qrels]),
        request(ComparisonKind(), qrels=list(files.qrels()), assessors=[]),
        request(ReuseKind(), 10, qrels=[qrels]),
        request(MachineKind(), qrels=[second], machine=[machine], sharing=dense),
        request_audit(files=[qrels, second, *runs], collection=collection, actor=owner),
    ]
    for job in jobs:
        run_job(job.pk)
        job.refresh_from_db()
        assert job.state == Job.State.DONE, job.message
    add_pool(collection, owner)
    run_job(request_report(collection=collection, actor=owner).pk)
    return collection


def add_pool(collection: Collection, owner: User) -> None:
    """A pool of the runs, which has a study."""
    runs = list(collection.files.runs())
    quotas = {run.name: 3 for run in runs}
    job = request_pool(
        collection=collection, files=runs, rules={"quotas": quotas, "seed": 7}, actor=owner
    )
    run_job(job.pk)
    add_sample(collection, owner)
    version = Result.objects.get(collection=collection, kind="pool")
    job = request_study(
        version=version,
        title="Pooled",
        template="graded_relevance",
        allowed=["hub", "quota", "short"],
        actor=owner,
    )
    run_job(job.pk)


def add_sample(collection: Collection, owner: User) -> None:
    """Ten targets by how hard they seem to a run."""
    rules = {"n": 10, "strata": 2, "allocation": "equal", "seed": 7, "predictor": "nqc"}
    run = collection.files.runs()[0]
    job = request_sample(collection=collection, files=[run], rules=rules, actor=owner)
    run_job(job.pk)
