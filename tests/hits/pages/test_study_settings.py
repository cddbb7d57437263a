import pytest
from django.apps import apps
from django.urls import reverse

from accounts.models import AuditEntry
from accounts.roles import Role
from accounts.teams import create_team, set_role
from annotation.models import Item, Protocol, Study, Submission
from annotation.protocols.versions import freeze
from annotation.result_kinds.base import find_study_kind
from annotation.study_facts import AGREEMENT, SCORE
from hits import collect, studies
from hits.models import Assignment, Batch, Budget, Hit
from tests.codes import codes_of, field_codes, message_codes
from tests.console.filled import add_assignment, add_batch, scored_study
from tests.console.work import request_for_later, work_off
from work.models import Job

pytestmark = pytest.mark.django_db


@pytest.fixture
def study(researcher):
    study = scored_study("mine", owner=researcher, team=create_team(name="Lab", owner=researcher))
    find_study_kind(AGREEMENT).compute_now(study)
    Submission.objects.filter(item__study=study).update(protocol=freeze(study=study))
    assignment = add_assignment(Hit.objects.of(add_batch(study))[0])
    collect.set_status(assignment=assignment, status=Assignment.Status.APPROVED)
    Batch.objects.update(lifetime_seconds=30)
    return study


def post(client, page, /, **fields):
    return client.post(reverse(f"console:{page}", args=["mine"]), fields, follow=True)


def test_a_study_has_another_name_under_the_same_address(rosa, study):
    assert message_codes(post(rosa, "rename", title="Better name")) == ["renamed"]
    study.refresh_from_db()
    assert (study.title, study.slug) == ("Better name", "mine")
    assert AuditEntry.objects.get(action="study.rename").details["to"] == "Better name"
    for title, code in ((" ", "required"), ("Best\u202ename", "invisible")):
        assert field_codes(post(rosa, "rename", title=title).context["form"]) == {"title": [code]}


def test_a_study_is_deleted_once_its_name_is_typed(rosa, colleague, signed_in, study, monkeypatch):
    monkeypatch.setattr(studies, "unfinished_work", lambda _study: [])
    n_items = study.items.count()
    assert rosa.get(reverse("console:delete", args=["mine"])).context["contents"][0][1] == n_items
    assert "mine" in post(rosa, "delete", name="other").context["problem"]
    assert Study.objects.exists()
    assert message_codes(post(rosa, "delete", name="mine")) == ["deleted"]
    own_apps = map(apps.get_app_config, ("annotation", "metrics", "validation", "hits", "console"))
    models = [model for app in own_apps for model in app.get_models()]
    left = {model._meta.label for model in models if model.objects.exists()}
    # What belongs to nobody's study stays: workers, connections, pictures.
    assert left <= {"hits.Worker", "hits.Connection", "annotation.Picture"}
    entry = AuditEntry.objects.get(action="study.delete")
    assert (entry.subject, entry.details["items"]) == ("mine", n_items)
    # The audit log shows it.
    set_role(team=study.team, user=colleague, role=Role.AUDITOR, actor=None)
    for browser in (rosa, signed_in(colleague)):
        page = browser.get(reverse("console:audit-log", args=["lab"]))
        (entry,) = [one for one in page.context["page"] if one.action == "study.delete"]
        page_text = page.content.decode()
        assert all(f"{name}: {n}" in page_text for name, n in entry.details.items() if n)


def test_a_study_with_open_work_or_spending_under_a_budget_is_not_deleted(rosa, study):
    add_assignment(add_batch(study, round=2).hits.first())
    request_for_later(study=study, kind=SCORE, names=["rouge1"])
    reasons = ["open_batches", "undecided_work", "job_under_way"]
    assert codes_of(post(rosa, "delete", name="mine").context["reasons"]) == reasons
    Budget.objects.create(team=study.team, cap_usd=100)
    reasons.append("counts_against_budget")
    assert codes_of(post(rosa, "delete", name="mine").context["reasons"]) == reasons
    assert Study.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_large_study_is_deleted_in_the_background(rosa, researcher, monkeypatch):
    monkeypatch.setattr("hits.studies.AT_ONCE_JUDGMENTS", 0)
    scored_study("mine", owner=researcher)
    assert message_codes(post(rosa, "delete", name="mine")) == ["deleting"]
    work_off()
    assert list(Job.objects.filter(kind="delete_study").values_list("state", flat=True)) == ["done"]
    assert not Study.objects.exists()
    assert not Item.objects.exists()
    assert not Protocol.objects.exists()
