"""Making a backup while the site runs: one state of the database, in one file."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from django.apps import apps
from django.conf import settings
from django.db import connection, connections, transaction
from django.db.migrations.loader import MigrationLoader
from django.db.models import Model
from django.utils import timezone

from accounts.audit import chain_faults
from accounts.models import AuditChain
from config.backups.archive import (
    BackupRefused,
    Manifest,
    StoredTable,
    columns,
    new_archive,
    read_lines,
    write_manifest,
    write_table,
)
from encryption import UndecryptableSecret, decrypt, encrypt
from marketplace.money.reconciliation import audit

KEY_CHECK = "assay backup"
KEYS = ("SECRET_KEY", "SECRET_KEY_FALLBACKS", "ENCRYPTION_KEYS", "MARKETPLACE_OPERATOR_SECRET")
# Whoever had a backup could go on with an open session; a queue's messages are made anew.
LEFT_OUT = {"sessions.Session", "usersessions.UserSession", "django_tasks_database.DBTaskResult"}


def make_backup(path: Path, *, report: Callable[[str], object]) -> Manifest:
    """Write all tables but those left out to a new file."""
    with new_archive(path) as archive, _one_state():
        manifest = Manifest(
            made_at=timezone.now().isoformat(timespec="seconds"),
            database=connection.vendor,
            migrations=_migrations(),
            key_check=encrypt(KEY_CHECK),
        )
        for model in stored_models():
            names = [str(field.column) for field in columns(model)]
            table = write_table(archive, model._meta.label, names, read_lines(model))
            manifest.tables.append(table)
            _report(report, table)
        write_manifest(archive, manifest)
    return manifest


def write_keys(path: Path, *, backup: Path) -> None:
    """Write the site's keys as lines of an environment; not beside the backup that they open."""
    if path.resolve().parent == backup.resolve().parent:
        raise BackupRefused(
            f"{path} is in the folder of the backup. Who gets hold of both reads every secret: "
            "write the keys elsewhere, and keep them elsewhere.",
            code="keys_beside_backup",
        )
    values = {name: getattr(settings, name) for name in KEYS}
    lines = [
        f"{name}={value if isinstance(value, str) else ','.join(value)}\n"
        for name, value in values.items()
        if value
    ]
    try:
        with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
            file.writelines(lines)
    except OSError as error:
        raise BackupRefused(
            f"{path} cannot be written: {error.strerror or error}.", code="not_writable"
        ) from error


def stored_models() -> list[type[Model]]:
    """Every table of the site that a backup holds, by its name."""
    models = apps.get_models(include_auto_created=True)
    kept = [model for model in models if model._meta.label not in LEFT_OUT]
    return sorted(kept, key=lambda model: model._meta.label)


@contextmanager
def _one_state() -> Iterator[None]:
    """A transaction that sees nothing of what is written meanwhile, and keeps nobody waiting."""
    if connection.vendor == "postgresql":
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield
        return
    connection.ensure_connection()
    # Of the connection itself, for which django.db.connection only stands.
    attributes = vars(connections[connection.alias])
    usual = attributes["transaction_mode"]
    # The site's own begin as writers, of which there is one at a time.
    attributes["transaction_mode"] = "DEFERRED"
    try:
        with transaction.atomic():
            yield
    finally:
        attributes["transaction_mode"] = usual


def _migrations() -> list[list[str]]:
    loader = MigrationLoader(connection)
    if missing := set(loader.disk_migrations) - set(loader.applied_migrations):
        app, name = min(missing)
        raise BackupRefused(
            f"The database lacks {app}.{name} and is older than this version of the site. Make the "
            "backup with the version that it was made by, or run `python manage.py migrate` first.",
            code="unmigrated",
        )
    return sorted([app, name] for app, name in loader.graph.leaf_nodes())


def _report(report: Callable[[str], object], table: StoredTable) -> None:
    if table.n_rows:
        report(f"{table.model}: {table.n_rows:,}")


ENCRYPTED = "encrypted_"


def key_error(key_check: str) -> str | None:
    """Why the site's keys are not those of a backup; None where they are."""
    try:
        return None if decrypt(key_check) == KEY_CHECK else "The backup's check of keys is damaged."
    except UndecryptableSecret:
        return (
            "ENCRYPTION_KEYS has no key of the site that this backup was made of. Set the keys "
            "that were kept apart from it: without them no stored secret can be read."
        )


def site_faults() -> list[str]:
    """What is wrong with the site as it is now, in sentences."""
    chains = [
        fault for chain in AuditChain.objects.order_by("name") for fault in chain_faults(chain)
    ]
    return [*undecryptable_secrets(), *audit(), *chains]


def undecryptable_secrets() -> Iterator[str]:
    """How many secrets of each model the site's keys do not open, in sentences."""
    for model, column in encrypted_columns():
        n_closed = sum(
            not _opens(value)
            for value in model._base_manager.exclude(**{column: ""})
            .values_list(column, flat=True)
            .iterator()
        )
        if n_closed:
            label = model._meta.label
            yield f"{n_closed} secrets of {label} are opened by none of ENCRYPTION_KEYS."


def encrypted_columns() -> list[tuple[type[Model], str]]:
    """The columns whose values are encrypted as a whole, which their names say."""
    return [
        (model, field.name)
        for model in apps.get_models()
        for field in model._meta.concrete_fields
        if field.name.startswith(ENCRYPTED)
    ]


def _opens(token: str) -> bool:
    try:
        decrypt(token)
    except UndecryptableSecret:
        return False
    return True
