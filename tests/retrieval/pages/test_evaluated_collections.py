import csv
import io
import json

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from accounts.models import AuditEntry
from results import models, pages
from retrieval.collections import remove_collection
from retrieval.file_readings import subject_of
from retrieval.models import Collection, CollectionFile
from tests.console.addresses import PAGES_OF_A_COLLECTION, address
from tests.console.pages import rows_of
from tests.retrieval.pages.test_collections import next_step_of
from work.execution import run_job
from work.models import Job

# Apart from other tests of evaluations: `tracks` and `collection` both make a user rosa.
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]
MOST_STATEMENTS = 17
MACHINE = "/collections/tracks/machine/"
TABLES = "/collections/tracks/tables"


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(PAGES_OF_A_COLLECTION))
def test_a_page_asks_the_database_a_few_things(rosa, tracks, name):
    rosa.get(address(name))
    with CaptureQueriesContext(connection) as queries:
        answer = rosa.get(address(name))
        assert answer.status_code == 200
        assert answer.getvalue() is not None
    assert len(queries) <= MOST_STATEMENTS


def test_the_overview_of_all_that_was_computed_leads_to_the_report(rosa, tracks):
    assert next_step_of(rosa) == "report/"


def test_a_large_collection_is_deleted_by_a_job_that_a_page_follows(
    rosa, researcher, tracks, monkeypatch
):
    monkeypatch.setattr("retrieval.collections.AT_ONCE_ROWS", 10)
    job = remove_collection(collection=tracks, actor=researcher)
    assert job is not None
    job.refresh_from_db()
    assert job.state == Job.State.DONE
    assert "Tracks" in job.message
    assert job.n_done == job.n_total > 10
    assert not models.Result.objects.exists()
    assert not CollectionFile.objects.exists()
    entry = AuditEntry.objects.get(action="collection.delete", subject="tracks")
    assert (entry.details["name"], entry.actor) == ("Tracks", researcher)
    where = reverse("console:collection-work", args=["tracks", job.pk])
    assert rosa.get(where).status_code == 404
    assert rosa.get(where, headers={"HX-Request": "true"})["HX-Redirect"] == "/collections/"


def deletion_of(collection, **more):
    arguments = {"collection": collection.pk}
    subject = subject_of(collection)
    return Job.objects.create(
        kind="delete_collection", subject=subject, arguments=arguments, **more
    )


def test_the_page_of_deletion_shows_the_job_and_what_keeps_a_collection(
    rosa, researcher, tracks, monkeypatch
):
    monkeypatch.setattr("retrieval.collections.AT_ONCE_ROWS", 10)
    other = Job.objects.filter(kind="evaluate_collection").first()
    Job.objects.filter(pk=other.pk).update(state=Job.State.RUNNING)
    answer = rosa.post(address("collection-delete"), {"name": "tracks"})
    assert answer.status_code == 422
    assert answer.context["problem"]
    assert Collection.objects.exists()
    Job.objects.filter(pk=other.pk).update(state=Job.State.DONE)
    job = deletion_of(tracks)
    page = rosa.get(address("collection-delete"))
    assert page.context["job"] == job
    assert 'name="name"' not in page.content.decode()
    Job.objects.filter(pk=job.pk).delete()
    assert rosa.post(address("collection-delete"), {"name": "tracks"}).url == "/collections/"
    assert not Collection.objects.exists()


def test_a_deletion_that_broke_off_goes_on_where_it_was(researcher, tracks):
    tracks.files.first().delete()
    assert run_job(deletion_of(tracks, requested_by=researcher).pk) == Job.State.DONE
    assert not Collection.objects.exists()


def test_tables_are_handed_out_as_csv_latex_and_json(rosa, tracks):
    rankings = rosa.get(f"{TABLES}/comparison/rankings.csv").content.decode()
    _header, *rows = csv.reader(io.StringIO(rankings))
    assert {row[3] for row in rows} == {"bm25", "dense", "rm3"}
    assert float(rows[0][5]) < float(rows[0][6])
    left_out = rosa.get(f"{TABLES}/reuse/left-out.csv").content.decode()
    titles, *lines = csv.reader(io.StringIO(left_out))
    assert len(titles) == len(set(titles))
    effects = pages.ShownResult(models.Result.objects.get(kind="reuse")).rows["left_out"]
    names = "mean mean_without change ci_low ci_high rank rank_without judged judged_without"
    for column, name in enumerate(names.split(), start=5):
        cells = [line[column] for line in lines]
        values = [float(cell) if cell else None for cell in cells]
        assert values == [one[name] for one in effects], name
    assert "toprule" in rosa.get(f"{TABLES}/reuse/left-out.tex").content.decode()
    everything = json.loads(rosa.get(f"{TABLES}/audit/all.json").content)
    assert everything["kind"] == "audit"
    assert "findings" in everything["tables"]
    for missing in ("comparison/none.csv", "nothing/rankings.csv", "reuse/left-out.xls"):
        assert rosa.get(f"{TABLES}/{missing}").status_code == 404


@pytest.mark.parametrize(
    ("page", "chart"), [("trust", "ranks"), ("machine", "means"), ("audit", "findings")]
)
def test_a_chart_stands_on_its_page_with_words_data_and_files(rosa, tracks, page, chart):
    where = f"/collections/tracks/{page}/"
    content = rosa.get(where).content.decode()
    assert f'data-chart="{where}{chart}.json/picture/?version=1"' in content
    assert f'<figure class="chart" id="{chart}">' in content
    data = rows_of(rosa.get(f"{where}{chart}.csv/picture/"))
    spec = rosa.get(f"{where}{chart}.json/picture/").json()
    assert spec["$schema"].startswith("https://vega.github.io/schema/vega-lite/")
    assert rosa.get(f"{where}{chart}.svg/picture/").content.startswith(b"<svg")
    assert rosa.get(f"{where}none.json/picture/").status_code == 404
    if page in ("trust", "machine"):
        assert len({row["qrels"] for row in data}) == 3
    if page == "trust":
        version = models.Result.objects.get(kind="comparison")
        qrels = {row["qrels"] for row in data}
        stored = {
            (one["run"], one["qrels"]): one["mean"]
            for one in pages.ShownResult(version).rows["rankings"]
            if one["measure"] == "nDCG@10" and one["qrels"] in qrels
        }
        drawn = {(row["run"], row["qrels"]): float(row["mean"]) for row in data}
        assert drawn == pytest.approx(stored)
    if page == "audit":
        findings = pages.ShownResult(models.Result.objects.get(kind="audit")).rows["findings"]
        counted = {(one["file"], one["n"]) for one in findings}
        assert {(row["file"], int(row["n"])) for row in data} == counted
