import pytest
from django.test import Client
from django.urls import NoReverseMatch, reverse

from accounts import enrolment, exceptions, models, teams
from annotation.models import Study, StudyMembership
from config.samples import create_demo_user
from tests.annotation import importing, studies
from tests.codes import codes_on
from tests.console.addresses import ACTIONS_OF_A_STUDY

pytestmark = pytest.mark.django_db


@pytest.fixture
def study():
    return studies.rating_study()


@pytest.fixture
def visitor(study):
    password = create_demo_user(name="demo", studies=[study])
    client = Client(headers={"host": "localhost"})
    answer = client.post(reverse("console:login"), {"username": "demo", "password": password})
    assert answer.status_code == 302
    return client


def page(visitor, name, *arguments):
    return visitor.get(reverse(f"console:{name}", args=arguments))


def test_the_command_prints_a_password_once_and_takes_nobodys_account(study):
    enrolment.create_user(username="carla", password="a-long-and-winding-password")
    with pytest.raises(exceptions.NameTaken):
        create_demo_user(name="carla", studies=[study])
    assert not StudyMembership.objects.exists()
    first = importing.command_output("create_demo_user", "demo", study=[study.slug])
    assert study.slug in first
    password = models.User.objects.get(username="demo").password
    assert importing.command_output("create_demo_user", "demo", study=[study.slug]) != first
    assert models.User.objects.get(username="demo").password == password
    assert models.User.objects.get(username="demo").is_read_only
    assert StudyMembership.objects.count() == 1


def test_a_visitor_reads_the_study_changes_nothing_and_does_not_see_the_account(visitor, study):
    for name in (
        *("study", "items", "protocol", "launch", "agreement", "results", "validation"),
        *("report", "downloads", "labels", "adjudication", "answers"),
    ):
        answer = page(visitor, name, study.slug)
        assert answer.status_code == 200
        assert "read_only" in codes_on(answer.content.decode()), name
    assert page(visitor, "study", studies.rating_study(slug="other").slug).status_code == 404
    address = f"/api/v1/studies/{study.slug}/"
    assert visitor.get(address).json()["slug"] == study.slug
    for method in (visitor.post, visitor.put, visitor.patch, visitor.delete):
        answer = method(address, "{}", content_type="application/json")
        assert answer.status_code == 403
    assert Study.objects.get(pk=study.pk).title == study.title
    # The account's pages say from where the others use it, and would shut them out.
    for name in ("account", "usersessions_list", "api_tokens", "mfa_index"):
        assert visitor.get(reverse(name)).status_code == 403
    assert visitor.post(reverse("account_change_password"), {}).status_code == 403
    # One leaves by the button for it.
    assert visitor.post(reverse("console:logout")).status_code == 302
    assert page(visitor, "studies").status_code == 302


def addresses(study):
    yield from (reverse(f"console:{name}") for name in ("new-study", "new-team"))
    for name in ACTIONS_OF_A_STUDY:
        try:
            yield reverse(f"console:{name}", args=[study.slug])
        except NoReverseMatch:
            continue
    yield reverse("console:rename", args=[study.slug])
    yield from ("/worker/signup/", "/requester-console/sign-up/")


def test_whatever_is_pressed_changes_nothing(visitor, study):
    before, entries = importing.everything(), models.AuditEntry.objects.count()
    posted = list(addresses(study))
    assert len(posted) > 15
    for address in posted:
        assert visitor.post(address, {"title": "Mine", "name": "Mine"}).status_code == 403, address
    assert importing.everything() == before
    assert models.AuditEntry.objects.count() == entries


def test_what_visitors_read_again_and_again_makes_no_log_longer(visitor):
    study = studies.rating_study(slug="of-a-team")
    study.team = teams.create_team(
        name="Lab", owner=enrolment.create_user(username="rosa", password="a-long-password")
    )
    study.save()
    create_demo_user(name="demo", studies=[study])
    before = models.AuditEntry.objects.count()
    for _visit in range(3):
        for name in ("items.csv", "judgments.csv"):
            answer = page(visitor, "download", study.slug, name)
            assert answer.status_code == 200
            answer.getvalue()
    assert [
        (one.action, one.details) for one in list(models.AuditEntry.objects.order_by("pk"))[before:]
    ] == [("export", {"file": name}) for name in ("items.csv", "judgments.csv")]


def test_others_are_not_looking_around(study, rosa):
    Study.objects.filter(pk=study.pk).update(owner=models.User.objects.get(username="rosa"))
    assert "read_only" not in codes_on(page(rosa, "study", study.slug).content.decode())
    assert rosa.get(reverse("account")).status_code == 200
