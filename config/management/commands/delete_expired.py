from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from config.jobs import delete_expired, expired_rows


class Command(BaseCommand):
    help = "Delete what is kept no longer, as a job does each day, and say how much."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="Only say what would go.")

    def handle(self, *args: Any, **options: Any) -> None:
        is_dry = options["dry_run"]
        count = expired_rows if is_dry else delete_expired
        for rule, n in count(timezone.now()):
            kept = f"kept for {rule.days} days" if rule.days else "kept for good"
            verb = "would be deleted" if is_dry else "deleted"
            self.stdout.write(f"{n:>9,} {verb}: {rule.name} ({rule.setting}: {kept})")
