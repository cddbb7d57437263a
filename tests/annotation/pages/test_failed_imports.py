import json

import pytest
from django.db import OperationalError
from django.test import Client
from django.urls import reverse

from accounts.models import User
from accounts.teams import create_team
from annotation import exceptions, jobs, models, uploads
from error_codes import InvalidValue
from retrieval import collections, file_readings
from retrieval.models import CollectionFile
from tests.annotation.pages.test_label_uploads import TABLE, page_of, said_of, send, to
from tests.annotation.test_any_tool_export import argilla
from tests.codes import codes_on
from tests.retrieval.collections import add_file
from work import execution, registry, tasks
from work.models import Job


@pytest.fixture
def upload(rosa: Client) -> models.Upload:
    return send(rosa, TABLE, "labels.csv")


def failed_with(upload: models.Upload, error: Exception, monkeypatch: pytest.MonkeyPatch) -> Job:
    """A job on the upload whose handler raises this error, after it was run once."""
    monkeypatch.setattr(registry, "_kinds", dict(registry.job_kinds()))

    def handler(running: execution.RunningJob) -> str:
        raise error

    registry.register(
        "raising", label="A job", queue=registry.INTERACTIVE, refusals=(exceptions.AnnotationError,)
    )(jobs.fail_with_fault(exceptions.AnnotationError)(handler))
    arguments = {"upload": upload.pk}
    job = tasks.request_job(kind="raising", subject=f"upload:{upload.pk}", arguments=arguments)
    execution.run_job(job.pk)
    job.refresh_from_db()
    return job


@pytest.mark.parametrize(
    "error", [TypeError("a list"), KeyError("x"), InvalidValue("no", code="n"), RecursionError()]
)
def test_an_error_of_the_program_fails_the_job_at_once_and_is_shown(
    rosa, upload, monkeypatch, error
):
    job = failed_with(upload, error, monkeypatch)
    assert (job.state, job.attempts) == (Job.State.FAILED, 1)
    page = page_of(rosa, upload)
    assert [fault["code"] for fault in upload.faults] == ["unexpected_error"]
    assert "unexpected_error" in codes_on(page.content.decode())
    assert page.context["job"] == job
    assert type(error).__name__ in job.message


def test_a_database_that_is_away_is_tried_again_and_the_page_shows_the_last_attempt(
    rosa, upload, monkeypatch
):
    job = failed_with(upload, OperationalError("away"), monkeypatch)
    assert (job.state, job.attempts) == (Job.State.QUEUED, 1)
    page = page_of(rosa, upload).content.decode()
    assert upload.faults == []
    assert job.message
    assert job.message in page
    assert job.message in rosa.get(to("upload-progress", upload)).content.decode()


def test_every_job_on_an_upload_ends_so():
    for name in [name for names in uploads.JOBS.values() for name in names]:
        assert hasattr(registry.job_kind(name).handler, "__wrapped__"), name


def test_an_export_of_empty_answers_makes_a_study_of_the_others(rosa):
    upload = send(rosa, json.dumps(argilla([], [])), "argilla.json")
    [part] = upload.reading["parts"]
    assert (part["code"], part["n"], part["places"]) == ("no_category", 2, ["label"])
    expected = [("rating", True), ("label", False)]
    assert [(q["name"], q["is_read"]) for q in upload.summary["questions"]] == expected
    page_of(rosa, upload)
    rosa.post(to("upload-import", upload), said_of(upload, upload.mapping["uses"]))
    assert list(models.Study.objects.get().questions.values_list("name", flat=True)) == ["rating"]


def test_an_export_of_empty_answers_only_is_refused_on_its_page(rosa):
    upload = send(rosa, json.dumps(argilla([], [], rated=False)), "argilla.json")
    assert "no_answers" in codes_on(page_of(rosa, upload).content.decode())
    rosa.post(to("upload-import", upload), said_of(upload, upload.mapping["uses"]))
    assert not models.Study.objects.exists()


def test_an_error_of_the_program_is_a_fault_of_a_collections_file(rosa, monkeypatch):
    owner = User.objects.get(username="rosa")
    collection = collections.create_collection(
        name="Tracks", team=create_team(name="Lab", owner=owner), actor=owner
    )

    def read(path: object) -> None:
        raise TypeError("a list")

    monkeypatch.setitem(file_readings.READERS, CollectionFile.Kind.QRELS, read)
    file = add_file(collection, "q.txt", "t1 0 d1 1\n")
    file.refresh_from_db()
    assert file.n_faults == 1
    assert not file.is_usable
    page = rosa.get(reverse("console:collection-files", args=[collection.slug]))
    assert [one.pk for one in page.context["faulty"]] == [file.pk]
