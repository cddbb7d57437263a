"""Signing in, the profile, earnings and messages."""

import re
from datetime import timedelta

import pytest
from django.test import Client

from marketplace import clock
from marketplace.hits.assignments import accept_hit
from marketplace.models import Hit, WorkerMessage
from tests.marketplace.conftest import HIT, PASSWORD, submit
from tests.marketplace.test_worker_site import text_of


def test_signing_up_leads_where_the_link_did(db):
    passwords = {"password1": PASSWORD, "password2": PASSWORD}
    page = text_of(Client().get("/worker/signup/?next=/mturk/preview?groupId=G1"))
    assert 'name="next" value="/mturk/preview?groupId=G1"' in page
    response = Client().post(
        "/worker/signup/", {"username": "ada", "next": "/worker/profile/"} | passwords
    )
    assert response.headers["Location"] == "/worker/profile/"


@pytest.mark.parametrize("name", ["", "ADA", "no spaces"])
def test_a_name_that_is_taken_or_not_valid_is_refused_at_its_field(worker, name):
    passwords = {"password1": PASSWORD, "password2": PASSWORD}
    response = Client().post("/worker/signup/", {"username": name} | passwords)
    assert list(response.context["form"].errors) == ["username"]


@pytest.mark.parametrize(
    "elsewhere",
    ["https://evil.example/", "//evil.example", "javascript:alert(1)", "/\\evil.example"],
)
def test_signing_up_and_in_lead_nowhere_else(worker, elsewhere):
    passwords = {"password1": PASSWORD, "password2": PASSWORD}
    response = Client().post("/worker/signup/", {"username": "ben", "next": elsewhere} | passwords)
    assert response.headers["Location"] == "/worker/"
    response = Client().post(
        "/worker/login/", {"username": "ada", "password": PASSWORD, "next": elsewhere}
    )
    assert response.headers["Location"] == "/worker/"


def test_a_profile_is_kept(ada, worker):
    fields = {"country": "CA", "subdivision": "ON", "is_adult": "on"}
    assert ada.post("/worker/profile/", fields).status_code == 302
    worker.refresh_from_db()
    assert (worker.country, worker.subdivision) == ("CA", "ON")
    first = worker.adult_confirmed_at
    clock.advance(timedelta(days=1))
    ada.post("/worker/profile/", fields)
    worker.refresh_from_db()
    assert worker.adult_confirmed_at == first
    assert 'value="CA" selected' in text_of(ada.get("/worker/profile/"))
    ada.post("/worker/profile/", {"country": ""})
    worker.refresh_from_db()
    # The country is stated once; the rest can be taken back.
    assert (worker.country, worker.adult_confirmed_at) == ("CA", None)


def test_languages_are_given_by_name_or_code_and_shown_with_the_qualifications(mturk, ada, worker):
    requirement = {"QualificationTypeId": "ASSAYLANGUAGEDEU", "Comparator": "Exists"}
    mturk.create_hit(**HIT, QualificationRequirements=[requirement])
    said = mturk.get_qualification_type(QualificationTypeId="ASSAYLANGUAGEDEU")
    assert said["QualificationType"]["Name"] == "Worker_Language German"
    page = text_of(ada.get("/worker/"))
    assert "have the qualification “Worker_Language German”." in page
    assert "Tell it in your profile" in page
    wrong = ada.post("/worker/profile/", {"language_names": "Klingonese"})
    assert "“Klingonese” is not a language" in text_of(wrong)
    ada.post("/worker/profile/", {"language_names": "german, EN; Swiss German"})
    worker.refresh_from_db()
    assert worker.languages == ["de", "en", "gsw"]
    assert "German, English, Swiss German" in text_of(ada.get("/worker/profile/"))
    assert "Worker_Language Swiss German" in text_of(ada.get("/worker/qualifications/"))
    assert "Worker_Language" not in text_of(ada.get("/worker/"))


@pytest.mark.parametrize(
    "wrong",
    [
        {"country": "XX"},
        {"country": "UK"},
        {"country": "CA", "subdivision": "<b>"},
        {"country": "CA", "subdivision": "TX"},
        {"country": "", "subdivision": "TX"},
        {"country": "Canada"},
    ],
)
def test_a_profile_is_checked(ada, worker, wrong):
    assert ada.post("/worker/profile/", wrong).status_code == 200
    worker.refresh_from_db()
    assert worker.country == ""


