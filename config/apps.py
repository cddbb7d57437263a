from django.apps import AppConfig
from django.conf import settings

from config.pseudo_locale import install_pseudo_locale


class SiteConfig(AppConfig):
    name = "config"

    def ready(self) -> None:
        """Register the site's checks; show accented texts if the pseudo-locale is on."""
        from config import checks  # noqa: F401

        if settings.PSEUDO_LOCALE:
            install_pseudo_locale()
