from django.apps import AppConfig


class MarketplaceConfig(AppConfig):
    name = "marketplace"

    def ready(self) -> None:
        """Register the app's checks."""
        from marketplace import checks  # noqa: F401
