import os
import sqlite3
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.db import connection

from annotation.models import Candidate, Item, Study
from metrics.models import Score
from metrics.scorers.registry import build
from metrics.study_scores import score_study
from tests.metrics.scoring_process import BATCH_SIZE, SLUG

pytestmark = pytest.mark.slow
N_OUTPUTS = len(build("rouge1").outputs)
N_ITEMS, SYSTEMS = 750, ("alpha", "beta", "gamma", "delta")
LEASE_SECONDS = 1
PROJECT = Path(__file__).resolve().parents[2]


def large_study():
    """3,000 candidates; the first two systems say the same about every tenth item."""
    study = Study.objects.create(slug=SLUG, title="Killed", kind=Study.Kind.RATING)
    items = Item.objects.bulk_create(
        Item(study=study, key=f"d{n}", context=f"Q{n}", reference=f"answer {n} is {n}", position=n)
        for n in range(N_ITEMS)
    )
    Candidate.objects.bulk_create(
        (
            Candidate(
                item=item, key=system, system=system, position=position, text=text(item, position)
            )
            for item in items
            for position, system in enumerate(SYSTEMS)
        )
    )
    return study


def text(item, position):
    label = 0 if position == 1 and item.position % 10 == 0 else position
    return f"the answer {item.position} " + "is " * label


class Database:
    """Where other processes find the test's data: as PostgreSQL, or in a copy as a file."""

    def __init__(self, folder):
        self.file = None if connection.vendor == "postgresql" else folder / "killed.sqlite3"
        if self.file:
            with sqlite3.connect(self.file) as copy:
                connection.ensure_connection()
                connection.connection.backup(copy)
            copy.close()

    @property
    def url(self):
        if self.file:
            return f"sqlite:///{self.file}"
        there = connection.settings_dict
        host, port = there["HOST"] or "127.0.0.1", there["PORT"] or 5432
        return f"postgres://{there['USER']}:{there['PASSWORD']}@{host}:{port}/{there['NAME']}"

    def rows(self, sql):
        if self.file:
            with sqlite3.connect(self.file) as there:
                rows = there.execute(sql).fetchall()
            there.close()
            return rows
        with connection.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchall()

    def scores(self):
        """Every score by its own key, with the candidate's key, the output and the value."""
        return {
            key: tuple(rest)
            for key, *rest in self.rows(
                "select s.id, s.candidate_id, r.metric, s.value, s.content "
                "from metrics_score s join metrics_scoringrun r on r.id = s.run_id"
            )
        }


@contextmanager
def started(database, log, *arguments):
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.metrics.scoring_process", log, *arguments],
        cwd=PROJECT,
        env=os.environ | {"DATABASE_URL": database.url, "WORK_LEASE_SECONDS": str(LEASE_SECONDS)},
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def start_and_kill(database, log, *arguments):
    """A process that is killed where it waits; its lease lapses before anybody goes on."""
    with started(database, log, *arguments) as process:
        assert process.stdout.readline() == "now\n"
    assert process.returncode == -9
    time.sleep(LEASE_SECONDS)


def lines(log):
    return log.read_text().splitlines()


@pytest.mark.django_db(transaction=True)
def test_a_run_that_is_killed_twice_scores_nothing_twice(tmp_path):
    study = large_study()
    database = Database(tmp_path)
    logs = [tmp_path / name for name in ("first", "second", "third")]

    start_and_kill(database, logs[0], "measuring", "8")
    after_first = database.scores()
    assert len(after_first) >= N_OUTPUTS * 7 * BATCH_SIZE

    start_and_kill(database, logs[1], "writing", "5")
    after_second = database.scores()
    assert after_first.items() < after_second.items()
    assert database.rows("select state from metrics_scoringrun where leader_id is null") == [
        ("running",)
    ]

    with started(database, logs[2]) as last:
        output = last.communicate()[0]
    assert last.returncode == 0
    assert f" {len(after_second) // N_OUTPUTS:,} " in output
    scores = database.scores()
    assert after_second.items() < scores.items()

    # Each content is computed once, but for the one batch that each kill took with it.
    first, second, third = map(lines, logs)
    assert [len(first), len(second), len(third)] == [1200, 750, 1275]
    assert len(set(first[:1050] + second[:600] + third)) == 2925
    assert first[1050:] == second[:150]
    assert second[600:] == third[:150]

    Score.objects.all().delete()
    score_study(study=study, scorer=build("rouge1"))
    undisturbed = Score.objects.values_list("candidate_id", "run__metric", "value", "content")
    assert sorted(scores.values()) == sorted(undisturbed)
    assert len(scores) == N_OUTPUTS * N_ITEMS * len(SYSTEMS)
