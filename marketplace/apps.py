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
def check_exposure(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    is_reachable = not settings.OWN_MACHINE
    is_readable = not settings.PROLIFIC_URL.startswith("https://")
    play_money = (
        "{name} is true on a site that others can reach: it is for trying things out, and "
        "lets a requester have funds, time or faults at will."
    )
    risks = (
        (
            is_reachable and settings.MARKETPLACE_TESTING,
            "W001",
            play_money.format(name="MARKETPLACE_TESTING"),
            "Leave MARKETPLACE_TESTING out where people are paid.",
        ),
        (
            is_reachable and settings.MARKETPLACE_TEST_FUNDS,
            "W002",
            play_money.format(name="MARKETPLACE_TEST_FUNDS"),
            "Leave MARKETPLACE_TEST_FUNDS out where people are paid.",
        ),
        (
            "*" in settings.ALLOWED_HOSTS,
            "W004",
            "ALLOWED_HOSTS has *: requests under any name are answered.",
            "Name the site's own hosts.",
        ),
        (
            is_reachable and is_readable,
            "W005",
            "PROLIFIC_URL does not begin with https://: researchers' tokens travel in clear.",
            "Leave PROLIFIC_URL out, which is Prolific's own.",
        ),
        (
            is_reachable and settings.SIMULATED_CROWD,
            "W006",
            "SIMULATED_CROWD is true on a site that others can reach: simulated workers take HITs "
            "that people are meant to, and are paid for them.",
            "Leave SIMULATED_CROWD out where people work.",
        ),
    )
    return [
        Warning(text, hint=hint, id=f"marketplace.{number}")
        for is_there, number, text, hint in risks
        if is_there
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


class MarketplaceConfig(AppConfig):
    name = "marketplace"
