import os
from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Tags, Warning, register

# What `check --deploy` says of a marketplace that others can reach.

SHORTEST_SECRET = 20
SECRETS = ("MARKETPLACE_OPERATOR_SECRET", "METRICS_TOKEN")


@register(Tags.security, deploy=True)
def check_play_money(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    names = ("MARKETPLACE_TESTING", "MARKETPLACE_TEST_FUNDS")
    return [
        Warning(
            f"{name} is true on a site that others can reach: it is for trying things out, and "
            "lets a requester have funds, time or faults at will.",
            hint=f"Leave {name} out where people are paid.",
            id=f"marketplace.W00{number}",
        )
        for number, name in enumerate(names, 1)
        if getattr(settings, name) and not settings.OWN_MACHINE
    ]


@register(Tags.security, deploy=True)
def check_crowd(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    if settings.OWN_MACHINE or not settings.SIMULATED_CROWD:
        return []
    return [
        Warning(
            "SIMULATED_CROWD is true on a site that others can reach: simulated workers take HITs "
            "that people are meant to, and are paid for them.",
            hint="Leave SIMULATED_CROWD out where people work.",
            id="marketplace.W006",
        )
    ]


@register(Tags.security, deploy=True)
def check_secrets(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    return [
        Warning(
            f"{name} has fewer than {SHORTEST_SECRET} characters: it can be guessed.",
            hint='Make one: python3 -c "import secrets; print(secrets.token_urlsafe(32))"',
            id="marketplace.W003",
        )
        for name in SECRETS
        if 0 < len(os.environ.get(name, "")) < SHORTEST_SECRET
    ]


@register(Tags.security, deploy=True)
def check_recruiter(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    if settings.OWN_MACHINE or settings.PROLIFIC_URL.startswith("https://"):
        return []
    return [
        Warning(
            "PROLIFIC_URL does not begin with https://: researchers' tokens travel in clear.",
            hint="Leave PROLIFIC_URL out, which is Prolific's own.",
            id="marketplace.W005",
        )
    ]


@register(Tags.security, deploy=True)
def check_hosts(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    if "*" not in settings.ALLOWED_HOSTS:
        return []
    return [
        Warning(
            "ALLOWED_HOSTS has *: requests under any name are answered.",
            hint="Name the site's own hosts.",
            id="marketplace.W004",
        )
    ]


class MarketplaceConfig(AppConfig):
    name = "marketplace"
