import io

import pytest
from django.core.management import CommandError, call_command

from accounts.models import AuditEntry, User
from accounts.roles import PERMISSIONS, Permission, Role
from accounts.teams import create_team, remove_member, set_role
from annotation import exceptions, flags
from annotation.access import give_to_team, permissions_in, remove_study_member, set_study_role
from annotation.disputes import decide
from annotation.label_sets import Rule, make_label_set
from annotation.models import Candidate, Study, Submission
from tests.annotation import importing, studies
from tests.annotation.test_commands import exit_code
from tests.codes import refused, refused_naming

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
    study = studies.rating_study("alone", owner=ada)
    assert permissions_in(study, ada) == frozenset(Permission)
    assert permissions_in(study, ben) == frozenset()
    assert (visible(ada), visible(ben)) == (["alone"], [])


def test_a_teams_roles_hold_in_its_studies(ada, ben):
    team = create_team(name="Lab", owner=ada)
    # Who left a team no longer sees what they made in it.
    study = studies.rating_study("shared", owner=ben, team=team)
    assert permissions_in(study, ben) == frozenset()
    assert visible(ben) == []
    for role in Role:
        set_role(team=team, user=ben, role=role, actor=ada)
        assert permissions_in(study, ben) == PERMISSIONS[role]
        assert visible(ben) == ["shared"]


def test_a_role_in_one_study_opens_that_study_alone(ada, ben):
    team = create_team(name="Lab", owner=ada)
    study = studies.rating_study("one", owner=ada, team=team)
    studies.rating_study("two", owner=ada, team=team)
    member = set_study_role(study=study, user=ben, role=Role.ADJUDICATOR, actor=ada)
    assert visible(ben) == ["one"]
    assert permissions_in(study, ben) == PERMISSIONS[Role.ADJUDICATOR]
    set_role(team=team, user=ben, role=Role.ANALYST, actor=ada)
    assert permissions_in(study, ben) == (PERMISSIONS[Role.ADJUDICATOR] | PERMISSIONS[Role.ANALYST])
    remove_member(member=team.memberships.get(user=ben), actor=ada)
    remove_study_member(member=member, actor=ada)
    assert visible(ben) == []
    with refused(exceptions.StudyUnfit, "team_role"):
        set_study_role(study=study, user=ben, role=Role.OWNER, actor=ada)


def test_a_study_given_to_a_team_stays_with_it(ada, ben):
    lab, other = create_team(name="Lab", owner=ada), create_team(name="Other", owner=ben)
    study = studies.rating_study("one", owner=ada)
    give_to_team(study=study, team=lab, actor=ada)
    assert (study.team, visible(ben)) == (lab, [])
    with refused(exceptions.StudyUnfit, "other_team"):
        give_to_team(study=study, team=other, actor=ben)


RESPONSES = "item,system,context,response\nd0,alpha,Hello?,Hi.\nd0,beta,Hello?,Yo.\n"


@pytest.fixture
def responses(tmp_path):
    return importing.write_file(tmp_path / "responses.csv", RESPONSES)


def run(command, *arguments, **options):
    output, errors = io.StringIO(), io.StringIO()
    call_command(command, *arguments, stdout=output, stderr=errors, **options)
    return output.getvalue(), errors.getvalue()


def test_an_import_that_names_no_owner_says_how_to_give_one(responses, ben):
    _, errors = run("import_responses", str(responses), study="orphan")
    assert "assign_owner orphan USER" in errors
    assert not Study.objects.visible_to(ben).exists()
    run("assign_owner", "orphan", "ben")
    assert Study.objects.visible_to(ben).get().slug == "orphan"
    assert run("import_responses", str(responses), study="orphan")[1] == ""
    assert run("import_responses", str(responses), study="hers", owner="ben")[1] == ""


def test_an_owner_is_replaced_only_when_that_is_said(ada, ben):
    Study.objects.create(slug="s", title="S", kind=Study.Kind.RATING, owner=ben)
    with refused(exceptions.StudyUnknown, slug="none"):
        run("assign_owner", "none", "ben")
    with refused_naming(CommandError, "'nobody'"):
        run("assign_owner", "s", "nobody")
    with refused(exceptions.StudyUnfit, "has_owner", naming=("'ben'", "--replace")):
        run("assign_owner", "s", "ada")
    assert Study.objects.get().owner == ben
    run("assign_owner", "s", "ben")
    output, _ = run("assign_owner", "s", "ada", replace=True)
    assert all(named in output for named in ("'ada'", "'ben'"))
    assert Study.objects.get().owner == ada


@pytest.fixture
def study(ada):
    return studies.rated_study(owner=ada, team=create_team(name="Lab", owner=ada))


def last_entry(study):
    entry = AuditEntry.objects.of(study.team).first()
    return entry.action, entry.subject, entry.actor_name


@pytest.mark.slow
def test_flags_are_recorded(study, ada):
    flags.flag_submissions(submissions=Submission.objects.of(study), reason="too fast", actor=ada)
    assert last_entry(study) == ("submission.flag", study.slug, "ada")
    n = Submission.objects.of(study).count()
    entry = AuditEntry.objects.of(study.team).first()
    assert entry.details == {"n_submissions": n, "reason": "too fast"}
    flags.unflag_submissions(submissions=Submission.objects.of(study), actor=ada)
    assert last_entry(study) == ("submission.unflag", study.slug, "ada")
    # Nothing is recorded of a study without a team.
    n_entries, alone = AuditEntry.objects.count(), studies.rated_study("alone", owner=ada)
    flags.flag_submissions(submissions=Submission.objects.of(alone), reason="too fast", actor=ada)
    assert AuditEntry.objects.count() == n_entries


@pytest.mark.slow
def test_decisions_and_label_sets_are_recorded_once(study, ada):
    candidate = Candidate.objects.filter(item__study=study).first()
    for _ in range(2):
        decide(candidate=candidate, question=study.questions.get(), value=50, decided_by=ada)
    assert last_entry(study) == ("adjudication", study.slug, "ada")
    for _ in range(2):
        make_label_set(question=study.questions.get(), rule=Rule("mean"), created_by=ada)
    assert last_entry(study) == ("label_set", study.slug, "ada")
    actions = AuditEntry.objects.of(study.team).values_list("action", flat=True)
    assert (list(actions).count("adjudication"), list(actions).count("label_set")) == (1, 1)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_an_import_gives_a_study_to_the_team_that_it_names(ada, responses, capsys):
    lab, other = create_team(name="Lab", owner=ada), create_team(name="Other", owner=ada)
    arguments = ("import_responses", responses, "--study", "new", "--team")
    assert exit_code(*arguments, "lab") == 0
    entries = AuditEntry.objects.of(lab).filter(subject="new")
    assert {entry.action for entry in entries} == {"study.team", "study.import"}
    n_entries = AuditEntry.objects.count()
    assert exit_code(*arguments, "lab") == 0
    assert AuditEntry.objects.count() == n_entries
    assert exit_code(*arguments, "other") == 2
    assert exit_code(*arguments, "nobody") == 2
    assert "lab, other" in capsys.readouterr().err
    assert not AuditEntry.objects.of(other).filter(subject="new").exists()
