"""Invite links and panels: how a requester's own participants come in, and leave."""

import re
from collections import Counter
from datetime import timedelta
from importlib import import_module
from urllib.parse import urlsplit

import pytest
from cryptography.fernet import Fernet
from django.apps import apps
from django.test import Client

from accounts.models import User
from encryption import decrypt, encrypt, seal
from marketplace import clock
from marketplace.hits.assignments import accept_hit
from marketplace.models import (
    Assignment,
    AssignmentDraft,
    HitType,
    Invitation,
    OutcomeCode,
    Participant,
    RecruitedStudy,
    RecruiterConnection,
    Requester,
    Session,
    SurplusAnswer,
    WorkerAccount,
)
from marketplace.people.erasure import erase_worker
from marketplace.recruiting.files import participants_file
from marketplace.recruiting.outcomes_there import take_over
from marketplace.recruiting.participants import (
    PURPOSE,
    new_participant,
    reencrypt_participants,
    reencrypt_tokens,
)
from marketplace.recruiting.sessions import GRACE, return_session, settle_sessions
from marketplace.recruiting.studies import (
    PROLIFIC,
    StudyValues,
    close_study,
    invite,
    open_study,
)
from tests.boto_clients import in_process_client
from tests.marketplace.conftest import HIT, PASSWORD
from tests.marketplace.test_worker_site import text_of

PID = "5b96601d3400a939f7c18c1f"
FROM_PROLIFIC = f"?PROLIFIC_PID={PID}&STUDY_ID=S1&SESSION_ID=X1"


@pytest.fixture
def hit_type(mturk):
    return HitType.objects.get(public_id=mturk.create_hit(**HIT)["HIT"]["HITTypeId"])


@pytest.fixture
def lab(requester, hit_type):
    values = StudyValues(name="Lab", kind="invite", completion_code="LAB-7")
    return open_study(requester=requester, hit_type=hit_type, values=values)


@pytest.fixture
def prolific(requester, hit_type):
    values = StudyValues(name="Prolific", kind="panel", completion_code="C123", **PROLIFIC)
    return open_study(requester=requester, hit_type=hit_type, values=values)


def enter(token, query="", browser=None):
    browser = browser or Client()
    browser.post(f"/join/{token}/{query}")
    return browser


def test_an_invite_link_lets_a_participant_in_under_a_number(lab):
    (invitation,) = invite(study=lab, labels=["P 1"])
    browser = Client()
    page = text_of(browser.get(f"/join/{invitation.token}/"))
    assert "Rate eight responses" in page
    assert "$" not in page
    response = browser.post(f"/join/{invitation.token}/")
    worker = WorkerAccount.objects.get()
    session = Session.objects.get(worker=worker)
    assert response.headers["Location"] == f"/worker/studies/{session.public_id}/"
    assert not worker.user.has_usable_password()
    assert worker.worker_id in text_of(browser.get(response.headers["Location"]))
    invitation.refresh_from_db()
    assert invitation.worker == worker


def test_participants_read_the_name_of_who_asks_and_not_the_short_name_beside_it(lab, requester):
    Requester.objects.filter(pk=requester.pk).update(name="Travel Lab (travel-lab)")
    assert "A study by Travel Lab (travel-lab):" in text_of(Client().get(f"/join/{lab.token}/"))
    other = Requester.objects.create(name="Lab (Oxford)", created_at=clock.now())
    import_module("marketplace.migrations.0030_display_names").leave_out_short_names(apps, None)
    browser = Client()
    page = text_of(browser.get(f"/join/{lab.token}/"))
    assert "A study by Travel Lab:" in page
    assert "Travel Lab sees the number" in page
    assert "travel-lab" not in page
    enter(lab.token, browser=browser)
    address = f"/worker/assignments/{Assignment.objects.get().public_id}/"
    assert "A study by Travel Lab." in text_of(browser.get(address))
    work(browser)
    page = text_of(browser.get(f"{address}submitted/"))
    assert "Travel Lab" in page
    assert "travel-lab" not in page
    other.refresh_from_db()
    assert other.name_for_participants == "Lab (Oxford)"


def test_looking_at_a_link_makes_no_account(lab):
    (invitation,) = invite(study=lab, labels=["P 1"])
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
    (invitation,) = invite(study=lab, labels=["P 1"])
    for _ in range(2):
        enter(invitation.token)
    assert WorkerAccount.objects.count() == 1
    assert Session.objects.count() == 1


