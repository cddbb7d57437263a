import csv
import io
import re
from itertools import product
from urllib.parse import urlsplit

import pytest
from django.core import mail
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts import audit, roles, teams
from accounts.models import AuditEntry, Membership, Team, User
from annotation.access import HOLDS, set_study_role
from annotation.models import Invitation, StudyMembership
from marketplace.models import WorkerAccount
from tests.annotation.studies import rated_study, rating_study
from tests.codes import message_codes
from tests.console.conftest import PASSWORD

pytestmark = pytest.mark.django_db
NEW_ACCOUNT = {"username": "nina", "password": PASSWORD}
HOST = {"headers": {"host": "localhost"}}


@pytest.fixture
def team(researcher) -> Team:
    return teams.create_team(name="Dialogue Lab", owner=researcher)


@pytest.fixture
def other_team(colleague) -> Team:
    return teams.create_team(name="Retrieval Lab", owner=colleague)


@pytest.fixture
def member_of(signed_in):
    """Makes a member of a team, and returns their browser."""

    def member(team, role, name=None) -> Client:
        user = User.objects.create_user(name or f"the-{role}", password=PASSWORD)
        teams.set_role(team=team, user=user, role=roles.Role(role), actor=None)
        return signed_in(user)

    return member


def post(browser, view, /, *args, **form):
    return browser.post(reverse(f"console:{view}", args=args), form)


def role_of(team, name):
    member = Membership.objects.filter(team=team, user__username=name).first()
    return member and member.role


def member_id(team, name):
    return Membership.objects.get(team=team, user__username=name).pk


def invite(browser, where, role="researcher", view="invite"):
    """Invite as people do; the link that the page displays, if it displays one."""
    form = {"email": "nina@example.org", "role": role}
    answer = browser.post(reverse(f"console:{view}", args=[where.slug]), form, follow=True)
    return link_in(answer.content.decode())


def link_in(text):
    match = re.search(r"http://127\.0\.0\.1:8000(/invited/[\w-]+/)", text)
    return match[1] if match else None


def join_anew(link, form=NEW_ACCOUNT):
    browser = Client(**HOST)
    browser.get(link, follow=True)
    return browser, browser.post("/invitation/join/new/", form)


def actions(team):
    return list(AuditEntry.objects.of(team).order_by("position").values_list("action", flat=True))


# The team's page.


def test_a_team_is_made_once_by_name_and_owned_by_whoever_makes_it(rosa):
    answer = post(rosa, "new-team", name="Dialogue Lab")
    assert answer.url == "/teams/dialogue-lab/"
    team = Team.objects.get()
    assert role_of(team, "rosa") == "owner"
    assert rosa.get(answer.url).status_code == 200
    page = rosa.post(reverse("console:new-team"), {"name": "Dialogue Lab"}, follow=True)
    assert page.context["form"].errors or message_codes(page)
    assert Team.objects.count() == 1
    for floor in ("12.50", "-1"):
        post(rosa, "wage-floor", team.slug, wage_floor_usd=floor)
        team.refresh_from_db()
        assert str(team.wage_floor_usd) == "12.50"
    assert AuditEntry.objects.of(team).first().details == {"wage_floor_usd": "12.50"}


def test_members_and_invitations_of_one_team_are_not_changed_by_way_of_another(
    rosa, team, other_team, colleague, signed_in
):
    carl = member_id(other_team, "carl")
    for name in ("member-role", "member-remove", "member-password"):
        assert post(rosa, name, team.slug, carl, role="analyst").status_code == 404
    assert role_of(other_team, "carl") == "owner"
    invite(signed_in(colleague), other_team)
    answer = post(rosa, "invitation-revoke", team.slug, Invitation.objects.get().pk)
    assert (answer.status_code, Invitation.objects.open().count()) == (404, 1)


def test_a_manager_neither_invites_nor_appoints_nor_changes_nor_removes_owners(member_of, team):
    member_of(team, "analyst")
    manager = member_of(team, "manager")
    for name, role in (("the-analyst", "owner"), ("rosa", "analyst"), ("the-manager", "owner")):
        before = role_of(team, name)
        post(manager, "member-role", team.slug, member_id(team, name), role=role)
        assert role_of(team, name) == before
    post(manager, "member-remove", team.slug, member_id(team, "rosa"))
    assert role_of(team, "rosa") == "owner"
    assert invite(manager, team, role="owner") is None
    assert not Invitation.objects.exists()


