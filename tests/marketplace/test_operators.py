"""The operators' pages and commands: requesters, deposits, payouts, audit, status."""

import csv
import io
import json
import re
from decimal import Decimal
from pathlib import Path

import pytest
from django.contrib.auth import authenticate
from django.core.management import CommandError

from config.commandline import main
from marketplace.exceptions import InvalidAmount, InvalidPayoutFile, RequesterDoesNotExist
from marketplace.models import (
    AuditEntry,
    LedgerAudit,
    LedgerEntry,
    LedgerTransaction,
    Payout,
    PayoutBatch,
    Requester,
    WorkerAccount,
)
from marketplace.money import ledger
from tests.boto_clients import in_process_client
from tests.codes import message_codes, refused
from tests.marketplace.conftest import HIT, assert_ledger_balances, run, submit
from tests.marketplace.prolific import numbers
from tests.marketplace.test_worker_site import text_of
from work.models import Job
from work.request import request_job

HOME = "/marketplace-operator/"


@pytest.fixture
def earned(mturk, worker, make_worker):
    ben = make_worker("ben")
    for person in (worker, worker, ben):
        hit = mturk.create_hit(**HIT)["HIT"]["HITId"]
        mturk.approve_assignment(AssignmentId=submit(person, hit))
    return worker, ben


def balance(account):
    return ledger.balance_of(account)


def rows_of(file):
    return list(csv.DictReader(io.StringIO(file.read_text())))


def test_a_deposit_is_made_by_an_operator_and_written_down(olga, requester):
    page = f"{HOME}requesters/{requester.public_id}/"
    sent = {"amount_usd": "250.50", "reference": "Invoice 7", "name": "Dialogue lab"}
    response = olga.post(page, sent, follow=True)
    assert message_codes(response) == ["deposited"]
    assert balance(ledger.available_account(requester)) == Decimal("350.50")
    entry = AuditEntry.objects.get(action="requester.deposit", detail__reference="Invoice 7")
    assert entry.user.username == "olga"
    assert entry.detail == {"amount_usd": "250.50", "reference": "Invoice 7"}
    assert "Invoice 7" in text_of(olga.get(page))
    assert "350.50" in text_of(olga.get(HOME, {"q": "dialogue"}))
    assert_ledger_balances()


def test_a_deposit_can_be_made_by_a_command(requester):
    for _ in range(2):
        output = run("deposit", requester.public_id, "20", note="Invoice 8")
        deposit = requester.deposits.get(reference="Invoice 8")
        for part in ("Dialogue lab", "$120.00", deposit.public_id):
            assert part in output
    assert AuditEntry.objects.get(detail__reference="Invoice 8").user is None
    with refused(RequesterDoesNotExist):
        run("deposit", "ANOBODY", "20")
    with refused(InvalidAmount, "invalid_amount"):
        run("deposit", requester.public_id, "lots")


def test_payouts_go_out_and_are_marked_as_paid_once(earned, tmp_path):
    file = tmp_path / "payouts.csv"
    output = run("export_payouts", file)
    assert [part for part in ("2", str(file), "$1.89") if part not in output] == []
    assert file.stat().st_mode & 0o077 == 0
    assert [(row["username"], row["amount_usd"]) for row in rows_of(file)] == [
        ("ada", "1.26"),
        ("ben", "0.63"),
    ]
    for worker in earned:
        assert balance(ledger.earnings_account(worker)) == 0
    assert balance(ledger.shared_account(ledger.AccountKind.PAYOUTS)) == Decimal("1.89")
    assert re.findall("[0-9]+", run("mark_payouts_paid", file)) == ["2", "0"]
    assert balance(ledger.shared_account(ledger.AccountKind.PAYOUTS)) == 0
    count = LedgerTransaction.objects.count()
    assert re.findall("[0-9]+", run("mark_payouts_paid", file)) == ["0", "2"]
    assert LedgerTransaction.objects.count() == count
    assert PayoutBatch.objects.get().paid_at is not None
    assert_ledger_balances()


def test_exporting_twice_takes_nothing_twice_and_later_earnings_make_a_later_batch(
    mturk, earned, tmp_path
):
    first, second = tmp_path / "1.csv", tmp_path / "2.csv"
    run("export_payouts", first)
    run("export_payouts", second)
    assert first.read_text() == second.read_text()
    assert Payout.objects.count() == 2
    assert AuditEntry.objects.filter(action="payouts.export").count() == 1
    run("mark_payouts_paid", first)
    hit = mturk.create_hit(**HIT)["HIT"]["HITId"]
    mturk.approve_assignment(AssignmentId=submit(earned[0], hit))
    run("export_payouts", first)
    assert [row["amount_usd"] for row in rows_of(first)] == ["0.63"]


