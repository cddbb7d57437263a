"""A requester's pages of studies: who closes them where, and who sees who participants are."""

from django.test import Client

from accounts.models import User
from marketplace.models import AuditEntry, RecruitedStudy
from marketplace.people.enrolment import let_act_for
from marketplace.recruiting.connections import disconnect
from marketplace.recruiting.requests import perform_action
from marketplace.recruiting.studies import StudyValues, invite, open_study
from tests.codes import message_codes
from tests.marketplace.conftest import PASSWORD
from tests.marketplace.test_worker_site import text_of


def browser_of(requester, name):
    """The first user who acts for a requester is an owner."""
    user = User.objects.create_user(name, password=PASSWORD)
    let_act_for(requester=requester, username=name)
    browser = Client()
    browser.force_login(user)
    return browser


def home(study):
    return f"/requester-console/{study.requester.public_id}/channels/{study.token}/"


def test_closing_a_posted_study_stops_it_at_its_recruiter(fake, posted, connection):
    rita = browser_of(posted.requester, "rita")
    rita.post(f"{home(posted)}close/")
    posted.refresh_from_db()
    assert (posted.state, posted.action) == ("active", "stop")
    perform_action(posted.pk, posted.action_number)
    posted.refresh_from_db()
    there = fake.world.studies[posted.external_id]
    assert (posted.state, there.status) == ("stopped", "COMPLETED")


def test_a_posted_study_whose_token_is_gone_stays_open_and_that_is_said(posted, connection):
    rita = browser_of(posted.requester, "rita")
    disconnect(connection=connection)
    assert message_codes(rita.post(f"{home(posted)}close/", follow=True)) == ["disconnected"]
    assert RecruitedStudy.objects.get().state == "active"


def test_only_owners_see_who_was_invited_and_it_is_written_down(requester, hit_type):
    values = StudyValues(name="Lab", kind="invite")
    lab = open_study(requester=requester, hit_type=hit_type, values=values)
    (invitation,) = invite(study=lab, labels=["P 1", "P 1"])
    assert invite(study=lab, labels=["P 1"]) == []
    rita, ann = browser_of(requester, "rita"), browser_of(requester, "ann")
    assert invitation.token in text_of(rita.get(home(lab)))
    page = text_of(ann.get(home(lab)))
    assert not any(each in page for each in (invitation.token, "P 1"))
    assert ann.post(f"{home(lab)}links.csv").status_code == 403
    assert not AuditEntry.objects.filter(action="study.export_invitations").exists()
    assert "P 1" in text_of(rita.post(f"{home(lab)}links.csv"))
    assert AuditEntry.objects.get(action="study.export_invitations").user.username == "rita"
