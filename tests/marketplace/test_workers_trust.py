"""What the marketplace knows of its workers, and what workers know of whom they work for."""

import json
from datetime import timedelta
from decimal import Decimal

import pytest
from allauth.account.models import EmailAddress
from cryptography.fernet import Fernet
from django.core.management import call_command

from marketplace import clock
from marketplace.exceptions import InvalidParameter, NotQualified
from marketplace.hits import wages
from marketplace.hits.assignments import accept_hit, submit_assignment
from marketplace.hits.same_person import note_device, shared_traits
from marketplace.hits.wages import observed_wages, requester_record
from marketplace.models import Assignment, AuditEntry, Hit, HitType, LocationStatement, PayoutMethod
from marketplace.money.transfers import choose_method
from marketplace.people.erasure import erase_worker
from marketplace.qualifications.eligibility import qualifies
from marketplace.recruiting.studies import PROLIFIC, StudyValues, open_study
from tests.codes import refused
from tests.marketplace.conftest import HIT, submit
from tests.marketplace.prolific import came
from tests.marketplace.test_worker_site import text_of

PROFILE = "/worker/profile/"
LONG = "It answers the question, and says in the end what the person asked for in the beginning."


def test_a_country_is_stated_once_with_what_the_network_said(ada, worker, settings):
    settings.MARKETPLACE_COUNTRY_HEADER = "CF-IPCountry"
    page = ada.post(PROFILE, {"country": "DE", "is_adult": "on"}, headers={"CF-IPCountry": "fr"})
    assert page.status_code == 302
    ada.post(PROFILE, {"country": "US", "subdivision": "CA", "is_adult": "on"})
    worker.refresh_from_db()
    assert (worker.country, worker.subdivision) == ("DE", "")
    statement = LocationStatement.objects.get()
    assert (statement.country, statement.network_country) == ("DE", "FR")
    assert (statement.source, statement.worker) == ("worker", worker)
    assert ada.get(PROFILE).context["form"].fields["country"].disabled


@pytest.mark.parametrize(
    ("name", "said"), [*(("CF-IPCountry", said) for said in ("", "XXX", "1A", "ß")), ("", "FR")]
)
def test_what_no_named_header_says_is_no_evidence(ada, settings, name, said):
    settings.MARKETPLACE_COUNTRY_HEADER = name
    ada.post(PROFILE, {"country": "DE"}, headers={"CF-IPCountry": said.encode().decode("latin-1")})
    assert LocationStatement.objects.get().network_country == ""


def test_an_operator_corrects_a_country_and_the_reason_is_kept(ada, worker):
    ada.post(PROFILE, {"country": "DE"})
    with pytest.raises(InvalidParameter):
        call_command("correct_worker_country", worker.worker_id, "UK", "--reason", "Passport")
    call_command("correct_worker_country", worker.worker_id, "GB", "--reason", "Passport seen")
    worker.refresh_from_db()
    assert worker.country == "GB"
    first, second = LocationStatement.objects.order_by("pk")
    assert (first.country, second.country, second.source) == ("DE", "GB", "operator")
    assert second.reason == "Passport seen"
    assert AuditEntry.objects.filter(action="worker.correct_location").exists()
    erase_worker(worker)
    assert not LocationStatement.objects.exists()


def test_who_has_confirmed_no_address_accepts_nothing_where_that_is_asked_for(
    mturk, worker, settings
):
    hit = Hit.objects.get(public_id=mturk.create_hit(**HIT)["HIT"]["HITId"])
    assert qualifies(worker, hit.hit_type) == ()
    settings.MARKETPLACE_CONFIRMED_MAIL = True
    with refused(NotQualified, "unconfirmed_address"):
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
    hit_type = HitType.objects.get(public_id=mturk.create_hit(**HIT)["HIT"]["HITTypeId"])
    values = StudyValues(name="Panel", kind="panel", **PROLIFIC)
    came(open_study(requester=requester, hit_type=hit_type, values=values), "p1", "x1")
    assert Assignment.objects.filter(status=Assignment.Status.ACCEPTED).count() == 1


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
    rows = shared_traits(requester, "a:")
    return {row.worker_id: row.others for row in rows if row.trait == trait}


