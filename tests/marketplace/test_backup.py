"""Backups: what one holds, what a restore verifies and refuses; and the drill on this database."""

import json
import math
import shutil
import stat
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from zipfile import ZipFile

import pytest
from cryptography.fernet import Fernet
from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.contrib.sessions.models import Session
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.test import Client
from django.utils import timezone

from accounts.models import User
from accounts.teams import create_team
from annotation import frames, models
from annotation.agreement import study_agreement
from config.backup_files.archive import (
    BackupRefused,
    BackupUnreadable,
    RestoreFailed,
    RestoreRefused,
    columns,
    decode,
    encode,
    read_lines,
)
from config.backup_files.creation import encrypted_columns, make_backup, stored_models
from encryption import decrypt
from marketplace.models import AccessKey, ClockShift, LedgerEntry, Notification
from marketplace.money.reconciliation import audit
from metrics.models import Score
from tests.annotation.studies import rated_study
from tests.codes import refused
from tests.marketplace.conftest import HIT, run, submit
from work.models import Job

pytestmark = pytest.mark.django_db(transaction=True)


def empty_the_site():
    """As a site is after its migrations: later tests need the same content types."""
    migrated = [list(model.objects.all()) for model in (ContentType, Permission)]
    call_command("flush", interactive=False, verbosity=0, inhibit_post_migrate=True)
    for rows in migrated:
        type(rows[0]).objects.bulk_create(rows)


def rewrite(source, target, change):
    """Copy a backup; `change` gets each member's name and content, and returns the new content,
    or None to leave the member out."""
    with ZipFile(source) as whole, ZipFile(target, "w") as other:
        for name in whole.namelist():
            if (content := change(name, whole.read(name))) is not None:
                other.writestr(name, content)
    return target


def contents():
    return {model._meta.label: sorted(read_lines(model)) for model in stored_models()}


def check_that_no_session_is_in(file):
    """What opens a session is in no backup; a participant's session at a recruiter opens none."""
    with ZipFile(file) as archive:
        names = [name for name in archive.namelist() if "/marketplace.Session" not in name]
        assert not [name for name in names if "ession" in name]
        everything = b"".join(archive.read(name) for name in archive.namelist())
    keys = Session.objects.values_list("session_key", flat=True)
    assert [key for key in keys if key.encode() in everything] == []


@pytest.fixture
def used_site(mturk, worker, requester, researcher_with_a_study):
    paid, held = (mturk.create_hit(**HIT)["HIT"]["HITId"] for _ in range(2))
    mturk.approve_assignment(AssignmentId=submit(worker, paid, reason='Grüße, 你好 \\ " \n 👩🏽'))
    submit(worker, held)
    Notification.objects.create(
        requester=requester,
        destination="https://x.example",
        transport="HTTPS",
        event_type="Ping",
        body="{}",
        created_at=timezone.now(),
    )
    Job.objects.create(
        kind="x", queue="scoring", title="x", dedupe_key="x", arguments={"a": [1e16]}
    )
    Client().force_login(worker.user)


@pytest.fixture
def researcher_with_a_study(db):
    create_team(name="Lab", owner=User.objects.create_user("rosa", password="a long password"))
    return rated_study()


