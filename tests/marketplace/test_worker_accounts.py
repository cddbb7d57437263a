"""Signing in, the profile, earnings and messages."""

from datetime import timedelta

import pytest
from django.test import Client

from marketplace import clock
from marketplace.hits.assignments import accept_hit
from marketplace.models import WorkerMessage
from tests.codes import field_codes
from tests.marketplace.conftest import HIT, PASSWORD, submit
from tests.marketplace.test_finding_work import unmet
from tests.marketplace.test_worker_site import text_of


def sign_up(**fields):
    values = {"password1": PASSWORD, "password2": PASSWORD} | fields
    return Client().post("/worker/signup/", values)


def test_signing_up_leads_where_the_link_did(db):
    page = text_of(Client().get("/worker/signup/?next=/mturk/preview?groupId=G1"))
    assert 'name="next" value="/mturk/preview?groupId=G1"' in page
    response = sign_up(username="ada", next="/worker/profile/")
    assert response.headers["Location"] == "/worker/profile/"


@pytest.mark.parametrize("name", ["", "ADA", "no spaces"])
def test_a_name_that_is_taken_or_not_valid_is_refused_at_its_field(worker, name):
    response = sign_up(username=name)
    assert list(response.context["form"].errors) == ["username"]


@pytest.mark.parametrize(
    "elsewhere",
    ["https://evil.example/", "//evil.example", "javascript:alert(1)", "/\\evil.example"],
)
def test_signing_up_and_in_lead_nowhere_else(worker, elsewhere):
    response = sign_up(username="ben", next=elsewhere)
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
    german = "ASSAYLANGUAGEDEU"
    requirement = {"QualificationTypeId": german, "Comparator": "Exists"}
    mturk.create_hit(**HIT, QualificationRequirements=[requirement])
    described = mturk.get_qualification_type(QualificationTypeId=german)["QualificationType"]
    (reason,) = unmet(ada)
    assert (reason.code, reason.is_undeclared) == ("not_held", True)
    assert described["Name"] in reason.reason
    wrong = ada.post("/worker/profile/", {"language_names": "Klingonese"})
    assert field_codes(wrong.context["form"]) == {"language_names": ["unknown_language"]}
    assert "Klingonese" in str(wrong.context["form"].errors)
    ada.post("/worker/profile/", {"language_names": "german, EN; Swiss German"})
    worker.refresh_from_db()
    assert worker.languages == ["de", "en", "gsw"]
    form = ada.get("/worker/profile/").context["form"]
    assert form["language_names"].initial == "German, English, Swiss German"
    counted = dict(ada.get("/worker/qualifications/").context["computed"])
    assert len([name for name in counted if name.startswith("Worker_Language")]) == 3
    assert described["Name"] in counted
    assert unmet(ada) == []


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
    mturk.approve_assignment(AssignmentId=first)
    mturk.send_bonus(
        WorkerId=worker.worker_id, BonusAmount="1.50", AssignmentId=second, Reason="Well seen"
    )
    page = ada.get("/worker/earnings/")
    for name, value in {
        "balance_usd": "2.13",
        "pending_usd": "0.63",
        "payment_usd": "0.63",
        "bonus_usd": "1.50",
        "paid_out_usd": "0.00",
    }.items():
        assert f"{page.context[name]:.2f}" == value
        assert f">${value}<" in text_of(page)
    assert "Well seen" in text_of(page)


def test_a_workers_record_is_nobody_elses(mturk, ada, worker, make_worker, browser_of):
    assignment = submit(worker, mturk.create_hit(**HIT)["HIT"]["HITId"], reason="My own words")
    mturk.approve_assignment(AssignmentId=assignment, RequesterFeedback="Well done")
    mturk.notify_workers(Subject="Hello", MessageText="Just you", WorkerIds=[worker.worker_id])
    eve = browser_of(make_worker("eve"))
    for path in ("dashboard", "earnings", "messages", "qualifications", "profile"):
        page = text_of(eve.get(f"/worker/{path}/"))
        for secret in (HIT["Title"], "My own words", "Well done", "Just you", worker.worker_id):
            assert secret not in page


def test_the_dashboard_leads_to_an_accepted_hit_first(ada, worker, hit):
    assignment = accept_hit(worker=worker, hit=hit)
    clock.advance(timedelta(minutes=1))
    for path in ("/worker/dashboard/", "/worker/"):
        page = ada.get(path)
        [(held, seconds)] = page.context["held"]
        assert held == assignment
        assert 18 * 60 <= seconds < 20 * 60
        assert f'href="/worker/assignments/{assignment.public_id}/"' in text_of(page)


def test_the_dashboard_counts_days_and_can_be_narrowed(mturk, ada, worker):
    submit(worker, mturk.create_hit(**HIT | {"Title": "Yesterday"})["HIT"]["HITId"])
    clock.advance(timedelta(days=1))
    second = submit(worker, mturk.create_hit(**HIT | {"Title": "Today"})["HIT"]["HITId"])
    mturk.approve_assignment(AssignmentId=second)
    page = ada.get("/worker/dashboard/")
    today = clock.now().date()
    assert [(row["day"], row["approved"]) for row in page.context["days"]] == [
        (today, 1),
        (today - timedelta(days=1), 0),
    ]
    for status, titles in (("Approved", ["Today"]), ("Rejected", [])):
        page = ada.get("/worker/dashboard/", {"status": status})
        assert [one.hit.hit_type.title for one in page.context["page"]] == titles


def test_messages_are_new_until_they_are_read(mturk, ada, worker):
    mturk.approve_assignment(AssignmentId=submit(worker, mturk.create_hit(**HIT)["HIT"]["HITId"]))
    mturk.notify_workers(
        Subject="More work", MessageText="<b>Tomorrow</b>\nat nine", WorkerIds=[worker.worker_id]
    )
    tag = '<span class="tag">'
    assert tag in text_of(ada.get("/worker/"))
    page = text_of(ada.get("/worker/messages/"))
    assert "More work" in page
    assert "&lt;b&gt;Tomorrow&lt;/b&gt;" in page
    ada.post("/worker/messages/read/")
    assert WorkerMessage.objects.get().read_at is not None
    assert tag not in text_of(ada.get("/worker/"))
