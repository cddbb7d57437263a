"""The requesters' pages: sign-up, keys, balance, statement, studies for participants."""

import re

import pytest
from django.test import Client

from accounts.models import User
from marketplace import models
from marketplace.people.enrolment import issue_key
from marketplace.recruiting.sessions import end_session
from marketplace.recruiting.studies import StudyValues, invite, open_study
from tests.boto_clients import in_process_client
from tests.codes import field_codes
from tests.marketplace.conftest import HIT, PASSWORD
from tests.marketplace.test_worker_site import text_of

NEW = {
    "username": "rita",
    "requester_name": "Vision lab",
    "password1": PASSWORD,
    "password2": PASSWORD,
}


@pytest.fixture
def home(requester):
    return f"/requester-console/{requester.public_id}/"


def new_key(browser, home):
    page = text_of(browser.post(home + "keys/", {"label": "Laptop"}))
    return {
        name: re.search(f'id="{name.replace("_", "-")}">([^<]+)<', page)[1]
        for name in ("access_key_id", "secret_access_key")
    }


SIGN_UP = "/requester-console/sign-up/"


def test_signing_up_opens_an_empty_account_if_a_setting_allows_it(db, settings):
    settings.MARKETPLACE_REQUESTER_SIGN_UP = False
    assert Client().get(SIGN_UP).status_code == 404
    assert Client().post(SIGN_UP, NEW).status_code == 404
    assert SIGN_UP not in text_of(Client().get("/requester-console/login/"))
    assert not models.Requester.objects.exists()
    settings.MARKETPLACE_REQUESTER_SIGN_UP = True
    assert SIGN_UP in text_of(Client().get("/requester-console/login/"))
    response = Client().post(SIGN_UP, NEW, follow=True)
    requester = models.Requester.objects.get(name="Vision lab")
    assert response.redirect_chain == [(f"/requester-console/{requester.public_id}/", 302)]
    assert "$0.00" in text_of(response)
    assert not User.objects.get().is_staff


def test_a_requesters_name_is_visible_and_used_once(requester, settings):
    for name, code in (
        ("DIALOGUE LAB", "name_taken"),
        ("Dialogue\u202e lab", "invalid_name"),
        ("Dialogue\u3164 lab", "invalid_name"),
    ):
        settings.MARKETPLACE_REQUESTER_SIGN_UP = True
        page = Client().post(SIGN_UP, NEW | {"requester_name": name})
        assert field_codes(page.context["form"]) == {"requester_name": [code]}
        assert not User.objects.exists()


def test_keys_are_shown_once_on_a_page_that_is_not_kept_and_work_until_revoked(rita, home, mturk):
    assert "no-store" in rita.post(home + "keys/", {"label": ""}).headers["Cache-Control"]
    first, second = new_key(rita, home), new_key(rita, home)
    page = text_of(rita.get(home))
    for key in (first, second):
        assert in_process_client(key).get_account_balance()["AvailableBalance"] == "100.00"
        assert key["access_key_id"] in page
        assert key["secret_access_key"] not in page
        assert key["secret_access_key"] not in str(list(models.AuditEntry.objects.values()))
    assert "Laptop" in page
    rita.post(f"{home}keys/{first['access_key_id']}/revoke/")
    with pytest.raises(in_process_client(first).exceptions.ClientError):
        in_process_client(first).get_account_balance()
    assert in_process_client(second).get_account_balance()
    assert mturk.get_account_balance()
    revoke = f"{home}keys/{{}}/revoke/"
    page = text_of(rita.get(home))
    assert revoke.format(first["access_key_id"]) not in page
    assert revoke.format(second["access_key_id"]) in page
    entry = models.AuditEntry.objects.get(action="key.revoke")
    assert (entry.subject, entry.user.username) == (first["access_key_id"], "rita")


def test_there_are_at_most_twenty_keys(rita, home, requester):
    for _ in range(19):
        issue_key(requester=requester, label="", user=None)
    page = rita.post(home + "keys/", {"label": ""})
    assert field_codes(page.context["form"]) == {"__all__": ["too_many_keys"]}
    assert models.AccessKey.objects.count() == 20


OF_A_CHANNEL = ["", "invite/", "close/", "ways-back/", "statuses/", "links.csv"]


@pytest.fixture
def channel(requester, mturk):
    hit_type = models.HitType.objects.get(public_id=mturk.create_hit(**HIT)["HIT"]["HITTypeId"])
    values = StudyValues(name="Lab", kind="invite")
    return open_study(requester=requester, hit_type=hit_type, values=values)


