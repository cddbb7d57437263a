"""Workers' accounts: sign-in, profile, earnings, how they are paid, messages, and what the
marketplace knows of workers and workers of requesters. And what is kept about workers: each table
is decided on, exported, explained, and erased in time."""

import csv
import io
import json
import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from cryptography.fernet import Fernet
from django.apps import apps
from django.core import mail
from django.core.management import call_command
from django.core.serializers.json import DjangoJSONEncoder
from django.test import Client
from django.utils import timezone

from accounts.models import User
from config import jobs
from marketplace import clock, exceptions, models, money
from marketplace.documents.questions import Question
from marketplace.hits import same_person, wages
from marketplace.hits.assignments import accept_hit, submit_assignment
from marketplace.hits.review import Bonus, answer_appeal, appeal, reject_assignment, send_bonus
from marketplace.money.transfers import choose_method, next_payout_date
from marketplace.notifications.delivery import send_due_mail
from marketplace.people.erasure import erase_worker
from marketplace.people.personal_data import TABLES, export
from marketplace.qualifications.eligibility import qualifies
from marketplace.recruiting.studies import PROLIFIC, StudyValues, open_study
from marketplace.templatetags.marketplace_tags import duration
from tests.codes import codes_of, codes_on, field_codes, refused
from tests.marketplace.conformance.refusals import turk_code
from tests.marketplace.conftest import ESTIMATED_QUESTION, HIT, PASSWORD, run, submit
from tests.marketplace.prolific import came
from tests.marketplace.test_worker_site import text_of, unmet
from work.registry import job_kind


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
def test_signing_up_leads_nowhere_else(db, elsewhere):
    response = sign_up(username="ben", next=elsewhere)
    assert response.headers["Location"] == "/worker/"


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


def test_a_profile_is_checked_and_kept(ada, worker):
    for wrong in (
        {"country": "XX"},
        {"country": "CA", "subdivision": "<b>"},
        {"country": "CA", "subdivision": "TX"},
        {"country": "", "subdivision": "TX"},
    ):
        assert ada.post("/worker/profile/", wrong).status_code == 200
        worker.refresh_from_db()
        assert worker.country == ""
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
    assert models.WorkerMessage.objects.get().read_at is not None
    assert tag not in text_of(ada.get("/worker/"))


def check_messages(*expected):
    written = models.WorkerMessage.objects.order_by("pk").values_list("subject", "text")
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
    hit_id = models.Assignment.objects.get().hit.public_id
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
    appeal(worker=worker, assignment=models.Assignment.objects.get(), reason="It is all there.")
    for _ in range(2):
        answer_appeal(requester=requester, assignment_id=work, answer="We looked again.")
    with pytest.raises(exceptions.InvalidParameter):
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
    assert not models.BonusPayment.objects.exists()
    assert models.Assignment.objects.get().status == "Submitted"


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
        assert not models.PayoutMethod.objects.exists()
    mturk.approve_assignment(AssignmentId=submit(worker, mturk.create_hit(**HIT)["HIT"]["HITId"]))
    batch = money.transfers.make_batch()
    client.force_login(User.objects.create_user("olga", password=PASSWORD, is_staff=True))
    assert n_without_method(client) == [1]

    page = text_of(ada.post("/worker/payout/", values | {"proof": PASSWORD}, follow=True))
    for part in ("95 7", "$0.63", "-15"):
        assert part in page
    assert IBAN not in page
    assert IBAN not in models.PayoutMethod.objects.get().encrypted_details
    assert export(worker)["data"]["PayoutMethod"][0]["encrypted_details"] == IBAN
    assert n_without_method(client) == [0]
    answer = client.post(f"/marketplace-operator/payouts/{batch.pk}/export/")
    (row,) = csv.DictReader(io.StringIO(answer.content.decode()))
    assert (row["method"], row["details"]) == ("Bank transfer", IBAN)

    ada.post("/worker/payout/", values | {"proof": PASSWORD, "details": "=1+1"})
    User.objects.filter(pk=worker.user.pk).update(username="+E2")  # the amount's cell
    assert "'+E2" in list(money.transfers.export([batch]))[1]
    assert list(money.transfers.export([batch]))[1][-1] == "'=1+1"
    money.transfers.mark_paid(models.PayoutBatch.objects.get().payouts.all())
    assert list(money.transfers.export([batch]))[1][-2:] == ("", "")


