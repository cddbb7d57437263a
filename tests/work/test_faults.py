"""Web, worker and supervisor processes killed at random while jobs of each queue run."""

import json
import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from django.db import connection
from redis import Redis
from redis.exceptions import RedisError

from tests.work.conftest import REDIS_URL

pytestmark = pytest.mark.slow
PROJECT = Path(__file__).resolve().parents[2]
POSTGRES = os.environ.get("TEST_POSTGRES", "postgres://postgres@127.0.0.1:5432")
N_KILLS = 10


def require_servers(database, queue):
    if database == "postgresql":
        try:
            psycopg.connect(f"{POSTGRES}/postgres").close()
        except psycopg.OperationalError as error:
            pytest.skip(f"no PostgreSQL answers: {error}")
    if queue == "rq":
        try:
            Redis.from_url(REDIS_URL).ping()
        except RedisError as error:
            pytest.skip(f"no Redis answers: {error}")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("queue", ["database", "rq"])
def test_killed_processes_leave_every_job_done_once_or_failed_with_a_reason(queue):
    # The suite runs on each database in turn.
    database = connection.vendor
    require_servers(database, queue)
    command = [sys.executable, "-m", "benchmarks.faults", "--database", database]
    command += ["--queue", queue, "--kills", str(N_KILLS), "--postgres", POSTGRES]
    ended = subprocess.run(
        [*command, "--redis", REDIS_URL], cwd=PROJECT, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    record = json.loads(ended.stdout.splitlines()[-1])
    assert record["is_good"]
    assert sum(record["kills"].values()) == N_KILLS
    assert record["n_done"] + record["n_failed"] == record["n_jobs"] >= 2 * N_KILLS
    # Or else the kills met nothing.
    assert record["n_repeated"] > 0
