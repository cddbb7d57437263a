"""The tables of a new site, made at once as its models have them.

Django applies each of a hundred migrations to an empty database and renders its models for each
anew: forty seconds that a newcomer, and every test, would wait for tables in which there is
nothing to convert. What migrations do beside that, to tables, is named in `OF_TABLES`; that both
ways lead to the same tables is for tests/config/test_new_database.py.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.db import connections
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

# Functions of migrations that tables need though nothing is in them.
OF_TABLES = (("marketplace.migrations.0008_cheaper_new_hits", "compress_fast"),)


def is_empty(connection: BaseDatabaseWrapper) -> bool:
    """Whether there is no table at all."""
    return not connection.introspection.table_names()


def make_tables(alias: str) -> None:
    """Make all tables of an empty database and record all migrations as applied, or do nothing."""
    connection: Any = connections[alias]
    applied = MigrationRecorder.Migration
    loader = MigrationLoader(None)
    with connection.schema_editor() as editor:
        for model in [applied, *_models(loader)]:
            editor.create_model(model)
        for module, name in OF_TABLES:
            getattr(import_module(module), name)(apps, editor)
        now = timezone.now()
        applied.objects.using(alias).bulk_create(
            applied(app=app, name=name, applied=now) for app, name in loader.disk_migrations
        )


def _models(loader: MigrationLoader) -> list[Any]:
    """Of the apps that have migrations; tables between two models come with the first."""
    return [
        model
        for app in apps.get_app_configs()
        if app.label in loader.migrated_apps
        for model in app.get_models()
        if model._meta.managed and not model._meta.proxy and not model._meta.swapped
    ]
