from accounts import roles, teams
from accounts.models import Membership, User
from annotation import access, label_sets, models, study_facts
from annotation.result_kinds.base import find_study_kind
from hits.collect import set_status
from hits.models import Assignment, Connection, Hit, Recruiter
from marketplace.people.enrolment import create_worker
from metrics.models import JudgeConnection, ScoringRequest
from tests.console import filled, work

WORKER_ID, ASSIGNMENT_ID = "A1IDENTIFIABLE", "3IDENTIFIABLE"


def create_users(owner):
    users = {"owner": owner}
    team = teams.create_team(name="Lab", owner=owner)
    for role in roles.Role:
        if role != roles.Role.OWNER:
            users[role.value] = User.objects.create_user(role.value)
            teams.set_role(team=team, user=users[role.value], role=role, actor=owner)
    users["other_team"] = User.objects.create_user("stranger")
    teams.create_team(name="Other", owner=users["other_team"])
    users["worker"] = create_worker(username="wanda", password="a-long-and-winding-one").user
    users["operator"] = User.objects.create_user("olga", is_staff=True)
    return users


def create_study(owner):
    study = filled.scored_study("mine", owner=owner, team=owner.memberships.get().team)
    for page in (study_facts.AGREEMENT, study_facts.SCORES):
        find_study_kind(page).compute_now(study)
    filled.store_validation(study)
    label_sets.make_label_set(question=study.questions.get(), rule=label_sets.Rule("mean"))
    first, second = Hit.objects.of(filled.add_batch(study))[:2]
    readable = filled.add_assignment(first, WORKER_ID)
    Assignment.objects.filter(pk=readable.pk).update(
        assignment_id=ASSIGNMENT_ID, submission=models.Submission.objects.of(study).first()
    )
    readable.refresh_from_db()
    set_status(assignment=readable, status=Assignment.Status.APPROVED)
    filled.add_assignment(second, WORKER_ID, problem="It was cut short.")
    Membership.objects.create(
        team=study.team, user=User.objects.create_user("last"), role=roles.Role.ANALYST
    )
    guest = User.objects.create_user("guest")
    access.set_study_role(study=study, user=guest, role=roles.Role.ANALYST, actor=owner)
    there = {"name": "There", "marketplace": "elsewhere.example.org"}
    elsewhere = Connection.objects.create(team=study.team, **there)
    filled.add_recruitment(study)
    Recruiter.objects.create(
        connection=elsewhere, public_id="5THERE", name="There", fetched_at=filled.NOON
    )
    JudgeConnection.objects.create(team=study.team, name="There", base_url="https://a.example/v1")
    ScoringRequest.objects.create(study=study, metric="rouge1")
    work.request_for_later(study=study, kind=study_facts.SCORE, names=["rouge1"])
    return study
