"""Invite links and panels: how a requester's own participants come in, and leave."""

import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from html import escape
from urllib.parse import urlsplit

import pytest
from cryptography.fernet import Fernet
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.urls import reverse

from accounts.models import User
from encryption import decrypt, encrypt, seal
from marketplace import clock, exceptions
from marketplace.hits.assignments import accept_hit
from marketplace.models import (
    Assignment,
    AssignmentDraft,
    Hit,
    HitType,
    Invitation,
    OutcomeCode,
    Participant,
    RecruitedStudy,
    RecruiterConnection,
    Requester,
    Session,
    SessionItem,
    SurplusAnswer,
    WorkerAccount,
    WorkerMessage,
)
from marketplace.recruiting import arrivals, files, participants, sessions
from marketplace.recruiting.studies import PROLIFIC, StudyValues, close_study, invite, open_study
from marketplace.recruiting.submissions import take_over as follow_decision
from marketplace.templatetags.marketplace_tags import duration
from tests.boto_clients import in_process_client
from tests.codes import refused
from tests.marketplace.conftest import HIT, assert_ledger_balances
from tests.marketplace.prolific import (
    approve_submitted,
    came,
    completion_code,
    create_hits,
    enter,
    leave,
    open_panel,
    run_out_of_time,
    statuses,
    submit_page,
    work,
)
from tests.marketplace.recruiting.conftest import PID
from tests.marketplace.test_worker_site import text_of

NOT_YOUR_BROWSER = "marketplace/not_your_browser.html"
FROM_PROLIFIC = f"?PROLIFIC_PID={PID}&STUDY_ID=S1&SESSION_ID=X1"


@pytest.fixture
def hit_type(mturk):
    return create_hits(mturk, n=1, max_assignments=1)


@pytest.fixture
def lab(requester, hit_type):
    values = StudyValues(name="Lab", kind="invite", completion_code="LAB-7")
    return open_study(requester=requester, hit_type=hit_type, values=values)


@pytest.fixture
def prolific(hit_type):
    return open_panel(hit_type, name="Prolific", completion_code="C123")


@pytest.fixture
def invitation(lab):
    return invite(study=lab, labels=["P 1"])[0]


def own_page(browser):
    return browser.get("/worker/study/", follow=True)


def outcome_of(browser):
    page = own_page(browser)
    session = page.context["session"]
    assert session.code in text_of(page)
    return session.outcome


def held_by(browser):
    return re.search("/worker/assignments/([A-Z0-9]+)/", text_of(own_page(browser)))[1]


def test_an_invite_link_lets_a_participant_in_under_a_number_without_a_password(invitation):
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
    enter(invitation.token)  # always leads to the same number
    assert (WorkerAccount.objects.count(), Session.objects.count()) == (1, 1)


def test_participants_read_how_long_it_takes_before_they_take_part(lab):
    HitType.objects.update(estimated_seconds=150)
    RecruitedStudy.objects.update(items_per_session=4)
    page = text_of(Client().get(f"/join/{lab.token}/"))
    assert duration(600) in page
    assert "per hour" not in page  # nobody is paid
    assert duration(600) in text_of(own_page(enter(lab.token)))


def test_the_link_leads_back_to_the_code_at_the_end(lab):
    browser = enter(lab.token)
    assert browser.get(f"/join/{lab.token}/").status_code == 200
    work(browser)
    page = browser.get(f"/join/{lab.token}/", follow=True)
    assert page.redirect_chain[0][0] == f"/worker/studies/{Session.objects.get().public_id}/"
    assert "LAB-7" in text_of(page)
    assert Client().get(f"/join/{lab.token}/").status_code == 200  # another person's browser


