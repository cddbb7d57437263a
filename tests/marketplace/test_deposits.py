"""Deposits: each once however often it is sent, each in the audit log, and taken out again."""

import re
from decimal import Decimal

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, transaction
from django.test import Client

from accounts.models import User
from marketplace import clock
from marketplace.exceptions import (
    DepositDoesNotExist,
    DepositSpent,
    DuplicateDeposit,
    InvalidAmount,
)
from marketplace.models import AuditEntry, Deposit, LedgerTransaction, Requester
from marketplace.money import ledger
from marketplace.money.amounts import parse_amount
from marketplace.money.deposits import deposit, reverse_deposit
from marketplace.money.reconciliation import audit
from tests.marketplace.conftest import HIT, assert_ledger_balances
from tests.marketplace.test_at_the_same_moment import all_at_once
from tests.marketplace.test_operators import run
from tests.marketplace.test_worker_site import text_of

FULL_WIDTH = "\uff15\uff10\uff10"
NOT_PLAIN = ["1e9", "1E2", "٣", FULL_WIDTH, "NaN", "inf", "-5", "+5", "1,000", "1_000", "0x10", ""]
NOT_PLAIN += [".", "1.005", ".5", "5.", "$$5", "5 0", "٥٠", "1" * 13, "½"]


def available(requester):
    return ledger.balance_of(ledger.available_account(requester))


def address_of(requester):
    return f"/marketplace-operator/requesters/{requester.public_id}/"


@pytest.fixture
def olga(db):
    browser = Client()
    browser.force_login(User.objects.create_user("olga", is_staff=True))
    return browser


@pytest.fixture
def filled_in(olga, requester):
    """The form as its page sends it."""
    page = text_of(olga.get(address_of(requester)))
    token = re.search(r'name="form_token" value="([^"]+)"', page)[1]
    values = {"amount_usd": "7.00", "reference": "Invoice 7", "name": "Dialogue lab"}
    return values | {"form_token": token}


@pytest.mark.parametrize("text", NOT_PLAIN)
def test_what_is_no_plain_amount_is_refused(text):
    with pytest.raises(InvalidAmount, match="not an amount of dollars"):
        parse_amount(text)


@pytest.mark.parametrize(
    ("text", "amount"),
    [("1000", "1000"), ("$49.50", "49.50"), (" 0.1 ", "0.1"), ("1000000.00", "1000000")],
)
def test_a_plain_amount_is_read(text, amount):
    assert parse_amount(text) == Decimal(amount)


@pytest.mark.parametrize("text", ["1000000.01", "1000000000", "999999999999.99"])
def test_a_slip_of_the_finger_is_refused(text):
    with pytest.raises(InvalidAmount, match=r"more than \$1,000,000\.00 at once"):
        parse_amount(text)


@pytest.mark.parametrize("amount", ["1e9", FULL_WIDTH, "NaN", "1000000.01", "0", "0.00", "-5"])
def test_the_form_reads_amounts_in_the_same_way(olga, requester, filled_in, amount):
    response = olga.post(address_of(requester), filled_in | {"amount_usd": amount})
    assert response.status_code == 200
    assert available(requester) == 100


def test_a_form_that_is_sent_twice_makes_one_deposit_and_gets_one_answer(
    olga, requester, filled_in
):
    answers = [olga.post(address_of(requester), filled_in) for _ in range(2)]
    assert [(each.status_code, each.headers["Location"]) for each in answers] == [
        (302, address_of(requester))
    ] * 2
    assert available(requester) == 107
    assert AuditEntry.objects.filter(detail__reference="Invoice 7").count() == 1


def test_a_page_that_is_opened_anew_may_send_another_deposit(olga, requester, filled_in):
    olga.post(address_of(requester), filled_in)
    page = text_of(olga.get(address_of(requester)))
    assert filled_in["form_token"] not in page


def test_a_reference_that_is_taken_is_refused_on_another_form(olga, requester, filled_in):
    olga.post(address_of(requester), filled_in)
    again = olga.post(address_of(requester), filled_in | {"form_token": "another"})
    assert again.status_code == 200
    assert "There is a deposit with the reference" in text_of(again)
    assert available(requester) == 107


def test_a_form_that_is_sent_again_with_other_values_is_refused(olga, requester, filled_in):
    olga.post(address_of(requester), filled_in)
    again = olga.post(address_of(requester), filled_in | {"amount_usd": "8.00"})
    assert "This form has made a deposit of $7.00 already" in text_of(again)
    assert available(requester) == 107


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("with_token", [True, False])
def test_six_posts_of_a_form_at_once_make_one_deposit(transactional_db, make_keys, with_token):
    make_keys()
    requester = Requester.objects.get()
    operator = User.objects.create_user("olga", is_staff=True)
    values = {"amount_usd": "7.00", "reference": "Invoice 7", "name": "Dialogue lab"}
    if with_token:
        values["form_token"] = "the-token-of-the-page"

    def post():
        browser = Client()
        browser.force_login(operator)
        return lambda: browser.post(address_of(requester), values)

    answers = all_at_once(*[post() for _ in range(6)])
    assert {(each.status_code, each.headers["Location"]) for each in answers} == {
        (302, address_of(requester))
    }
    assert available(requester) == 107
    assert_ledger_balances()