def test_small_earnings_can_wait(earned, tmp_path):
    run("export_payouts", tmp_path / "1.csv", minimum="1")
    assert Payout.objects.count() == 1
    assert balance(ledger.earnings_account(earned[1])) == Decimal("0.63")


def test_a_wrong_amount_a_folder_and_a_dry_run_take_nothing(earned, tmp_path):
    for minimum in ("NaN", "-Infinity", "some"):
        with refused(InvalidAmount, "invalid_amount"):
            run("export_payouts", tmp_path / "1.csv", minimum=minimum)
    with pytest.raises(CommandError) as caught:
        run("export_payouts", tmp_path)
    assert caught.value.returncode == 2
    run("export_payouts", tmp_path / "1.csv", dry_run=True)
    assert rows_of(tmp_path / "1.csv") == []
    assert not PayoutBatch.objects.exists()


@pytest.mark.parametrize(
    ("change", "code", "named"),
    [
        (lambda text: text.replace("0.63", "9.63"), "wrong_amount", ["0.63", "9.63"]),
        (
            lambda text: text.replace("\r\n", "\r\n999,1,A1,eve,5.00,,\r\n", 1),
            "unknown_payout",
            ["999"],
        ),
        (lambda text: text.replace("amount_usd", "amount"), "missing_column", ["amount_usd"]),
        (lambda text: "", "missing_column", []),
    ],
)
def test_a_file_that_does_not_agree_with_the_ledger_marks_nothing(
    earned, tmp_path, change, code, named
):
    file = tmp_path / "payouts.csv"
    run("export_payouts", file)
    file.write_text(change(file.read_bytes().decode()))
    with refused(InvalidPayoutFile, code) as caught:
        run("mark_payouts_paid", file)
    assert [each for each in named if each not in str(caught.value)] == []
    assert not Payout.objects.exclude(paid_at=None).exists()


def test_a_part_of_a_batch_can_be_paid_first(earned, tmp_path):
    file = tmp_path / "payouts.csv"
    run("export_payouts", file)
    file.write_text("\n".join(file.read_text().splitlines()[:2]))
    run("mark_payouts_paid", file)
    assert PayoutBatch.objects.get().paid_at is None
    assert balance(ledger.shared_account(ledger.AccountKind.PAYOUTS)) == Decimal("0.63")
    assert_ledger_balances()


def test_payouts_on_the_pages(olga, earned):
    assert f"{olga.get(HOME + 'payouts/').context['due_usd']:.2f}" == "1.89"
    olga.post(HOME + "payouts/make/")
    batch = PayoutBatch.objects.get()
    assert batch.created_by.username == "olga"
    exported = olga.post(f"{HOME}payouts/{batch.pk}/export/")
    assert (
        exported.headers["Content-Disposition"] == f'attachment; filename="payouts-{batch.pk}.csv"'
    )
    assert len(text_of(exported).splitlines()) == 3
    page = olga.get(HOME + "payouts/")
    assert [each.unpaid_count for each in page.context["page"]] == [2]
    assert f"{HOME}payouts/{batch.pk}/paid/" in text_of(page)
    olga.post(f"{HOME}payouts/{batch.pk}/paid/")
    olga.post(f"{HOME}payouts/{batch.pk}/paid/")
    batch.refresh_from_db()
    assert batch.paid_at is not None
    assert message_codes(olga.post(HOME + "payouts/make/", follow=True))[-1] == "nothing_due"
    assert_ledger_balances()


def test_the_ledger_can_be_audited(earned):
    run("audit_ledger")
    entry = LedgerTransaction.objects.first().entries.first()
    entries = LedgerEntry.objects.filter(pk=entry.pk)
    entries.update(amount_usd=1)
    with pytest.raises(CommandError):
        run("audit_ledger")
    entries.update(amount_usd=entry.amount_usd)