def test_participants_read_how_to_write_by_way_of_their_recruiter(lab, requester):
    browser = enter(lab.token)
    address = reverse("marketplace:contact", args=[requester.public_id])
    work_page = text_of(browser.get(f"/worker/assignments/{held_by(browser)}/"))
    assert f"{address}?about=" in work_page
    assert browser.get(address).context["session"].connection == lab.connection
    assert browser.post(address, {"text": "Hello"}).context["problem"]
    assert not WorkerMessage.objects.exists()


def test_participants_read_the_name_that_the_requester_shows(lab, requester):
    Requester.objects.filter(pk=requester.pk).update(name="travel-lab", display_name="Travel Lab")
    browser = Client()
    pages = [text_of(browser.get(f"/join/{lab.token}/"))]
    enter(lab.token, browser=browser)
    address = f"/worker/assignments/{Assignment.objects.get().public_id}/"
    pages.append(text_of(browser.get(address)))
    work(browser)
    pages.append(text_of(browser.get(f"{address}submitted/")))
    assert ["Travel Lab" in page for page in pages] == [True] * 3
    assert not any("travel-lab" in page for page in pages)


def test_the_open_link_gives_each_browser_a_number_of_its_own(lab):
    enter(lab.token, browser=enter(lab.token))
    assert WorkerAccount.objects.count() == 1
    enter(lab.token)
    assert WorkerAccount.objects.count() == 2
    browser = Client(enforce_csrf_checks=True)
    assert browser.post(f"/join/{lab.token}/").status_code == 403


def test_a_panel_id_is_one_account_of_a_requesters(prolific, hit_type, make_keys):
    for _ in range(2):
        enter(prolific.token, FROM_PROLIFIC)
    enter(open_panel(hit_type, name="Again").token, FROM_PROLIFIC.replace("X1", "X2"))
    assert Participant.objects.get().connection.name == "Prolific"
    assert (Session.objects.count(), WorkerAccount.objects.count()) == (2, 1)
    other = create_hits(in_process_client(make_keys("Other lab")), n=1)
    enter(open_panel(other).token, FROM_PROLIFIC)
    assert WorkerAccount.objects.count() == 2


def test_a_panel_has_to_say_who_comes_and_it_is_kept(prolific):
    for query, code in (
        ("", "missing_id"),
        ("?PROLIFIC_PID=", "missing_id"),
        ("?STUDY_ID=S1", "missing_id"),
        ("?PROLIFIC_PID=%00", "bad_id"),
        ("?PROLIFIC_PID=" + "x" * 201, "bad_id"),
        ("?PROLIFIC_PID={{%PROLIFIC_PID%}}&SESSION_ID=X", "bad_id"),
    ):
        response = Client().get(f"/join/{prolific.token}/{query}")
        assert (response.status_code, response.context["code"]) == (400, code)
        assert "PROLIFIC_PID" in text_of(response)
        assert Client().post(f"/join/{prolific.token}/{query}").status_code == 400
        assert not WorkerAccount.objects.exists()
    enter(prolific.token, FROM_PROLIFIC)
    session = Session.objects.get()
    assert (session.external_study_id, session.submission_id) == ("S1", "X1")
    assert decrypt(session.encrypted_participant_id) == PID
    assert PID not in str(list(Participant.objects.values())) + session.encrypted_participant_id


def test_a_closed_or_unknown_link_lets_nobody_in(lab, invitation):
    close_study(study=lab)
    for token in (lab.token, invitation.token, "nothing"):
        assert Client().get(f"/join/{token}/").status_code == 410
        assert Client().post(f"/join/{token}/").status_code == 410
    assert not WorkerAccount.objects.exists()


def test_a_leaked_link_never_signs_in_to_an_account_with_a_password(invitation, prolific, worker):
    Invitation.objects.update(worker=worker)
    seal_of = seal(f"{prolific.connection_id}:{PID}", purpose=participants.PURPOSE)
    Participant.objects.create(connection=prolific.connection, seal=seal_of, worker=worker)
    for path in (f"/join/{invitation.token}/", f"/join/{prolific.token}/{FROM_PROLIFIC}"):
        browser = Client()
        assert browser.post(path).context["code"] == "has_password"
        assert browser.get("/worker/").status_code == 302
    assert not Session.objects.exists()


