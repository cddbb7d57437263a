import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Tags, Warning, register

from config.pseudo_locale import install_pseudo_locale


class SiteConfig(AppConfig):
    name = "config"

    def ready(self) -> None:
        if settings.PSEUDO_LOCALE:
            install_pseudo_locale()


ASSIGNMENT = re.compile(r"^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=", re.MULTILINE)
NAME = re.compile(r"\b[A-Z][A-Z_]+\b")
# Other programs may have names of their own in the file: one that is near to no setting is theirs.
NEAR = 0.8


@register(Tags.security, deploy=True)
def check_names(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """No setting whose name is written wrongly: the site would go on as if it were not there."""
    if not settings.ENVIRONMENT_FILE.is_file():
        return []
    known = set(NAME.findall((settings.BASE_DIR / ".env.example").read_text()))
    names = dict.fromkeys(ASSIGNMENT.findall(settings.ENVIRONMENT_FILE.read_text()))
    messages: list[CheckMessage] = []
    for name in names:
        likely = get_close_matches(name.upper(), known, n=1, cutoff=NEAR)
        if name not in known and likely:
            messages.append(
                Warning(
                    f"{settings.ENVIRONMENT_FILE} sets {name}, which nothing reads.",
                    hint=f"Did you mean {likely[0]}? All settings are in .env.example.",
                    id="config.W001",
                )
            )
    return messages