def test_the_open_link_gives_each_browser_a_number_of_its_own(lab):
    first = enter(lab.token)
    enter(lab.token, browser=first)
    assert WorkerAccount.objects.count() == 1
    enter(lab.token)
    assert WorkerAccount.objects.count() == 2


def test_a_panel_id_is_one_account_of_a_requesters(prolific, requester, hit_type, make_keys):
    for _ in range(2):
        enter(prolific.token, FROM_PROLIFIC)
    values = StudyValues(name="Again", kind="panel", **PROLIFIC)
    again = open_study(requester=requester, hit_type=hit_type, values=values)
    enter(again.token, FROM_PROLIFIC.replace("X1", "X2"))
    assert Participant.objects.get().connection.name == "Prolific"
    assert Session.objects.count() == 2
    assert WorkerAccount.objects.count() == 1
    keys = make_keys("Other lab")
    in_process_client(keys).create_hit(**HIT)
    other = Requester.objects.get(name="Other lab")
    theirs = open_study(requester=other, hit_type=other.hit_types.get(), values=values)
    enter(theirs.token, FROM_PROLIFIC)
    assert WorkerAccount.objects.count() == 2


def test_what_a_panel_says_is_kept(prolific):
    enter(prolific.token, FROM_PROLIFIC)
    session = Session.objects.get()
    assert (session.external_study_id, session.submission_id) == ("S1", "X1")
    assert decrypt(session.encrypted_participant_id) == PID
    assert PID not in str(list(Participant.objects.values())) + session.encrypted_participant_id


@pytest.mark.parametrize(
    "query",
    [
        "",
        "?PROLIFIC_PID=",
        "?STUDY_ID=S1",
        "?PROLIFIC_PID=%00",
        "?PROLIFIC_PID=" + "x" * 201,
        "?PROLIFIC_PID={{%PROLIFIC_PID%}}&SESSION_ID=X",
    ],
)
def test_a_panel_has_to_say_who_comes(prolific, query):
    response = Client().get(f"/join/{prolific.token}/{query}")
    assert response.status_code == 400
    assert "PROLIFIC_PID" in text_of(response)
    assert Client().post(f"/join/{prolific.token}/{query}").status_code == 400
    assert not WorkerAccount.objects.exists()


def test_any_panel_names_its_own_parameters(requester, hit_type):
    values = StudyValues(
        name="Panel", kind="panel", panel="CloudResearch", worker_parameter="participantId"
    )
    study = open_study(requester=requester, hit_type=hit_type, values=values)
    enter(study.token, "?participantId=p-9&assignmentId=ignored")
    assert decrypt(Session.objects.get().encrypted_participant_id) == "p-9"


def test_a_closed_or_unknown_link_lets_nobody_in(lab):
    (invitation,) = invite(study=lab, labels=["P 1"])
    close_study(study=lab)
    for token in (lab.token, invitation.token, "nothing"):
        assert Client().get(f"/join/{token}/").status_code == 410
        assert Client().post(f"/join/{token}/").status_code == 410
    assert not WorkerAccount.objects.exists()


def test_a_leaked_link_never_signs_in_to_an_account_with_a_password(lab, prolific, worker):
    (invitation,) = invite(study=lab, labels=["P 1"])
    Invitation.objects.update(worker=worker)
    seal_of = seal(f"{prolific.connection_id}:{PID}", purpose=PURPOSE)
    Participant.objects.create(connection=prolific.connection, seal=seal_of, worker=worker)
    for path in (f"/join/{invitation.token}/", f"/join/{prolific.token}/{FROM_PROLIFIC}"):
        browser = Client()
        assert browser.post(path).status_code == 400
        assert browser.get("/worker/").status_code == 302
    assert not Session.objects.exists()


def test_a_participant_cannot_sign_in_with_a_password(lab):
    (invitation,) = invite(study=lab, labels=["P 1"])
    enter(invitation.token)
    name = User.objects.get().username
    for password in ("", "!", PASSWORD):
        Client().post("/worker/login/", {"username": name, "password": password})
    browser = Client()
    browser.post("/worker/login/", {"username": name, "password": "!"})
    assert browser.get("/worker/").status_code == 302