def test_the_same_long_text_and_the_same_device_of_two_are_found(requester, three):
    ann, bob, _cleo = (each.worker_id for each in three)
    assert found(requester, "texts") == {ann: (bob,), bob: (ann,)}
    assert found(requester, "device") == found(requester, "payout") == {}
    for worker in three[:2]:
        note_device(Assignment.objects.get(worker=worker), address="192.0.2.1", browser="Firefox")
    assert found(requester, "device") == {ann: (bob,), bob: (ann,)}
    Assignment.objects.update(answer="<a><b")  # no document
    assert found(requester, "texts") == {}


def test_what_everybody_wrote_is_of_the_page(mturk, requester, make_worker):
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
    pair = {ann.worker_id: (cleo.worker_id,), cleo.worker_id: (ann.worker_id,)}
    assert found(requester, "payout") == pair
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode(), *settings.ENCRYPTION_KEYS]
    call_command("reencrypt_secrets")
    assert found(requester, "payout") == pair
    assert "DE89" not in str(list(PayoutMethod.objects.values()))


def decide(mturk, requester, make_worker, n):
    hit = mturk.create_hit(**HIT, MaxAssignments=n)["HIT"]
    for number in range(n):
        submit(make_worker(f"w{number}"), hit["HITId"])
    for number, made in enumerate(Assignment.objects.order_by("pk")):
        made.accepted_at = made.submitted_at - timedelta(seconds=90)
        made.save()
        if number:
            mturk.approve_assignment(AssignmentId=made.public_id)
        else:
            mturk.reject_assignment(AssignmentId=made.public_id, RequesterFeedback="No.")
    for made in Assignment.objects.all():
        made.submitted_at -= timedelta(hours=2)
        made.accepted_at -= timedelta(hours=2)
        made.save()


def test_fewer_than_ten_workers_make_no_record(mturk, requester, make_worker):
    decide(mturk, requester, make_worker, 9)
    assert requester_record(requester) is None


def test_ten_workers_make_a_record(mturk, requester, make_worker, browser_of):
    decide(mturk, requester, make_worker, 10)
    record = requester_record(requester)
    assert (record.percent_approved, record.n_decided, record.n_workers) == (90, 10, 10)
    assert 7200 <= record.median_review_seconds < 7260
    assert str(record.usd_per_hour) == "25.20"  # 0.63 for 90 seconds
    other = mturk.create_hit(**HIT | {"Title": "Another"})["HIT"]
    page = browser_of(make_worker("visitor")).get(f"/worker/hits/{other['HITId']}/")
    assert page.context["record"] == record
    assert "$25.20" in text_of(page)


def work(worker, hit, seconds):
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
    hit = Hit.objects.get()
    for number, seconds in enumerate([60, 90, 100, 110, 120, 120, 130, 140, 900]):
        work(make_worker(f"w{number}"), hit, seconds)
    assert observed_wages(HitType.objects.all()) == {}
    assert shown_wages(ada) == [None]
    work(make_worker("tenth"), hit, 120)
    groups = list(HitType.objects.all())
    (wage,) = observed_wages(groups).values()
    assert (wage.median_seconds, wage.n_workers) == (120, 10)
    assert wage.usd_per_hour == Decimal("18.90")  # $0.63 for two minutes
    with django_assert_num_queries(0):  # much work is looked for once a minute
        assert list(observed_wages(groups).values()) == [wage]
    assert shown_wages(ada) == [wage]
    for address in ("/worker/", f"/worker/hits/{hit.public_id}/"):
        assert "$18.90" in ada.get(address).content.decode()


def test_pay_per_hour_is_not_made_of_time_that_is_nobodys(mturk, ada, make_worker):
    mturk.create_hit(**HIT, MaxAssignments=12)
    for number in range(10):
        work(make_worker(f"w{number}"), Hit.objects.get(), 0.1)
    assert observed_wages(HitType.objects.all()) == {}
    assert shown_wages(ada) == [None]