def test_who_is_not_in_the_study_here_is_led_back_to_its_link(prolific, hit_type, worker):
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
        ):
            answer = visitor.get(path)
            assert (answer.status_code, answer.headers.get("Location")) == (403, None)
            assert answer.context["study"] == prolific
            page = text_of(answer)
            assert "Prolific" in page
            assert not any(each in page for each in ("/worker/login/", "/worker/signup/", PID))
        for path in ("/worker/study/", "/worker/studies/NONE/"):
            answer = visitor.get(path)
            assert (answer.status_code, answer.context["study"]) == (403, None)
    enter(prolific.token, FROM_PROLIFIC, browser=browser)
    assert own_page(browser).context["n_items"] == 1


def test_the_way_back_is_the_requesters_with_quoted_ids(mturk, requester, hit_type):
    study = open_panel(
        hit_type,
        panel="Panel",
        worker_parameter="pid",
        session_parameter="sid",
        study_parameter="",
        completion_code="A&B",
        redirect_url="https://panel.example/done?cc={code}&p={worker}&s={session}&t={study}",
    )
    browser = enter(study.token, "?pid=p/9%23x&sid=%7Bcode%7D%26&redirect_url=https://evil.example")
    work(browser)
    page = own_page(browser)
    address = page.context["address"]
    assert address == "https://panel.example/done?cc=A%26B&p=p%2F9%23x&s=%7Bcode%7D%26&t="
    assert page.context["host"] == urlsplit(address).hostname == "panel.example"
    assert f'href="{escape(address)}"' in text_of(page)
    assert "evil.example" not in text_of(page)


def test_a_study_is_of_ones_own_hit_type_with_full_addresses_and_different_parameters(
    hit_type, make_keys
):
    for address in (
        "javascript:alert(1)",
        "//evil.example",
        "https://{worker}.evil.example/",
        "https://{worker}@evil.example/",
    ):
        with refused(exceptions.InvalidParameter, "bad_address"):
            open_panel(hit_type, redirect_url=address)
    make_keys("Other lab")
    other, values = Requester.objects.get(name="Other lab"), StudyValues(name="x", kind="invite")
    with refused(exceptions.InvalidParameter, "not_own_hit_type"):
        open_study(requester=other, hit_type=hit_type, values=values)
    # Else a participant's id would pass for the study's, and be sent on as no secret.
    with refused(exceptions.InvalidParameter, "repeated_parameter"):
        open_panel(hit_type, worker_parameter="PID", study_parameter="pid")


def test_the_completion_page_is_for_those_who_came_to_the_study(lab, ada, worker, hit_type):
    enter(lab.token)
    theirs = Session.objects.get()
    assert ada.get(f"/worker/studies/{theirs.public_id}/").status_code == 410
    assert ada.post(f"/worker/studies/{theirs.public_id}/leave/").status_code == 410
    theirs.refresh_from_db()
    assert theirs.outcome == ""
    assert "ada" in text_of(ada.get(f"/join/{lab.token}/"))
    enter(lab.token, browser=ada)
    assert worker.worker_id not in text_of(ada.get("/worker/", follow=True))
    assert not Session.objects.filter(worker=worker).exists()


@pytest.fixture
def three(mturk):
    return open_panel(create_hits(mturk), name="Three", items_per_session=3)


def test_the_code_comes_with_the_last_item_and_not_before(three):
    browser = came(three, "p1", "x1")
    code = completion_code(three)
    for n in range(3):
        page = own_page(browser)
        assert code not in text_of(page)
        assert (page.context["n_done"], page.context["n_items"]) == (n, 3)
        work(browser)
    # It is complete although the browser may be closed before the way back.
    session = Session.objects.get()
    assert (session.state, session.outcome, session.code) == ("finished", "completed", code)
    response = browser.get(f"/worker/groups/{three.hit_type.public_id}/next/", follow=True)
    assert code in text_of(response)
    assert f"submissions/complete?cc={code}" in text_of(response)


