"""The ledger and deposits, each once, audited and taken out again; what a recruiter pays for."""

import re
from decimal import Decimal

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, connection, transaction
from django.test import Client

from accounts.models import User
from marketplace import clock, exceptions, models
from marketplace.hits.assignments import (
    accept_hit,
    accept_next,
    create_assignment,
    let_recruiter_pay,
)
from marketplace.money import amounts, ledger, reconciliation
from marketplace.money.transfers import deposit, make_batch, reverse_deposit
from marketplace.people.enrolment import open_worker_account
from tests.boto_clients import in_process_client
from tests.codes import codes_of, field_codes, message_codes, refused
from tests.marketplace.conftest import HIT, assert_ledger_balances, run, submit
from tests.marketplace.test_at_the_same_moment import all_at_once
from tests.marketplace.test_worker_site import text_of


def test_a_sum_that_is_no_deposit_is_refused_and_the_audit_asks_nothing_per_row(
    requester, django_assert_num_queries
):
    for amount in ("0", "-1", "0.001", "NaN", "Infinity", "1000000.01"):
        with pytest.raises(exceptions.InvalidAmount):
            deposit(requester=requester, amount_usd=Decimal(amount))
        assert models.LedgerTransaction.objects.count() == 1
    for _ in range(5):
        deposit(requester=requester, amount_usd=Decimal(1))
    with django_assert_num_queries(10):
        assert reconciliation.audit() == []


def test_an_entry_that_was_tampered_with_shows_in_the_audit(requester):
    models.LedgerEntry.objects.filter(amount_usd__gt=0).update(amount_usd=Decimal("1000.00"))
    first, second = reconciliation.audit()
    assert codes_of([first, second]) == ["unbalanced", "wrong_balance"]
    assert "900.00" in first
    assert re.findall(r"[0-9]+\.[0-9]+", second) == ["100.00", "1000.00"]


def test_a_balance_that_was_tampered_with_shows_where_it_is_wrong(requester):
    for _ in range(3):
        deposit(requester=requester, amount_usd=Decimal("0.10"))
    middle = models.LedgerEntry.objects.filter(amount_usd=Decimal("0.10"))[1]
    models.LedgerEntry.objects.filter(pk=middle.pk).update(balance_usd=Decimal("100.30"))
    first, second = reconciliation.audit()
    assert codes_of([first, second]) == ["wrong_balance"] * 2
    assert str(middle.pk) in first
    assert re.findall(r"[0-9]+\.[0-9]+", first) == ["100.30", "100.20"]
    assert re.findall(r"[0-9]+\.[0-9]+", second) == ["100.30", "100.40"]
    models.LedgerEntry.objects.filter(pk=middle.pk).update(balance_usd=None)
    missing = reconciliation.audit()[0]
    assert (missing.code, "None" in missing, "100.20" in missing) == ("wrong_balance", True, True)


def test_money_that_came_in_past_the_audit_log_shows_in_the_audit(requester):
    movement = ledger.deposit(requester=requester, amount_usd=Decimal(5), at=clock.now())
    [problem] = reconciliation.audit()
    assert (problem.code, str(movement.pk) in problem) == ("unrecorded_deposit", True)
    back = ledger.reverse_deposit(requester=requester, amount_usd=Decimal(5), at=clock.now())
    assert [f" {back.pk} " in each for each in reconciliation.audit()].count(True) == 1
    assert codes_of(reconciliation.audit()) == ["unrecorded_deposit"] * 2


def test_a_second_payment_is_refused_and_an_overdrawn_account_shows_in_the_audit(mturk, worker):
    mturk.approve_assignment(AssignmentId=submit(worker, mturk.create_hit(**HIT)["HIT"]["HITId"]))
    paid = models.LedgerTransaction.objects.get(kind="payment")
    with pytest.raises(IntegrityError), transaction.atomic():
        models.LedgerTransaction.objects.create(
            kind="payment", assignment=paid.assignment, hit=paid.hit, created_at=clock.now()
        )
    paid = models.LedgerEntry.objects.get(account=ledger.earnings_account(worker))
    models.LedgerEntry.objects.filter(pk=paid.pk).update(amount_usd=-paid.amount_usd)
    by_code = {problem.code: problem for problem in reconciliation.audit()}
    assert "-1.26" in by_code["unbalanced"]
    assert str(worker) in by_code["overdrawn"]
    assert "0.63" in by_code["overdrawn"]
    models.LedgerEntry.objects.filter(pk=paid.pk).update(amount_usd=paid.amount_usd)


