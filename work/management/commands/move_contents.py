from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from work.contents import count_elsewhere, move_contents
from work.exceptions import ContentMissing

TO = ("objects", "database")


class Command(BaseCommand):
    help = (
        "Move files that were sent, pictures, reports, logs and checkpoints into the storage that "
        "OBJECTS_URL names, or back into the database. The site may run meanwhile, and what is "
        "broken off is gone on with."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--to", choices=TO, required=True)
        parser.add_argument("--dry-run", action="store_true", help="count them, and move nothing")

    def handle(self, *args: Any, to: str, dry_run: bool, **options: Any) -> None:
        in_objects = to == "objects"
        if in_objects and not settings.CONTENT_IN_OBJECTS:
            raise CommandError("Let OBJECTS_URL name the storage first, for all processes.")
        if dry_run:
            self.stdout.write(f"{count_elsewhere(in_objects=in_objects):,} contents to move.")
            return
        try:
            n_rows, n_bytes = move_contents(in_objects=in_objects, report=self._report)
        except ContentMissing as missing:
            raise CommandError(str(missing)) from None
        self.stdout.write(f"{n_rows:,} contents moved, {n_bytes / 1024**2:,.1f} MiB.")
        if not in_objects and settings.CONTENT_IN_OBJECTS:
            self.stdout.write(
                "New ones still go to the storage: end the site's processes, run this once more, "
                "and start them without OBJECTS_URL."
            )

    def _report(self, n_rows: int) -> None:
        if n_rows % 100 == 0:
            self.stderr.write(f"{n_rows:,} moved")