def test_a_reload_brings_the_same_items_and_the_same_code(three):
    first = came(three, "p1", "x1")
    items = list(Assignment.objects.order_by("pk").values_list("public_id", flat=True))
    came(three, "p1", "x1", first)
    again = came(three, "p1", "x1")
    assert list(Assignment.objects.order_by("pk").values_list("public_id", flat=True)) == items
    # A submission belongs to one participant.
    other = Client().post(f"/join/{three.token}/?PROLIFIC_PID=p2&STUDY_ID=S1&SESSION_ID=x1")
    assert other.status_code == 400
    work(again, times=3)
    assert Session.objects.get().code in text_of(own_page(came(three, "p1", "x1")))
    assert Session.objects.count() == 1


@pytest.mark.slow
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
        assert (answer.status_code, answer.templates[0].name) == (403, NOT_YOUR_BROWSER)
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


SAVED = {"draft": "my secret", "progress": "", "revision": 0}


def save_draft(browser, held, **changed):
    address = f"/worker/assignments/{held}/draft/"
    return browser.post(address, SAVED | changed, content_type="application/json").status_code


def read_draft(browser, held):
    return browser.get(f"/worker/assignments/{held}/draft/").json()["draft"]


def test_who_knows_the_ids_in_a_link_sees_no_draft_and_no_worker_id(three):
    mine = came(three, PID, "X1")
    held = held_by(mine)
    assert save_draft(mine, held) == 200
    theirs = came(three, PID, "X1")
    assert read_draft(theirs, held) == ""
    assert save_draft(theirs, held, draft="{}", revision=1) == 403
    assert read_draft(mine, held) == "my secret"
    worker_id = Session.objects.get().worker.worker_id
    assert worker_id in text_of(own_page(mine))
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
        page = text_of(own_page(browser))
        assert ("SECRET99" in page, code in page) == (is_shown, True)


def test_who_begins_a_second_study_in_another_browser_may_stop_it_there(three):
    came(three, "p1", "x1")
    again = came(three, "p1", "x2")
    assert leave(again, Session.objects.get(submission_id="x2")).status_code == 302
    assert Session.objects.get(submission_id="x2").outcome == "no_consent"
    assert leave(again, Session.objects.get(submission_id="x1")).status_code == 403


def test_who_opens_anothers_second_study_first_sees_nothing_once_they_come_themselves(three):
    mine = came(three, "p1", "x1")
    theirs = came(three, "p1", "x2")
    came(three, "p1", "x2", mine)
    session = Session.objects.get(submission_id="x2")
    page = text_of(mine.get(f"/worker/studies/{session.public_id}/"))
    held = re.search("/worker/assignments/([A-Z0-9]+)/", page)[1]
    assert save_draft(mine, held) == 200
    assert read_draft(theirs, held) == ""
    assert save_draft(theirs, held) == 403
    work(mine)
    for browser, status in ((mine, 200), (theirs, 403)):
        assert browser.get(f"/worker/assignments/{held}/submitted/").status_code == status
    assert leave(theirs, session).status_code == 403


def test_who_comes_to_their_second_study_without_its_link_is_known_to_have_come(three):
    mine = came(three, "p1", "x1")
    theirs = came(three, "p1", "x2")
    held = held_by(mine)
    assert mine.get(f"/worker/assignments/{held}/").status_code == 200
    assert save_draft(mine, held) == 200
    assert read_draft(theirs, held) == ""