def test_who_is_not_in_the_study_here_is_led_back_to_its_link(prolific, hit_type, worker):
    """Participants have no account to sign in with."""
    browser = enter(prolific.token, FROM_PROLIFIC)
    session = Session.objects.get()
    assignment = Assignment.objects.get()
    left = browser.post("/worker/logout/")
    assert left.headers["Location"] == f"/worker/studies/{session.public_id}/"
    researcher = Client()
    researcher.force_login(User.objects.create_user("researcher"))
    for visitor in (browser, Client(), researcher):
        for path in (
            left.headers["Location"],
            f"/worker/assignments/{assignment.public_id}/",
            f"/worker/groups/{hit_type.public_id}/next/",
            f"/worker/groups/{hit_type.public_id}/finish/",
        ):
            answer = visitor.get(path)
            assert (answer.status_code, answer.headers.get("Location")) == (403, None)
            page = text_of(answer)
            assert "Go back to Prolific, and open the study’s link there again." in page
            assert "/worker/login/" not in page
            assert "/worker/signup/" not in page
            assert PID not in page
        for path in ("/worker/study/", "/worker/studies/NONE/"):
            assert "Open the link again that you were sent" in text_of(visitor.get(path))
    assert "open the study’s link there again" in text_of(Client().get("/worker/login/"))
    enter(prolific.token, FROM_PROLIFIC, browser=browser)
    assert "reserved for you" in text_of(browser.get("/worker/study/", follow=True))


def test_a_participant_of_a_lab_is_led_back_to_the_link_they_were_sent(lab):
    (invitation,) = invite(study=lab, labels=["P 1"])
    browser = enter(invitation.token)
    page = text_of(browser.post("/worker/logout/", follow=True))
    assert "Open the link again that you were sent." in page
    assert "You need no account and no password here." in page


def test_a_worker_who_is_signed_in_is_warned_and_not_taken_over(lab, ada, worker):
    assert "You are signed in as ada" in text_of(ada.get(f"/join/{lab.token}/"))
    enter(lab.token, browser=ada)
    page = text_of(ada.get("/worker/", follow=True))
    assert worker.worker_id not in page
    assert not Session.objects.filter(worker=worker).exists()


def test_the_way_back_is_the_requesters_with_quoted_ids(mturk, requester, hit_type):
    values = StudyValues(
        name="Panel",
        kind="panel",
        panel="Panel",
        worker_parameter="pid",
        session_parameter="sid",
        completion_code="A&B",
        redirect_url="https://panel.example/done?cc={code}&p={worker}&s={session}&t={study}",
    )
    study = open_study(requester=requester, hit_type=hit_type, values=values)
    browser = enter(study.token, "?pid=p/9%23x&sid=%7Bcode%7D%26&redirect_url=https://evil.example")
    work(browser)
    page = text_of(browser.get(f"/worker/groups/{hit_type.public_id}/finish/", follow=True))
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
    values = StudyValues(name="x", kind="invite", redirect_url=address)
    with pytest.raises(ValueError, match="full https address"):
        open_study(requester=requester, hit_type=hit_type, values=values)


def test_a_channel_leads_to_ones_own_hit_type_only(make_keys, hit_type):
    make_keys("Other lab")
    other = Requester.objects.get(name="Other lab")
    with pytest.raises(ValueError, match="of the requester's own"):
        open_study(requester=other, hit_type=hit_type, values=StudyValues(name="x", kind="invite"))


def test_the_completion_page_is_for_those_who_came_to_the_study(lab, ada, worker, hit_type):
    assert ada.get(f"/worker/groups/{hit_type.public_id}/finish/").status_code == 410
    enter(lab.token)
    theirs = Session.objects.get()
    assert ada.get(f"/worker/studies/{theirs.public_id}/").status_code == 410
    assert ada.post(f"/worker/studies/{theirs.public_id}/leave/").status_code == 410
    theirs.refresh_from_db()
    assert theirs.outcome == ""


def test_requirements_hold_for_participants_too(mturk, requester):
    wants = {
        "QualificationTypeId": "00000000000000000040",
        "Comparator": "GreaterThan",
        "IntegerValues": [5],
        "ActionsGuarded": "PreviewAndAccept",
    }
    created = mturk.create_hit(**HIT, QualificationRequirements=[wants])["HIT"]
    hit_type = HitType.objects.get(public_id=created["HITTypeId"])
    values = StudyValues(name="x", kind="invite")
    study = open_study(requester=requester, hit_type=hit_type, values=values)
    browser = enter(study.token)
    page = text_of(browser.get("/worker/study/", follow=True))
    assert "has requirements that you don't meet" in page
    assert completion_code(study, "screened_out") in page
    assert not Assignment.objects.exists()


def work(browser, *, times=1):
    """Hand in what is next, as a page in a frame does, and go where it leads."""
    for _ in range(times):
        page = browser.get("/worker/study/", follow=True)
        held = re.search("/worker/assignments/([A-Z0-9]+)/", text_of(page))[1]
        assert browser.get(f"/worker/assignments/{held}/").status_code == 200
        done = submit_page(held)
        assert done.status_code == 200
    return held