def test_the_database_holds_each_reference_and_form_once(requester):
    created, _ = deposit(
        requester=requester, amount_usd=Decimal(7), reference="Invoice 7", form_token="token"
    )
    movement = LedgerTransaction.objects.create(kind="deposit", created_at=clock.now())
    for values in ({"reference": "Invoice 7"}, {"form_token": "token"}):
        with pytest.raises(IntegrityError), transaction.atomic():
            Deposit.objects.create(
                requester=requester,
                amount_usd=7,
                transaction=movement,
                created_at=created.created_at,
                **values,
            )


def test_a_reference_stands_for_one_deposit_of_its_requester(requester, make_keys):
    other = Requester.objects.create(name="Other lab", created_at=clock.now())
    first, _ = deposit(requester=requester, amount_usd=Decimal(7), reference=" Invoice 7")
    assert deposit(requester=requester, amount_usd=Decimal(7), reference="Invoice 7 ") == (
        first,
        False,
    )
    with pytest.raises(DuplicateDeposit, match="Nothing was put in"):
        deposit(requester=requester, amount_usd=Decimal(8), reference="Invoice 7")
    assert deposit(requester=other, amount_usd=Decimal(8), reference="Invoice 7")[1]
    assert (available(requester), available(other)) == (107, 8)


def test_every_deposit_is_in_the_audit_log(requester):
    call_command("create_requester", "Dialogue lab", deposit="5")
    call_command("create_requester", "New lab", deposit="6")
    call_command("deposit", requester.public_id, "7")
    deposits = LedgerTransaction.objects.filter(kind="deposit").count()
    entries = AuditEntry.objects.filter(action="requester.deposit")
    assert entries.count() == deposits == 4
    assert {entry.detail["amount_usd"] for entry in entries} == {"100.00", "5.00", "6.00", "7.00"}
    assert audit() == []


def test_a_deposit_is_taken_out_again_once(requester):
    created, _ = deposit(requester=requester, amount_usd=Decimal(7), reference="Invoice 7")
    sentence = f"Deposit {created.public_id} of $7.00 {{}} taken out. "
    sentence += "Requester Dialogue lab now has $100.00."
    assert run("reverse_deposit", created.public_id, reason="Typed 7 for 70") == sentence.format(
        "is"
    )
    output = run("reverse_deposit", created.public_id, reason="Typed 7 for 70")
    assert output == sentence.format("was already")
    created.refresh_from_db()
    assert created.reversal.kind == "reversal"
    entry = AuditEntry.objects.get(action="requester.reverse_deposit")
    assert entry.detail["deposit"] == created.public_id
    assert entry.detail["reason"] == "Typed 7 for 70"
    assert deposit(requester=requester, amount_usd=Decimal(70), reference="Invoice 7")[1]
    assert available(requester) == 170
    assert_ledger_balances()


def test_only_what_is_available_is_taken_out(mturk, requester):
    mturk.create_hit(**HIT | {"Reward": "0.01"})
    stored = Deposit.objects.get()
    with pytest.raises(DepositSpent, match=r"only \$99\.99 is available"):
        reverse_deposit(deposit=stored, reason="A mistake")
    stored.refresh_from_db()
    assert stored.reversal is None
    assert available(requester) == Decimal("99.99")


@pytest.mark.django_db(transaction=True)
def test_a_deposit_is_taken_out_by_one_of_those_who_try_at_once(transactional_db, make_keys):
    make_keys()
    stored = Deposit.objects.select_related("requester").get()
    calls = [
        lambda: reverse_deposit(deposit=Deposit.objects.get(pk=stored.pk), reason="A mistake")
    ] * 4
    assert sorted(all_at_once(*calls)) == [False, False, False, True]
    assert available(stored.requester) == 0
    assert_ledger_balances()


def test_a_deposit_is_taken_out_on_the_operators_page(olga, requester):
    stored = Deposit.objects.get()
    address = f"{address_of(requester)}deposits/{stored.public_id}/reverse/"
    assert "Say why" in text_of(olga.post(address, {"reason": ""}, follow=True))
    page = text_of(olga.post(address, {"reason": "A mistake"}, follow=True))
    assert "$100.00 taken out of the account." in page
    assert "Taken out</td>" in page
    assert available(requester) == 0
    other = Requester.objects.create(name="Other lab", created_at=clock.now())
    strange = f"{address_of(other)}deposits/{stored.public_id}/reverse/"
    assert olga.post(strange, {"reason": "A mistake"}).status_code == 404
    assert Client().post(address, {"reason": "A mistake"}).status_code == 302
    assert AuditEntry.objects.filter(action="requester.reverse_deposit").count() == 1


def test_a_page_says_why_a_deposit_stays(olga, mturk, requester):
    mturk.create_hit(**HIT)
    address = f"{address_of(requester)}deposits/{Deposit.objects.get().public_id}/reverse/"
    page = text_of(olga.post(address, {"reason": "A mistake"}, follow=True))
    assert "only $99.37 is available" in page


def test_a_deposit_that_is_not_there_is_an_error(db):
    with pytest.raises(DepositDoesNotExist, match="Deposit NOSUCH does not exist"):
        run("reverse_deposit", "NOSUCH", reason="A mistake")
    with pytest.raises(CommandError, match="reason"):
        call_command("reverse_deposit", "NOSUCH")