@pytest.mark.parametrize(
    ("today", "day", "expected"),
    [
        ((2026, 1, 10), 15, date(2026, 1, 15)),
        ((2026, 1, 15), 15, date(2026, 1, 15)),
        ((2026, 12, 16), 15, date(2027, 1, 15)),
        ((2026, 1, 10), 0, None),
    ],
)
def test_the_next_date_follows_from_the_day(settings, today, day, expected):
    settings.MARKETPLACE_PAYOUT_DAY = day
    assert next_payout_date(datetime(*today, tzinfo=UTC)) == expected


PROFILE = "/worker/profile/"
LONG = "It answers the question, and says in the end what the person asked for in the beginning."


def test_a_country_is_stated_once_with_what_the_network_said(ada, worker, settings):
    settings.MARKETPLACE_COUNTRY_HEADER = "CF-IPCountry"
    page = ada.post(PROFILE, {"country": "DE", "is_adult": "on"}, headers={"CF-IPCountry": "fr"})
    assert page.status_code == 302
    ada.post(PROFILE, {"country": "US", "subdivision": "CA", "is_adult": "on"})
    worker.refresh_from_db()
    assert (worker.country, worker.subdivision) == ("DE", "")
    statement = models.LocationStatement.objects.get()
    assert (statement.country, statement.network_country) == ("DE", "FR")
    assert (statement.source, statement.worker) == ("worker", worker)
    assert ada.get(PROFILE).context["form"].fields["country"].disabled


@pytest.mark.parametrize(
    ("name", "said"), [*(("CF-IPCountry", said) for said in ("", "XXX", "1A", "ß")), ("", "FR")]
)
def test_what_no_named_header_says_is_no_evidence(ada, settings, name, said):
    settings.MARKETPLACE_COUNTRY_HEADER = name
    ada.post(PROFILE, {"country": "DE"}, headers={"CF-IPCountry": said.encode().decode("latin-1")})
    assert models.LocationStatement.objects.get().network_country == ""


def test_an_operator_corrects_a_country_and_the_reason_is_kept(ada, worker):
    ada.post(PROFILE, {"country": "DE"})
    with pytest.raises(exceptions.InvalidParameter):
        call_command("correct_worker_country", worker.worker_id, "UK", "--reason", "Passport")
    call_command("correct_worker_country", worker.worker_id, "GB", "--reason", "Passport seen")
    worker.refresh_from_db()
    assert worker.country == "GB"
    first, second = models.LocationStatement.objects.order_by("pk")
    assert (first.country, second.country, second.source) == ("DE", "GB", "operator")
    assert second.reason == "Passport seen"
    assert models.AuditEntry.objects.filter(action="worker.correct_location").exists()
    erase_worker(worker)
    assert not models.LocationStatement.objects.exists()


def test_who_has_confirmed_no_address_accepts_nothing_where_that_is_asked_for(
    mturk, worker, settings
):
    hit = models.Hit.objects.get(public_id=mturk.create_hit(**HIT)["HIT"]["HITId"])
    assert qualifies(worker, hit.hit_type) == ()
    settings.MARKETPLACE_CONFIRMED_MAIL = True
    with refused(exceptions.NotQualified, "unconfirmed_address"):
        accept_hit(worker=worker, hit=hit)
    address = EmailAddress.objects.create(
        user=worker.user, email="a@example.org", primary=True, verified=False
    )
    assert len(qualifies(worker, hit.hit_type)) == 1
    address.verified = True
    address.save()
    assert accept_hit(worker=worker, hit=hit).worker == worker


def test_participants_need_no_address(mturk, requester, settings):
    settings.MARKETPLACE_CONFIRMED_MAIL = True
    hit_type = models.HitType.objects.get(public_id=mturk.create_hit(**HIT)["HIT"]["HITTypeId"])
    values = StudyValues(name="Panel", kind="panel", **PROLIFIC)
    came(open_study(requester=requester, hit_type=hit_type, values=values), "p1", "x1")
    assert models.Assignment.objects.filter(status=models.Assignment.Status.ACCEPTED).count() == 1


@pytest.fixture
def three(mturk, make_worker):
    hit = mturk.create_hit(**HIT | {"RequesterAnnotation": "a:1"}, MaxAssignments=3)["HIT"]
    workers = [make_worker(name) for name in ("ann", "bob", "cleo")]
    texts = (LONG, LONG.upper().replace(" ", "  "), LONG.replace("person", "woman"))
    for worker, text in zip(workers, texts, strict=True):
        answer = json.dumps({"judgments": [{"value": 3}], "justification": text})
        submit(worker, hit["HITId"], answer=answer)
    return workers


