from typing import Any

from django.apps import AppConfig
from django.core.management import call_command
from django.db.models.signals import post_migrate


class AccountsConfig(AppConfig):
    name = "accounts"

    def ready(self) -> None:
        """Register the app's checks, and let `migrate` make the table of the cache too."""
        from accounts import checks  # noqa: F401

        post_migrate.connect(create_cache_table, sender=self)


def create_cache_table(*, using: str, **kwargs: Any) -> None:
    """The table in which the database keeps counts, unless CACHE_URL names another store."""
    call_command("createcachetable", database=using, verbosity=0)
