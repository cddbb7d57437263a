from typing import Any

from django.core.management.commands.check import Command as DjangoCheck
from django.urls import get_resolver

from lazy_views import import_views


class Command(DjangoCheck):
    def handle(self, *app_labels: Any, **options: Any) -> None:
        import_views(get_resolver().url_patterns)
        super().handle(*app_labels, **options)
