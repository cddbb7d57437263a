from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules


class WorkConfig(AppConfig):
    name = "work"

    def ready(self) -> None:
        """Let each app register its kinds of jobs: `work` itself imports no other app."""
        autodiscover_modules("jobs")