def test_an_owner_changes_roles_and_the_last_owner_stays(rosa, team, member_of):
    member_of(team, "analyst")
    post(rosa, "member-role", team.slug, member_id(team, "the-analyst"), role="manager")
    assert role_of(team, "the-analyst") == "manager"
    assert actions(team)[-1] == "member.role"
    own = member_id(team, "rosa")
    post(rosa, "member-remove", team.slug, own)
    post(rosa, "member-role", team.slug, own, role="analyst")
    assert role_of(team, "rosa") == "owner"


def test_removing_a_member_ends_their_access_and_names_studies_that_stay_open(
    rosa, team, member_of
):
    study = rated_study(team=team)
    shared = rated_study("shared", team=team, title="Tone of voice")
    analyst = member_of(team, "analyst")
    nina = User.objects.get(username="the-analyst")
    set_study_role(study=shared, user=nina, role=roles.Role.ADJUDICATOR, actor=None)
    pages = [reverse("console:study", args=[one.slug]) for one in (study, shared)]
    pages.append("/teams/dialogue-lab/")
    assert {analyst.get(page).status_code for page in pages} == {200}
    where = reverse("console:member-remove", args=[team.slug, member_id(team, nina.username)])
    messages = rosa.post(where, follow=True).context["messages"]
    assert any("Tone of voice" in str(message) for message in messages)
    assert [analyst.get(page).status_code for page in pages] == [404, 200, 404]
    # Members leave by themselves.
    manager = member_of(team, "manager")
    answer = post(manager, "member-remove", team.slug, member_id(team, "the-manager"))
    assert answer.url == reverse("console:teams")
    assert role_of(team, "the-manager") is None


# Invitations.


def test_who_is_invited_makes_an_account_and_joins(rosa, team):
    browser, answer = join_anew(invite(rosa, team))
    assert answer.url == "/teams/dialogue-lab/"
    assert browser.get(answer.url).status_code == 200
    assert role_of(team, "nina") == "researcher"
    assert actions(team)[-3:] == ["member.invite", "member.role", "member.join"]


def test_the_log_names_who_joined_and_beside_them_who_invited(rosa, team, colleague, signed_in):
    study = rating_study("tone", owner=team.memberships.get(role="owner").user, team=team)
    post(rosa, "study-invite", study.slug, email="carl@example.org", role="analyst")
    of_study = rosa.get(reverse("console:members", args=[study.slug])).context["link"]["address"]
    browser = signed_in(colleague)
    for link in (invite(rosa, team), of_study):
        browser.get(urlsplit(link).path)
        browser.post("/invitation/join/")
    entries = AuditEntry.objects.of(team).filter(action__in=["member.role", "study.role"])
    by_action = {entry.action: entry for entry in entries if "invited_by" in entry.details}
    assert set(by_action) == {"member.role", "study.role"}
    for entry in by_action.values():
        assert (entry.actor_name, entry.details["invited_by"]) == ("carl", "rosa")


def test_who_is_invited_logs_in_and_joins_with_the_account_they_have(rosa, team, colleague):
    browser = Client(**HOST)
    browser.get(invite(rosa, team), follow=True)
    # Opening the link accepts nothing.
    assert Invitation.objects.open().exists()
    assert role_of(team, "carl") is None
    form = {"username": "carl", "password": PASSWORD, "next": "/invitation/"}
    assert browser.post("/login/", form).url == "/invitation/"
    browser.post("/invitation/join/")
    assert role_of(team, "carl") == "researcher"
    # An invitation makes no role smaller.
    rosa.get(invite(rosa, team, role="analyst"))
    rosa.post("/invitation/join/")
    assert role_of(team, "rosa") == "owner"


def test_a_link_holds_once_and_is_stored_nowhere_but_in_the_answer(rosa, team):
    link = invite(rosa, team)
    token = link.split("/")[2]
    assert token not in str([*Invitation.objects.values(), *AuditEntry.objects.values()])
    assert token not in rosa.get("/teams/dialogue-lab/").content.decode()
    assert Invitation.objects.get().expires_at - timezone.now() <= HOLDS
    join_anew(link)
    # An address that nobody mailed is not confirmed by an invitation.
    assert not User.objects.get(username="nina").emailaddress_set.get().verified
    _browser, answer = join_anew(link, NEW_ACCOUNT | {"username": "second"})
    assert answer.status_code == 410
    assert not User.objects.filter(username="second").exists()