def found(requester, trait):
    rows = same_person.shared_traits(requester, "a:")
    return {row["worker_id"]: row["others"] for row in rows if row["trait"] == trait}


def test_the_same_text_and_device_of_two_are_found_and_not_what_everybody_wrote(
    requester, three, mturk, make_worker
):
    ann, bob, _cleo = (each.worker_id for each in three)
    assert found(requester, "texts") == {ann: [bob], bob: [ann]}
    assert found(requester, "device") == found(requester, "payout") == {}
    for worker in three[:2]:
        same_person.note_device(
            models.Assignment.objects.get(worker=worker), address="192.0.2.1", browser="Firefox"
        )
    assert found(requester, "device") == {ann: [bob], bob: [ann]}
    models.Assignment.objects.update(answer="<a><b")  # no document
    assert found(requester, "texts") == {}
    hit = mturk.create_hit(**HIT | {"RequesterAnnotation": "a:1"}, MaxAssignments=6)["HIT"]
    for number in range(6):
        submit(make_worker(f"w{number}"), hit["HITId"], answer=LONG)
    assert found(requester, "texts") == {}


def test_the_same_payout_is_found_however_it_is_written(requester, three, make_worker, settings):
    ann, bob, cleo = three
    choose_method(worker=ann, method="Bank transfer", details="Ann, DE89 3704 0044 0532 0130 00")
    choose_method(worker=cleo, method="Bank transfer", details="ann de89370400440532013000")
    choose_method(worker=bob, method="Bank transfer", details="Bob, DE02 1203 0000 0000 2020 51")
    stranger = make_worker("stranger")
    choose_method(worker=stranger, method="Gift card", details="Bob, DE02120300000000202051")
    pair = {ann.worker_id: [cleo.worker_id], cleo.worker_id: [ann.worker_id]}
    assert found(requester, "payout") == pair
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode(), *settings.ENCRYPTION_KEYS]
    call_command("reencrypt_secrets")
    assert found(requester, "payout") == pair
    assert "DE89" not in str(list(models.PayoutMethod.objects.values()))


def decide(mturk, requester, make_worker, n):
    hit = mturk.create_hit(**HIT, MaxAssignments=n)["HIT"]
    for number in range(n):
        submit(make_worker(f"w{number}"), hit["HITId"])
    for number, made in enumerate(models.Assignment.objects.order_by("pk")):
        made.accepted_at = made.submitted_at - timedelta(seconds=90)
        made.save()
        if number:
            mturk.approve_assignment(AssignmentId=made.public_id)
        else:
            mturk.reject_assignment(AssignmentId=made.public_id, RequesterFeedback="No.")
    for made in models.Assignment.objects.all():
        made.submitted_at -= timedelta(hours=2)
        made.accepted_at -= timedelta(hours=2)
        made.save()


def test_fewer_than_ten_workers_make_no_record(mturk, requester, make_worker):
    decide(mturk, requester, make_worker, 9)
    assert wages.requester_record(requester) is None


def test_ten_workers_make_a_record(mturk, requester, make_worker, browser_of):
    decide(mturk, requester, make_worker, 10)
    record = wages.requester_record(requester)
    assert (record["percent_approved"], record["n_decided"], record["n_workers"]) == (90, 10, 10)
    assert 7200 <= record["median_review_seconds"] < 7260
    assert str(record["usd_per_hour"]) == "25.20"  # 0.63 for 90 seconds
    other = mturk.create_hit(**HIT | {"Title": "Another"})["HIT"]
    page = browser_of(make_worker("visitor")).get(f"/worker/hits/{other['HITId']}/")
    assert page.context["record"] == record
    assert "$25.20" in text_of(page)


def work_for(worker, hit, seconds):
    assignment = accept_hit(worker=worker, hit=hit)
    clock.advance(timedelta(seconds=seconds))
    submit_assignment(public_id=assignment.public_id, fields=[("rating", ["4"])])


def shown_wages(browser):
    return [wage for _, _, wage in browser.get("/worker/").context["rows"]]


