from django.apps import AppConfig


class WorkConfig(AppConfig):
    name = "work"

    def ready(self) -> None:
        """Register the app's checks."""
        from work import checks  # noqa: F401
