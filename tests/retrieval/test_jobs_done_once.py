from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier
from unittest.mock import Mock

import pytest
from django.db import connection, connections

from annotation.models import Study
from results import computing, kinds
from results.models import Result
from retrieval import collections, derived_files, exceptions, models
from retrieval.result_kinds.audit import AuditKind, request_audit_of_uploads
from retrieval.result_kinds.pools import PoolKind, request_pool
from tests.annotation.studies import ticked_study
from tests.codes import refused
from tests.retrieval.collections import add_file, qrels_text, run_text, sent
from work.execution import claim, run_job
from work.models import Job

pytestmark = pytest.mark.django_db
AUDIT = models.ResultType.AUDIT
CATALOGUE = "docno,title\n" + "".join(f"d{n},Shoe {n}\n" for n in range(30))


@pytest.fixture(autouse=True)
def _waiting_jobs(settings):
    settings.TASKS = {"default": {"BACKEND": "django_tasks_db.DatabaseBackend", "QUEUES": []}}


def audit_of(collection, actor, **texts):
    uploads = [sent(f"{name}.txt", text) for name, text in texts.items()]
    return request_audit_of_uploads(collection=collection, uploads=uploads, files=[], actor=actor)


def done_without_its_worker(job, handler):
    running = claim(job.pk)
    assert running is not None
    handler(running)
    job.refresh_from_db()
    assert job.state == Job.State.DONE
    assert run_job(job.pk) == "not queued"


def test_an_audit_whose_worker_is_killed_after_it_is_stored_is_done(collection, rosa):
    add_file(collection, "kept.run", run_text("kept"))
    uploads, files = [sent("q.txt", qrels_text())], list(collection.files.all())
    job = request_audit_of_uploads(collection=collection, uploads=uploads, files=files, actor=rosa)
    done_without_its_worker(job, partial(computing.compute_result, AuditKind()))
    version = Result.objects.get(kind=AUDIT)
    assert version.facts["n_files"] == 2
    assert job.message == f"Result {version.number}."


def test_an_audit_of_which_one_file_is_gone_is_refused_and_not_of_the_others(collection, rosa):
    job = audit_of(collection, rosa, one=qrels_text(), two=run_text("two"))
    collection.files.get(file_name="two.txt").delete()
    run_job(job.pk)
    job.refresh_from_db()
    assert job.state == Job.State.FAILED
    assert not Result.objects.exists()


def test_what_an_audit_left_is_deleted_by_the_next_and_what_one_waits_for_is_not(collection, rosa):
    first = audit_of(collection, rosa, one=qrels_text())
    audit_of(collection, rosa, two=run_text("two"))
    assert collection.files.filter(kind="audited").count() == 2
    Job.objects.update(state=Job.State.FAILED)
    audit_of(collection, rosa, three=run_text("three"))
    assert list(collection.files.values_list("file_name", flat=True)) == ["three.txt"]
    assert first.arguments["inputs"]


@pytest.mark.django_db(transaction=True)
def test_audits_that_are_requested_at_the_same_moment_lose_no_file(collection, rosa):
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has one writer: nothing is at the same moment.")
    n, start = 4, Barrier(4)

    def send(number: int) -> int:
        try:
            start.wait(timeout=60)
            texts = {f"f{number}-{one}": run_text(f"r{number}-{one}") for one in range(4)}
            return audit_of(collection, rosa, **texts).pk
        finally:
            connections.close_all()

    with ThreadPoolExecutor(n) as pool:
        jobs = list(pool.map(send, range(n)))
    wanted = [pk for job in Job.objects.filter(pk__in=jobs) for pk in job.arguments["inputs"]]
    assert len(wanted) == 16
    assert models.CollectionFile.objects.filter(pk__in=wanted).count() == 16


@pytest.fixture
def pool(collection, rosa):
    files = [add_file(collection, "dense.run", run_text("dense"))]
    files.append(add_file(collection, "shoes.csv", CATALOGUE, kind="catalogue"))
    run_job(request_pool(collection=collection, files=files, rules={"depth": 3}, actor=rosa).pk)
    return Result.objects.get(kind=models.ResultType.POOL)


def study_of(pool, rosa):
    chosen = {"template": "alternatives", "allowed": ["unknown", "hub"]}
    return collections.request_study(version=pool, title="Shoes", actor=rosa, **chosen)


def test_a_study_whose_worker_is_killed_after_it_is_stored_is_made_once(pool, rosa):
    done_without_its_worker(study_of(pool, rosa), collections.make_pool_study)
    assert Study.objects.count() == models.PoolStudy.objects.count() == 1


def test_no_study_is_made_of_a_pool_whose_catalogue_was_removed(pool, rosa):
    job = study_of(pool, rosa)
    pool.subject.files.get(kind="catalogue").delete()
    run_job(job.pk)
    job.refresh_from_db()
    assert job.state == Job.State.FAILED
    assert "shoes.csv" in job.message
    assert not Study.objects.exists()
    with refused(exceptions.CollectionUnfit, "catalogue_removed"):
        study_of(pool, rosa)
    add_file(pool.subject, "again.csv", CATALOGUE, kind="catalogue")
    run_job(study_of(pool, rosa).pk)
    assert Study.objects.get().items.count() == pool.facts["n_topics"]


def test_qrels_of_a_study_that_were_stored_and_not_read_are_read_by_the_next_attempt(
    collection, rosa, monkeypatch
):
    study = ticked_study(owner=rosa, team=collection.team)
    collections.link_studies(collection=collection, studies=[study], actor=rosa)

    def requested():
        chosen = {"study": study, "rule": "any", "round": 1}
        return derived_files.request_study_qrels(collection=collection, actor=rosa, **chosen)

    job = requested()
    with monkeypatch.context() as killed:
        killed.setattr("retrieval.derived_files.read_file", Mock(side_effect=KeyboardInterrupt))
        running = claim(job.pk)
        assert running is not None
        with pytest.raises(KeyboardInterrupt):
            derived_files.make_study_qrels(running)
    assert collection.files.get().n_lines is None
    running.requeue()
    for again in (job, requested()):
        run_job(again.pk)
        again.refresh_from_db()
        assert again.state == Job.State.DONE, again.message
    assert collection.files.get().is_usable


def test_a_result_that_another_job_stored_meanwhile_is_not_stored_twice(
    collection, rosa, monkeypatch
):
    files = [add_file(collection, "dense.run", run_text("dense"))]
    first = request_pool(collection=collection, files=files, rules={"depth": 3}, actor=rosa)
    second = Job.objects.create(kind=first.kind, arguments=first.arguments, queue=first.queue)
    compute = PoolKind.compute

    def compute_after_the_other(*arguments) -> kinds.Computed:
        monkeypatch.setattr(PoolKind, "compute", compute)
        run_job(first.pk)
        return compute(*arguments)

    monkeypatch.setattr(PoolKind, "compute", compute_after_the_other)
    run_job(second.pk)
    second.refresh_from_db()
    assert second.state == Job.State.DONE, second.message
    assert "1" in second.message
    assert Result.objects.count() == 1