def test_pay_per_hour_is_the_reward_over_the_median_time_of_at_least_ten_workers(
    mturk, ada, make_worker, monkeypatch, django_assert_num_queries
):
    monkeypatch.setattr(wages, "KEPT_FROM", 10)
    mturk.create_hit(**HIT, MaxAssignments=12)
    hit = models.Hit.objects.get()
    for number, seconds in enumerate([60, 90, 100, 110, 120, 120, 130, 140, 900]):
        work_for(make_worker(f"w{number}"), hit, seconds)
    assert wages.wages_by_type(models.HitType.objects.all()) == {}
    assert shown_wages(ada) == [None]
    work_for(make_worker("tenth"), hit, 120)
    groups = list(models.HitType.objects.all())
    (wage,) = wages.wages_by_type(groups).values()
    assert (wage.seconds, wage.n_workers) == (120, 10)
    assert wage.usd_per_hour == Decimal("18.90")  # $0.63 for two minutes
    with django_assert_num_queries(0):  # much work is looked for once a minute
        assert list(wages.wages_by_type(groups).values()) == [wage]
    assert shown_wages(ada) == [wage]
    for address in ("/worker/", f"/worker/hits/{hit.public_id}/"):
        assert "$18.90" in ada.get(address).content.decode()


def test_time_and_pay_per_hour_are_as_estimated_until_they_are_measured(
    mturk, ada, worker, make_worker
):
    for _ in range(3):
        mturk.create_hit(**HIT | {"Question": ESTIMATED_QUESTION}, MaxAssignments=12)
    first, second, _third = models.Hit.objects.order_by("pk")
    submit_assignment(public_id=accept_hit(worker=worker, hit=first).public_id, fields=[("a", "b")])
    work = accept_hit(worker=worker, hit=second)
    pages = ["/worker/", f"/worker/groups/{first.hit_type.public_id}/"]
    for address in (*pages, f"/worker/assignments/{work.public_id}/"):
        page = text_of(ada.get(address))
        assert duration(150) in page
        assert "$15.12" in page
    assert ada.get(f"/worker/assignments/{work.public_id}/").context["place"] == (2, 3)
    for number in range(10):
        work_for(make_worker(f"w{number}"), first, 120)
    assert [wage.n_workers for wage in shown_wages(ada)] == [10]
    assert "$18.90" in text_of(ada.get("/worker/"))


@pytest.mark.parametrize(
    ("tag", "seconds"),
    [
        ("<META NAME=estimated-seconds CONTENT=90>", 90),
        ("<meta name='estimated-seconds' content='0'>", None),
        ('<meta name="estimated-seconds" content="1e3">', None),
        ('<meta name="estimated-seconds" content="123456">', None),
    ],
)
def test_only_a_number_of_seconds_is_an_estimate(tag, seconds):
    assert Question("html", tag, 0).estimated_seconds == seconds
    assert Question("form", tag, 0).estimated_seconds is None


def test_pay_per_hour_is_not_made_of_time_that_is_nobodys(mturk, ada, make_worker):
    mturk.create_hit(**HIT, MaxAssignments=12)
    for number in range(10):
        work_for(make_worker(f"w{number}"), models.Hit.objects.get(), 0.1)
    assert wages.wages_by_type(models.HitType.objects.all()) == {}
    assert shown_wages(ada) == [None]


# Personal data


# Tables of the marketplace's that refer to the ones above, and hold nothing about workers.
OF_OTHERS = {
    models.RecruiterConnection: "a requester's account at a recruiter",
    models.RecruitedStudy: "a requester's",
    models.OutcomeCode: "of a study",
    models.Deposit: "a requester's money, which shares the ledger",
    models.PayoutBatch: "made by an operator",
    models.Requester: "its users are requesters",
}
# A user with rows in these is a researcher, too: such an account is not erased by itself.
ROOMS_OF_RESEARCHERS = {
    *("accounts", "annotation", "console", "hits", "metrics", "retrieval", "validation"),
    *("results", "simulation", "work"),
}
TABLES_OF_THEIRS = {"auth.Group", "auth.Permission"}


def undecided() -> set[str]:
    decided = {table.model for table in TABLES}
    personal, missing = set(decided), set()
    for model in apps.get_models():
        # The tables between two that refer to each other many times are theirs.
        fields = [*model._meta.concrete_fields, *model._meta.many_to_many]
        refers = any(field.remote_field and field.related_model in personal for field in fields)
        is_theirs = model._meta.app_label in ROOMS_OF_RESEARCHERS
        if refers and not is_theirs and model not in decided and model not in OF_OTHERS:
            missing.add(model._meta.label)
    return missing - TABLES_OF_THEIRS