@pytest.fixture
def three(mturk, requester):
    """A study of which each participant does three of four HITs."""
    for _ in range(4):
        created = mturk.create_hit(**HIT, MaxAssignments=2)["HIT"]
    hit_type = HitType.objects.get(public_id=created["HITTypeId"])
    values = StudyValues(name="Three", kind="panel", items_per_session=3, **PROLIFIC)
    return open_study(requester=requester, hit_type=hit_type, values=values)


def came(study, pid, submission, browser=None):
    query = f"?PROLIFIC_PID={pid}&STUDY_ID=S1&SESSION_ID={submission}"
    return enter(study.token, query, browser)


def test_the_code_comes_with_the_last_item_and_not_before(three):
    browser = came(three, "p1", "x1")
    code = completion_code(three)
    for n in range(3):
        page = text_of(browser.get("/worker/study/", follow=True))
        assert code not in page
        assert ("Start" if n == 0 else "Go on working") in page
        work(browser)
    response = browser.get(f"/worker/groups/{three.hit_type.public_id}/next/", follow=True)
    assert code in text_of(response)
    assert f"submissions/complete?cc={code}" in text_of(response)
    assert Session.objects.get().state == "finished"


def test_the_session_is_complete_although_the_browser_closed_before_the_way_back(three):
    work(came(three, "p1", "x1"), times=3)
    session = Session.objects.get()
    assert (session.state, session.outcome) == ("finished", "completed")
    assert session.code == completion_code(three)


def test_a_reload_brings_the_same_items_and_the_same_code(three):
    first = came(three, "p1", "x1")
    items = list(Assignment.objects.order_by("pk").values_list("public_id", flat=True))
    came(three, "p1", "x1", first)
    again = came(three, "p1", "x1")
    assert list(Assignment.objects.order_by("pk").values_list("public_id", flat=True)) == items
    work(again, times=3)
    code = Session.objects.get().code
    assert code in text_of(came(three, "p1", "x1").get("/worker/study/", follow=True))
    assert Session.objects.count() == 1


def test_who_knows_the_ids_in_a_link_reads_and_deletes_nothing(three, worker):
    """SONA's code of a participant is a short number: whoever walks them comes in, and no more."""
    mine = came(three, PID, "X1")
    work(mine)
    session = Session.objects.get()
    theirs = came(three, PID, "X1")
    assert theirs.get(f"/worker/studies/{session.public_id}/").status_code == 200
    handed_in = session.items.get(position=1).assignment.public_id
    pages = [
        f"/worker/studies/{session.public_id}/leave/",
        f"/worker/assignments/{handed_in}/submitted/",
        *(f"/worker/your-data/{name}" for name in ("", "file.json", "file.html", "erase/")),
    ]
    for address in pages:
        assert mine.get(address).status_code == 200
        answer = theirs.get(address)
        assert answer.status_code == 403
        assert "is not the browser that you began in" in text_of(answer)
    for address in (pages[0], pages[-1]):
        answer = theirs.post(address, {"proof": session.worker.worker_id})
        assert answer.status_code == 403
    came(three, PID, "X1", browser=theirs)  # again, and signed in by now
    assert theirs.get(pages[-1]).status_code == 403
    came(three, PID, "X1", browser=mine)
    assert mine.get(pages[-1]).status_code == 200
    session.refresh_from_db()
    assert (session.state, session.worker.erased_at) == ("started", None)
    came(three, "another", "X2", browser=theirs)  # who they are themselves
    assert theirs.get("/worker/your-data/").status_code == 200


def test_who_knows_the_ids_in_a_link_sees_no_draft_and_no_worker_id(three):
    mine = came(three, PID, "X1")
    page = text_of(mine.get("/worker/study/", follow=True))
    held = re.search("/worker/assignments/([A-Z0-9]+)/", page)[1]
    draft = f"/worker/assignments/{held}/draft/"
    saved = {"draft": "my secret", "progress": "", "revision": 0}
    assert mine.post(draft, saved, content_type="application/json").status_code == 200
    theirs = came(three, PID, "X1")
    assert theirs.get(draft).json()["draft"] == ""
    overwritten = saved | {"draft": "{}", "revision": 1}
    assert theirs.post(draft, overwritten, content_type="application/json").status_code == 403
    assert mine.get(draft).json()["draft"] == "my secret"
    worker_id = Session.objects.get().worker.worker_id
    assert worker_id in page
    for address in ("/worker/study/", "/worker/your-data/"):
        assert worker_id not in text_of(theirs.get(address, follow=True))
    assert "my secret" not in text_of(theirs.get(f"/worker/assignments/{held}/"))


