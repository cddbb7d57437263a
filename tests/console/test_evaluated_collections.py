"""A collection with every result: what its pages cost, where they lead, how it is deleted."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from accounts.models import AuditEntry
from retrieval.deletion import remove_collection
from retrieval.file_readings import subject_of
from retrieval.models import Collection, CollectionFile, CollectionVersion
from tests.console.collection_addresses import PAGES_OF_A_COLLECTION
from tests.console.collection_addresses import address_of as address
from tests.console.pages import words_of
from tests.console.test_collections import next_step_of
from work.execution import run_job
from work.models import Job

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]
MOST_STATEMENTS = 17


@pytest.mark.parametrize("name", sorted(PAGES_OF_A_COLLECTION))
def test_a_page_asks_the_database_a_few_things(rosa, tracks, name):
    rosa.get(address(name))
    with CaptureQueriesContext(connection) as queries:
        answer = rosa.get(address(name))
        assert answer.status_code == 200
        assert answer.getvalue() is not None
    assert len(queries) <= MOST_STATEMENTS


def test_the_overview_of_all_that_was_computed_leads_to_the_report(rosa, tracks):
    assert next_step_of(rosa) == "All is computed: read the report"


def test_a_large_collection_is_deleted_by_a_job_that_a_page_follows(
    rosa, researcher, tracks, monkeypatch
):
    monkeypatch.setattr("retrieval.deletion.AT_ONCE_ROWS", 10)
    job = remove_collection(collection=tracks, actor=researcher)
    assert job is not None
    job.refresh_from_db()
    assert job.state == Job.State.DONE
    assert job.message == "“Tracks” is deleted."
    assert job.n_done == job.n_total > 10
    assert not CollectionVersion.objects.exists()
    assert not CollectionFile.objects.exists()
    entry = AuditEntry.objects.get(action="collection.delete", subject="tracks")
    assert (entry.details["name"], entry.actor) == ("Tracks", researcher)
    where = reverse("console:collection-work", args=["tracks", job.pk])
    assert rosa.get(where).status_code == 404
    assert rosa.get(where, headers={"HX-Request": "true"})["HX-Redirect"] == "/collections/"


def test_the_page_of_deletion_shows_the_job_and_what_keeps_a_collection(
    rosa, researcher, tracks, monkeypatch
):
    monkeypatch.setattr("retrieval.deletion.AT_ONCE_ROWS", 10)
    other = Job.objects.filter(kind="evaluate_collection").first()
    Job.objects.filter(pk=other.pk).update(state=Job.State.RUNNING)
    answer = rosa.post(address("collection-delete"), {"name": "tracks"})
    assert answer.status_code == 422
    assert "A job on it is under way." in words_of(answer.content.decode())
    Job.objects.filter(pk=other.pk).update(state=Job.State.DONE)
    job = Job.objects.create(
        kind="delete_collection", subject=subject_of(tracks), arguments={"collection": tracks.pk}
    )
    page = words_of(rosa.get(address("collection-delete")).content.decode())
    assert "This page follows the rest." in page
    assert "Type tracks to confirm" not in page
    Job.objects.filter(pk=job.pk).delete()
    assert rosa.post(address("collection-delete"), {"name": "tracks"}).url == "/collections/"
    assert not Collection.objects.exists()


def test_a_deletion_that_broke_off_goes_on_where_it_was(researcher, tracks):
    tracks.files.first().delete()
    job = Job.objects.create(
        kind="delete_collection",
        subject=subject_of(tracks),
        arguments={"collection": tracks.pk},
        requested_by=researcher,
    )
    assert run_job(job.pk) == Job.State.DONE
    assert not Collection.objects.exists()