def test_one_address_lets_in_no_more_participants_than_a_lecture(three, settings):
    limits = settings.ACCOUNT_RATE_LIMITS
    assert limits["arrival"] == "200/m/ip"
    settings.ACCOUNT_RATE_LIMITS = limits | {"arrival": "4/m/ip"}
    link = f"/join/{three.token}/?PROLIFIC_PID=p%s&STUDY_ID=S&SESSION_ID=x%s"
    assert [Client().post(link % (n, n)).status_code for n in range(6)] == [302] * 4 + [429] * 2
    assert Session.objects.count() == 4


def test_what_is_promised_least_is_given_first_and_nothing_twice(three):
    for n in range(2):
        came(three, f"p{n}", f"x{n}")
    counts = Counter(Assignment.objects.values_list("hit_id", flat=True))
    assert sorted(counts.values()) == [1, 1, 2, 2]
    last = came(three, "p2", "x2")  # does what is left, and completes with it
    assert own_page(last).context["n_items"] == 2
    came(three, "p1", "x9")
    late = Session.objects.get(submission_id="x9")
    assert (late.outcome, late.code) == ("no_more_items", completion_code(three, "no_more_items"))
    assert OutcomeCode.objects.filter(study=three).values("code").distinct().count() == 4
    work(last, times=2)
    assert Session.objects.get(submission_id="x2").outcome == "completed"
    assert outcome_of(came(three, "p3", "x3")) == "no_more_items"


def test_participants_see_their_study_only(three, mturk):
    mturk.create_hit(**HIT | {"Title": "Another"})
    browser = came(three, "p1", "x1")
    for path in ("", "dashboard/", "earnings/", "qualifications/", "messages/", "profile/"):
        page = browser.get(f"/worker/{path}", follow=True)
        assert page.redirect_chain[-1][0].startswith("/worker/studies/"), path
        assert "$" not in text_of(page)
        assert "Another" not in text_of(page)
    page = text_of(browser.get(f"/worker/assignments/{Assignment.objects.first().public_id}/"))
    assert "$" not in page
    assert "/return/" not in page
    browser.post(f"/worker/groups/{three.hit_type.public_id}/accept/")
    assert Assignment.objects.count() == 3
    for name in ("", "erase/"):
        page = text_of(browser.get(f"/worker/your-data/{name}"))
        for other in ("/worker/profile/", "/worker/earnings/", 'type="password"', "/payout"):
            assert other not in page


@pytest.mark.parametrize("n_done", [0, 2])
def test_who_stops_is_asked_first_and_has_everything_given_back_and_deleted(three, n_done):
    browser = came(three, "p1", "x1")
    work(browser, times=n_done)
    session = Session.objects.get()
    path = f"/worker/studies/{session.public_id}/leave/"
    assert path in text_of(own_page(browser))
    assert browser.get(path).context["n_done"] == n_done
    session.refresh_from_db()
    assert session.outcome == ""
    browser.post(path)
    session.refresh_from_db()
    assert (session.outcome, session.code) == ("no_consent", completion_code(three, "no_consent"))
    assert not Assignment.objects.exclude(answer="").exists()
    assert set(statuses()) == {"Returned"}
    assert outcome_of(browser) == "no_consent"
    assert browser.get(path).headers["Location"] == f"/worker/studies/{session.public_id}/"


@pytest.mark.parametrize("state", ["approved", "rejected"])
def test_who_is_decided_on_before_the_last_page_is_offered_no_deletion(three, state):
    browser = came(three, "p1", "x1")
    work(browser)
    session = Session.objects.get()
    path = f"/worker/studies/{session.public_id}/leave/"
    assert browser.get(path).context["n_done"] == 1
    follow_decision(session, state)
    for answer in (browser.get(path), browser.post(path)):
        assert answer.headers["Location"] == f"/worker/studies/{session.public_id}/"
    page = own_page(browser)
    assert page.context["session"].state == state
    assert path not in text_of(page)
    assert Assignment.objects.exclude(answer="").count() == 1