def test_a_link_that_does_not_hold_makes_no_account(rosa, team, member_of):
    manager = member_of(team, "manager")

    def assert_void(link):
        _browser, answer = join_anew(link)
        assert answer.status_code == 410
        assert not User.objects.filter(username="nina").exists()

    link = invite(manager, team)
    assert_void(link[:-2] + ("A/" if link[-2] != "A" else "B/"))
    post(rosa, "invitation-revoke", team.slug, Invitation.objects.get().pk)
    assert_void(link)
    link = invite(manager, team)
    Invitation.objects.update(expires_at=timezone.now())
    assert_void(link)
    link = invite(manager, team)
    post(rosa, "member-remove", team.slug, member_id(team, "the-manager"))
    assert_void(link)


def test_with_a_mail_server_the_link_is_sent_and_not_displayed(rosa, team, settings):
    settings.SENDS_MAIL = True
    immediate = "django_tasks.backends.immediate.ImmediateBackend"
    settings.TASKS = {"default": {"BACKEND": immediate, "QUEUES": []}}
    assert invite(rosa, team) is None
    (message,) = mail.outbox
    assert message.to == ["nina@example.org"]
    join_anew(link_in(message.body))
    assert User.objects.get(username="nina").emailaddress_set.get().verified


# Links for a new password.


def password_link_of(browser, team, name):
    where = reverse("console:member-password", args=[team.slug, member_id(team, name)])
    page = browser.post(where, follow=True).content.decode()
    match = re.search(r"http://127\.0\.0\.1:8000(/account/password/reset/\S+/)<", page)
    return match[1] if match else None


def test_a_manager_makes_a_link_for_an_account_that_the_team_invited(rosa, team):
    join_anew(invite(rosa, team))
    link = password_link_of(rosa, team, "nina")
    browser = Client(**HOST)
    form = browser.get(link, follow=True)
    new = {"password1": "an-unheard-of-password", "password2": "an-unheard-of-password"}
    browser.post(form.request["PATH_INFO"], new)
    assert User.objects.get(username="nina").check_password("an-unheard-of-password")
    assert "member.password_link" in actions(team)


@pytest.mark.parametrize(
    "reason",
    [
        *("came_with_an_account", "other_team", "other_teams_study", "own_study", "worker"),
        *("operator", "owner"),
    ],
)
def test_nobody_takes_over_an_account_that_is_not_the_teams_alone(
    rosa, team, other_team, member_of, reason
):
    join_anew(invite(rosa, team))
    nina = User.objects.get(username="nina")
    analyst = {"user": nina, "role": roles.Role.ANALYST, "actor": None}
    changes = {
        "came_with_an_account": lambda: Invitation.objects.update(made_account=False),
        "other_team": lambda: teams.set_role(team=other_team, **analyst),
        "other_teams_study": lambda: set_study_role(study=rating_study(team=other_team), **analyst),
        "own_study": lambda: rating_study(owner=nina),
        "worker": lambda: WorkerAccount.objects.create(user=nina, created_at=timezone.now()),
        "operator": lambda: User.objects.filter(pk=nina.pk).update(is_staff=True),
        "owner": lambda: teams.set_role(team=team, **analyst | {"role": roles.Role.OWNER}),
    }
    changes[reason]()
    browser = member_of(team, "manager") if reason == "owner" else rosa
    assert password_link_of(browser, team, "nina") is None


# One study.


@pytest.fixture
def study(team, researcher):
    return rating_study("shared", owner=researcher, team=team)


def test_one_study_is_shared_with_somebody_of_no_team(rosa, study, team):
    rating_study("other", team=team)
    for role in ("owner", "manager"):  # nobody owns or manages one study of a team
        assert invite(rosa, study, role, "study-invite") is None
    browser, answer = join_anew(invite(rosa, study, "adjudicator", "study-invite"))
    assert answer.url == "/studies/shared/"
    statuses = [browser.get(f"/studies/{slug}/").status_code for slug in ("shared", "other")]
    assert statuses == [200, 404]
    assert browser.get("/teams/dialogue-lab/").status_code == 404
    member = StudyMembership.objects.get()
    post(rosa, "study-member-role", "shared", member.pk, role="auditor")
    assert StudyMembership.objects.get().role == "auditor"
    post(rosa, "study-member-remove", "shared", member.pk)
    assert browser.get("/studies/shared/").status_code == 404


def test_a_role_in_one_study_shares_nothing_on_and_shows_no_member_of_the_team(
    study, researcher, colleague, signed_in
):
    set_study_role(study=study, user=colleague, role=roles.Role.RESEARCHER, actor=researcher)
    carl = signed_in(colleague)
    own = StudyMembership.objects.get().pk
    form = {"email": "x@example.org", "role": "analyst", "team": "dialogue-lab"}
    for name, *ids in (("study-invite",), ("give",), ("study-member-role", own)):
        assert post(carl, name, study.slug, *ids, **form).status_code == 403
    page = carl.get("/studies/shared/members/").content.decode()
    assert ("carl" in page, ">rosa<" in page) == (True, False)