def test_the_database_keeps_one_account_of_each_owner_and_each_reference_once(requester):
    assert ledger.available_account(requester) == ledger.available_account(requester)
    for kind in ("available", "held", "earnings"):
        with pytest.raises(IntegrityError), transaction.atomic():
            models.LedgerAccount.objects.create(kind=kind)
    ledger.shared_account(ledger.AccountKind.OUTSIDE)
    for values in (
        {"kind": "outside", "requester": requester},
        {"kind": "outside"},
        {"kind": "available", "requester": requester},
    ):
        with pytest.raises(IntegrityError), transaction.atomic():
            models.LedgerAccount.objects.create(**values)
    created, _ = deposit(
        requester=requester, amount_usd=Decimal(7), reference="Invoice 7", form_token="token"
    )
    movement = models.LedgerTransaction.objects.create(kind="deposit", created_at=clock.now())
    facts = {"requester": requester, "amount_usd": 7, "created_at": created.created_at}
    for values in ({"reference": "Invoice 7"}, {"form_token": "token"}):
        with pytest.raises(IntegrityError), transaction.atomic():
            models.Deposit.objects.create(transaction=movement, **facts, **values)


@pytest.mark.parametrize(
    ("schedule", "reward", "assignments", "for_masters", "fee"),
    [
        ("none", "5.00", 100, True, "0.00"),
        ("mturk", "0.63", 9, False, "0.13"),
        ("mturk", "0.63", 10, False, "0.25"),
        ("mturk", "1.00", 9, True, "0.25"),
        ("mturk", "1.00", 10, True, "0.45"),
        ("mturk", "0.01", 1, False, "0.01"),
        ("mturk", "0.525", 1, False, "0.11"),
    ],
)
def test_a_fee_follows_its_schedule(schedule, reward, assignments, for_masters, fee):
    assert amounts.SCHEDULES[schedule].per_assignment(
        reward_usd=Decimal(reward), max_assignments=assignments, for_masters=for_masters
    ) == Decimal(fee)


@pytest.mark.parametrize(
    ("schedule", "bonus", "fee"),
    [("none", "5.00", "0.00"), ("mturk", "5.00", "1.00"), ("mturk", "0.01", "0.01")],
)
def test_the_fee_on_a_bonus_follows_the_schedule_too(schedule, bonus, fee):
    assert amounts.SCHEDULES[schedule].per_bonus(Decimal(bonus)) == Decimal(fee)


FULL_WIDTH = "\uff15\uff10\uff10"
NOT_PLAIN = ["1e9", "1E2", "٣", FULL_WIDTH, "NaN", "inf", "-5", "+5", "1,000", "1_000", "0x10", ""]
NOT_PLAIN += [".", "1.005", ".5", "5.", "$$5", "5 0", "٥٠", "1" * 13, "½"]
TOO_LARGE = ["1000000.01", "1000000000", "999999999999.99"]


def available(requester):
    return ledger.balance_of(ledger.available_account(requester))


def address_of(requester):
    return f"/marketplace-operator/requesters/{requester.public_id}/"


@pytest.fixture
def filled_in(olga, requester):
    page = text_of(olga.get(address_of(requester)))
    token = re.search(r'name="form_token" value="([^"]+)"', page)[1]
    values = {"amount_usd": "7.00", "reference": "Invoice 7", "name": "Dialogue lab"}
    return values | {"form_token": token}


@pytest.mark.parametrize("text", NOT_PLAIN + TOO_LARGE)
def test_what_is_no_plain_amount_or_a_slip_of_the_finger_is_refused(text):
    with refused(exceptions.InvalidAmount, "too_large" if text in TOO_LARGE else "invalid_amount"):
        amounts.parse_amount(text)


@pytest.mark.parametrize(
    ("text", "amount"),
    [("1000", "1000"), ("$49.50", "49.50"), (" 0.1 ", "0.1"), ("1000000.00", "1000000")],
)
def test_a_plain_amount_is_read(text, amount):
    assert amounts.parse_amount(text) == Decimal(amount)