@pytest.mark.slow
def test_a_requesters_pages_are_nobody_elses(home, channel, keys, ada, settings, make_keys):
    settings.MARKETPLACE_REQUESTER_SIGN_UP = True
    stranger = Client()
    stranger.post("/requester-console/sign-up/", NEW)
    before = models.AuditEntry.objects.count()
    paths = ["", "statement/", "keys/", f"keys/{keys['access_key_id']}/revoke/", "channels/"]
    for path in paths + [f"channels/{channel.token}/{name}" for name in OF_A_CHANNEL]:
        address = home + path
        for browser in (stranger, ada):
            assert browser.get(address).status_code in (404, 405), path
            assert browser.post(address, {"labels": "x"}).status_code in (404, 405), path
        response = Client().get(address)
        assert response.status_code == 405 or "/login/" in response.headers["Location"]
    assert models.AuditEntry.objects.count() == before
    assert models.AccessKey.objects.get(access_key_id=keys["access_key_id"]).revoked_at is None
    channel.refresh_from_db()
    assert channel.state == "active"
    assert channel.hit_type.paid_by == "recruiter"


def test_anothers_channel_or_key_cannot_be_reached_through_ones_own_page(
    rita, home, make_keys, mturk
):
    theirs = make_keys("Other lab")
    in_process_client(theirs).create_hit(**HIT)
    other = models.Requester.objects.get(name="Other lab")
    values = StudyValues(name="Theirs", kind="invite")
    channel = open_study(requester=other, hit_type=other.hit_types.get(), values=values)
    assert rita.get(f"{home}channels/{channel.token}/").status_code == 404
    for path in ("close/", "invite/", "links.csv"):
        answer = rita.post(f"{home}channels/{channel.token}/{path}", {"labels": "x"})
        assert answer.status_code == 404
    assert rita.post(f"{home}keys/{theirs['access_key_id']}/revoke/").status_code == 404
    form = {"channel-name": "x", "channel-kind": "invite", "channel-hit_type": channel.hit_type.pk}
    refused = rita.post(home + "channels/", form).context["form"]
    assert field_codes(refused)["hit_type"] == ["invalid_choice"]


def test_a_channel_is_opened_used_and_closed(rita, home, channel, requester):
    requester.owners.add(User.objects.get(username="rita"))
    rita.post(f"{home}channels/{channel.token}/invite/", {"labels": "P 1\n\n=1+1\n"})
    first, second = models.Invitation.objects.order_by("pk")
    assert (first.label, second.label) == ("P 1", "=1+1")
    Client().post(f"/join/{first.token}/")
    page = text_of(rita.get(f"{home}channels/{channel.token}/"))
    first.refresh_from_db()
    assert first.worker.worker_id in page
    csv = text_of(rita.post(f"{home}channels/{channel.token}/links.csv")).splitlines()
    assert csv[1] == f"P 1,http://testserver/join/{first.token}/,{first.worker.worker_id}"
    assert csv[2].startswith("'=1+1,")
    rita.post(f"{home}channels/{channel.token}/close/")
    assert Client().get(f"/join/{second.token}/").status_code == 410


def test_whose_number_is_whose_in_an_own_lab_is_the_owners_and_written_down(
    rita, home, channel, requester
):
    [one] = invite(study=channel, labels=["ada@example.org"])
    Client().post(f"/join/{one.token}/")
    one.refresh_from_db()
    address = f"{home}channels/{channel.token}/"
    page = text_of(rita.get(address))
    assert not any(each in page for each in (one.label, one.token, one.worker.worker_id))
    context = rita.get(address).context
    assert (context["n_invited"], context["n_accepted"]) == (1, 1)
    assert rita.post(f"{address}links.csv").status_code == 403
    assert rita.post(f"{address}invite/", {"labels": "bob"}).status_code == 403
    assert models.Invitation.objects.count() == 1
    assert not models.AuditEntry.objects.filter(action="study.export_invitations").exists()
    requester.owners.add(User.objects.get(username="rita"))
    assert all(
        each in text_of(rita.get(address)) for each in (one.label, one.token, one.worker.worker_id)
    )
    assert rita.get(f"{address}links.csv").status_code == 405
    assert one.label in text_of(rita.post(f"{address}links.csv"))
    assert models.AuditEntry.objects.get(action="study.export_invitations").user.username == "rita"


