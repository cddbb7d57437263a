import pytest

from accounts.exceptions import InvalidTeam, LastOwner
from accounts.models import AuditEntry, Membership, User
from accounts.roles import PERMISSIONS, Permission, Role
from accounts.teams import create_team, permissions_in_team, remove_member, set_role
from tests.codes import refused

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada():
    return User.objects.create_user("ada")


@pytest.fixture
def ben():
    return User.objects.create_user("ben")


def test_a_member_may_what_the_role_allows_a_stranger_nothing_and_a_superuser_everything(ada, ben):
    team = create_team(name="Dialogue Lab", owner=ada)
    assert (team.slug, permissions_in_team(team, ada)) == ("dialogue-lab", frozenset(Permission))
    assert permissions_in_team(team, ben) == frozenset()
    assert permissions_in_team(team, User.objects.create_superuser("root")) == frozenset(Permission)
    for role in Role:
        set_role(team=team, user=ben, role=role, actor=ada)
        assert permissions_in_team(team, ben) == PERMISSIONS[role]
    closed = {Permission.VIEW_WORKERS, Permission.VIEW_MONEY, Permission.SPEND, Permission.REVIEW}
    assert not (PERMISSIONS[Role.ANALYST] | PERMISSIONS[Role.ADJUDICATOR]) & closed
    assert all(name.startswith("view") for name in PERMISSIONS[Role.AUDITOR])


def test_the_last_owner_neither_leaves_nor_steps_down(ada, ben):
    team = create_team(name="Lab", owner=ada)
    own = Membership.objects.get(user=ada)
    set_role(team=team, user=ben, role=Role.MANAGER, actor=ada)
    with pytest.raises(LastOwner):
        remove_member(member=own, actor=ada)
    with pytest.raises(LastOwner):
        set_role(team=team, user=ada, role=Role.ANALYST, actor=ada)
    set_role(team=team, user=ben, role=Role.OWNER, actor=ada)
    remove_member(member=own, actor=ada)
    assert [member.user for member in team.memberships.all()] == [ben]


def test_a_name_that_is_taken_empty_or_not_seen_makes_no_team(ada):
    create_team(name="Lab", owner=ada)
    for name, code in (
        ("Lab", "taken"),
        ("lab ", "taken"),
        ("***", "no_letters"),
        ("", "no_letters"),
    ):
        with refused(InvalidTeam, code):
            create_team(name=name, owner=ada)
    for character in "\u202e\u200b\u2066\ufeff\u3164\x07":
        with refused(InvalidTeam, "invisible") as caught:
            create_team(name=f"Dialogue{character} lab", owner=ada)
        assert f"+{ord(character):04X}" in str(caught.value)


def test_what_happens_to_members_is_in_the_audit_log(ada, ben):
    team = create_team(name="Lab", owner=ada)
    set_role(team=team, user=ben, role=Role.ANALYST, actor=ada)
    remove_member(member=Membership.objects.get(user=ben), actor=ada)
    entries = AuditEntry.objects.of(team).order_by("position")
    assert [(entry.action, entry.subject, entry.actor) for entry in entries] == [
        ("team.create", "Lab", ada),
        ("member.role", "ben", ada),
        ("member.remove", "ben", ada),
    ]