def test_a_panels_way_back_is_shown_where_the_study_ended(three):
    address = "https://panel.example/credit?token=SECRET99&p={worker}"
    three.codes.filter(outcome="completed").update(redirect_url=address)
    mine = came(three, "p1", "x1")
    work(mine, times=2)
    also_mine = came(three, "p1", "x1")  # on another device, before the end
    work(mine)
    later = came(three, "p1", "x1")
    code = Session.objects.get().code
    for browser, is_shown in ((mine, True), (also_mine, True), (later, False)):
        page = text_of(browser.get("/worker/study/", follow=True))
        assert ("SECRET99" in page, code in page) == (is_shown, True)


def test_who_begins_a_second_study_in_another_browser_may_stop_it_there(three):
    came(three, "p1", "x1")
    again = came(three, "p1", "x2")
    session = Session.objects.get(submission_id="x2")
    assert leave(again, session).status_code == 302
    session.refresh_from_db()
    assert session.outcome == "no_consent"
    first = Session.objects.get(submission_id="x1")
    assert again.post(f"/worker/studies/{first.public_id}/leave/").status_code == 403


def test_who_opens_anothers_second_study_first_sees_nothing_once_they_come_themselves(three):
    mine = came(three, "p1", "x1")
    theirs = came(three, "p1", "x2")
    came(three, "p1", "x2", mine)
    session = Session.objects.get(submission_id="x2")
    page = text_of(mine.get(f"/worker/studies/{session.public_id}/"))
    held = re.search("/worker/assignments/([A-Z0-9]+)/", page)[1]
    draft = f"/worker/assignments/{held}/draft/"
    saved = {"draft": "my secret", "progress": "", "revision": 0}
    assert mine.post(draft, saved, content_type="application/json").status_code == 200
    assert theirs.get(draft).json()["draft"] == ""
    assert theirs.post(draft, saved, content_type="application/json").status_code == 403
    work(mine)
    assert mine.get(f"/worker/assignments/{held}/submitted/").status_code == 200
    assert theirs.get(f"/worker/assignments/{held}/submitted/").status_code == 403
    assert leave(theirs, session).status_code == 403


def test_who_comes_to_their_second_study_without_its_link_is_known_to_have_come(three):
    mine = came(three, "p1", "x1")
    theirs = came(three, "p1", "x2")
    page = text_of(mine.get("/worker/study/", follow=True))
    held = re.search("/worker/assignments/([A-Z0-9]+)/", page)[1]
    assert mine.get(f"/worker/assignments/{held}/").status_code == 200
    draft = f"/worker/assignments/{held}/draft/"
    saved = {"draft": "my secret", "progress": "", "revision": 0}
    assert mine.post(draft, saved, content_type="application/json").status_code == 200
    assert theirs.get(draft).json()["draft"] == ""


def test_a_panels_ids_come_in_parameters_of_different_names(requester, hit_type):
    """Else a participant's id would pass for the study's, and be sent on as no secret."""
    values = StudyValues(
        name="x", kind="panel", panel="P", worker_parameter="PID", study_parameter="pid"
    )
    with pytest.raises(ValueError, match="different names"):
        open_study(requester=requester, hit_type=hit_type, values=values)


def test_one_address_lets_in_no_more_participants_than_a_lecture(three):
    answers = [
        Client().post(f"/join/{three.token}/?PROLIFIC_PID=p{n}&STUDY_ID=S&SESSION_ID=x{n}")
        for n in range(202)
    ]
    assert [one.status_code for one in answers].count(429) == 2
    assert answers[0].status_code == 302
    assert Session.objects.count() == 200


def test_a_submission_belongs_to_one_participant(three):
    came(three, "p1", "x1")
    refused = Client().post(f"/join/{three.token}/?PROLIFIC_PID=p2&STUDY_ID=S1&SESSION_ID=x1")
    assert refused.status_code == 400
    assert Session.objects.count() == 1


def test_what_is_promised_least_is_given_first_and_nothing_twice(three):
    for n in range(2):
        came(three, f"p{n}", f"x{n}")
    counts = Counter(Assignment.objects.values_list("hit_id", flat=True))
    assert sorted(counts.values()) == [1, 1, 2, 2]
    came(three, "p2", "x2")
    came(three, "p1", "x9")
    late = Session.objects.get(submission_id="x9")
    assert late.outcome == "no_more_items"
    assert late.code == completion_code(three, "no_more_items")
    assert late.code != completion_code(three)