def test_the_file_of_participants_tells_no_decision_on_who_stopped_after_it(three, mturk):
    browser = came(three, "p1", "x1")
    work(browser)
    approve_submitted(mturk)
    leave(browser)
    header, values = files.participants_file(three, user=None)
    row = dict(zip(header, values, strict=True))
    assert (row["outcome"], row["n_handed_in"], row["decision"]) == ("no_consent", "0", "")


def test_what_the_ledger_has_paid_stays_of_who_stops(three):
    browser = came(three, "p1", "x1")
    work(browser, times=2)
    decided = Assignment.objects.filter(status="Submitted").order_by("pk")[:1].get()
    Assignment.objects.filter(pk=decided.pk).update(status="Approved", paid_by="ledger")
    path = f"/worker/studies/{Session.objects.get().public_id}/leave/"
    assert browser.get(path).context["n_done"] == 1
    browser.post(path)
    assert Assignment.objects.exclude(answer="").get() == decided


def test_participants_are_shown_the_time_that_their_recruiter_gives(three):
    RecruitedStudy.objects.filter(pk=three.pk).update(maximum_seconds=1020)
    browser = came(three, "p1", "x1")
    session, held = Session.objects.get(), Assignment.objects.order_by("pk").first()
    assert 1000 < own_page(browser).context["seconds_left"] <= 1020
    page = text_of(browser.get(f"/worker/assignments/{held.public_id}/"))
    due = session.expires_at - sessions.GRACE
    assert f'"due": "{due.isoformat()}"' in page
    assert f">{due:%Y-%m-%d %H:%M} UTC</time>" in page
    clock.advance(timedelta(seconds=1021))
    assert own_page(browser).context["seconds_left"] == 0
    work(browser, times=3)
    session.refresh_from_db()
    assert session.outcome == "completed"


@pytest.mark.parametrize("state", ["paused", "stopped"])
def test_who_has_begun_or_finished_comes_back_though_the_study_is_closed(three, state):
    came(three, "p1", "x1")
    work(came(three, "p2", "x2"), times=3)
    RecruitedStudy.objects.filter(pk=three.pk).update(state=state)
    link = f"/join/{three.token}/?PROLIFIC_PID=p1&STUDY_ID=S1&SESSION_ID="
    assert Client().get(f"{link}x1").status_code == 200
    assert own_page(came(three, "p1", "x1")).context["n_items"] == 3
    assert completion_code(three) in text_of(own_page(came(three, "p2", "x2")))
    stranger = link.replace("p1", "p3")
    for closed in (f"{link}x2", f"{link}x9", f"{stranger}x3", f"/join/{three.token}/"):
        assert Client().post(closed).status_code == 410
    assert Session.objects.count() == 2


@pytest.mark.parametrize("discards", [False, True])
def test_on_return_the_study_says_whether_work_is_kept(three, discards):
    RecruitedStudy.objects.filter(pk=three.pk).update(discards_returned=discards)
    work(came(three, "p1", "x1"))
    sessions.return_session(session=Session.objects.get())
    assert Assignment.objects.exclude(answer="").count() == (0 if discards else 1)
    assert Assignment.objects.live().count() == (0 if discards else 1)
    assert Session.objects.get().state == "returned"


@pytest.mark.parametrize("is_returned", [False, True])
def test_late_work_is_kept_and_no_item_over_assigned(three, is_returned):
    browser = came(three, "p1", "x1")
    first, second, _third = held = list(Assignment.objects.order_by("pk"))
    AssignmentDraft.objects.create(assignment=second, content="{}", saved_at=clock.now())
    run_out_of_time(three)
    session = Session.objects.get()
    assert session.state == "timed_out"
    # Others take both places of the first HIT; the second is still free.
    for _ in range(2):
        accept_hit(worker=participants.new_participant("recruiter"), hit=first.hit)
    if is_returned:
        RecruitedStudy.objects.filter(pk=three.pk).update(discards_returned=True)
        submit_page(first.public_id)
        assert (SurplusAnswer.objects.count(), AssignmentDraft.objects.count()) == (1, 1)
        sessions.return_session(session=session)
        assert (SurplusAnswer.objects.count(), AssignmentDraft.objects.count()) == (0, 0)
        return
    for one in held:
        assert submit_page(one.public_id).status_code == 200
    session.refresh_from_db()
    assert (session.state, session.outcome) == ("timed_out", "completed")
    assert session.code in text_of(own_page(browser))
    assert SurplusAnswer.objects.get().assignment == first
    for hit in three.hit_type.hits.all():
        assert Assignment.objects.live().filter(hit=hit).count() <= hit.max_assignments