def test_a_new_requester_gets_a_key_that_opens_the_api(db):
    keys = json.loads(run("create_requester", "Lab", "--deposit", "1000", "--json"))
    assert set(keys) == {"requester", "access_key_id", "secret_access_key", "balance_usd"}
    assert (keys["requester"], keys["balance_usd"]) == ("Lab", "1000.00")
    assert keys["secret_access_key"] not in run("dumpdata", "marketplace")
    assert in_process_client(keys).get_account_balance()["AvailableBalance"] == "1000.00"


def test_the_same_name_gets_another_key_and_no_second_deposit(db):
    first = json.loads(run("create_requester", "Lab", "--deposit", "5", "--json"))
    second = json.loads(run("create_requester", "Lab", "--json"))
    assert second["access_key_id"] != first["access_key_id"]
    assert second["secret_access_key"] != first["secret_access_key"]
    assert second["balance_usd"] == "5.00"
    third = json.loads(run("create_requester", "Lab", "--deposit", "$2.50", "--json"))
    assert third["balance_usd"] == "7.50"
    for keys in (first, second, third):
        assert in_process_client(keys).get_account_balance()["AvailableBalance"] == "7.50"
    assert Requester.objects.count() == 1


def test_a_worker_is_made_and_named(db):
    worker_id = run("create_worker", "ada@example.org", "--password", "pass-word-1")
    assert WorkerAccount.objects.get().worker_id == worker_id
    assert (worker_id[0], len(worker_id)) == ("A", 14)
    user = authenticate(username="ada@example.org", password="pass-word-1")
    assert user.worker_account.worker_id == worker_id


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_what_cannot_be_done_is_a_sentence_and_exit_code_2(worker, capsys, tmp_path, monkeypatch):
    for arguments in (
        *(
            ("create_requester", "Lab", f"--deposit={amount}")
            for amount in ("lots", "-5", "0", "1.005", "NaN", "")
        ),
        *(("create_worker", name, "--password", "x") for name in ("ada", "two words", "")),
        ("deposit", "ANOBODY", "5"),
        ("deposit", "ANOBODY", "--", "-5"),
        ("export_payouts", "no/such/folder/1.csv"),
        ("export_payouts", "1.csv", "--minimum", "NaN"),
        ("mark_payouts_paid", "no-such-file.csv"),
        ("mark_payouts_paid", "long.csv"),
        ("create_requester", "Lab", "--user", "nobody"),
        ("create_requester", "L\udcff"),
        ("create_worker", "eve", "--password="),
    ):
        monkeypatch.chdir(tmp_path)
        Path("long.csv").write_text(f'payout_id,amount_usd\n"{"1" * 200_000}",1\n')
        try:
            code = main(["manage.py", *arguments])
        except SystemExit as ended:
            code = ended.code
        assert code == 2
        assert capsys.readouterr().err.count("\n") == 1
        assert not Requester.objects.exists()
        assert not LedgerTransaction.objects.exists()
        assert WorkerAccount.objects.count() == 1


STATUS = "/marketplace-operator/status/"


@pytest.fixture
def immediate_tasks(settings):
    backend = "django_tasks.backends.immediate.ImmediateBackend"
    settings.TASKS = {"default": {"BACKEND": backend, "QUEUES": []}}


def audit():
    request_job(kind="audit_ledger")


def test_an_audit_is_stored_with_what_is_wrong(immediate_tasks, olga, requester, caplog):
    audit()
    assert LedgerAudit.objects.get().n_problems == 0
    LedgerEntry.objects.filter(account__kind="available").update(balance_usd=Decimal("1.00"))
    audit()
    assert LedgerAudit.objects.count() == 2
    latest = LedgerAudit.objects.latest()
    assert latest.n_problems == 1
    [problem] = latest.problems
    assert {"1.00", "100.00"} <= set(numbers(problem))
    assert problem in caplog.text
    assert problem in text_of(olga.get(STATUS))
    assert numbers(Job.objects.filter(kind="audit_ledger").latest("pk").message) == ["1"]


@pytest.mark.parametrize(
    "wrong",
    [{"name": "Other lab"}, {"amount_usd": "-5"}, {"amount_usd": "0.001"}, {"reference": ""}],
)
def test_a_deposit_is_checked(olga, requester, wrong):
    sent = {"amount_usd": "250.50", "reference": "Invoice 7", "name": "Dialogue lab"} | wrong
    response = olga.post(f"{HOME}requesters/{requester.public_id}/", sent)
    assert response.status_code == 200
    assert balance(ledger.available_account(requester)) == Decimal(100)