def test_every_table_that_refers_to_workers_is_decided_on(monkeypatch):
    assert undecided() == set()
    monkeypatch.setattr("tests.marketplace.test_worker_accounts.TABLES", TABLES[:-3])
    missing = ("Participant", "WorkerBlock", "AuditEntry")
    assert undecided() == {f"marketplace.{name}" for name in missing}


def test_a_worker_downloads_all_of_their_own_and_nothing_of_others(
    mturk, ada, worker, make_worker, browser_of
):
    eve = make_worker("eve")
    hit = mturk.create_hit(**HIT | {"MaxAssignments": 2})["HIT"]["HITId"]
    mine, hers = submit(worker, hit, reason="My own words"), submit(eve, hit, reason="Her words")
    mturk.reject_assignment(AssignmentId=mine, RequesterFeedback="Half is missing.")
    bonus = {"WorkerId": worker.worker_id, "BonusAmount": "1.50", "Reason": "For your time."}
    mturk.send_bonus(**bonus, AssignmentId=mine)
    mturk.create_worker_block(WorkerId=worker.worker_id, Reason="Secret note")
    answer = ada.get("/worker/your-data/file.json")
    assert f'filename="worker-{worker.worker_id}.json"' in answer.headers["Content-Disposition"]
    exported = json.loads(answer.content)
    assert list(exported["data"]) == [table.model.__name__ for table in TABLES]
    data = exported["data"]
    assert data["User"][0]["username"] == "ada"
    assert data["Assignment"][0]["public_id"] == mine
    assert data["Assignment"][0]["hit.hit_type.title"] == HIT["Title"]
    assert "My own words" in data["Assignment"][0]["answer"]
    assert [row["amount_usd"] for row in data["BonusPayment"]] == ["1.50"]
    assert [row["transaction.kind"] for row in data["LedgerEntry"]] == ["bonus"]
    assert len(data["WorkerMessage"]) == 3
    page = text_of(ada.get("/worker/your-data/file.html"))
    for text in (page, answer.content.decode()):
        for secret in (hers, "Her words", eve.worker_id, "Secret note", worker.user.password):
            assert secret not in text
    assert "Half is missing." in page
    assert models.HitType.objects.get().title in page


def days_kept(row):
    page = text_of(Client().get("/worker/privacy/"))
    return re.findall("[0-9]+", page.split(f'data-kept="{row}"')[1].split("</tr>")[0])


def test_sign_in_data_outlive_signing_out_as_long_as_workers_read(worker, settings):
    browser = Client()
    browser.post("/worker/login/", {"username": "ada", "password": PASSWORD})
    browser.post("/worker/logout/")
    [session] = UserSession.objects.filter(user=worker.user)
    assert session.ip
    rule = next(rule for rule in jobs.RULES if rule.model is UserSession)
    for days in (90, 7):
        settings.BROWSERS_KEEP_DAYS = days
        assert days_kept("browsers") == [str(days)]
        since = session.created_at
        assert not rule.expired(since + timedelta(days=days, seconds=-1)).exists()
        assert rule.expired(since + timedelta(days=days, seconds=1)).exists()
    settings.BROWSERS_KEEP_DAYS = 0
    assert days_kept("browsers") == []
    settings.MESSAGES_KEEP_DAYS = 30
    assert days_kept("messages") == ["30"]


ERASE = "/worker/your-data/erase/"


@pytest.fixture
def browser(worker):
    client = Client()
    client.post("/worker/login/", {"username": "ada", "password": PASSWORD})
    return client


@pytest.fixture
def work(mturk, worker):
    user = worker.user
    EmailAddress.objects.create(user=user, email="ada@post.example", primary=True, verified=True)
    Authenticator.objects.create(user=user, type="totp", data={"secret": "x"})
    User.objects.filter(pk=user.pk).update(first_name="Ada", email="ada@post.example")
    models.WorkerAccount.objects.update(country="CA", subdivision="ON", languages=["fr"])
    hits = [mturk.create_hit(**HIT)["HIT"]["HITId"] for _ in range(2)]
    paid, rejected = (submit(worker, hit, reason="My own words") for hit in hits)
    mturk.approve_assignment(AssignmentId=paid)
    mturk.reject_assignment(AssignmentId=rejected, RequesterFeedback="Half is missing.")
    return {"paid": paid, "rejected": rejected}


