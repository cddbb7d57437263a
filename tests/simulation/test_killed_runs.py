"""A worker that is killed in the middle of an experiment, or of training: another goes on from what
was committed, and the result is that of work nobody interrupted."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from django.conf import settings as site
from django.db import connection

from accounts.models import User
from accounts.teams import create_team
from simulation.models import ExperimentVersion, StoredRecommender
from simulation.stored_catalogues import drawn_products
from simulation.stored_experiments import request_run
from simulation.stored_training import request_training
from tests.simulation.stored import RULES, stored_experiment, work_off
from work.models import Job

pytestmark = pytest.mark.django_db(transaction=True)
PATIENCE_SECONDS = 120
SEEDS = {"seeds": [0, 1, 2, 3, 4, 5], "n_turns": 10}


def database_url() -> str:
    """Of the tests' own database, for processes beside them."""
    about = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{about['NAME']}"
    person = f"{about['USER']}:{about['PASSWORD']}" if about["PASSWORD"] else about["USER"]
    return f"postgres://{person}@{about['HOST']}:{about['PORT'] or 5432}/{about['NAME']}"


@contextmanager
def worker() -> Iterator["subprocess.Popen[bytes]"]:
    """A worker process, whose leases end six seconds after its last heartbeat."""
    environment = os.environ | {"DATABASE_URL": database_url(), "WORK_LEASE_SECONDS": "6"}
    command = [sys.executable, "manage.py", "run_worker", "--queue", "scoring"]
    process = subprocess.Popen(
        command, cwd=site.BASE_DIR, env=environment, stderr=subprocess.DEVNULL
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        assert time.monotonic() < deadline, list(
            Job.objects.values_list("kind", "state", "message")
        )
        time.sleep(0.01)


def kill_in_a_piece(version: ExperimentVersion, n_done: int) -> None:
    """Kill a worker that is in a piece, once so many are done."""
    done = version.pieces.exclude(done_at=None)
    running = Job.objects.running().of_kind("run_piece")

    def is_in_one() -> bool:
        keys = [job.arguments["piece"] for job in running.all()]
        return done.count() >= n_done and version.pieces.filter(pk__in=keys, done_at=None).exists()

    with worker() as process:
        wait_until(is_in_one)
        process.kill()
        process.wait()
    assert done.count() < 12


def rows_of(version):
    """All that was computed, without keys."""
    tables = (version.results, version.seed_results, version.target_values)
    of_recommenders = ("recommender__name", "user__name", "measure")
    rows = [
        list(version.results.values_list(*of_recommenders, "turn", "mean", "ci_low", "ci_high")),
        list(version.seed_results.values_list(*of_recommenders, "seed", "turn", "mean")),
        list(version.target_values.values_list(*of_recommenders, "target", "value")),
        list(version.comparisons.values_list("a", "b", "within", "measure", "delta", "p_adjusted")),
        list(version.causes.values_list(*of_recommenders, "user_delta", "total_delta")),
    ]
    assert all(table.exists() for table in tables)
    return rows


@pytest.mark.slow
def test_an_experiment_whose_worker_is_killed_comes_to_the_same():
    owner = User.objects.create_user("rosa")
    team = create_team(name="Lab", owner=owner)
    experiment = stored_experiment(team, owner, n_items=3000, n_targets=150)
    version = request_run(experiment=experiment, rules=RULES | SEEDS, actor=owner)
    kill_in_a_piece(version, 1)
    kill_in_a_piece(version, 4)
    assert Job.objects.running().exists()  # nobody gave its job back
    with worker():
        wait_until(lambda: type(version).objects.get(pk=version.pk).finished_at is not None)
    assert max(Job.objects.of_kind("run_piece").values_list("attempts", flat=True)) > 1
    whole = stored_experiment(team, owner, n_items=3000, n_targets=150, name="Whole")
    uninterrupted = request_run(experiment=whole, rules=RULES | SEEDS, actor=owner)
    work_off()
    assert rows_of(version) == rows_of(uninterrupted)


@pytest.mark.slow
def test_training_that_is_killed_ends_with_the_same_recommender():
    owner = User.objects.create_user("rosa")
    team = create_team(name="Lab", owner=owner)
    catalogue = drawn_products(team=team, n_items=600, actor=owner)
    choices = {"epochs": 4, "width": 16}
    row = request_training(
        catalogue=catalogue, name="a", kind="gru-sl", choices=choices, start_from=None, actor=owner
    )
    with worker() as process:
        wait_until(lambda: row.epochs.count() >= 2)
        process.kill()
        process.wait()
    assert row.epochs.count() < 4
    with worker():
        wait_until(lambda: StoredRecommender.objects.get(pk=row.pk).finished_at is not None)
    other = request_training(
        catalogue=catalogue, name="b", kind="gru-sl", choices=choices, start_from=None, actor=owner
    )
    work_off()
    columns = ("epoch", "loss", "validation")
    assert list(row.epochs.values_list(*columns)) == list(other.epochs.values_list(*columns))
    assert row.epochs.count() == 4
