import csv
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from marketplace.money import transfers


class Command(BaseCommand):
    help = "Mark as paid the payouts that a CSV file names by payout_id and amount_usd."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            with options["file"].open(newline="", encoding="utf-8-sig") as file:
                named = transfers.read_paid(file)
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise CommandError(str(error), returncode=2) from error
        count = transfers.mark_paid(named)
        payouts_text = "1 payout" if count == 1 else f"{count} payouts"
        known = len(named) - count
        self.stdout.write(
            f"{payouts_text} marked as paid, {known} {'was' if known == 1 else 'were'} already."
        )
