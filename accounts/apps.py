from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Tags, Warning, register
from django.core.management import call_command
from django.db.models.signals import post_migrate

# What `check --deploy` says of the settings that sign-in limits rest on.


@register(Tags.security, deploy=True)
def check_sign_in(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    has_private_cache = settings.CACHES["default"]["BACKEND"].endswith(
        ("locmem.LocMemCache", "dummy.DummyCache")
    )
    knows_addresses = (
        settings.ALLAUTH_TRUSTED_PROXY_COUNT or settings.ALLAUTH_TRUSTED_CLIENT_IP_HEADER
    )
    is_behind_proxy = settings.SECURE_PROXY_SSL_HEADER is not None
    checks = [
        (
            has_private_cache,
            "CACHE_URL names a cache that each process has to itself, so that wrong passwords "
            "are counted by each process alone and replayed enrolment requests are not "
            "recognised.",
            "Leave CACHE_URL out (the database keeps the counts) or name a Redis.",
            "accounts.W001",
        ),
        (
            is_behind_proxy and not knows_addresses,
            "HTTPS ends at a proxy, and neither TRUSTED_PROXY_COUNT nor "
            "TRUSTED_CLIENT_IP_HEADER says how to distinguish clients: one person's wrong "
            "passwords count for all.",
            "Set TRUSTED_PROXY_COUNT to the number of your own proxies before this site.",
            "accounts.W002",
        ),
        (
            settings.OPERATORS_WITHOUT_SECOND_FACTOR and not settings.OWN_MACHINE,
            "OPERATORS_WITHOUT_SECOND_FACTOR is true on a site that others can reach: a "
            "guessed password opens every study and the marketplace's money.",
            "Leave OPERATORS_WITHOUT_SECOND_FACTOR out; operators then set a factor up.",
            "accounts.W003",
        ),
    ]
    return [Warning(text, hint=hint, id=id_) for is_found, text, hint, id_ in checks if is_found]


class AccountsConfig(AppConfig):
    name = "accounts"

    def ready(self) -> None:
        post_migrate.connect(create_cache_table, sender=self)


def create_cache_table(*, using: str, **kwargs: Any) -> None:
    # In which the database keeps counts, unless CACHE_URL names another store.
    call_command("createcachetable", database=using, verbosity=0)