def test_the_last_does_what_is_left_and_completes_with_it(three):
    for n in range(2):
        came(three, f"p{n}", f"x{n}")
    last = came(three, "p2", "x2")
    session = Session.objects.get(submission_id="x2")
    assert (session.items.count(), session.outcome) == (2, "")
    assert "2 pages are reserved for you" in text_of(last.get("/worker/study/", follow=True))
    work(last, times=2)
    session.refresh_from_db()
    assert session.outcome == "completed"


def test_who_comes_when_fewer_are_left_gets_first_what_time_has_freed(three):
    for n in range(2):
        came(three, f"p{n}", f"x{n}")
    clock.advance(timedelta(seconds=three.maximum_seconds) + GRACE + timedelta(seconds=1))
    came(three, "p2", "x2")
    assert Session.objects.get(submission_id="x2").items.count() == 3


def test_who_comes_too_late_reads_so_and_has_a_code_of_its_own(three):
    for n in range(4):
        browser = came(three, f"p{n}", f"x{n}")
    page = text_of(browser.get("/worker/study/", follow=True))
    assert "Nothing is left to do" in page
    assert completion_code(three, "no_more_items") in page
    assert OutcomeCode.objects.filter(study=three).values("code").distinct().count() == 4


def test_participants_see_their_study_only(three, mturk):
    mturk.create_hit(**HIT | {"Title": "Another"})
    browser = came(three, "p1", "x1")
    for path in ("", "dashboard/", "earnings/", "qualifications/", "messages/", "profile/"):
        page = browser.get(f"/worker/{path}", follow=True)
        assert page.redirect_chain[-1][0].startswith("/worker/studies/"), path
        assert "$" not in text_of(page)
        assert "Another" not in text_of(page)
    held = Assignment.objects.first()
    page = text_of(browser.get(f"/worker/assignments/{held.public_id}/"))
    assert "$" not in page
    assert "Return this HIT" not in page
    group = f"/worker/groups/{three.hit_type.public_id}/"
    browser.post(group + "accept/")
    assert Assignment.objects.count() == 3


def test_who_does_not_want_to_take_part_gives_everything_back(three):
    browser = came(three, "p1", "x1")
    session = Session.objects.get()
    leave(browser, session)
    session.refresh_from_db()
    assert session.outcome == "no_consent"
    assert session.code == completion_code(three, "no_consent")
    assert set(Assignment.objects.values_list("status", flat=True)) == {"Returned"}
    assert session.code in text_of(browser.get("/worker/study/", follow=True))


def test_who_stops_is_asked_first_and_has_what_was_submitted_deleted(three):
    browser = came(three, "p1", "x1")
    work(browser, times=2)
    session = Session.objects.get()
    path = f"/worker/studies/{session.public_id}/leave/"
    assert path in text_of(browser.get("/worker/study/", follow=True))
    page = text_of(browser.get(path))
    assert "The 2 pages that you have submitted are deleted" in page
    session.refresh_from_db()
    assert session.outcome == ""
    browser.post(path)
    session.refresh_from_db()
    assert session.outcome == "no_consent"
    assert not Assignment.objects.exclude(answer="").exists()
    assert set(Assignment.objects.values_list("status", flat=True)) == {"Returned"}
    assert browser.get(path).headers["Location"] == f"/worker/studies/{session.public_id}/"


@pytest.mark.parametrize("state", ["approved", "rejected"])
def test_who_is_decided_on_at_the_recruiter_before_the_last_page_is_promised_no_deletion(
    three, state
):
    browser = came(three, "p1", "x1")
    work(browser)
    session = Session.objects.get()
    path = f"/worker/studies/{session.public_id}/leave/"
    assert "is deleted here" in text_of(browser.get(path))
    take_over(session, state)
    for answer in (browser.get(path), browser.post(path)):
        assert answer.headers["Location"] == f"/worker/studies/{session.public_id}/"
    page = text_of(browser.get(f"/worker/studies/{session.public_id}/"))
    assert f"Your work was {state}" in page
    assert "Stop taking part" not in page
    assert Assignment.objects.exclude(answer="").count() == 1


