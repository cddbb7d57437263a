"""Making a backup while the site runs, and restoring one into an empty site: all or nothing."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from zipfile import ZipFile

from django.apps import apps as site_apps
from django.apps.registry import Apps
from django.conf import settings
from django.core.management import call_command
from django.core.management.color import no_style
from django.db import connection, connections, transaction
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.models import Model
from django.utils import timezone

from accounts.audit import chain_faults
from accounts.models import AuditChain
from config.backup_files.archive import (
    BackupRefused,
    BackupUnreadable,
    Digest,
    Manifest,
    RestoreFailed,
    RestoreRefused,
    StoredTable,
    columns,
    new_archive,
    opened_archive,
    read_lines,
    read_table,
    write_manifest,
    write_rows,
    write_table,
)
from encryption import UndecryptableSecret, decrypt, encrypt
from error_codes import require
from marketplace.money.reconciliation import audit

KEY_CHECK = "assay backup"
KEYS = ("SECRET_KEY", "SECRET_KEY_FALLBACKS", "ENCRYPTION_KEYS", "MARKETPLACE_OPERATOR_SECRET")
# Whoever had a backup could go on with an open session; a queue's messages are made anew.
LEFT_OUT = {"sessions.Session", "usersessions.UserSession", "django_tasks_database.DBTaskResult"}


def make_backup(path: Path, *, report: Callable[[str], object]) -> Manifest:
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
    require(
        path.resolve().parent != backup.resolve().parent,
        BackupRefused(
            f"{path} is in the folder of the backup. Who gets hold of both reads every secret: "
            "write the keys elsewhere, and keep them elsewhere.",
            code="keys_beside_backup",
        ),
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
    models = site_apps.get_models(include_auto_created=True)
    kept = [model for model in models if model._meta.label not in LEFT_OUT]
    return sorted(kept, key=lambda model: model._meta.label)


@contextmanager
def _one_state() -> Iterator[None]:
    # A transaction that sees nothing of what is written meanwhile, and keeps nobody waiting.
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


def site_faults() -> list[str]:
    return [
        *undecryptable_secrets(),
        *audit(),
        *[fault for chain in AuditChain.objects.order_by("name") for fault in chain_faults(chain)],
    ]


def undecryptable_secrets() -> Iterator[str]:
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
    # The columns whose values are encrypted as a whole, which their names say.
    return [
        (model, field.name)
        for model in site_apps.get_models()
        for field in model._meta.concrete_fields
        if field.name.startswith("encrypted_")
    ]


def _opens(token: str) -> bool:
    try:
        decrypt(token)
    except UndecryptableSecret:
        return False
    return True


# What migrating and running workers put into a site that nobody has used.
OF_AN_EMPTY_SITE = {
    *("contenttypes.ContentType", "auth.Permission", "hits.Connection"),
    *("work.PeriodicRun", "work.Job", "marketplace.LedgerAudit"),
    *LEFT_OUT,
}
Report = Callable[[str], object]


def check_backup(path: Path) -> Manifest:
    with opened_archive(path) as (archive, manifest):
        for table in manifest.tables:
            for _line in read_table(archive, table):
                pass
        _require_keys(manifest)
        return manifest


def restore_backup(path: Path, *, report: Report) -> Manifest:
    """Fill an empty site with a backup, then bring it to this version."""
    with opened_archive(path) as (archive, manifest):
        _require_keys(manifest)
        _require_empty_site()
        models = _prepare_tables(manifest)
        with transaction.atomic():
            _fill(archive, manifest, models, report)
            _verify(manifest, models)
    # What came since the backup was made; and whatever migrating signals.
    call_command("migrate", verbosity=0)
    return manifest


def _require_keys(manifest: Manifest) -> None:
    try:
        is_whole = decrypt(manifest.key_check) == KEY_CHECK
    except UndecryptableSecret:
        raise RestoreRefused(
            "ENCRYPTION_KEYS has no key of the site that this backup was made of. Set the keys "
            "that were kept apart from it: without them no stored secret can be read.",
            code="wrong_keys",
        ) from None
    require(is_whole, RestoreRefused("The backup's check of keys is damaged.", code="wrong_keys"))


def _require_empty_site() -> None:
    existing = set(connection.introspection.table_names())
    for model in site_apps.get_models(include_auto_created=True):
        label = model._meta.label
        if label in OF_AN_EMPTY_SITE or model._meta.db_table not in existing:
            continue
        with connection.cursor() as cursor:
            table = connection.ops.quote_name(model._meta.db_table)
            cursor.execute(f"SELECT 1 FROM {table} LIMIT 1")
            require(
                not cursor.fetchone(),
                RestoreRefused(
                    f"This site is in use: there are rows of {label}. A backup is restored into "
                    "an empty database; let DATABASE_URL name a new one.",
                    code="site_in_use",
                ),
            )


def _prepare_tables(manifest: Manifest) -> dict[str, type[Model]]:
    executor = MigrationExecutor(connection)
    targets = [(app, name) for app, name in manifest.migrations]
    if unknown := [each for each in targets if each not in executor.loader.graph.nodes]:
        raise RestoreRefused(
            f"The backup was made by a newer version of the site, with {unknown[0][0]}."
            f"{unknown[0][1]}. Restore it with that version.",
            code="newer_version",
        )
    latest = executor.loader.graph.leaf_nodes()
    plans = (executor.loader.graph.forwards_plan(target) for target in targets)
    if executor.loader.applied_migrations.keys() - {node for plan in plans for node in plan}:
        raise RestoreRefused(
            "The backup was made by an older version of the site, and the tables are those of "
            "this one already. Let DATABASE_URL name a database without tables.",
            code="older_version",
        )
    of_then = sorted(targets) != sorted(latest)
    executor.migrate(targets)
    apps: Apps = executor.loader.project_state(targets).apps if of_then else site_apps
    return {model._meta.label: model for model in apps.get_models(include_auto_created=True)}


def _fill(
    archive: ZipFile, manifest: Manifest, models: dict[str, type[Model]], report: Report
) -> None:
    # Foreign keys are checked when the transaction ends, so that the order is of no matter.
    with connection.cursor() as cursor:
        for model in models.values():
            if model._meta.label in OF_AN_EMPTY_SITE:
                cursor.execute(f"DELETE FROM {connection.ops.quote_name(model._meta.db_table)}")
    for table in manifest.tables:
        write_rows(_model_of(table, models), read_table(archive, table))
        _report(report, table)
    with connection.cursor() as cursor:
        for statement in connection.ops.sequence_reset_sql(no_style(), list(models.values())):
            cursor.execute(statement)


def _model_of(table: StoredTable, models: dict[str, type[Model]]) -> type[Model]:
    model = models.get(table.model)
    if model is None or [str(field.column) for field in columns(model)] != table.columns:
        raise BackupUnreadable(
            f"{table.member} has the columns {', '.join(table.columns)}, which this version does "
            "not know. Restore it with the version that made it.",
            code="unknown_columns",
        )
    return model


def _verify(manifest: Manifest, models: dict[str, type[Model]]) -> None:
    for table in manifest.tables:
        digest = Digest()
        for line in read_lines(models[table.model]):
            digest.add(line)
        require(
            (digest.n_rows, str(digest)) == (table.n_rows, table.digest),
            RestoreFailed(
                f"{table.model} has {digest.n_rows} rows that are not the {table.n_rows} of the "
                "backup. Nothing was restored."
            ),
        )
