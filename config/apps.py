from django.apps import AppConfig


class SiteConfig(AppConfig):
    name = "config"

    def ready(self) -> None:
        """Register the site's checks."""
        from config import checks  # noqa: F401
