from decimal import Decimal

import pytest
from botocore.config import Config
from django.core.management import call_command

from accounts.models import User
from accounts.teams import create_team
from annotation.study_facts import PUBLISH, jobs_of
from hits import collect, connections, endpoints, models, plans, publications, selections
from marketplace.models import Requester
from marketplace.money.transfers import deposit
from tests.annotation.studies import rating_study
from tests.hits.work import hand_in, hits_there
from work import execution, tasks
from work.models import Job

pytestmark = pytest.mark.django_db(transaction=True)
NOBODY_THERE = "http://127.0.0.1:9/requester"


@pytest.mark.slow
def test_a_launch_is_published_once_by_a_background_worker(batch, client):
    job = publications.request_publication(batch=batch)
    assert publications.request_publication(batch=batch) == job
    tasks.stop_job(job=job)
    assert work_off().state == "stopped"
    assert hits_there(client) == []
    tasks.resume_job(job=job)
    job = work_off()
    assert (job.state, job.n_done, job.n_total) == ("done", 4, 4)
    assert all(number in job.message for number in ("4", "$0.20"))
    assert len(hits_there(client)) == n_published(batch) == 4
    publications.request_publication(batch=batch)
    assert "$0.00" in work_off().message
    assert len(hits_there(client)) == 4


def test_where_no_answer_comes_it_is_tried_again(batch, connection, client):
    models.Connection.objects.filter(pk=connection.pk).update(endpoint_url=NOBODY_THERE)
    job = publications.request_publication(batch=batch)
    for _attempt in range(job.max_attempts):
        execution.run_job(job.pk)
    after = Job.objects.get(pk=job.pk)
    assert (after.state, after.attempts) == ("failed", after.max_attempts)
    assert NOBODY_THERE in after.message
    models.Connection.objects.filter(pk=connection.pk).update(endpoint_url=connection.endpoint_url)
    tasks.resume_job(job=job)
    assert work_off().state == "done"
    assert len(hits_there(client)) == n_published(batch) == 4


@pytest.mark.slow
def test_without_the_money_or_an_open_connection_nothing_is_published(connection, client):
    study = rating_study(n_items=4, systems=["alpha"])
    batch = plan(study, connection, reward_usd=Decimal("2.51"))
    publications.request_publication(batch=batch)
    job = work_off()
    assert job.state == "failed"
    assert all(amount in job.message for amount in ("$10.04", "$10.00"))
    assert n_published(batch) == 0
    deposit(requester=Requester.objects.get(), amount_usd=Decimal(1))
    tasks.resume_job(job=job)
    assert work_off().state == "done"
    other = plan(study, connection, round=2)
    publications.request_publication(batch=other)
    connections.close_connection(connection=connection, actor=User.objects.get())
    job = work_off()
    assert (job.state, n_published(other), "'Here'" in job.message) == ("failed", 0, True)


@pytest.fixture(autouse=True)
def at_once(settings, monkeypatch):
    settings.WORK_RETRY_SECONDS = 0
    monkeypatch.setattr("hits.endpoints.PATIENCE", Config(retries={"total_max_attempts": 1}))


@pytest.fixture
def connection(live_server, keys, settings):
    settings.MARKETPLACE_ENDPOINT_URL = f"{live_server.url}/requester"
    key = endpoints.AccessKey(keys["access_key_id"], keys["secret_access_key"])
    ada = User.objects.create_user("ada")
    team = create_team(name="Lab", owner=ada)
    return connections.connect_marketplace(team=team, name="Here", key=key, actor=ada)


@pytest.fixture
def batch(connection):
    return plan(rating_study(n_items=4, systems=["alpha"]), connection)


def plan(study, connection, **settings) -> models.Batch:
    terms = {"reward_usd": Decimal("0.05"), "selection": selections.REST} | settings
    texts = {"title": "Rate", "description": "Read and rate."}
    draft = plans.draft_batch(study=study, connection=connection, **texts, **terms)
    return plans.plan_batch(draft=draft, part=1).batch


def work_off() -> Job:
    call_command("run_worker", until_empty=True)
    return Job.objects.of_kind(PUBLISH).first()


def n_published(batch) -> int:
    return models.Hit.objects.of(batch).published().count()


@pytest.mark.slow
def test_a_wave_is_published_by_itself_once_the_one_before_is_in(connection, client, ann, bob):
    study = rating_study(n_items=1, systems=["alpha"])
    batch = plan(study, connection, max_assignments=2, wave_size=1)
    publications.request_publication(batch=batch)
    work_off()
    call_command("run_worker", until_empty=True)
    assert n_published(batch) == 1
    hand_in(ann, models.Hit.objects.of(batch).published().get(), {"alpha": 5})
    collect.collect_batch(batch=batch, client=client)
    tasks.request_job(kind="publish_waves")
    work_off()
    assert (n_published(batch), jobs_of(study).of_kind(PUBLISH).count()) == (2, 2)
