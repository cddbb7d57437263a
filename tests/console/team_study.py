from accounts.models import Membership, User
from accounts.roles import Role
from accounts.teams import create_team, set_role
from annotation.access import set_study_role
from annotation.label_sets import Rule, make_label_set
from annotation.models import Submission
from annotation.result_kinds.base import find_study_kind
from annotation.study_facts import AGREEMENT, SCORE
from hits.collect import set_status
from hits.models import Assignment, Connection, Hit, Recruiter
from marketplace.people.enrolment import create_worker
from metrics.models import JudgeConnection, ScoringRequest
from tests.console import filled
from tests.console.work import request_for_later

WORKER_ID, ASSIGNMENT_ID = "A1IDENTIFIABLE", "3IDENTIFIABLE"


def create_users(owner):
    users = {"owner": owner}
    team = create_team(name="Lab", owner=owner)
    for role in Role:
        if role != Role.OWNER:
            users[role.value] = User.objects.create_user(role.value)
            set_role(team=team, user=users[role.value], role=role, actor=owner)
    users["other_team"] = User.objects.create_user("stranger")
    create_team(name="Other", owner=users["other_team"])
    users["worker"] = create_worker(username="wanda", password="a-long-and-winding-one").user
    users["operator"] = User.objects.create_user("olga", is_staff=True)
    return users


def create_study(owner):
    study = filled.scored_study("mine", owner=owner, team=owner.memberships.get().team)
    find_study_kind(AGREEMENT).compute_now(study)
    filled.store_validation(study)
    make_label_set(question=study.questions.get(), rule=Rule("mean"))
    first, second = Hit.objects.of(filled.add_batch(study))[:2]
    readable = filled.add_assignment(first, WORKER_ID)
    Assignment.objects.filter(pk=readable.pk).update(
        assignment_id=ASSIGNMENT_ID, submission=Submission.objects.of(study).first()
    )
    readable.refresh_from_db()
    set_status(assignment=readable, status=Assignment.Status.APPROVED)
    filled.add_assignment(second, WORKER_ID, problem="It was cut short.")
    Membership.objects.create(
        team=study.team, user=User.objects.create_user("last"), role=Role.ANALYST
    )
    guest = User.objects.create_user("guest")
    set_study_role(study=study, user=guest, role=Role.ANALYST, actor=owner)
    there = {"name": "There", "marketplace": "elsewhere.example.org"}
    elsewhere = Connection.objects.create(team=study.team, **there)
    filled.add_recruitment(study)
    Recruiter.objects.create(
        connection=elsewhere, public_id="5THERE", name="There", fetched_at=filled.NOON
    )
    JudgeConnection.objects.create(team=study.team, name="There", base_url="https://a.example/v1")
    ScoringRequest.objects.create(study=study, metric="rouge1")
    request_for_later(study=study, kind=SCORE, names=["rouge1"])
    return study
