"""Invite links and panels: how a requester's own participants come in, and leave."""

import re
from urllib.parse import urlsplit

import pytest
from django.test import Client

from accounts.models import User
from marketplace.models import (
    Arrival,
    Assignment,
    HitType,
    Invitation,
    PanelWorker,
    Requester,
    WorkerAccount,
)
from marketplace.recruiting.channels import (
    PROLIFIC,
    ChannelValues,
    close_channel,
    invite,
    open_channel,
)
from tests.boto_clients import in_process_client
from tests.marketplace.conftest import HIT, PASSWORD, submit
from tests.marketplace.test_worker_site import text_of

PID = "5b96601d3400a939f7c18c1f"
FROM_PROLIFIC = f"?PROLIFIC_PID={PID}&STUDY_ID=S1&SESSION_ID=X1"


@pytest.fixture
def hit_type(mturk):
    return HitType.objects.get(public_id=mturk.create_hit(**HIT)["HIT"]["HITTypeId"])


@pytest.fixture
def lab(requester, hit_type):
    values = ChannelValues(name="Lab", kind="invite", completion_code="LAB-7")
    return open_channel(requester=requester, hit_type=hit_type, values=values)


@pytest.fixture
def prolific(requester, hit_type):
    values = ChannelValues(name="Prolific", kind="panel", completion_code="C123", **PROLIFIC)
    return open_channel(requester=requester, hit_type=hit_type, values=values)


def enter(token, query="", browser=None):
    browser = browser or Client()
    browser.post(f"/join/{token}/{query}")
    return browser


def test_an_invite_link_lets_a_participant_in_under_a_number(lab):
    (invitation,) = invite(channel=lab, labels=["P 1"])
    browser = Client()
    page = text_of(browser.get(f"/join/{invitation.token}/"))
    assert "Rate eight responses" in page
    assert "$0.63" in page
    response = browser.post(f"/join/{invitation.token}/")
    assert response.headers["Location"] == f"/worker/groups/{lab.hit_type.public_id}/"
    worker = WorkerAccount.objects.get()
    assert not worker.user.has_usable_password()
    assert worker.worker_id in text_of(browser.get("/worker/"))
    invitation.refresh_from_db()
    assert invitation.worker == worker


def test_looking_at_a_link_makes_no_account(lab):
    (invitation,) = invite(channel=lab, labels=["P 1"])
    browser = Client()
    for token in (invitation.token, lab.token):
        assert browser.get(f"/join/{token}/").status_code == 200
        assert browser.head(f"/join/{token}/").status_code == 200
    assert not WorkerAccount.objects.exists()


def test_letting_in_needs_the_button_on_our_page(lab):
    browser = Client(enforce_csrf_checks=True)
    assert browser.post(f"/join/{lab.token}/").status_code == 403
    token = re.search(
        'name="csrfmiddlewaretoken" value="([^"]+)"', text_of(browser.get(f"/join/{lab.token}/"))
    )[1]
    assert browser.post(f"/join/{lab.token}/", {"csrfmiddlewaretoken": token}).status_code == 302


def test_a_participants_own_link_always_leads_to_the_same_number(lab):
    (invitation,) = invite(channel=lab, labels=["P 1"])
    for _ in range(2):
        enter(invitation.token)
    assert WorkerAccount.objects.count() == 1
    assert Arrival.objects.count() == 2


def test_the_open_link_gives_each_browser_a_number_of_its_own(lab):
    first = enter(lab.token)
    enter(lab.token, browser=first)
    assert WorkerAccount.objects.count() == 1
    enter(lab.token)
    assert WorkerAccount.objects.count() == 2


