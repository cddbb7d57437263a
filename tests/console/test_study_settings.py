"""Renaming a study, and deleting it with all that goes."""

from typing import Any

import pytest
from django.apps import apps
from django.test import Client
from django.urls import reverse

from accounts.models import AuditEntry, User
from accounts.teams import create_team
from annotation.models import Item, Protocol, Study, Submission
from annotation.protocols.versions import freeze
from annotation.study_jobs import SCORE
from console.results import AGREEMENT, compute
from hits import deletion
from hits.models import Assignment, Batch, Budget, Hit
from hits.submissions import set_status
from tests.annotation.studies import rating_study
from tests.console.filled import add_assignment, add_batch, scored_study
from tests.console.pages import words_of
from tests.console.work import request_for_later, work_off
from work.models import Job

pytestmark = pytest.mark.django_db


@pytest.fixture
def study(researcher: User) -> Study:
    """With everything that a study can have, of which all is decided and paid."""
    team = create_team(name="Lab", owner=researcher)
    study = scored_study("mine", owner=researcher, team=team)
    compute(study, AGREEMENT)
    version = freeze(study=study)
    Submission.objects.filter(item__study=study).update(protocol=version)
    batch = add_batch(study)
    assignment = add_assignment(Hit.objects.of(batch)[0])
    set_status(assignment=assignment, status=Assignment.Status.APPROVED)
    Batch.objects.update(lifetime_seconds=30)
    return study


def post(client: Client, page: str, /, **fields: Any) -> str:
    answer = client.post(reverse(f"console:{page}", args=["mine"]), fields, follow=True)
    return words_of(answer.content.decode())


def test_a_study_has_another_name_under_the_same_address(rosa: Client, study: Study) -> None:
    assert "The study is called “Better name”." in post(rosa, "rename", title="Better name")
    study.refresh_from_db()
    assert (study.title, study.slug) == ("Better name", "mine")
    entry = AuditEntry.objects.get(action="study.rename")
    assert entry.details["to"] == "Better name"
    assert "This field is required" in post(rosa, "rename", title=" ")
    assert "invisible character (U+202E)" in post(rosa, "rename", title="Best\u202ename")


def test_a_study_is_deleted_once_its_name_is_typed(
    rosa: Client, study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deletion, "unfinished_work", lambda _study: [])
    n_items = study.items.count()
    page = words_of(rosa.get(reverse("console:delete", args=["mine"])).content.decode())
    assert f"Items {n_items}" in page
    assert "Nothing was deleted: type mine" in post(rosa, "delete", name="other")
    assert Study.objects.exists()
    assert "is deleted." in post(rosa, "delete", name="mine")
    left = [
        model._meta.label
        for app in ("annotation", "metrics", "validation", "hits", "console")
        for model in apps.get_app_config(app).get_models()
        if model.objects.exists()
    ]
    # What belongs to nobody's study stays: workers, connections, pictures.
    assert set(left) <= {"hits.Worker", "hits.Connection", "annotation.Picture"}
    entry = AuditEntry.objects.get(action="study.delete")
    assert (entry.subject, entry.details["items"]) == ("mine", n_items)


def test_a_study_with_open_work_is_not_deleted(rosa: Client, researcher: User) -> None:
    study = scored_study("mine", owner=researcher)
    add_assignment(add_batch(study).hits.first())
    text = post(rosa, "delete", name="mine")
    assert "1 submission waits for your decision." in text
    assert Study.objects.exists()


def test_what_was_spent_of_a_budget_is_not_forgotten(rosa: Client, study: Study) -> None:
    Budget.objects.create(team=study.team, cap_usd=100)
    assert "counts against the team's budget" in post(rosa, "delete", name="mine")
    assert Study.objects.exists()


def test_a_study_on_which_a_job_works_is_not_deleted(rosa: Client, researcher: User) -> None:
    study = rating_study("mine", owner=researcher)
    request_for_later(study=study, kind=SCORE, names=["rouge1"])
    assert "A job on it is under way." in post(rosa, "delete", name="mine")


@pytest.mark.django_db(transaction=True)
def test_a_large_study_is_deleted_in_the_background(
    rosa: Client, researcher: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hits.deletion.AT_ONCE_JUDGMENTS", 0)
    scored_study("mine", owner=researcher)
    text = post(rosa, "delete", name="mine")
    assert "is being deleted in the background" in text
    work_off()
    assert list(Job.objects.filter(kind="delete_study").values_list("state", flat=True)) == ["done"]
    assert not Study.objects.exists()
    assert not Item.objects.exists()
    assert not Protocol.objects.exists()
