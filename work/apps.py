from django.apps import AppConfig


class WorkConfig(AppConfig):
    name = "work"

    def ready(self) -> None:
        from work import checks  # noqa: F401