@pytest.mark.slow
def test_the_drill_a_site_is_backed_up_lost_and_restored(used_site, mturk, tmp_path, keys):
    file = tmp_path / "site.backup.zip"
    before = contents()
    study = models.Study.objects.get()
    agreement, judgments = study_agreement(study), frames.judgment_frame(study)
    assert len(judgments) > 0
    run("backup", file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    check_that_no_session_is_in(file)
    empty_the_site()
    assert not User.objects.exists()
    run("restore", file)
    assert contents() == before
    assert audit() == []
    study = models.Study.objects.get()
    assert frames.judgment_frame(study).equals(judgments)
    assert repr(study_agreement(study)) == repr(agreement)
    # The key of then signs requests, and new rows get keys that no row has.
    assert mturk.get_account_balance()["AvailableBalance"]
    n_hits = len(before["marketplace.Hit"])
    mturk.create_hit(**HIT | {"Title": "After the restore"})
    assert len(contents()["marketplace.Hit"]) == n_hits + 1
    with refused(RestoreRefused, "site_in_use"):
        run("restore", file)


@pytest.mark.slow
def test_no_row_is_written_where_one_is_not_what_the_manifest_says(used_site, tmp_path):
    file = tmp_path / "site.zip"
    run("backup", file)
    table = "tables/marketplace.LedgerEntry.jsonl"

    def change(name, content):
        assert name != table or b"100.00" in content
        return content.replace(b"100.00", b"900.00") if name == table else content

    def leave_out(name, content):
        return None if name == table else content

    def tomorrow(name, content):
        if name != "manifest.json":
            return None
        manifest = json.loads(content)
        manifest["migrations"].append(["marketplace", "9999_of_tomorrow"])
        return json.dumps(manifest)

    changed = rewrite(file, tmp_path / "changed.zip", change)
    lacking = rewrite(file, tmp_path / "lacking.zip", leave_out)
    newer = rewrite(file, tmp_path / "newer.zip", tomorrow)
    empty_the_site()
    for options in ({}, {"check": True}):
        with refused(BackupUnreadable, "changed_table") as caught:
            run("restore", changed, **options)
        assert "LedgerEntry" in str(caught.value)
    with refused(BackupUnreadable, "missing_table") as caught:
        run("restore", lacking, check=True)
    assert table in str(caught.value)
    with refused(RestoreRefused, "newer_version"):
        run("restore", newer)
    run("restore", file, check=True)
    assert not User.objects.exists()
    assert not LedgerEntry.objects.exists()


@pytest.mark.slow
def test_rows_that_the_database_changes_are_noticed(used_site, tmp_path, monkeypatch):
    file = tmp_path / "site.zip"
    run("backup", file)
    empty_the_site()
    with connection.cursor() as cursor, monkeypatch.context() as patched:
        from config.backup_files import creation

        fill = creation._fill

        def fill_and_change(*arguments):
            fill(*arguments)
            cursor.execute("UPDATE marketplace_ledgerentry SET balance_usd = 1")

        patched.setattr(creation, "_fill", fill_and_change)
        with refused(RestoreFailed) as caught:
            run("restore", file)
    assert "LedgerEntry" in str(caught.value)
    assert not LedgerEntry.objects.exists()


@pytest.mark.slow
def test_other_keys_restore_nothing_and_a_rotated_key_restores(used_site, tmp_path, settings):
    file = tmp_path / "site.zip"
    run("backup", file)
    empty_the_site()
    former = list(settings.ENCRYPTION_KEYS)
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode()]
    with refused(RestoreRefused, "wrong_keys"):
        run("restore", file)
    assert not User.objects.exists()
    settings.ENCRYPTION_KEYS += former
    run("restore", file)
    assert decrypt(AccessKey.objects.get().encrypted_secret)


@pytest.mark.slow
def test_a_backup_with_a_ledger_that_is_wrong_says_so(used_site, tmp_path):
    LedgerEntry.objects.filter(account__kind="available").update(balance_usd=Decimal(7))
    file = tmp_path / "site.zip"
    run("backup", file)
    empty_the_site()
    with pytest.raises(CommandError) as caught:
        run("restore", file)
    assert caught.value.returncode == 1
    assert "7.00" in str(caught.value)
    assert User.objects.exists()
    empty_the_site()


def test_keys_are_kept_apart_and_no_file_is_written_over(tmp_path, settings):
    backups, safe = tmp_path / "backups", tmp_path / "safe"
    backups.mkdir()
    safe.mkdir()
    with refused(BackupRefused, "keys_beside_backup"):
        run("backup", backups / "site.zip", keys=backups / "keys.env")
    assert list(backups.iterdir()) == []
    file = backups / "site.zip"
    run("backup", file, keys=safe / "keys.env")
    content = file.read_bytes()
    with refused(BackupRefused, "file_exists"):
        run("backup", file)
    assert file.read_bytes() == content
    lines = dict(line.split("=", 1) for line in (safe / "keys.env").read_text().splitlines())
    assert lines["ENCRYPTION_KEYS"] == ",".join(settings.ENCRYPTION_KEYS)
    assert stat.S_IMODE((safe / "keys.env").stat().st_mode) == 0o600
    with ZipFile(file) as archive:
        everything = b"".join(archive.read(name) for name in archive.namelist())
    assert settings.ENCRYPTION_KEYS[0].encode() not in everything


