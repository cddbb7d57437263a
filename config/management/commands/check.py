"""Django's checks, after every view of every URL was imported."""

from typing import Any

from django.core.management.commands.check import Command as DjangoCheck
from django.urls import get_resolver

from lazy_views import import_views


class Command(DjangoCheck):
    def handle(self, *app_labels: Any, **options: Any) -> None:
        """Import the views, which the site imports at their first request, then run the checks."""
        import_views(get_resolver().url_patterns)
        super().handle(*app_labels, **options)