def test_participants_are_recognised_after_the_keys_were_changed(three, settings):
    connection, stored = three.connection, encrypt("secret-token")
    RecruiterConnection.objects.update(encrypted_token=stored)
    came(three, "p1", "x1")
    call_command("reencrypt_secrets")
    connection.refresh_from_db()
    assert connection.encrypted_token == stored
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode(), *settings.ENCRYPTION_KEYS]
    came(three, "p1", "x2")
    assert Participant.objects.count() == 1
    call_command("reencrypt_secrets")
    settings.ENCRYPTION_KEYS = settings.ENCRYPTION_KEYS[:1]
    came(three, "p1", "x3")
    assert Participant.objects.count() == 1
    connection = RecruiterConnection.objects.get()
    assert decrypt(connection.encrypted_token) == "secret-token"


# Many arrivals at once; with ten thousand: python -m benchmarks.recruited_arrivals


ARRIVALS, THREADS, HITS, MAX_ASSIGNMENTS, ITEMS = 120, 50, 60, 2, 2


@pytest.fixture
def study(transactional_db, make_keys):
    lab = in_process_client(make_keys(deposit="1000"))
    for _ in range(HITS):
        lab.create_hit(**HIT, MaxAssignments=MAX_ASSIGNMENTS)
    hit_type = HitType.objects.get()
    values = StudyValues(name="Many", kind="panel", items_per_session=ITEMS, **PROLIFIC)
    yield open_study(requester=hit_type.requester, hit_type=hit_type, values=values)
    assert_ledger_balances()


@pytest.mark.slow
def test_as_many_arrivals_as_twice_the_places(study):
    def arrive(number):
        query = {"PROLIFIC_PID": f"p{number}", "STUDY_ID": "s", "SESSION_ID": f"x{number}"}
        try:
            return arrivals.enter(arrivals.recognise(study.token, query), known=None).outcome
        finally:
            connection.close()

    with ThreadPoolExecutor(THREADS) as pool:
        outcomes = list(pool.map(arrive, range(ARRIVALS)))
    n_places = HITS * MAX_ASSIGNMENTS // ITEMS
    assert outcomes.count("") == n_places
    assert outcomes.count("no_more_items") == ARRIVALS - n_places
    assert SessionItem.objects.count() == Assignment.objects.count() == HITS * MAX_ASSIGNMENTS
    for session in Session.objects.filter(outcome=""):
        assert session.items.values("assignment__hit").distinct().count() == ITEMS
    assert not Session.objects.exclude(outcome="").filter(code="").exists()
    for hit in Hit.objects.with_counts():
        assert hit.accepted_count == MAX_ASSIGNMENTS


@pytest.mark.slow
def test_one_submission_in_fifty_tabs_is_one_session(study):
    def arrive(_number):
        query = {"PROLIFIC_PID": "p", "STUDY_ID": "s", "SESSION_ID": "x"}
        try:
            return arrivals.enter(arrivals.recognise(study.token, query), known=None).pk
        finally:
            connection.close()

    with ThreadPoolExecutor(THREADS) as pool:
        assert len(set(pool.map(arrive, range(THREADS)))) == 1
    assert Assignment.objects.count() == ITEMS