def test_a_study_is_given_to_a_team_one_works_in(rosa, team, researcher, other_team, member_of):
    study = rating_study("mine", owner=researcher)
    analyst = member_of(team, "analyst")
    assert post(rosa, "give", "mine", team="retrieval-lab").status_code == 404
    assert analyst.get("/studies/mine/").status_code == 404
    post(rosa, "give", "mine", team="dialogue-lab")
    assert analyst.get("/studies/mine/").status_code == 200
    study.refresh_from_db()
    assert study.team == team


# The audit log.


def test_the_audit_log_is_filtered_and_downloaded(rosa, team, other_team, member_of):
    assert "Retrieval Lab" not in rosa.get("/teams/dialogue-lab/audit-log/").content.decode()
    post(member_of(team, "manager"), "wage-floor", team.slug, wage_floor_usd="9")
    query = {"person": "the-manager"}
    page = rosa.get("/teams/dialogue-lab/audit-log/", query).content.decode()
    assert len(re.findall(r'<li class="row-of entry', page)) == 1
    answer = rosa.get("/teams/dialogue-lab/audit-log.csv", query)
    rows = list(csv.DictReader(io.StringIO(answer.getvalue().decode())))
    assert [(row["person"], row["action"]) for row in rows] == [("the-manager", "team.wage_floor")]
    assert actions(team)[-1] == "export"


def test_a_file_that_is_taken_away_is_recorded(rosa, team, researcher, member_of):
    rated_study("judged", owner=researcher, team=team)
    where = reverse("console:download", args=["judged", "judgments.csv"])
    rosa.head(where)
    assert actions(team)[-1] != "export"
    rosa.get(where)
    entry = AuditEntry.objects.of(team).first()
    assert (entry.action, entry.actor_name) == ("export", "rosa")
    assert entry.details == {"file": "judgments.csv"}
    # Submissions, with their comments, are for those who see workers.
    for role, status in (("researcher", 200), ("analyst", 404)):
        browser = member_of(team, role)
        where = reverse("console:download", args=["judged", "submissions.csv"])
        assert browser.get(where).status_code == status
        page = browser.get(reverse("console:downloads", args=["judged"])).content.decode()
        assert ("submissions.csv" in page) == (status == 200)


def test_auditors_read_what_was_decided_and_not_about_whom(rosa, team, member_of):
    decided = {"assignments": ["3ONE", "3TWO"], "text": "Too fast."}
    audit.record(team=team, actor=None, action="review.reject", subject="tone", details=decided)
    audit.record(team=team, actor=None, action="appeal.answer", details={"assignment": "3ONE"})
    audit.record(team=team, actor=None, action="worker.note", subject="A1WORKER")
    paths = ("/teams/dialogue-lab/audit-log/", "/teams/dialogue-lab/audit-log.csv")
    auditor = member_of(team, "auditor")
    for path in paths:
        answers = [browser.get(path) for browser in (rosa, auditor)]
        mine, theirs = (
            b"".join(one.streaming_content if one.streaming else [one.content]).decode()
            for one in answers
        )
        assert all(name in mine for name in ("3ONE", "3TWO", "A1WORKER"))
        assert not any(name in theirs for name in ("3ONE", "3TWO", "A1WORKER"))
        assert "assignments: 2" in theirs
        assert "Too fast." in theirs


def test_roles_are_explained_where_they_are_chosen_shown_and_too_small(rosa, team, member_of):
    analyst = member_of(team, "analyst")
    study = rating_study("mine", owner=None, team=team, n_items=1)
    views = [("team", [team.slug]), ("members", [study.slug]), ("teams", [])]
    for browser, (view, args) in product((rosa, analyst), views):
        page = browser.get(reverse(f"console:{view}", args=args)).content.decode()
        assert set(re.findall(r'data-role="(\w+)"', page)) == set(roles.Role.values), view
        assert "/teams/#roles" in page
    assert roles.Role.ANALYST.summary in analyst.get(reverse("account")).content.decode()
    address = reverse("console:team", args=[team.slug])
    breadcrumb = rosa.get(address).content.decode().partition('class="breadcrumb"')[2]
    assert address not in breadcrumb.partition("</nav>")[0]
    refused = analyst.get(reverse("console:rename", args=[study.slug]))
    assert (refused.status_code, b"/teams/#roles" in refused.content) == (403, True)
    assert roles.Role.ANALYST.summary in refused.content.decode()