def test_the_form_reads_amounts_alike_and_sent_twice_makes_one_deposit(olga, requester, filled_in):
    for amount in ("1e9", FULL_WIDTH, "NaN", "1000000.01", "0", "0.00", "-5"):
        response = olga.post(address_of(requester), filled_in | {"amount_usd": amount})
        assert response.status_code == 200
        assert available(requester) == 100
    answers = [olga.post(address_of(requester), filled_in) for _ in range(2)]
    led = [(each.status_code, each.headers["Location"]) for each in answers]
    assert led == [(302, address_of(requester))] * 2
    assert available(requester) == 107
    assert models.AuditEntry.objects.filter(detail__reference="Invoice 7").count() == 1


@pytest.mark.parametrize(
    ("change", "code"),
    [({"form_token": "another"}, "reference_used"), ({"amount_usd": "8.00"}, "form_used")],
)
def test_a_reference_and_a_form_are_used_once(olga, requester, filled_in, change, code):
    olga.post(address_of(requester), filled_in)
    again = olga.post(address_of(requester), filled_in | change)
    assert again.status_code == 200
    assert field_codes(again.context["form"]) == {"__all__": [code]}
    assert available(requester) == 107
    # The page that is opened anew may send another deposit.
    assert filled_in["form_token"] not in text_of(olga.get(address_of(requester)))


@pytest.mark.parametrize("with_token", [True, False])
def test_six_posts_of_a_form_at_once_make_one_deposit(transactional_db, make_keys, with_token):
    make_keys()
    requester = models.Requester.objects.get()
    operator = User.objects.create_user("olga", is_staff=True)
    values = {"amount_usd": "7.00", "reference": "Invoice 7", "name": "Dialogue lab"}
    if with_token:
        values["form_token"] = "the-token-of-the-page"

    def post():
        browser = Client()
        browser.force_login(operator)
        return lambda: browser.post(address_of(requester), values)

    answers = all_at_once(*[post() for _ in range(6)])
    led = {(each.status_code, each.headers["Location"]) for each in answers}
    assert led == {(302, address_of(requester))}
    assert available(requester) == 107
    assert_ledger_balances()


def test_a_reference_stands_for_one_deposit_of_its_requester(requester, make_keys):
    other = models.Requester.objects.create(name="Other lab", created_at=clock.now())
    first, _ = deposit(requester=requester, amount_usd=Decimal(7), reference=" Invoice 7")
    again = deposit(requester=requester, amount_usd=Decimal(7), reference="Invoice 7 ")
    assert again == (first, False)
    with refused(exceptions.DuplicateDeposit, "reference_used"):
        deposit(requester=requester, amount_usd=Decimal(8), reference="Invoice 7")
    assert deposit(requester=other, amount_usd=Decimal(8), reference="Invoice 7")[1]
    assert (available(requester), available(other)) == (107, 8)


def test_every_deposit_is_in_the_audit_log(requester):
    call_command("create_requester", "Dialogue lab", deposit="5")
    call_command("create_requester", "New lab", deposit="6")
    call_command("deposit", requester.public_id, "7")
    deposits = models.LedgerTransaction.objects.filter(kind="deposit").count()
    entries = models.AuditEntry.objects.filter(action="requester.deposit")
    assert entries.count() == deposits == 4
    assert {entry.detail["amount_usd"] for entry in entries} == {"100.00", "5.00", "6.00", "7.00"}
    assert reconciliation.audit() == []


def test_a_deposit_is_taken_out_again_once(requester, db):
    created, _ = deposit(requester=requester, amount_usd=Decimal(7), reference="Invoice 7")
    for _ in range(2):
        output = run("reverse_deposit", created.public_id, reason="Typed 7 for 70")
        for part in (created.public_id, "$7.00", "Dialogue lab", "$100.00"):
            assert part in output
    created.refresh_from_db()
    assert created.reversal.kind == "reversal"
    entry = models.AuditEntry.objects.get(action="requester.reverse_deposit")
    assert entry.detail["deposit"] == created.public_id
    assert entry.detail["reason"] == "Typed 7 for 70"
    assert deposit(requester=requester, amount_usd=Decimal(70), reference="Invoice 7")[1]
    assert available(requester) == 170
    assert_ledger_balances()
    with refused(exceptions.DepositDoesNotExist) as caught:
        run("reverse_deposit", "NOSUCH", reason="A mistake")
    assert "NOSUCH" in str(caught.value)
    with pytest.raises(CommandError):
        run("reverse_deposit", "NOSUCH")


