import json

import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from django.test import Client

from accounts import exceptions, roles
from accounts.audit import chain_faults
from accounts.enrolment import export_user
from accounts.models import AuditChain, AuditEntry, Membership, User
from accounts.teams import create_team, set_role
from annotation.models import Study
from marketplace.people.enrolment import create_worker
from tests.annotation.importing import command_output
from tests.codes import refused

PASSWORD = "a-long-and-winding-password"


@pytest.fixture
def rosa(db):
    user = User.objects.create_user(
        "rosa", email="rosa@post.example", password=PASSWORD, first_name="Rosa"
    )
    EmailAddress.objects.create(user=user, email="rosa@post.example", verified=True, primary=True)
    Authenticator.objects.create(user=user, type="totp", data={"secret": "a secret"})
    return user


@pytest.fixture
def team(rosa):
    made = create_team(name="Lab", owner=rosa)
    Study.objects.create(title="Mine", slug="mine", kind=Study.Kind.RATING, owner=rosa, team=made)
    return made


def test_an_export_has_every_table_and_nothing_that_opens_the_account(rosa, team):
    exported = json.loads(command_output("export_user", "rosa"))
    assert exported["User"][0]["email"] == "rosa@post.example"
    assert exported["Membership.user"][0]["role"] == "owner"
    assert exported["Study.owner"][0]["title"] == "Mine"
    assert {"AuditEntry.actor", "Job.requested_by", "WorkerAccount.user"} <= set(exported)
    text = json.dumps(exported)
    assert "a secret" not in text
    assert rosa.password not in text
    assert set(exported) == set(export_user(rosa))


def test_who_a_user_is_goes_and_the_work_stays(rosa, team):
    browser = Client()
    browser.force_login(rosa)
    set_role(team=team, user=User.objects.create_user("olaf"), role=roles.Role.OWNER, actor=rosa)
    command_output("erase_user", "rosa", dry_run=True)
    assert User.objects.filter(username="rosa").exists()
    command_output("erase_user", "rosa")
    user = User.objects.get(pk=rosa.pk)
    assert user.username.startswith("erased-")
    assert (user.email, user.first_name, user.is_active) == ("", "", False)
    assert not EmailAddress.objects.exists()
    assert not Authenticator.objects.exists()
    assert list(Membership.objects.values_list("user__username", flat=True)) == ["olaf"]
    assert Study.objects.get().owner == user
    assert "/login/" in browser.get("/teams/").url
    assert AuditEntry.objects.filter(action="erase user", subject=user.username).exists()
    assert [fault for chain in AuditChain.objects.all() for fault in chain_faults(chain)] == []


def test_a_team_is_not_left_without_an_owner(rosa, team):
    for dry_run in (True, False):
        # The dry run has no code: it lists what keeps the user from being erased.
        code = "erasure_refused" if dry_run else "last_owner"
        with refused(exceptions.ErasureRefused, code) as caught:
            command_output("erase_user", "rosa", dry_run=dry_run)
        assert "Lab" in str(caught.value)
    assert User.objects.get().username == "rosa"
    # Workers are erased where their money is looked at.
    create_worker(username="ada", password=PASSWORD)
    with refused(exceptions.ErasureRefused, "marketplace_account"):
        command_output("erase_user", "ada")
