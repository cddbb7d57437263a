"""The operators' pages and commands: deposits, payouts, the audit log."""

import csv
import io
from decimal import Decimal

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from accounts.models import User
from marketplace.exceptions import InvalidAmount, InvalidPayoutFile, RequesterDoesNotExist
from marketplace.models import AuditEntry, LedgerEntry, LedgerTransaction, Payout, PayoutBatch
from marketplace.money import ledger
from tests.marketplace.conftest import HIT, assert_ledger_balances, submit
from tests.marketplace.test_worker_site import text_of

HOME = "/marketplace-operator/"


@pytest.fixture
def olga(db):
    browser = Client()
    browser.force_login(User.objects.create_user("olga", is_staff=True))
    return browser


@pytest.fixture
def earned(mturk, worker, make_worker):
    """Two workers who have earned $1.26 and $0.63."""
    ben = make_worker("ben")
    for person in (worker, worker, ben):
        hit = mturk.create_hit(**HIT)["HIT"]["HITId"]
        mturk.approve_assignment(AssignmentId=submit(person, hit))
    return worker, ben


def balance(account):
    return ledger.balance_of(account)


def run(command, *args, **options):
    out = io.StringIO()
    call_command(command, *args, stdout=out, **options)
    return out.getvalue().strip()


def rows_of(file):
    return list(csv.DictReader(io.StringIO(file.read_text())))


@pytest.mark.parametrize("path", ["", "payouts/", "audit/", "status/", "requesters/{id}/"])
@pytest.mark.parametrize("who", ["requester", "worker"])
def test_the_pages_are_the_operators_alone(requester, ada, path, who):
    address = HOME + path.format(id=requester.public_id)
    user = User.objects.create_user("rita")
    requester.users.add(user)
    browser = ada
    if who == "requester":
        browser = Client()
        browser.force_login(user)
    assert browser.get(address).status_code == 403
    assert browser.post(address).status_code in (403, 405)
    assert "/requester-console/login/" in Client().get(address).headers["Location"]


@pytest.mark.parametrize("path", ["payouts/make/", "payouts/1/export/", "payouts/1/paid/"])
def test_actions_are_the_operators_alone_and_need_a_form_of_ours(ada, earned, path):
    assert ada.post(HOME + path).status_code == 403
    careful = Client(enforce_csrf_checks=True)
    careful.force_login(User.objects.create_user("olga", is_staff=True))
    assert careful.post(HOME + path).status_code == 403
    assert not PayoutBatch.objects.exists()


def test_a_deposit_is_made_by_an_operator_and_written_down(olga, requester):
    page = f"{HOME}requesters/{requester.public_id}/"
    sent = {"amount_usd": "250.50", "reference": "Invoice 7", "name": "Dialogue lab"}
    response = olga.post(page, sent, follow=True)
    assert "$250.50 put into the account of Dialogue lab." in text_of(response)
    assert balance(ledger.available_account(requester)) == Decimal("350.50")
    entry = AuditEntry.objects.get(action="requester.deposit", detail__reference="Invoice 7")
    assert entry.user.username == "olga"
    assert entry.detail == {"amount_usd": "250.50", "reference": "Invoice 7"}
    assert "Invoice 7" in text_of(olga.get(page))
    assert "350.50" in text_of(olga.get(HOME, {"q": "dialogue"}))
    assert_ledger_balances()


@pytest.mark.parametrize(
    "wrong",
    [{"name": "Other lab"}, {"amount_usd": "-5"}, {"amount_usd": "0.001"}, {"reference": ""}],
)
def test_a_deposit_is_checked(olga, requester, wrong):
    sent = {"amount_usd": "250.50", "reference": "Invoice 7", "name": "Dialogue lab"} | wrong
    response = olga.post(f"{HOME}requesters/{requester.public_id}/", sent)
    assert response.status_code == 200
    assert balance(ledger.available_account(requester)) == Decimal(100)


def test_a_deposit_can_be_made_by_a_command(requester):
    output = run("deposit", requester.public_id, "20", note="Invoice 8")
    deposit = requester.deposits.get(reference="Invoice 8")
    sentence = "Requester Dialogue lab now has $120.00. Deposit {} {} in the account."
    assert output == sentence.format(deposit.public_id, "is")
    output = run("deposit", requester.public_id, "20", note="Invoice 8")
    assert output == sentence.format(deposit.public_id, "was already")
    assert AuditEntry.objects.get(detail__reference="Invoice 8").user is None
    with pytest.raises(RequesterDoesNotExist, match="does not exist"):
        run("deposit", "ANOBODY", "20")
    with pytest.raises(InvalidAmount, match="amount of dollars"):
        run("deposit", requester.public_id, "lots")


def test_payouts_go_out_and_are_marked_as_paid_once(earned, tmp_path):
    file = tmp_path / "payouts.csv"
    assert run("export_payouts", file) == f"2 payouts in {file}, $1.89 not yet paid."
    assert file.stat().st_mode & 0o077 == 0
    assert [(row["username"], row["amount_usd"]) for row in rows_of(file)] == [
        ("ada", "1.26"),
        ("ben", "0.63"),
    ]
    for worker in earned:
        assert balance(ledger.earnings_account(worker)) == 0
    assert balance(ledger.payouts_account()) == Decimal("1.89")
    assert run("mark_payouts_paid", file) == "2 payouts marked as paid, 0 were already."
    assert balance(ledger.payouts_account()) == 0
    count = LedgerTransaction.objects.count()
    assert run("mark_payouts_paid", file) == "0 payouts marked as paid, 2 were already."
    assert LedgerTransaction.objects.count() == count
    assert PayoutBatch.objects.get().paid_at is not None
    assert_ledger_balances()