@pytest.mark.parametrize(
    ("write", "code"),
    [
        (lambda path: None, "not_readable"),
        (lambda path: path.write_text("no backup"), "damaged"),
        (lambda path: ZipFile(path, "w").close(), "missing_manifest"),
        (lambda path: cut(path), "damaged"),
        (lambda path: of_another_format(path), "unknown_format"),
    ],
)
def test_what_is_no_backup_is_refused(tmp_path, write, code):
    file = tmp_path / "file.zip"
    write(file)
    with refused(BackupUnreadable, code):
        run("restore", file)


def cut(path):
    make_backup(path, report=str)
    path.write_bytes(path.read_bytes()[:-200])


def of_another_format(path):
    with ZipFile(path, "w") as archive:
        archive.writestr("manifest.json", json.dumps({"format": 9}))


def test_a_full_disk_leaves_no_half_backup(tmp_path, monkeypatch):
    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("config.backup_files.creation.write_table", full)
    with refused(BackupRefused, "not_writable"):
        run("backup", tmp_path / "site.zip")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("model", "values"),
    [
        (Score, {"value": -math.pi * 1e-300}),
        (ClockShift, {"ahead": timedelta(days=-1, microseconds=1)}),
        (Job, {"arguments": {"a": {}, "b": [1, 2.5, None, True, "ü\u2028"]}, "n_total": None}),
        (LedgerEntry, {"amount_usd": Decimal("-0.10"), "balance_usd": None}),
        (User, {"date_joined": timezone.now().replace(microsecond=7), "username": "\"'\\\n"}),
    ],
)
def test_every_kind_of_value_comes_back_as_it_was(model, values):
    fields = [field for field in columns(model) if field.attname in values]
    row = tuple(values[field.attname] for field in fields)
    line = encode(fields, row)
    assert "\n" not in line
    prepared = tuple(
        field.get_db_prep_save(value, connection) for field, value in zip(fields, row, strict=True)
    )
    assert repr(decode(fields, line)) == repr(prepared)


def test_every_column_that_is_encrypted_is_tried():
    assert {f"{model._meta.label}.{column}" for model, column in encrypted_columns()} == {
        "hits.Connection.encrypted_secret",
        "marketplace.AccessKey.encrypted_secret",
        "marketplace.PayoutMethod.encrypted_details",
        "marketplace.RecruiterConnection.encrypted_offer",
        "marketplace.RecruiterConnection.encrypted_token",
        "marketplace.RecruiterConnection.encrypted_webhook_secret",
        "marketplace.Requester.encrypted_webhook_secret",
        "marketplace.Session.encrypted_participant_id",
        "marketplace.SessionDemographics.encrypted_answers",
        "metrics.JudgeConnection.encrypted_key",
    }


def test_the_site_may_be_written_to_while_it_is_backed_up(used_site, tmp_path, monkeypatch):
    import threading

    from config.backup_files import creation

    n_jobs, write_table = Job.objects.count(), creation.write_table

    def elsewhere():
        Job.objects.create(kind="y", queue="scoring", title="y", dedupe_key="y")
        connection.close()

    def write_meanwhile(archive, label, *arguments):
        if label == "accounts.ApiToken":
            writer = threading.Thread(target=elsewhere)
            writer.start()
            writer.join(timeout=10)
            assert not writer.is_alive()
        return write_table(archive, label, *arguments)

    monkeypatch.setattr(creation, "write_table", write_meanwhile)
    manifest = make_backup(Path(tmp_path, "site.zip"), report=str)
    assert Job.objects.count() == n_jobs + 1
    assert {table.model: table.n_rows for table in manifest.tables}["work.Job"] == n_jobs
    shutil.rmtree(tmp_path)


def test_a_backup_under_keys_that_do_not_open_the_sites_secrets_says_so(
    used_site, settings, tmp_path
):
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode()]
    with refused(BackupRefused, "wrong_keys"):
        run("backup", tmp_path / "other.backup.zip")
    assert (tmp_path / "other.backup.zip").exists()
