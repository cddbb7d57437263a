"""Workers' accounts: sign-in, profile, earnings, how they are paid, and messages."""

import csv
import io
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from allauth.account.models import EmailAddress
from django.core import mail
from django.test import Client

from accounts.models import User
from marketplace import clock
from marketplace.exceptions import InvalidParameter
from marketplace.hits.review import Bonus, answer_appeal, appeal, reject_assignment, send_bonus
from marketplace.models import Assignment, BonusPayment, PayoutBatch, PayoutMethod, WorkerMessage
from marketplace.money import transfers
from marketplace.money.transfers import next_payout_date
from marketplace.notifications.delivery import send_due_mail
from marketplace.people.personal_data import export
from tests.codes import field_codes
from tests.marketplace.conftest import HIT, PASSWORD, submit
from tests.marketplace.test_finding_work import unmet
from tests.marketplace.test_worker_site import text_of


def sign_up(**fields):
    return Client().post("/worker/signup/", {"password1": PASSWORD, "password2": PASSWORD} | fields)


def test_signing_up_leads_where_the_link_did(db):
    page = text_of(Client().get("/worker/signup/?next=/mturk/preview?groupId=G1"))
    assert 'name="next" value="/mturk/preview?groupId=G1"' in page
    response = sign_up(username="ada", next="/worker/profile/")
    assert response.headers["Location"] == "/worker/profile/"


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


def test_a_profile_is_checked(ada, worker):
    for wrong in (
        {"country": "XX"},
        {"country": "UK"},
        {"country": "CA", "subdivision": "<b>"},
        {"country": "CA", "subdivision": "TX"},
        {"country": "", "subdivision": "TX"},
        {"country": "Canada"},
    ):
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


def check_messages(*expected):
    written = WorkerMessage.objects.order_by("pk").values_list("subject", "text")
    for message, parts in zip(written, expected, strict=True):
        for text, needed in zip(message, parts, strict=True):
            assert [part for part in needed if part not in text] == []


def test_each_decision_is_one_message_that_says_what_and_why(mturk, ada, worker):
    rejected = submit(worker, mturk.create_hit(**HIT)["HIT"]["HITId"])
    mturk.reject_assignment(AssignmentId=rejected, RequesterFeedback="Half is missing.")
    bonus = {"WorkerId": worker.worker_id, "AssignmentId": rejected, "BonusAmount": "1.50"}
    bonus |= {"Reason": "For your time.", "UniqueRequestToken": "once"}
    mturk.send_bonus(**bonus)
    for _ in range(2):
        mturk.create_worker_block(WorkerId=worker.worker_id, Reason="Secret note")
    for call, wrong in (
        (mturk.send_bonus, bonus),
        (mturk.reject_assignment, {"AssignmentId": rejected, "RequesterFeedback": "Again"}),
    ):
        with pytest.raises(mturk.exceptions.RequestError):
            call(**wrong)
    hit_id = Assignment.objects.get().hit.public_id
    check_messages(
        ([HIT["Title"]], [hit_id, "$0.63", "Half is missing."]),
        (["$1.50", HIT["Title"]], [hit_id, "$1.50", "For your time."]),
        (["Dialogue lab"], []),
    )
    page = text_of(ada.get("/worker/messages/"))
    assert "Half is missing." in page
    assert "Secret note" not in page


def test_an_answered_appeal_and_an_override_are_one_message_each(mturk, requester, worker):
    work = submit(worker, mturk.create_hit(**HIT)["HIT"]["HITId"])
    mturk.reject_assignment(AssignmentId=work, RequesterFeedback="Half is missing.")
    appeal(worker=worker, assignment=Assignment.objects.get(), reason="It is all there.")
    for _ in range(2):
        answer_appeal(requester=requester, assignment_id=work, answer="We looked again.")
    with pytest.raises(InvalidParameter):
        answer_appeal(requester=requester, assignment_id=work, answer="No.")
    override = {"AssignmentId": work, "OverrideRejection": True, "RequesterFeedback": "Thanks."}
    mturk.approve_assignment(**override)
    with pytest.raises(mturk.exceptions.RequestError):
        mturk.approve_assignment(**override)
    title = [HIT["Title"]]
    check_messages((title, []), (title, ["We looked again."]), (title, ["$0.63", "Thanks."]))