def test_exporting_twice_takes_nothing_twice(earned, tmp_path):
    first, second = tmp_path / "1.csv", tmp_path / "2.csv"
    run("export_payouts", first)
    run("export_payouts", second)
    assert first.read_text() == second.read_text()
    assert Payout.objects.count() == 2
    assert AuditEntry.objects.filter(action="payouts.export").count() == 1


def test_later_earnings_make_a_later_batch(mturk, earned, tmp_path):
    file = tmp_path / "payouts.csv"
    run("export_payouts", file)
    run("mark_payouts_paid", file)
    hit = mturk.create_hit(**HIT)["HIT"]["HITId"]
    mturk.approve_assignment(AssignmentId=submit(earned[0], hit))
    assert run("export_payouts", file).startswith("1 payout")
    assert rows_of(file)[0]["amount_usd"] == "0.63"


def test_small_earnings_can_wait(earned, tmp_path):
    assert run("export_payouts", tmp_path / "1.csv", minimum="1").startswith("1 payout")
    assert balance(ledger.earnings_account(earned[1])) == Decimal("0.63")


@pytest.mark.parametrize("minimum", ["NaN", "-Infinity", "some"])
def test_a_least_amount_that_is_none_takes_nothing(earned, tmp_path, minimum):
    with pytest.raises(InvalidAmount, match="amount of dollars"):
        run("export_payouts", tmp_path / "1.csv", minimum=minimum)
    assert not PayoutBatch.objects.exists()


def test_nothing_is_taken_where_the_file_cannot_be_written(earned, tmp_path):
    with pytest.raises(CommandError, match="Is a directory"):
        run("export_payouts", tmp_path)
    assert not PayoutBatch.objects.exists()


def test_a_dry_run_takes_nothing(earned, tmp_path):
    assert run("export_payouts", tmp_path / "1.csv", dry_run=True).startswith("0 payouts")
    assert not PayoutBatch.objects.exists()


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda text: text.replace("0.63", "9.63"), "is of 0.63, not '9.63'"),
        (lambda text: text.replace("\r\n", "\r\n999,1,A1,eve,5.00,,\r\n", 1), "no payout '999'"),
        (lambda text: text.replace("amount_usd", "amount"), "no column amount_usd"),
        (lambda text: "", "no column"),
    ],
)
def test_a_file_that_does_not_agree_with_the_ledger_marks_nothing(
    earned, tmp_path, change, complaint
):
    file = tmp_path / "payouts.csv"
    run("export_payouts", file)
    file.write_text(change(file.read_bytes().decode()))
    with pytest.raises(InvalidPayoutFile, match=complaint):
        run("mark_payouts_paid", file)
    assert not Payout.objects.exclude(paid_at=None).exists()


def test_a_part_of_a_batch_can_be_paid_first(earned, tmp_path):
    file = tmp_path / "payouts.csv"
    run("export_payouts", file)
    lines = file.read_text().splitlines()
    file.write_text("\n".join(lines[:2]))
    run("mark_payouts_paid", file)
    assert PayoutBatch.objects.get().paid_at is None
    assert balance(ledger.payouts_account()) == Decimal("0.63")
    assert_ledger_balances()


def test_payouts_on_the_pages(olga, earned):
    assert "Take $1.89 into a batch" in text_of(olga.get(HOME + "payouts/"))
    olga.post(HOME + "payouts/make/")
    batch = PayoutBatch.objects.get()
    assert batch.created_by.username == "olga"
    exported = olga.post(f"{HOME}payouts/{batch.pk}/export/")
    assert (
        exported.headers["Content-Disposition"] == f'attachment; filename="payouts-{batch.pk}.csv"'
    )
    assert len(text_of(exported).splitlines()) == 3
    assert "Mark 2 as paid" in text_of(olga.get(HOME + "payouts/"))
    olga.post(f"{HOME}payouts/{batch.pk}/paid/")
    olga.post(f"{HOME}payouts/{batch.pk}/paid/")
    batch.refresh_from_db()
    assert batch.paid_at is not None
    assert "Nobody has anything" in text_of(olga.post(HOME + "payouts/make/", follow=True))
    assert_ledger_balances()


def test_workers_see_what_was_paid_out(earned, ada, tmp_path):
    run("export_payouts", tmp_path / "1.csv")
    page = text_of(ada.get("/worker/earnings/"))
    assert 'Paid out</dt><dd class="value">$1.26</dd>' in page
    assert 'To be paid out</dt><dd class="value">$0.00</dd>' in page


def test_the_audit_log_can_be_narrowed(olga, requester):
    run("deposit", requester.public_id, "20", note="Invoice 8")
    page = text_of(olga.get(HOME + "audit/"))
    assert "Invoice 8" in page
    assert "key.issue" in page
    narrow = text_of(olga.get(HOME + "audit/", {"action": "key.issue"}))
    assert "Invoice 8" not in narrow


def test_the_ledger_can_be_audited(earned):
    assert run("audit_ledger") == "The ledger balances."
    entry = LedgerTransaction.objects.first().entries.first()
    entries = LedgerEntry.objects.filter(pk=entry.pk)
    entries.update(amount_usd=1)
    with pytest.raises(CommandError, match="sums to"):
        run("audit_ledger")
    entries.update(amount_usd=entry.amount_usd)
