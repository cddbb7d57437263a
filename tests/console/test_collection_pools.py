"""Pools on a collection's pages: what is asked for that cannot be, and what is taken away."""

import pytest

from accounts.models import AuditEntry
from accounts.teams import create_team
from retrieval.models import CollectionVersion
from tests.console.pages import words_of
from tests.retrieval.collections import add_file, filled_collection
from work.models import Job

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]
POOLS = "/collections/tracks/pools/"


@pytest.fixture
def collection(researcher):
    return filled_collection(create_team(name="Lab", owner=researcher), researcher)


def ask(rosa, collection, **more):
    form = {"targets": "runs", "method": "quotas", "uniform": 0, "cap": 0, "seed": 7}
    for run in collection.files.filter(kind="run"):
        form |= {f"use_{run.pk}": "on", f"quota_{run.pk}": 2}
    return rosa.post(POOLS, form | more)


def test_a_pool_that_is_taken_away_is_in_the_audit_log(rosa, collection):
    assert ask(rosa, collection).status_code == 302
    assert rosa.get(f"{POOLS}1.csv").status_code == 200
    entry = AuditEntry.objects.get(action="export", subject="tracks")
    assert entry.details == {"file": "tracks-pool-1.csv"}


def test_a_topic_that_no_database_holds_is_not_found_in_a_pool(rosa, collection):
    ask(rosa, collection)
    assert rosa.get(f"{POOLS}1/", {"topic": "t\0"}).status_code == 200


def test_a_pool_without_any_candidate_is_refused_with_a_reason(rosa, collection):
    assert ask(rosa, collection, targets="named", named="nobody").status_code == 302
    job = Job.objects.get(kind="make_pool")
    assert (job.state, job.attempts) == (Job.State.FAILED, 1)
    assert job.message.startswith("No candidate was found for any target.")
    assert not CollectionVersion.objects.exists()


def test_numbers_that_no_database_holds_are_refused_on_the_form(rosa, collection):
    add_file(collection, "second.txt", "t1 0 d1 1\nt1 0 d2 0\n")
    files = collection.files.all()
    runs = [file.pk for file in files.filter(kind="run")]
    qrels = files.get(name="qrels.txt").pk
    form = {"runs": runs, "measures": ["nDCG@10"], "missing": "common", "ties": "falling"}
    for page, more in (
        ("evaluation", {"qrels": qrels, "seed": 10**20}),
        ("trust", {"qrels": [qrels], "seed": 0, "top": 10**20}),
        ("reuse", {"qrels": qrels, "seed": 0, "pool_depth": 10**20}),
    ):
        answer = rosa.post(f"/collections/tracks/{page}/", form | more)
        assert answer.status_code == 422
        assert "less than or equal to" in words_of(answer.content.decode())
    assert not Job.objects.exclude(kind="read_collection_files").exists()
