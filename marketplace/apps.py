from django.apps import AppConfig


class MarketplaceConfig(AppConfig):
    name = "marketplace"

    def ready(self) -> None:
        from marketplace import checks  # noqa: F401