def pay_out():
    money.transfers.make_batch()
    money.transfers.mark_paid(models.PayoutBatch.objects.get().payouts.all())


def all_rows():
    rows = [list(table.model._default_manager.values()) for table in TABLES]
    return json.dumps(rows, cls=DjangoJSONEncoder)


def test_erasure_waits_for_open_work_and_money(mturk, browser, worker):
    def codes(proof=PASSWORD):
        page = browser.post(ERASE, {"proof": proof})
        worker.refresh_from_db()
        assert worker.erased_at is None
        shown = codes_on(text_of(page))  # after the messages of other pages
        obstacles = codes_of(page.context["obstacles"])
        assert shown[len(shown) - len(obstacles) :] == obstacles
        return codes_of(page.context["obstacles"]), field_codes(page.context["form"])

    hit = mturk.create_hit(**HIT)["HIT"]["HITId"]
    held = accept_hit(worker=worker, hit=models.Hit.objects.get(public_id=hit))
    assert codes() == (["accepted_work"], {"__all__": ["accepted_work"]})
    browser.post(f"/worker/assignments/{held.public_id}/return/")
    submitted = submit(worker, hit)
    assert codes() == (["submitted_work"], {"__all__": ["submitted_work"]})
    mturk.approve_assignment(AssignmentId=submitted)
    assert codes() == (["unpaid_earnings"], {"__all__": ["unpaid_earnings"]})
    assert "$0.63" in text_of(browser.get(ERASE))
    money.transfers.make_batch()
    assert codes() == (["open_payout"], {"__all__": ["open_payout"]})
    money.transfers.mark_paid(models.PayoutBatch.objects.get().payouts.all())
    assert codes("wrong") == ([], {"proof": ["wrong_password"]})


def test_erasure_takes_the_person_and_leaves_work_and_books(browser, work, worker):
    pay_out()
    entries = models.LedgerEntry.objects.count()
    assert browser.post(ERASE, {"proof": PASSWORD}).url == "/worker/erased/"
    rows = all_rows()
    for trace in ('"ada"', '"Ada"', "ada@", "post.example", '"CA"', '"ON"'):
        assert trace not in rows
    kept = {"id", "user", "worker_id", "payee_id", "created_at", "erased_at"}
    for field in models.WorkerAccount._meta.concrete_fields:
        value = getattr(models.WorkerAccount.objects.get(), field.attname)
        assert field.name in kept or value == field.get_default(), field.name
    assert models.WorkerMessage.objects.count() == Authenticator.objects.count() == 0
    assert models.Assignment.objects.filter(worker=worker, status="Approved").count() == 1
    assert "My own words" in models.Assignment.objects.get(public_id=work["paid"]).answer
    assert models.LedgerEntry.objects.count() == entries
    # Nobody gets in, by the session that was open or by the password.
    assert "/login/" in browser.get("/worker/dashboard/").url
    for name in ("ada", User.objects.get(pk=worker.user_id).username):
        assert not Client().login(username=name, password=PASSWORD)
    erase_worker(worker)  # again changes nothing
    assert models.AuditEntry.objects.get(action="worker.erase").subject == worker.worker_id


def test_who_asks_by_letter_is_erased_by_the_operator(mturk, browser, work, worker):
    name = worker.worker_id
    for dry_run in (True, False):
        with pytest.raises(exceptions.ErasureRefused):
            run("erase_worker", name, dry_run=dry_run)
    pay_out()
    exported = json.loads(run("export_worker", name))
    shown = json.loads(browser.get("/worker/your-data/file.json").content)
    assert exported | {"exported_at": ""} == shown | {"exported_at": ""}  # a second may go by
    assert "ada@post.example" in json.dumps(exported)
    assert name in run("erase_worker", name, dry_run=True)
    assert User.objects.get(pk=worker.user_id).username == "ada"
    assert name in run("erase_worker", name)
    worker.refresh_from_db()
    assert worker.erased_at is not None
    assert "ada@post.example" not in run("export_worker", name)
    assert models.AuditEntry.objects.get(action="worker.erase").subject == name
    assert f"{worker.erased_at:%Y}" in run("erase_worker", name)
    with pytest.raises(exceptions.InvalidParameter) as caught:
        run("export_worker", "ADA")
    assert "ADA" in str(caught.value)