def test_the_file_of_participants_tells_no_decision_on_who_stopped_after_it(three, mturk):
    browser = came(three, "p1", "x1")
    work(browser, times=1)
    page = approve_submitted(mturk)
    leave(browser)
    header, row = participants_file(three, user=None)
    told = dict(zip(header, row, strict=True))
    assert (told["outcome"], told["n_handed_in"], told["decision"]) == ("no_consent", "0", "")


def test_what_the_ledger_has_paid_stays_of_who_stops(three):
    browser = came(three, "p1", "x1")
    work(browser, times=2)
    decided = Assignment.objects.filter(status="Submitted").order_by("pk")[:1].get()
    Assignment.objects.filter(pk=decided.pk).update(status="Approved", paid_by="ledger")
    path = f"/worker/studies/{Session.objects.get().public_id}/leave/"
    assert "The page that you have submitted is deleted" in text_of(browser.get(path))
    browser.post(path)
    assert Assignment.objects.exclude(answer="").get() == decided


def test_participants_are_shown_the_time_that_their_recruiter_gives(three):
    RecruitedStudy.objects.filter(pk=three.pk).update(maximum_seconds=1020)
    browser = came(three, "p1", "x1")
    session, held = Session.objects.get(), Assignment.objects.order_by("pk").first()
    assert re.search(
        "You have 1[67] min( [0-9]+ s)? left", text_of(browser.get("/worker/study/", follow=True))
    )
    page = text_of(browser.get(f"/worker/assignments/{held.public_id}/"))
    due = session.expires_at - GRACE
    assert f'"due": "{due.isoformat()}"' in page
    assert f">{due:%Y-%m-%d %H:%M} UTC</time>" in page
    clock.advance(timedelta(seconds=1021))
    assert "Your time is over. Submit now" in text_of(browser.get("/worker/study/", follow=True))
    work(browser, times=3)
    session.refresh_from_db()
    assert session.outcome == "completed"


def test_participants_are_shown_nothing_of_a_site_that_is_not_for_them(three):
    path = f"/join/{three.token}/"
    refused = Client().get(path)
    assert refused.status_code == 400
    arrival = Client().get(f"{path}?PROLIFIC_PID=p1&STUDY_ID=S1&SESSION_ID=x1")
    for page in map(text_of, (refused, arrival)):
        assert not any(each in page for each in ("See the HITs", "Sign in", "Sign up"))
    assert "write to whoever sent it to you" in text_of(refused)
    browser = came(three, "p1", "x1")
    work(browser)
    held = Assignment.objects.filter(status="Accepted").order_by("pk").first()
    page = text_of(browser.get(f"/worker/assignments/{held.public_id}/"))
    assert "Page 2 of 3" in page
    assert "sign in to go on" not in page


@pytest.mark.parametrize("state", ["paused", "stopped"])
def test_who_has_begun_or_finished_comes_back_though_the_study_is_closed(three, state):
    came(three, "p1", "x1")
    work(came(three, "p2", "x2"), times=3)
    RecruitedStudy.objects.filter(pk=three.pk).update(state=state)
    assert (
        Client().get(f"/join/{three.token}/?PROLIFIC_PID=p1&STUDY_ID=S1&SESSION_ID=x1").status_code
        == 200
    )
    begun = came(three, "p1", "x1")
    assert "3 pages are reserved" in text_of(begun.get("/worker/study/", follow=True))
    finished = came(three, "p2", "x2")
    code = completion_code(three)
    assert code in text_of(finished.get("/worker/study/", follow=True))
    for ids in (
        "PROLIFIC_PID=p1&STUDY_ID=S1&SESSION_ID=x2",
        "PROLIFIC_PID=p3&STUDY_ID=S1&SESSION_ID=x3",
        "",
        "PROLIFIC_PID=p1&STUDY_ID=S1&SESSION_ID=x9",
    ):
        assert Client().post(f"/join/{three.token}/?{ids}").status_code == 410
    assert Session.objects.count() == 2


def test_invited_participants_come_back_to_a_closed_study(lab):
    invitations = invite(study=lab, labels=["P 1", "P 2"])
    enter(invitations[0].token)
    by_open_link = enter(lab.token)
    close_study(study=lab)
    assert enter(invitations[0].token).get("/worker/study/").status_code == 302
    assert Client().get(f"/join/{invitations[1].token}/").status_code == 410
    assert by_open_link.get(f"/join/{lab.token}/").status_code == 200
    assert Client().get(f"/join/{lab.token}/").status_code == 410


