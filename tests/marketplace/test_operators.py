"""The operators' pages and commands (requesters, deposits, payouts, audit, status) and /metrics."""

import csv
import io
import json
import os
import re
import socket
import subprocess
import sys
import time
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest
import requests
from django.conf import settings as site
from django.contrib.auth import authenticate
from django.core.management import CommandError
from django.test import Client
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from config.commandline import main
from marketplace import exceptions, models
from marketplace.hits.assignments import accept_hit
from marketplace.money import ledger, reconciliation, transfers
from marketplace.people.enrolment import create_worker
from tests.boto_clients import in_process_client
from tests.codes import message_codes, refused
from tests.marketplace.conftest import HIT, PASSWORD, assert_ledger_balances, run, submit
from tests.marketplace.prolific import numbers
from tests.marketplace.test_worker_site import text_of
from work.models import Job
from work.tasks import request_job

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
    amounts = [{"amount_usd": "-5"}, {"amount_usd": "0.001"}]
    for wrong in ({"name": "Other lab"}, {"reference": ""}, *amounts):
        assert olga.post(page, sent | wrong).status_code == 200
        assert balance(ledger.available_account(requester)) == Decimal(100)
    assert message_codes(olga.post(page, sent, follow=True)) == ["deposited"]
    assert balance(ledger.available_account(requester)) == Decimal("350.50")
    entry = models.AuditEntry.objects.get(action="requester.deposit", detail__reference="Invoice 7")
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
    assert models.AuditEntry.objects.get(detail__reference="Invoice 8").user is None
    with refused(exceptions.InvalidAmount, "invalid_amount"):
        run("deposit", requester.public_id, "lots")


def test_payouts_go_out_and_are_marked_as_paid_once(earned, tmp_path):
    file = tmp_path / "payouts.csv"
    output = run("export_payouts", file)
    assert [part for part in ("2", str(file), "$1.89") if part not in output] == []
    assert file.stat().st_mode & 0o077 == 0
    paid = [(row["username"], row["amount_usd"]) for row in rows_of(file)]
    assert paid == [("ada", "1.26"), ("ben", "0.63")]
    for worker in earned:
        assert balance(ledger.earnings_account(worker)) == 0
    assert balance(ledger.shared_account(ledger.AccountKind.PAYOUTS)) == Decimal("1.89")
    assert re.findall("[0-9]+", run("mark_payouts_paid", file)) == ["2", "0"]
    assert balance(ledger.shared_account(ledger.AccountKind.PAYOUTS)) == 0
    count = models.LedgerTransaction.objects.count()
    assert re.findall("[0-9]+", run("mark_payouts_paid", file)) == ["0", "2"]
    assert models.LedgerTransaction.objects.count() == count
    assert models.PayoutBatch.objects.get().paid_at is not None
    assert_ledger_balances()


def test_exporting_twice_takes_nothing_twice_and_later_earnings_make_a_later_batch(
    mturk, earned, tmp_path
):
    first, second = tmp_path / "1.csv", tmp_path / "2.csv"
    run("export_payouts", first)
    run("export_payouts", second)
    assert first.read_text() == second.read_text()
    assert models.Payout.objects.count() == 2
    assert models.AuditEntry.objects.filter(action="payouts.export").count() == 1
    run("mark_payouts_paid", first)
    hit = mturk.create_hit(**HIT)["HIT"]["HITId"]
    mturk.approve_assignment(AssignmentId=submit(earned[0], hit))
    run("export_payouts", first)
    assert [row["amount_usd"] for row in rows_of(first)] == ["0.63"]


def test_a_wrong_amount_a_folder_and_a_dry_run_take_nothing(earned, tmp_path):
    for minimum in ("NaN", "-Infinity", "some"):
        with refused(exceptions.InvalidAmount, "invalid_amount"):
            run("export_payouts", tmp_path / "1.csv", minimum=minimum)
    with pytest.raises(CommandError) as caught:
        run("export_payouts", tmp_path)
    assert caught.value.returncode == 2
    run("export_payouts", tmp_path / "1.csv", dry_run=True)
    assert rows_of(tmp_path / "1.csv") == []
    assert not models.PayoutBatch.objects.exists()
    run("export_payouts", tmp_path / "1.csv", minimum="1")
    assert models.Payout.objects.count() == 1
    assert balance(ledger.earnings_account(earned[1])) == Decimal("0.63")


