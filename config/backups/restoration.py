"""Restoring a backup into an empty site: all of it, verified, or nothing."""

from collections.abc import Callable
from pathlib import Path
from zipfile import ZipFile

from django.apps import apps as site_apps
from django.apps.registry import Apps
from django.core.management import call_command
from django.core.management.color import no_style
from django.db import connection, transaction
from django.db.migrations.executor import MigrationExecutor
from django.db.models import Model

from config.backups.archive import (
    BackupUnreadable,
    Digest,
    Manifest,
    RestoreFailed,
    RestoreRefused,
    StoredTable,
    columns,
    opened_archive,
    read_lines,
    read_table,
    write_rows,
)
from config.backups.creation import LEFT_OUT, key_error

# What migrating and running workers put into a site that nobody has used.
OF_AN_EMPTY_SITE = {
    *("contenttypes.ContentType", "auth.Permission", "hits.Connection"),
    *("work.PeriodicRun", "work.Job", "marketplace.LedgerAudit"),
    *LEFT_OUT,
}
Report = Callable[[str], object]


def check_backup(path: Path) -> Manifest:
    """Read a whole backup and compare it to its manifest; the database is not asked."""
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
    if error := key_error(manifest.key_check):
        raise RestoreRefused(error, code="wrong_keys")


def _require_empty_site() -> None:
    existing = set(connection.introspection.table_names())
    for model in site_apps.get_models(include_auto_created=True):
        label = model._meta.label
        if label in OF_AN_EMPTY_SITE or model._meta.db_table not in existing:
            continue
        with connection.cursor() as cursor:
            table = connection.ops.quote_name(model._meta.db_table)
            cursor.execute(f"SELECT 1 FROM {table} LIMIT 1")
            if cursor.fetchone():
                raise RestoreRefused(
                    f"This site is in use: there are rows of {label}. A backup is restored into "
                    "an empty database; let DATABASE_URL name a new one.",
                    code="site_in_use",
                )


def _prepare_tables(manifest: Manifest) -> dict[str, type[Model]]:
    """The tables as they were when the backup was made, as models by their labels."""
    executor = MigrationExecutor(connection)
    targets = [(app, name) for app, name in manifest.migrations]
    if unknown := [each for each in targets if each not in executor.loader.graph.nodes]:
        raise RestoreRefused(
            f"The backup was made by a newer version of the site, with {unknown[0][0]}."
            f"{unknown[0][1]}. Restore it with that version.",
            code="newer_version",
        )
    latest = executor.loader.graph.leaf_nodes()
    if executor.loader.applied_migrations.keys() - _with_parents(executor, targets):
        raise RestoreRefused(
            "The backup was made by an older version of the site, and the tables are those of "
            "this one already. Let DATABASE_URL name a database without tables.",
            code="older_version",
        )
    of_then = sorted(targets) != sorted(latest)
    executor.migrate(targets)
    apps: Apps = executor.loader.project_state(targets).apps if of_then else site_apps
    return {model._meta.label: model for model in apps.get_models(include_auto_created=True)}


def _with_parents(
    executor: MigrationExecutor, targets: list[tuple[str, str]]
) -> set[tuple[str, str]]:
    plans = (executor.loader.graph.forwards_plan(target) for target in targets)
    return {node for plan in plans for node in plan}


def _fill(
    archive: ZipFile, manifest: Manifest, models: dict[str, type[Model]], report: Report
) -> None:
    # Foreign keys are checked when the transaction ends, so that the order is of no matter.
    with connection.cursor() as cursor:
        for model in models.values():
            if model._meta.label in OF_AN_EMPTY_SITE:
                cursor.execute(f"DELETE FROM {connection.ops.quote_name(model._meta.db_table)}")
    for table in manifest.tables:
        model = _model_of(table, models)
        write_rows(model, read_table(archive, table))
        if table.n_rows:
            report(f"{table.model}: {table.n_rows:,}")
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
    """Every row of every table, as it is read back."""
    for table in manifest.tables:
        digest = Digest()
        for line in read_lines(models[table.model]):
            digest.add(line)
        if (digest.n_rows, str(digest)) != (table.n_rows, table.digest):
            raise RestoreFailed(
                f"{table.model} has {digest.n_rows} rows that are not the {table.n_rows} of the "
                "backup. Nothing was restored."
            )