@pytest.mark.parametrize("discards", [False, True])
def test_on_return_the_study_says_whether_work_is_kept(three, discards):
    RecruitedStudy.objects.filter(pk=three.pk).update(discards_returned=discards)
    work(came(three, "p1", "x1"))
    return_session(session=Session.objects.get())
    kept = Assignment.objects.exclude(answer="")
    assert kept.count() == (0 if discards else 1)
    assert Assignment.objects.live().count() == (0 if discards else 1)
    assert Session.objects.get().state == "returned"


def test_late_work_is_taken_back_with_the_rest(three):
    RecruitedStudy.objects.filter(pk=three.pk).update(discards_returned=True)
    came(three, "p1", "x1")
    first, second, _third = Assignment.objects.order_by("pk")
    AssignmentDraft.objects.create(assignment=second, content="{}", saved_at=clock.now())
    clock.advance(timedelta(seconds=three.maximum_seconds) + GRACE + timedelta(seconds=1))
    settle_sessions(clock.now())
    for _ in range(2):
        accept_hit(worker=new_participant("recruiter"), hit=first.hit)
    submit_page(first.public_id)
    assert (SurplusAnswer.objects.count(), AssignmentDraft.objects.count()) == (1, 1)
    return_session(session=Session.objects.get())
    assert (SurplusAnswer.objects.count(), AssignmentDraft.objects.count()) == (0, 0)


def test_late_work_is_kept_and_no_item_over_assigned(three):
    browser = came(three, "p1", "x1")
    held = list(Assignment.objects.order_by("pk"))
    clock.advance(timedelta(seconds=three.maximum_seconds) + GRACE + timedelta(seconds=1))
    settle_sessions(clock.now())
    session = Session.objects.get()
    assert session.state == "timed_out"
    # Others take both places of the first HIT; the second is still free.
    for _ in range(2):
        accept_hit(worker=new_participant("recruiter"), hit=held[0].hit)
    for assignment in held:
        done = Client().post(
            "/mturk/externalSubmit", {"assignmentId": assignment.public_id, "rating": "4"}
        )
        assert done.status_code == 200
    session.refresh_from_db()
    assert (session.state, session.outcome) == ("timed_out", "completed")
    assert session.code in text_of(browser.get("/worker/study/", follow=True))
    assert [hasattr(one, "surplus_answer") for one in Assignment.objects.order_by("pk")[:3]] == [
        True,
        False,
        False,
    ]
    for hit in three.hit_type.hits.all():
        assert Assignment.objects.live().filter(hit=hit).count() <= hit.max_assignments


def test_time_frees_what_is_not_handed_in(three):
    work(came(three, "p1", "x1"))
    clock.advance(timedelta(seconds=three.maximum_seconds) + GRACE + timedelta(seconds=1))
    settle_sessions(clock.now())
    assert Assignment.objects.live().count() == 1
    came(three, "p2", "x2")
    assert Session.objects.get(submission_id="x2").items.count() == 3


def test_participants_are_not_told_of_accounts_passwords_and_earnings(three):
    browser = came(three, "p1", "x1")
    for name in ("", "erase/"):
        words = text_of(browser.get(f"/worker/your-data/{name}"))
        assert "the ids that your link sent" in words
        for other in ("account", "assword", "Earnings", "requester", "payout"):
            assert other not in words


def test_erasing_a_participant_drops_the_join_and_keeps_the_work(three):
    work(came(three, "p1", "x1"), times=3)
    Assignment.objects.update(status="Approved")
    worker = WorkerAccount.objects.get()
    erase_worker(worker)
    assert not Session.objects.exists()
    assert not Participant.objects.exists()
    assert Assignment.objects.exclude(answer="").count() == 3


def test_participants_are_recognised_after_the_keys_were_changed(three, settings):
    came(three, "p1", "x1")
    old = settings.ENCRYPTION_KEYS
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode(), *old]
    came(three, "p1", "x2")
    assert Participant.objects.count() == 1
    assert reencrypt_participants() == 1
    settings.ENCRYPTION_KEYS = settings.ENCRYPTION_KEYS[:1]
    came(three, "p1", "x3")
    assert Participant.objects.count() == 1
    assert RecruiterConnection.objects.count() == 1


def test_tokens_of_connections_are_encrypted_anew(three, settings):
    connection = three.connection
    connection.encrypted_token = encrypt("secret-token")
    connection.save()
    assert reencrypt_tokens() == 0
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode(), *settings.ENCRYPTION_KEYS]
    assert reencrypt_tokens() == 1
    settings.ENCRYPTION_KEYS = settings.ENCRYPTION_KEYS[:1]
    connection.refresh_from_db()
    assert decrypt(connection.encrypted_token) == "secret-token"
