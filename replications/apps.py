from django.apps import AppConfig


class ReplicationsConfig(AppConfig):
    name = "replications"