def test_a_panel_id_is_one_account_of_a_requesters(prolific, requester, hit_type, make_keys):
    for _ in range(2):
        enter(prolific.token, FROM_PROLIFIC)
    values = ChannelValues(name="Again", kind="panel", **PROLIFIC)
    again = open_channel(requester=requester, hit_type=hit_type, values=values)
    enter(again.token, FROM_PROLIFIC)
    assert PanelWorker.objects.get().external_id == PID
    assert WorkerAccount.objects.count() == 1
    keys = make_keys("Other lab")
    in_process_client(keys).create_hit(**HIT)
    other = Requester.objects.get(name="Other lab")
    theirs = open_channel(requester=other, hit_type=other.hit_types.get(), values=values)
    enter(theirs.token, FROM_PROLIFIC)
    assert WorkerAccount.objects.count() == 2


def test_what_a_panel_says_is_kept(prolific):
    enter(prolific.token, FROM_PROLIFIC)
    arrival = Arrival.objects.get()
    assert (arrival.external_worker_id, arrival.study_id, arrival.session_id) == (PID, "S1", "X1")


@pytest.mark.parametrize(
    "query",
    ["", "?PROLIFIC_PID=", "?STUDY_ID=S1", "?PROLIFIC_PID=%00", "?PROLIFIC_PID=" + "x" * 201],
)
def test_a_panel_has_to_say_who_comes(prolific, query):
    response = Client().get(f"/join/{prolific.token}/{query}")
    assert response.status_code == 400
    assert "PROLIFIC_PID" in text_of(response)
    assert Client().post(f"/join/{prolific.token}/{query}").status_code == 400
    assert not WorkerAccount.objects.exists()


def test_any_panel_names_its_own_parameters(requester, hit_type):
    values = ChannelValues(
        name="Panel", kind="panel", panel="CloudResearch", worker_parameter="participantId"
    )
    channel = open_channel(requester=requester, hit_type=hit_type, values=values)
    enter(channel.token, "?participantId=p-9&assignmentId=ignored")
    assert PanelWorker.objects.get().external_id == "p-9"


def test_a_closed_or_unknown_link_lets_nobody_in(lab):
    (invitation,) = invite(channel=lab, labels=["P 1"])
    close_channel(channel=lab)
    for token in (lab.token, invitation.token, "nothing"):
        assert Client().get(f"/join/{token}/").status_code == 410
        assert Client().post(f"/join/{token}/").status_code == 410
    assert not WorkerAccount.objects.exists()


def test_a_leaked_link_never_signs_in_to_an_account_with_a_password(lab, prolific, worker):
    (invitation,) = invite(channel=lab, labels=["P 1"])
    Invitation.objects.update(worker=worker)
    PanelWorker.objects.create(
        requester=lab.requester, panel="Prolific", external_id=PID, worker=worker
    )
    for path in (f"/join/{invitation.token}/", f"/join/{prolific.token}/{FROM_PROLIFIC}"):
        browser = Client()
        assert browser.post(path).status_code == 400
        assert browser.get("/worker/").status_code == 302
    assert not Arrival.objects.exists()


def test_a_participant_cannot_sign_in_with_a_password(lab):
    (invitation,) = invite(channel=lab, labels=["P 1"])
    enter(invitation.token)
    name = User.objects.get().username
    for password in ("", "!", PASSWORD):
        Client().post("/worker/login/", {"username": name, "password": password})
    browser = Client()
    browser.post("/worker/login/", {"username": name, "password": "!"})
    assert browser.get("/worker/").status_code == 302


def test_a_worker_who_is_signed_in_is_warned_and_not_taken_over(lab, ada, worker):
    assert "You are signed in as ada" in text_of(ada.get(f"/join/{lab.token}/"))
    enter(lab.token, browser=ada)
    page = text_of(ada.get("/worker/"))
    assert worker.worker_id not in page
    assert not Arrival.objects.filter(worker=worker).exists()


