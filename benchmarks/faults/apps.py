from django.apps import AppConfig


class FaultsConfig(AppConfig):
    name = "benchmarks.faults"
    label = "faults"
    default_auto_field = "django.db.models.BigAutoField"
