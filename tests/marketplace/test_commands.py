import json
from pathlib import Path

import pytest
from django.contrib.auth import authenticate
from django.core.management import call_command

from config.commandline import main
from marketplace.models import LedgerTransaction, Requester, WorkerAccount
from tests.boto_clients import in_process_client


def run(capsys, *arguments):
    call_command(*arguments)
    return capsys.readouterr().out


def test_a_new_requester_gets_a_key_that_opens_the_api(db, capsys):
    keys = json.loads(run(capsys, "create_requester", "Lab", "--deposit", "1000", "--json"))
    assert set(keys) == {"requester", "access_key_id", "secret_access_key", "balance_usd"}
    assert (keys["requester"], keys["balance_usd"]) == ("Lab", "1000.00")
    assert in_process_client(keys).get_account_balance()["AvailableBalance"] == "1000.00"


def test_the_same_name_gets_another_key_and_no_second_deposit(db, capsys):
    first = json.loads(run(capsys, "create_requester", "Lab", "--deposit", "5", "--json"))
    second = json.loads(run(capsys, "create_requester", "Lab", "--json"))
    assert second["access_key_id"] != first["access_key_id"]
    assert second["secret_access_key"] != first["secret_access_key"]
    assert second["balance_usd"] == "5.00"
    third = json.loads(run(capsys, "create_requester", "Lab", "--deposit", "$2.50", "--json"))
    assert third["balance_usd"] == "7.50"
    for keys in (first, second, third):
        assert in_process_client(keys).get_account_balance()["AvailableBalance"] == "7.50"
    assert Requester.objects.count() == 1


def test_the_plain_output_can_be_put_into_an_environment(db, capsys):
    lines = run(capsys, "create_requester", "Lab").splitlines()
    assert lines[0] == "Requester Lab, balance $0.00."
    assert [line.split("=")[0] for line in lines[1:]] == [
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
    ]


@pytest.mark.django_db(transaction=True)  # a command line closes its connections
@pytest.mark.parametrize("amount", ["lots", "-5", "0", "1.005", "NaN", ""])
def test_a_bad_amount_is_a_sentence_and_exit_code_2(capsys, amount):
    code = main(["manage.py", "create_requester", "Lab", f"--deposit={amount}"])
    assert code == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not LedgerTransaction.objects.exists()
    assert not Requester.objects.exists()


def test_the_secret_is_in_no_table(db, capsys):
    keys = json.loads(run(capsys, "create_requester", "Lab", "--json"))
    call_command("dumpdata", "marketplace")
    assert keys["secret_access_key"] not in capsys.readouterr().out


def test_a_worker_is_made_and_named(db, capsys):
    worker_id = run(capsys, "create_worker", "ada@example.org", "--password", "pass-word-1").strip()
    assert WorkerAccount.objects.get().worker_id == worker_id
    assert worker_id[0] == "A"
    assert len(worker_id) == 14
    user = authenticate(username="ada@example.org", password="pass-word-1")
    assert user.worker_account.worker_id == worker_id


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "arguments",
    [
        ("deposit", "ANOBODY", "5"),
        ("deposit", "ANOBODY", "--", "-5"),
        ("export_payouts", "no/such/folder/1.csv"),
        ("export_payouts", "1.csv", "--minimum", "NaN"),
        ("mark_payouts_paid", "no-such-file.csv"),
        ("mark_payouts_paid", "long.csv"),
        ("create_requester", "Lab", "--user", "nobody"),
        ("create_requester", "L\udcff"),
        ("create_worker", "eve", "--password="),
    ],
)
def test_what_cannot_be_done_is_a_sentence_and_exit_code_2(
    capsys, tmp_path, monkeypatch, arguments
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


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", ["ada", "two words", ""])
def test_a_name_that_is_taken_or_impossible_is_exit_code_2(worker, capsys, name):
    assert main(["manage.py", "create_worker", name, "--password", "x"]) == 2
    assert capsys.readouterr().err.strip()
    assert WorkerAccount.objects.count() == 1
