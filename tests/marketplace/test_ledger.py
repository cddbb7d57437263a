import re
from decimal import Decimal

import pytest
from django.db import IntegrityError, transaction

from marketplace import clock
from marketplace.exceptions import InvalidAmount
from marketplace.models import LedgerAccount, LedgerEntry, LedgerTransaction
from marketplace.money import ledger
from marketplace.money.deposits import deposit
from marketplace.money.fees import SCHEDULES
from marketplace.money.reconciliation import audit
from tests.codes import codes_of
from tests.marketplace.conftest import HIT, submit


def test_a_deposit_comes_from_outside(requester):
    assert ledger.balance_of(ledger.available_account(requester)) == Decimal("100.00")
    assert ledger.balance_of(ledger.outside_account()) == Decimal("-100.00")
    assert audit() == []


@pytest.mark.parametrize("amount", ["0", "-1", "0.001", "NaN", "Infinity", "1000000.01"])
def test_a_sum_that_is_no_deposit_is_refused(requester, amount):
    with pytest.raises(InvalidAmount):
        deposit(requester=requester, amount_usd=Decimal(amount))
    assert LedgerTransaction.objects.count() == 1


def test_an_entry_that_was_tampered_with_shows_in_the_audit(requester):
    LedgerEntry.objects.filter(amount_usd__gt=0).update(amount_usd=Decimal("1000.00"))
    first, second = audit()
    assert codes_of([first, second]) == ["unbalanced", "wrong_balance"]
    assert "900.00" in first
    assert re.findall(r"[0-9]+\.[0-9]+", second) == ["100.00", "1000.00"]


def test_a_balance_that_was_tampered_with_shows_where_it_is_wrong(requester):
    for _ in range(3):
        deposit(requester=requester, amount_usd=Decimal("0.10"))
    middle = LedgerEntry.objects.filter(amount_usd=Decimal("0.10"))[1]
    LedgerEntry.objects.filter(pk=middle.pk).update(balance_usd=Decimal("100.30"))
    first, second = audit()
    assert codes_of([first, second]) == ["wrong_balance"] * 2
    assert str(middle.pk) in first
    assert re.findall(r"[0-9]+\.[0-9]+", first) == ["100.30", "100.20"]
    assert re.findall(r"[0-9]+\.[0-9]+", second) == ["100.30", "100.40"]
    LedgerEntry.objects.filter(pk=middle.pk).update(balance_usd=None)
    missing = audit()[0]
    assert (missing.code, "None" in missing, "100.20" in missing) == ("wrong_balance", True, True)


def test_an_account_that_is_overdrawn_shows_in_the_audit(mturk, worker):
    mturk.approve_assignment(AssignmentId=submit(worker, mturk.create_hit(**HIT)["HIT"]["HITId"]))
    paid = LedgerEntry.objects.get(account=ledger.earnings_account(worker))
    LedgerEntry.objects.filter(pk=paid.pk).update(amount_usd=-paid.amount_usd)
    problems = audit()
    by_code = {problem.code: problem for problem in problems}
    assert "-1.26" in by_code["unbalanced"]
    assert str(worker) in by_code["overdrawn"]
    assert "0.63" in by_code["overdrawn"]
    LedgerEntry.objects.filter(pk=paid.pk).update(amount_usd=paid.amount_usd)


def test_money_that_came_in_past_the_audit_log_shows_in_the_audit(requester):
    movement = ledger.deposit(requester=requester, amount_usd=Decimal(5), at=clock.now())
    [problem] = audit()
    assert (problem.code, str(movement.pk) in problem) == ("unrecorded_deposit", True)
    back = ledger.reverse_deposit(requester=requester, amount_usd=Decimal(5), at=clock.now())
    assert [f" {back.pk} " in each for each in audit()].count(True) == 1
    assert codes_of(audit()) == ["unrecorded_deposit"] * 2


def test_the_audit_asks_no_question_per_row(requester, django_assert_num_queries):
    for _ in range(5):
        deposit(requester=requester, amount_usd=Decimal(1))
    with django_assert_num_queries(10):
        assert audit() == []


def test_the_database_refuses_a_second_payment_of_an_assignment(mturk, worker):
    assignment_id = submit(worker, mturk.create_hit(**HIT)["HIT"]["HITId"])
    mturk.approve_assignment(AssignmentId=assignment_id)
    paid = LedgerTransaction.objects.get(kind="payment")
    with pytest.raises(IntegrityError), transaction.atomic():
        LedgerTransaction.objects.create(
            kind="payment", assignment=paid.assignment, hit=paid.hit, created_at=clock.now()
        )


def test_the_database_keeps_one_account_of_each_kind_and_owner(requester):
    assert ledger.available_account(requester) == ledger.available_account(requester)
    for kind in ("available", "held", "earnings"):
        with pytest.raises(IntegrityError), transaction.atomic():
            LedgerAccount.objects.create(kind=kind)
    ledger.outside_account()
    for values in (
        {"kind": "outside", "requester": requester},
        {"kind": "outside"},
        {"kind": "available", "requester": requester},
    ):
        with pytest.raises(IntegrityError), transaction.atomic():
            LedgerAccount.objects.create(**values)


@pytest.mark.parametrize(
    ("schedule", "reward", "assignments", "for_masters", "fee"),
    [
        ("none", "5.00", 100, True, "0.00"),
        ("mturk", "0.63", 1, False, "0.13"),
        ("mturk", "0.63", 9, False, "0.13"),
        ("mturk", "0.63", 10, False, "0.25"),
        ("mturk", "1.00", 9, True, "0.25"),
        ("mturk", "1.00", 10, True, "0.45"),
        ("mturk", "0.01", 1, False, "0.01"),
        ("mturk", "0.525", 1, False, "0.11"),
    ],
)
def test_a_fee_follows_its_schedule(schedule, reward, assignments, for_masters, fee):
    fees = SCHEDULES[schedule].per_assignment(
        reward_usd=Decimal(reward), max_assignments=assignments, for_masters=for_masters
    )
    assert fees == Decimal(fee)


@pytest.mark.parametrize(
    ("schedule", "bonus", "fee"),
    [("none", "5.00", "0.00"), ("mturk", "5.00", "1.00"), ("mturk", "0.01", "0.01")],
)
def test_the_fee_on_a_bonus_follows_the_schedule_too(schedule, bonus, fee):
    assert SCHEDULES[schedule].per_bonus(Decimal(bonus)) == Decimal(fee)