STRANGE = "999,1,A1,eve,5.00,,"


@pytest.mark.parametrize(
    ("change", "code", "named"),
    [
        (lambda text: text.replace("0.63", "9.63"), "wrong_amount", ["0.63", "9.63"]),
        (lambda text: text.replace("\r\n", f"\r\n{STRANGE}\r\n", 1), "unknown_payout", ["999"]),
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
    with refused(exceptions.InvalidPayoutFile, code) as caught:
        run("mark_payouts_paid", file)
    assert [each for each in named if each not in str(caught.value)] == []
    assert not models.Payout.objects.exclude(paid_at=None).exists()


def test_a_part_of_a_batch_can_be_paid_first_and_the_ledger_audited(earned, tmp_path):
    file = tmp_path / "payouts.csv"
    run("export_payouts", file)
    file.write_text("\n".join(file.read_text().splitlines()[:2]))
    run("mark_payouts_paid", file)
    assert models.PayoutBatch.objects.get().paid_at is None
    assert balance(ledger.shared_account(ledger.AccountKind.PAYOUTS)) == Decimal("0.63")
    assert_ledger_balances()
    run("audit_ledger")
    entry = models.LedgerTransaction.objects.first().entries.first()
    entries = models.LedgerEntry.objects.filter(pk=entry.pk)
    entries.update(amount_usd=1)
    with pytest.raises(CommandError):
        run("audit_ledger")
    entries.update(amount_usd=entry.amount_usd)


def test_payouts_on_the_pages(olga, earned):
    assert f"{olga.get(HOME + 'payouts/').context['due_usd']:.2f}" == "1.89"
    olga.post(HOME + "payouts/make/")
    batch = models.PayoutBatch.objects.get()
    assert batch.created_by.username == "olga"
    exported = olga.post(f"{HOME}payouts/{batch.pk}/export/")
    disposition = f'attachment; filename="payouts-{batch.pk}.csv"'
    assert exported.headers["Content-Disposition"] == disposition
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
    assert models.Requester.objects.count() == 1
    keys = json.loads(run("create_requester", "New lab", "--deposit", "1000", "--json"))
    assert set(keys) == {"requester", "access_key_id", "secret_access_key", "balance_usd"}
    assert (keys["requester"], keys["balance_usd"]) == ("New lab", "1000.00")
    assert keys["secret_access_key"] not in run("dumpdata", "marketplace")


def test_a_worker_is_made_and_named(db):
    worker_id = run("create_worker", "ada@example.org", "--password", "pass-word-1")
    assert models.WorkerAccount.objects.get().worker_id == worker_id
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
        assert not models.Requester.objects.exists()
        assert not models.LedgerTransaction.objects.exists()
        assert models.WorkerAccount.objects.count() == 1


STATUS = "/marketplace-operator/status/"


@pytest.fixture
def immediate_tasks(settings):
    backend = "django_tasks.backends.immediate.ImmediateBackend"
    settings.TASKS = {"default": {"BACKEND": backend, "QUEUES": []}}


def audit():
    request_job(kind="audit_ledger")


def test_an_audit_is_stored_with_what_is_wrong(immediate_tasks, olga, requester, caplog):
    audit()
    assert models.LedgerAudit.objects.get().n_problems == 0
    models.LedgerEntry.objects.filter(account__kind="available").update(balance_usd=Decimal("1.00"))
    audit()
    assert models.LedgerAudit.objects.count() == 2
    latest = models.LedgerAudit.objects.latest()
    assert latest.n_problems == 1
    [problem] = latest.problems
    assert {"1.00", "100.00"} <= set(numbers(problem))
    assert problem in caplog.text
    assert problem in text_of(olga.get(STATUS))
    assert numbers(Job.objects.filter(kind="audit_ledger").latest("pk").message) == ["1"]


TOKEN = "a-token-of-the-test"
HOST = {"host": "localhost"}


@pytest.fixture
def read(settings):
    settings.METRICS_TOKEN = TOKEN

    def samples():
        from django.core.cache import cache

        cache.clear()
        answer = Client(headers=HOST | {"authorization": f"Bearer {TOKEN}"}).get("/metrics")
        assert answer.status_code == 200
        return parsed(answer.content.decode())

    return samples


def parsed(text):
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def of(samples, name, **labels):
    return samples[(name, *sorted(labels.items()))]


@pytest.mark.django_db
@pytest.mark.parametrize("sent", [None, "Bearer ", "Bearer wrong", TOKEN, f"Basic {TOKEN}"])
def test_only_who_has_the_token_reads(settings, sent):
    settings.METRICS_TOKEN = TOKEN
    headers = HOST | ({"authorization": sent} if sent else {})
    answer = Client(headers=headers).get("/metrics")
    assert (answer.status_code, answer["WWW-Authenticate"]) == (401, "Bearer")
    assert b"assay_" not in answer.content
    settings.METRICS_TOKEN = ""
    assert Client(headers=headers).get("/metrics").status_code == 404


@pytest.mark.django_db
def test_requests_are_counted_by_view_and_no_stranger_invents_a_label(
    read, django_assert_max_num_queries
):
    before = read()
    browser = Client(headers=HOST)
    for address in ("/healthz", "/healthz", "/invented-1", "/invented-2"):
        browser.get(address)
    after = read()

    def more(view, status):
        key = {"method": "GET", "view": view, "status": status}
        name = ("assay_requests_total", *sorted(key.items()))
        return after[name] - before.get(name, 0)

    assert (more("healthz", "200"), more("", "404")) == (2, 2)
    assert of(after, "assay_request_duration_seconds_count", view="healthz") >= 2
    assert "invented" not in str(after)
    create_worker(username="ada", password=PASSWORD)
    with django_assert_max_num_queries(14):
        read()


@pytest.mark.django_db
def test_jobs_are_counted_by_queue_with_the_age_of_the_oldest(read):
    now = timezone.now()

    def job(state, **values):
        made = Job.objects.create(
            kind="x", queue="scoring", title="x", dedupe_key=os.urandom(8).hex(), state=state
        )
        Job.objects.filter(pk=made.pk).update(**values)

    job("queued", created_at=now - timedelta(seconds=900))
    job("queued", created_at=now - timedelta(seconds=60))
    job("queued", created_at=now - timedelta(hours=9), run_after=now + timedelta(minutes=5))
    job("running")
    job("failed", finished_at=now - timedelta(hours=1))
    job("failed", finished_at=now - timedelta(hours=25))
    job("done", finished_at=now)
    samples = read()
    for state, n in (("waiting", 2), ("retrying", 1), ("running", 1)):
        assert of(samples, "assay_jobs", queue="scoring", state=state) == n
        assert of(samples, "assay_jobs", queue="interactive", state=state) == 0
    assert of(samples, "assay_job_oldest_seconds", queue="scoring") == pytest.approx(900, abs=5)
    assert of(samples, "assay_job_oldest_seconds", queue="interactive") == 0
    assert of(samples, "assay_jobs_failed", queue="scoring") == 1


def test_hits_and_money_are_those_of_the_ledger(read, mturk, worker):
    paid, waiting = (mturk.create_hit(**HIT)["HIT"]["HITId"] for _ in range(2))
    mturk.approve_assignment(AssignmentId=submit(worker, paid))
    accept_hit(worker=worker, hit=models.Hit.objects.get(public_id=waiting))
    samples = read()
    assert of(samples, "assay_hits", status="Reviewable") == 1
    assert of(samples, "assay_hits", status="Unassignable") == 1
    assert of(samples, "assay_assignments", status="Approved") == 1
    assert of(samples, "assay_assignments", status="Accepted") == 1
    held = models.LedgerEntry.objects.filter(account__kind="held").order_by("pk").last().balance_usd
    assert held > 0
    assert of(samples, "assay_balance_usd", account="held") == float(held)
    assert of(samples, "assay_balance_usd", account="earnings") == 0.63
    assert of(samples, "assay_earned_usd_total") == 0.63
    assert of(samples, "assay_paid_out_usd_total") == 0
    transfers.mark_paid(transfers.make_batch().payouts.all())
    samples = read()
    assert of(samples, "assay_balance_usd", account="earnings") == 0
    assert of(samples, "assay_earned_usd_total") == of(samples, "assay_paid_out_usd_total") == 0.63


def test_the_latest_audit_and_what_was_not_delivered_are_shown(read, requester):
    assert ("assay_ledger_problems",) not in read()
    reconciliation.store_audit()
    now = timezone.now()
    message = {"requester": requester, "destination": "https://x.example", "transport": "HTTPS"}
    message |= {"event_type": "Ping", "body": "{}", "created_at": now}
    models.Notification.objects.create(
        **message, attempts=8, next_attempt_at=None, last_error="503"
    )
    models.Notification.objects.create(**message, attempts=1, next_attempt_at=now)
    samples = read()
    assert of(samples, "assay_ledger_problems") == 0
    models.LedgerEntry.objects.filter(account__kind="available").update(balance_usd=Decimal("1.00"))
    reconciliation.store_audit()
    samples = read()
    assert of(samples, "assay_ledger_problems") == 1
    assert of(samples, "assay_ledger_audit_age_seconds") < 60
    assert of(samples, "assay_undelivered", transport="HTTPS", state="given up") == 1
    assert of(samples, "assay_undelivered", transport="HTTPS", state="retrying") == 1
    assert of(samples, "assay_undelivered", transport="SQS", state="given up") == 0


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@pytest.mark.slow
def test_several_processes_answer_for_all_of_them(tmp_path):
    """As docs/operations.md starts them: whichever process is asked, the counts are whole."""
    port = free_port()
    environment = os.environ | {"METRICS_TOKEN": TOKEN, "TMPDIR": str(tmp_path)}
    environment |= {"DATABASE_URL": f"sqlite:///{tmp_path}/site.sqlite3"}
    migrate = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
    subprocess.run(migrate, env=environment, cwd=site.BASE_DIR, check=True)
    command = [sys.executable, "-m", "gunicorn", "config.wsgi", "--bind", f"127.0.0.1:{port}"]
    command += ["--config", "python:config.gunicorn", "--workers", "3", "--preload"]
    server = subprocess.Popen(command, env=environment, cwd=site.BASE_DIR)
    try:
        n = 60
        assert [ask(f"http://127.0.0.1:{port}/healthz") for _ in range(n)] == [200] * n
        headers = {"Authorization": f"Bearer {TOKEN}"}
        for _ in range(6):
            address = f"http://127.0.0.1:{port}/metrics"
            text = requests.get(address, headers=headers, timeout=20).text
            key = {"method": "GET", "view": "healthz", "status": "200"}
            assert of(parsed(text), "assay_requests_total", **key) == n
        processes = {re.sub(r"\D", "", file.name) for file in tmp_path.glob("assay-metrics-*/*.db")}
        assert len(processes) > 1
    finally:
        server.terminate()
        server.wait(timeout=20)
    assert not list(tmp_path.glob("assay-metrics-*"))


def ask(address):
    for _ in range(300):
        try:
            return requests.get(address, timeout=20).status_code
        except requests.ConnectionError:
            time.sleep(0.1)
    raise AssertionError(f"nothing answers at {address}")


@pytest.mark.django_db
def test_figures_are_there_while_the_redis_of_the_cache_is_away(settings):
    settings.METRICS_TOKEN = TOKEN
    backend = "django.core.cache.backends.redis.RedisCache"
    settings.CACHES = {"default": {"BACKEND": backend, "LOCATION": "redis://127.0.0.1:1/0"}}
    answer = Client(headers=HOST | {"authorization": f"Bearer {TOKEN}"}).get("/metrics")
    assert answer.status_code == 200
    assert of(parsed(answer.content.decode()), "assay_background_work_late") == 0