def test_only_what_is_available_is_taken_out(olga, mturk, requester):
    mturk.create_hit(**HIT | {"Reward": "0.01"})
    stored = models.Deposit.objects.get()
    with refused(exceptions.DepositSpent) as caught:
        reverse_deposit(deposit=stored, reason="A mistake")
    assert "$99.99" in str(caught.value)
    stored.refresh_from_db()
    assert stored.reversal is None
    assert available(requester) == Decimal("99.99")
    address = f"{address_of(requester)}deposits/{stored.public_id}/reverse/"
    page = olga.post(address, {"reason": "A mistake"}, follow=True)
    assert message_codes(page) == ["deposit_spent"]


def test_a_deposit_is_taken_out_by_one_of_those_who_try_at_once(transactional_db, make_keys):
    make_keys()
    stored = models.Deposit.objects.select_related("requester").get()

    def reverse():
        return reverse_deposit(deposit=models.Deposit.objects.get(pk=stored.pk), reason="A mistake")

    assert sorted(all_at_once(*[reverse] * 4)) == [False, False, False, True]
    assert available(stored.requester) == 0
    assert_ledger_balances()


def test_a_deposit_is_taken_out_on_the_operators_page(olga, requester):
    stored = models.Deposit.objects.get()
    address = f"{address_of(requester)}deposits/{stored.public_id}/reverse/"
    page = olga.post(address, {"reason": ""}, follow=True)
    assert message_codes(page) == ["missing_reason"]
    assert address in text_of(page)
    page = olga.post(address, {"reason": "A mistake"}, follow=True)
    assert message_codes(page) == ["taken_out"]
    assert address not in text_of(page)
    assert available(requester) == 0
    other = models.Requester.objects.create(name="Other lab", created_at=clock.now())
    strange = f"{address_of(other)}deposits/{stored.public_id}/reverse/"
    assert olga.post(strange, {"reason": "A mistake"}).status_code == 404
    assert Client().post(address, {"reason": "A mistake"}).status_code == 302
    assert models.AuditEntry.objects.filter(action="requester.reverse_deposit").count() == 1


NOW = clock.now


@pytest.fixture
def participant(db):
    return open_worker_account(user=User.objects.create_user("p"), paid_by=models.PaidBy.RECRUITER)


@pytest.fixture
def recruited(mturk):
    created = mturk.create_hit(**HIT, MaxAssignments=2)["HIT"]
    hit = models.Hit.objects.select_related("hit_type").get(public_id=created["HITId"])
    let_recruiter_pay(hit.hit_type)
    return models.Hit.objects.select_related("hit_type", "requester").get(pk=hit.pk)


def take(hit, worker):
    with transaction.atomic():
        return create_assignment(
            models.Hit.objects.locked().get(pk=hit.pk), worker, is_qualified=False
        )


def test_what_was_held_is_the_requesters_again(mturk, recruited, requester):
    assert available(requester) == Decimal("100.00")
    assert ledger.held_for(recruited) == 0
    facts = {"HITTypeId": recruited.hit_type.public_id, "LifetimeInSeconds": 3600}
    facts |= {"Question": HIT["Question"], "MaxAssignments": 3}
    more = mturk.create_hit_with_hit_type(**facts)["HIT"]
    growth = {"HITId": more["HITId"], "NumberOfAdditionalAssignments": 5}
    mturk.create_additional_assignments_for_hit(**growth)
    assert available(requester) == Decimal("100.00")
    assert more["Reward"] == "0.63"


def test_what_was_promised_before_is_paid_here(mturk, worker, requester):
    created = mturk.create_hit(**HIT, MaxAssignments=2)["HIT"]
    held = submit(worker, created["HITId"])
    hit = models.Hit.objects.get(public_id=created["HITId"])
    price_usd = models.Assignment.objects.get().price_usd
    let_recruiter_pay(hit.hit_type)
    assert ledger.held_for(hit) == price_usd
    mturk.approve_assignment(AssignmentId=held)
    assert ledger.balance_of(ledger.earnings_account(worker)) == Decimal("0.63")
    assert available(requester) == 100 - price_usd