def test_requesters_can_neither_pay_nor_write_to_an_erased_worker(mturk, work, worker):
    pay_out()
    erase_worker(worker)
    ids = {"WorkerId": worker.worker_id}
    bonus = ids | {"AssignmentId": work["paid"], "BonusAmount": "1", "Reason": "x"}
    override = {"AssignmentId": work["rejected"], "OverrideRejection": True}
    assert turk_code(mturk.send_bonus, **bonus) == "InvalidParameterValue"
    assert turk_code(mturk.approve_assignment, **override) == "InvalidAssignmentState"
    mturk.create_worker_block(**ids, Reason="x")
    answer = mturk.notify_workers(Subject="x", MessageText="x", WorkerIds=[worker.worker_id])
    assert len(answer["NotifyWorkersFailureStatuses"]) == 1
    assert models.WorkerMessage.objects.count() == 0


def test_a_participant_without_a_password_gives_the_worker_id(ada, worker):
    worker.user.set_unusable_password()
    worker.user.save()
    ada.force_login(worker.user)
    page = ada.post(ERASE, {"proof": "A0NOBODY"})
    assert field_codes(page.context["form"]) == {"proof": ["wrong_worker_id"]}
    assert ada.post(ERASE, {"proof": worker.worker_id}).url == "/worker/erased/"


def test_who_is_also_a_requester_is_not_erased(ada, worker, requester):
    requester.users.add(worker.user)
    assert codes_of(ada.post(ERASE, {"proof": PASSWORD}).context["obstacles"]) == ["other_role"]
    assert User.objects.get().username == "ada"


NOW = timezone.now()


def days(n):
    return NOW - timedelta(days=n)


@pytest.fixture
def rows(requester, worker):
    event = {"requester": requester, "destination": "https://x.example", "transport": "HTTPS"}
    event |= {"event_type": "Ping", "body": "{}"}
    message = {"worker": worker, "requester": requester, "created_at": days(400)}
    for name, age, waits in (("young", 89, False), ("old", 91, False), ("unsent", 91, True)):
        models.Notification.objects.create(
            **event, created_at=days(age), last_error=name, next_attempt_at=NOW if waits else None
        )
    for name, age in (("young", 29), ("old", 31)):
        models.WorkerMessage.objects.create(subject=name, read_at=days(age), **message)
    models.WorkerMessage.objects.create(subject="unread", **message)
    for age in (399, 401):
        models.LedgerAudit.objects.create(created_at=days(age), duration_seconds=1, n_problems=0)
    for age in (1, 91):
        UserSession.objects.create(
            user=worker.user, ip="192.0.2.1", session_key=str(age), last_seen_at=days(age)
        )
    UserSession.objects.filter(session_key="91").update(last_seen_at=days(91))


def counts(printed):
    return [line.split()[0] for line in printed.splitlines()]


def left():
    return (
        sorted(models.Notification.objects.values_list("last_error", flat=True)),
        sorted(models.WorkerMessage.objects.values_list("subject", flat=True)),
        models.LedgerAudit.objects.count(),
        list(UserSession.objects.values_list("session_key", flat=True)),
    )


def test_what_is_old_goes_and_what_is_of_use_stays(rows, settings, monkeypatch):
    monkeypatch.setattr(jobs, "ROWS_AT_ONCE", 1)
    settings.MESSAGES_KEEP_DAYS = 30
    before = left()
    printed = run("delete_expired", dry_run=True)
    assert left() == before
    # No batch has participants here: tests/hits/test_recruited_batches.py.
    assert counts(printed) == ["1", "1", "1", "0", "1"]
    [line] = [line for line in printed.splitlines() if "NOTIFICATIONS_KEEP_DAYS" in line]
    assert "90" in line
    assert counts(run("delete_expired")) == counts(printed)
    assert left() == (["unsent", "young"], ["unread", "young"], 1, ["1"])
    assert set(counts(run("delete_expired"))) == {"0"}


def test_a_rule_of_no_days_deletes_nothing(rows, settings):
    for rule in jobs.RULES:
        setattr(settings, rule.setting, 0)
    before = left()
    assert set(counts(run("delete_expired"))) == {"0"}
    assert left() == before


def test_the_rules_are_applied_each_day(rows):
    kind = job_kind("delete_expired")
    assert kind.every_seconds == 24 * 3600
    # Workers' messages are kept for good unless somebody decides otherwise.
    assert kind.handler(None).startswith("3 ")
    assert left() == (["unsent", "young"], ["old", "unread", "young"], 1, ["1"])