def test_the_code_is_shown_when_the_work_is_done(lab):
    browser = enter(lab.token)
    worker = WorkerAccount.objects.get()
    group = f"/worker/groups/{lab.hit_type.public_id}/"
    unfinished = text_of(browser.get(group + "finish/"))
    assert "Not finished yet" in unfinished
    assert "LAB-7" not in unfinished
    browser.post(group + "accept/")
    assert "LAB-7" not in text_of(browser.get(group + "finish/"))
    held = Assignment.objects.get()
    Client().post("/mturk/externalSubmit", {"assignmentId": held.public_id, "rating": "4"})
    response = browser.get(group + "next/", follow=True)
    assert response.redirect_chain == [(group + "finish/", 302)]
    assert "LAB-7" in text_of(response)
    assert held.worker == worker


def test_while_hits_are_left_the_participant_goes_on(mturk, lab):
    second = mturk.create_hit(**HIT)["HIT"]["HITId"]
    browser = enter(lab.token)
    submit(WorkerAccount.objects.get(), second)
    group = f"/worker/groups/{lab.hit_type.public_id}/"
    assert browser.get(group + "next/").headers["Location"] == group
    assert f"{group}finish/" in text_of(browser.get(group))


def test_the_way_back_is_the_requesters_with_quoted_ids(mturk, requester, hit_type):
    values = ChannelValues(
        name="Panel",
        kind="panel",
        panel="Panel",
        worker_parameter="pid",
        session_parameter="sid",
        completion_code="A&B",
        redirect_url="https://panel.example/done?cc={code}&p={worker}&s={session}&t={study}",
    )
    channel = open_channel(requester=requester, hit_type=hit_type, values=values)
    browser = enter(
        channel.token, "?pid=p/9%23x&sid=%7Bcode%7D%26&redirect_url=https://evil.example"
    )
    submit(WorkerAccount.objects.get(), hit_type.hits.get().public_id)
    page = text_of(browser.get(f"/worker/groups/{hit_type.public_id}/finish/"))
    address = re.search('class="button primary" href="([^"]+)"', page)[1].replace("&amp;", "&")
    assert address == "https://panel.example/done?cc=A%26B&p=p%2F9%23x&s=%7Bcode%7D%26&t="
    assert urlsplit(address).hostname == "panel.example"
    assert "Go back to panel.example" in page
    assert "evil.example" not in page


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        "//evil.example",
        "/worker/logout/",
        "https://{worker}.evil.example/",
        "https://{worker}@evil.example/",
        "data:text/html,x",
    ],
)
def test_the_way_back_is_a_full_address(requester, hit_type, address):
    values = ChannelValues(name="x", kind="invite", redirect_url=address)
    with pytest.raises(ValueError, match="full https address"):
        open_channel(requester=requester, hit_type=hit_type, values=values)


def test_a_channel_leads_to_ones_own_hit_type_only(make_keys, hit_type):
    make_keys("Other lab")
    other = Requester.objects.get(name="Other lab")
    with pytest.raises(ValueError, match="of the requester's own"):
        open_channel(
            requester=other, hit_type=hit_type, values=ChannelValues(name="x", kind="invite")
        )


def test_the_completion_page_is_for_those_who_came_through_the_channel(lab, ada, worker, hit_type):
    submit(worker, hit_type.hits.get().public_id)
    assert ada.get(f"/worker/groups/{hit_type.public_id}/finish/").status_code == 410


def test_requirements_hold_for_participants_too(mturk, requester):
    wants = {
        "QualificationTypeId": "00000000000000000040",
        "Comparator": "GreaterThan",
        "IntegerValues": [5],
        "ActionsGuarded": "PreviewAndAccept",
    }
    created = mturk.create_hit(**HIT, QualificationRequirements=[wants])["HIT"]
    hit_type = HitType.objects.get(public_id=created["HITTypeId"])
    values = ChannelValues(name="x", kind="invite")
    channel = open_channel(requester=requester, hit_type=hit_type, values=values)
    browser = enter(channel.token)
    assert browser.get(f"/worker/groups/{hit_type.public_id}/").status_code == 403