def test_a_participants_approved_work_moves_nothing(mturk, recruited, participant, requester):
    assignment = take(recruited, participant)
    assert (assignment.reward_usd, assignment.fee_usd) == (0, 0)
    before = models.LedgerTransaction.objects.count()
    models.Assignment.objects.filter(pk=assignment.pk).update(
        status="Submitted", submitted_at=NOW(), auto_approval_at=NOW()
    )
    mturk.approve_assignment(AssignmentId=assignment.public_id)
    assert models.LedgerTransaction.objects.count() == before
    assert make_batch() is None
    assert not models.LedgerAccount.objects.filter(worker=participant).exists()


def test_workers_and_participants_see_only_theirs(mturk, recruited, participant, worker, ada):
    assert recruited.hit_type.title not in ada.get("/worker/").content.decode()
    with refused(exceptions.NotQualified, "other_payer"):
        accept_hit(worker=worker, hit=recruited)
    mturk.create_hit(**HIT | {"Title": "Another"})
    other = models.Hit.objects.latest("pk")
    with refused(exceptions.NotQualified, "other_payer"):
        accept_next(worker=participant, hit_type=other.hit_type)
    with pytest.raises(mturk.exceptions.RequestError) as found:
        mturk.update_hit_type_of_hit(HITId=other.public_id, HITTypeId=recruited.hit_type.public_id)
    assert found.value.response["TurkErrorCode"] == "AWS.MechanicalTurk.InvalidParameterValue"


def test_ledger_and_database_refuse_every_movement_and_promise(recruited, participant, worker):
    assignment = take(recruited, participant)
    at = clock.now()
    available, one, none = models.LedgerAccount.Kind.AVAILABLE, Decimal("1.00"), Decimal(0)
    for move in (
        lambda: ledger.pay(assignment=assignment, source=available, at=at),
        lambda: ledger.pay_bonus(assignment=assignment, amount_usd=one, fee_usd=none, at=at),
        lambda: ledger.withdraw(worker=participant, amount_usd=one, at=at),
        lambda: ledger.hold(hit=recruited, amount_usd=one, at=at),
    ):
        with pytest.raises(exceptions.PaidByRecruiter):
            move()
    assert reconciliation.audit() == []
    with pytest.raises(IntegrityError), transaction.atomic():
        models.Assignment.objects.filter(pk=assignment.pk).update(reward_usd=Decimal("0.63"))


def insert(payee_id, worker):
    with connection.cursor() as cursor:
        columns = "(kind, worker_id, payee_id) VALUES ('earnings', %s, %s)"
        cursor.execute(f"INSERT INTO marketplace_ledgeraccount {columns}", [worker.pk, payee_id])


@pytest.mark.django_db(transaction=True)
def test_the_database_refuses_a_participants_earnings(participant, worker):
    for payee_id in (None, participant.worker_id, worker.payee_id, ""):
        with pytest.raises(IntegrityError), transaction.atomic():
            insert(payee_id, participant)
    assert not models.LedgerAccount.objects.filter(worker=participant).exists()
    values = {"paid_by": "recruiter", "payee_id": None}
    for wrong in ({"paid_by": "recruiter"}, {"payee_id": None}, values):
        with pytest.raises(IntegrityError), transaction.atomic():
            type(worker).objects.filter(pk=worker.pk).update(**wrong)


def test_the_audit_finds_what_got_past(make_keys, worker, participant):
    created = in_process_client(make_keys()).create_hit(**HIT, MaxAssignments=2)["HIT"]
    hit = models.Hit.objects.select_related("hit_type").get(public_id=created["HITId"])
    type(hit.hit_type).objects.filter(pk=hit.hit_type.pk).update(paid_by="recruiter")
    [held] = [problem for problem in reconciliation.audit() if problem.code == "recruiter_hold"]
    assert str(hit) in held
    hit.hit_type.refresh_from_db()
    assignment = take(hit, participant)
    models.LedgerTransaction.objects.create(kind="bonus", created_at=NOW(), assignment=assignment)
    assert "participant_payment" in codes_of(reconciliation.audit())