def test_a_decision_whose_message_cannot_be_written_does_not_stand(
    mturk, requester, worker, monkeypatch
):
    work = submit(worker, mturk.create_hit(**HIT)["HIT"]["HITId"])

    def fail(*args, **kwargs):
        raise RuntimeError

    monkeypatch.setattr("marketplace.people.messages.WorkerMessage.objects.create", fail)
    with pytest.raises(RuntimeError):
        send_bonus(
            requester=requester,
            bonus=Bonus(work, worker.worker_id, Decimal("1.50"), "For your time.", None),
        )
    with pytest.raises(RuntimeError):
        reject_assignment(requester=requester, public_id=work, feedback="Half is missing.")
    assert not BonusPayment.objects.exists()
    assert Assignment.objects.get().status == "Submitted"


def test_messages_go_to_the_confirmed_address_once(mturk, worker, settings, monkeypatch):
    settings.SENDS_MAIL = True
    address = EmailAddress.objects.create(user=worker.user, email="ada@post.example", primary=True)
    rejected = [submit(worker, mturk.create_hit(**HIT)["HIT"]["HITId"]) for _ in range(2)]
    mturk.reject_assignment(AssignmentId=rejected[0], RequesterFeedback="Too early.")
    EmailAddress.objects.filter(pk=address.pk).update(verified=True)
    mturk.reject_assignment(AssignmentId=rejected[1], RequesterFeedback="Half is missing.")

    def unreachable(*args, **kwargs):
        raise ConnectionRefusedError

    with monkeypatch.context() as patch:
        patch.setattr("marketplace.notifications.delivery.send_mail", unreachable)
        assert send_due_mail(clock.now()) == 0
    assert send_due_mail(clock.now()) == 0  # not due again yet
    clock.advance(timedelta(minutes=1))
    assert [send_due_mail(clock.now()), send_due_mail(clock.now())] == [1, 0]
    (sent,) = mail.outbox
    assert sent.to == ["ada@post.example"]
    assert "Half is missing." in sent.body
    assert f"{settings.SITE_URL}/worker/messages/" in sent.body


IBAN = "CH93 0076 2011 6238 5295 7"


def n_without_method(client):
    page = client.get("/marketplace-operator/payouts/")
    return [batch.without_method_count for batch in page.context["page"]]


def test_a_worker_says_how_to_be_paid_and_the_batch_has_it(mturk, ada, worker, client, settings):
    settings.MARKETPLACE_PAYOUT_DAY = 15
    values = {"method": "Bank transfer", "details": IBAN}
    for wrong in ({"proof": "guessed"}, {"proof": PASSWORD, "method": "Cash"}):
        ada.post("/worker/payout/", values | wrong)
        assert not PayoutMethod.objects.exists()
    mturk.approve_assignment(AssignmentId=submit(worker, mturk.create_hit(**HIT)["HIT"]["HITId"]))
    batch = transfers.make_batch()
    client.force_login(User.objects.create_user("olga", password=PASSWORD, is_staff=True))
    assert n_without_method(client) == [1]

    page = text_of(ada.post("/worker/payout/", values | {"proof": PASSWORD}, follow=True))
    for part in ("95 7", "$0.63", "-15"):
        assert part in page
    assert IBAN not in page
    assert IBAN not in PayoutMethod.objects.get().encrypted_details
    assert export(worker)["data"]["PayoutMethod"][0]["encrypted_details"] == IBAN
    assert n_without_method(client) == [0]
    answer = client.post(f"/marketplace-operator/payouts/{batch.pk}/export/")
    (row,) = csv.DictReader(io.StringIO(answer.content.decode()))
    assert (row["method"], row["details"]) == ("Bank transfer", IBAN)

    ada.post("/worker/payout/", values | {"proof": PASSWORD, "details": "=1+1"})
    User.objects.filter(pk=worker.user.pk).update(username="+E2")  # the amount's cell
    assert "'+E2" in list(transfers.export([batch]))[1]
    assert list(transfers.export([batch]))[1][-1] == "'=1+1"
    transfers.mark_paid(PayoutBatch.objects.get().payouts.all())
    assert list(transfers.export([batch]))[1][-2:] == ("", "")


@pytest.mark.parametrize(
    ("today", "day", "expected"),
    [
        ((2026, 1, 10), 15, date(2026, 1, 15)),
        ((2026, 1, 15), 15, date(2026, 1, 15)),
        ((2026, 12, 16), 15, date(2027, 1, 15)),
        ((2026, 2, 28), 1, date(2026, 3, 1)),
        ((2026, 1, 10), 0, None),
    ],
)
def test_the_next_date_follows_from_the_day(settings, today, day, expected):
    settings.MARKETPLACE_PAYOUT_DAY = day
    assert next_payout_date(datetime(*today, tzinfo=UTC)) == expected
