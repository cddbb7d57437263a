"""Who may do what in a study."""

import pytest

from accounts.models import User
from accounts.roles import PERMISSIONS, Permission, Role
from accounts.teams import create_team, remove_member, set_role
from annotation.access import give_to_team, permissions_in, remove_study_member, set_study_role
from annotation.exceptions import StudyUnfit
from annotation.models import Study
from tests.annotation.studies import rating_study
from tests.codes import refused

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada() -> User:
    return User.objects.create_user("ada")


@pytest.fixture
def ben() -> User:
    return User.objects.create_user("ben")


def visible(user):
    return [study.slug for study in Study.objects.visible_to(user)]


def test_a_study_without_a_team_is_its_owners(ada, ben):
    study = rating_study("alone", owner=ada)
    assert permissions_in(study, ada) == frozenset(Permission)
    assert permissions_in(study, ben) == frozenset()
    assert (visible(ada), visible(ben)) == (["alone"], [])


def test_a_teams_roles_hold_in_its_studies(ada, ben):
    team = create_team(name="Lab", owner=ada)
    # Who left a team no longer sees what they made in it.
    study = rating_study("shared", owner=ben, team=team)
    assert permissions_in(study, ben) == frozenset()
    assert visible(ben) == []
    for role in Role:
        set_role(team=team, user=ben, role=role, actor=ada)
        assert permissions_in(study, ben) == PERMISSIONS[role]
        assert visible(ben) == ["shared"]


def test_a_role_in_one_study_opens_that_study_alone(ada, ben):
    team = create_team(name="Lab", owner=ada)
    study = rating_study("one", owner=ada, team=team)
    rating_study("two", owner=ada, team=team)
    member = set_study_role(study=study, user=ben, role=Role.ADJUDICATOR, actor=ada)
    assert visible(ben) == ["one"]
    assert permissions_in(study, ben) == PERMISSIONS[Role.ADJUDICATOR]
    set_role(team=team, user=ben, role=Role.ANALYST, actor=ada)
    both = PERMISSIONS[Role.ADJUDICATOR] | PERMISSIONS[Role.ANALYST]
    assert permissions_in(study, ben) == both
    remove_member(member=team.memberships.get(user=ben), actor=ada)
    remove_study_member(member=member, actor=ada)
    assert visible(ben) == []
    with refused(StudyUnfit, "team_role"):
        set_study_role(study=study, user=ben, role=Role.OWNER, actor=ada)


def test_a_study_given_to_a_team_stays_with_it(ada, ben):
    lab, other = create_team(name="Lab", owner=ada), create_team(name="Other", owner=ben)
    study = rating_study("one", owner=ada)
    give_to_team(study=study, team=lab, actor=ada)
    assert (study.team, visible(ben)) == (lab, [])
    with refused(StudyUnfit, "other_team"):
        give_to_team(study=study, team=other, actor=ben)