def test_earnings_are_the_ledgers(mturk, ada, worker):
    first, second = (submit(worker, mturk.create_hit(**HIT)["HIT"]["HITId"]) for _ in range(2))
    assert "Rewards appear here" in text_of(ada.get("/worker/earnings/"))
    mturk.approve_assignment(AssignmentId=first)
    mturk.send_bonus(
        WorkerId=worker.worker_id,
        BonusAmount="1.50",
        AssignmentId=second,
        Reason="A very good remark.",
    )
    page = text_of(ada.get("/worker/earnings/"))
    for label, value in {
        "To be paid out": "2.13",
        "Waiting for review": "0.63",
        "Rewards, all time": "0.63",
        "Bonuses, all time": "1.50",
        "Paid out": "0.00",
    }.items():
        assert f'{label}</dt><dd class="value">${value}</dd>' in page
    assert "“A very good remark.”" in page


def test_a_workers_record_is_nobody_elses(mturk, ada, worker, make_worker, browser_of):
    assignment = submit(worker, mturk.create_hit(**HIT)["HIT"]["HITId"], reason="My own words")
    mturk.approve_assignment(AssignmentId=assignment, RequesterFeedback="Well done")
    mturk.notify_workers(Subject="Hello", MessageText="Just you", WorkerIds=[worker.worker_id])
    eve = browser_of(make_worker("eve"))
    for path in ("dashboard", "earnings", "messages", "qualifications", "profile"):
        page = text_of(eve.get(f"/worker/{path}/"))
        for secret in ("Rate eight", "My own words", "Well done", "Just you", worker.worker_id):
            assert secret not in page


def test_the_dashboard_leads_to_an_accepted_hit_first(mturk, ada, worker):
    assert "Find a HIT to start with" in text_of(ada.get("/worker/dashboard/"))
    hit = Hit.objects.get(public_id=mturk.create_hit(**HIT)["HIT"]["HITId"])
    assignment = accept_hit(worker=worker, hit=hit)
    clock.advance(timedelta(minutes=1))
    for path in ("/worker/dashboard/", "/worker/"):
        page = text_of(ada.get(path))
        assert "You are working on" in page
        assert f'href="/worker/assignments/{assignment.public_id}/"' in page
        assert "Find a HIT to start with" not in page
        assert re.search("1[89] min( [0-9]+ s)? left, until", page)


def test_the_dashboard_counts_days_and_can_be_narrowed(mturk, ada, worker):
    submit(worker, mturk.create_hit(**HIT | {"Title": "Yesterday"})["HIT"]["HITId"])
    clock.advance(timedelta(days=1))
    second = submit(worker, mturk.create_hit(**HIT | {"Title": "Today"})["HIT"]["HITId"])
    mturk.approve_assignment(AssignmentId=second)
    page = text_of(ada.get("/worker/dashboard/"))
    assert clock.now().strftime("%Y-%m-%d") in page
    assert (clock.now() - timedelta(days=1)).strftime("%Y-%m-%d") in page
    narrow = text_of(ada.get("/worker/dashboard/", {"status": "Approved"}))
    assert "Today" in narrow
    assert "Yesterday" not in narrow
    none = text_of(ada.get("/worker/dashboard/", {"status": "Rejected"}))
    assert "Today" not in none
    assert "Yesterday" not in none


def test_messages_are_new_until_they_are_read(mturk, ada, worker):
    mturk.approve_assignment(AssignmentId=submit(worker, mturk.create_hit(**HIT)["HIT"]["HITId"]))
    mturk.notify_workers(
        Subject="More work", MessageText="<b>Tomorrow</b>\nat nine", WorkerIds=[worker.worker_id]
    )
    assert "1 new" in text_of(ada.get("/worker/"))
    page = text_of(ada.get("/worker/messages/"))
    assert "More work" in page
    assert "&lt;b&gt;Tomorrow&lt;/b&gt;" in page
    ada.post("/worker/messages/read/")
    assert WorkerMessage.objects.get().read_at is not None
    assert "1 new" not in text_of(ada.get("/worker/"))