def test_a_prolific_channel_is_suggested_and_checked(rita, home, channel):
    page = text_of(rita.get(home + "channels/?panel=prolific"))
    sent = {
        f"channel-{name}": re.search(f'name="channel-{name}" value="([^"]*)"', page)[1]
        for name in ("name", "panel", "worker_parameter", "study_parameter", "session_parameter")
    }
    assert sent["channel-worker_parameter"] == "PROLIFIC_PID"
    sent |= {"channel-kind": "panel", "channel-hit_type": channel.hit_type.pk}
    sent |= {"channel-items_per_session": 3, "channel-maximum_minutes": 45}
    wrong = rita.post(home + "channels/", sent | {"channel-worker_parameter": ""})
    assert field_codes(wrong.context["form"]) == {"worker_parameter": ["required"]}
    response = rita.post(home + "channels/", sent, follow=True)
    opened = models.RecruitedStudy.objects.get(connection__kind="panel")
    assert (opened.items_per_session, opened.maximum_seconds) == (3, 45 * 60)
    for code in opened.codes.all():
        assert code.code in text_of(response)
    link = f"/join/{opened.token}/?PROLIFIC_PID={{{{%PROLIFIC_PID%}}}}&amp;STUDY_ID="
    assert link in text_of(response)


def test_the_host_of_a_way_back_is_the_one_that_is_read(owner, home, channel):
    for address in (
        "https://evil.example\\@good.example/",
        "https://evil.example:99999/",
        "https://good.example@evil.example/",
    ):
        sent = {"back-completed": address}
        wrong = owner.post(f"{home}channels/{channel.token}/ways-back/", sent)
        assert field_codes(wrong.context["ways_back"]) == {"completed": ["invalid_address"]}
        assert not channel.codes.exclude(redirect_url="").exists()
    address = f"{home}channels/{channel.token}/ways-back/"
    owner.post(address, {"back-completed": "https://lab.example/{code}", "back-no_consent": ""})
    ways_back = dict(channel.codes.values_list("outcome", "redirect_url"))
    assert ways_back.pop("completed") == "https://lab.example/{code}"
    assert set(ways_back.values()) == {""}


def test_where_participants_ids_go_and_what_became_of_them_is_the_owners(rita, home, channel):
    address = f"{home}channels/{channel.token}/"
    Client().post(f"/join/{channel.token}/")
    page = text_of(rita.get(address))
    assert f"{address}ways-back/" not in page
    assert f"{address}statuses/" not in page
    for path in ("ways-back/", "statuses/", "demographics/", "demographics.csv"):
        assert rita.post(address + path, {}).status_code == 403
    sent = {"name": "Panel", "kind": "panel", "panel": "P", "worker_parameter": "pid"}
    sent |= {"hit_type": channel.hit_type.pk, "items_per_session": 1}
    fields = {f"channel-{name}": value for name, value in sent.items()}
    for name in ("{worker}", "{session}"):
        away = {"channel-redirect_url": f"https://p.example/?id={name}"}
        refused = rita.post(f"{home}channels/", fields | away).context["form"]
        assert field_codes(refused) == {"redirect_url": ["owners_only"]}
    rita.post(f"{home}channels/", fields | {"channel-redirect_url": "https://p.example/{code}"})
    assert models.RecruitedStudy.objects.filter(name="Panel").exists()


def test_participants_of_prolific_go_back_to_prolific(owner, home, channel):
    models.RecruiterConnection.objects.update(kind="prolific")
    address = f"{home}channels/{channel.token}/"
    assert f"{address}ways-back/" not in text_of(owner.get(address))
    sent = {"back-completed": "https://elsewhere.example/"}
    assert owner.post(f"{address}ways-back/", sent).status_code == 404
    assert not channel.codes.exclude(redirect_url="").exists()


def test_sona_gives_credit_to_those_who_have_finished(owner, home, channel):
    assert "sona-systems.com" in text_of(owner.get(home + "channels/?panel=sona"))
    sent = {"name": "SONA", "kind": "panel", "panel": "SONA", "worker_parameter": "survey_code"}
    sent |= {"hit_type": channel.hit_type.pk, "items_per_session": 1, "is_for_completed": "on"}
    credit = "https://x.sona-systems.com/webstudy_credit.aspx?experiment_id=1&survey_code={worker}"
    sent |= {"redirect_url": credit.replace("id=1", "id=EXPERIMENT")}
    fields = {f"channel-{name}": value for name, value in sent.items()}
    refused = owner.post(home + "channels/", fields).context["form"]
    assert field_codes(refused) == {"redirect_url": ["invalid_address"]}
    opened = owner.post(home + "channels/", fields | {"channel-redirect_url": credit}, follow=True)
    assert "?survey_code=%SURVEY_CODE%" in text_of(opened)
    study = models.RecruitedStudy.objects.get(connection__name="SONA")
    assert list(study.codes.exclude(redirect_url="").values_list("outcome")) == [("completed",)]
    assert Client().get(f"/join/{study.token}/?survey_code=%25SURVEY_CODE%25").status_code == 400
    browser = Client()
    browser.post(f"/join/{study.token}/?survey_code=4711")
    end_session(session=models.Session.objects.get(study=study), outcome="no_consent")
    assert "sona-systems.com" not in text_of(browser.get("/worker/", follow=True))
