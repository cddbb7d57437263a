import csv
import os
from decimal import Decimal
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from marketplace.models import PayoutBatch
from marketplace.money import transfers
from marketplace.money.amounts import parse_amount


class Command(BaseCommand):
    help = (
        "Take all earnings into a batch of payouts, and write what is to be paid as CSV. "
        "Batches that were made earlier and aren't paid are written again."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE")
        parser.add_argument(
            "--minimum", default="0.01", metavar="USD", help="Leave smaller earnings alone."
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="Make no batch; write only what waits already."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        minimum_usd = parse_amount(options["minimum"])
        try:  # before any earnings are taken
            # The file has bank details, so only its writer may read it.
            descriptor = os.open(options["file"], os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
            file = os.fdopen(descriptor, "w", newline="", encoding="utf-8")
        except OSError as error:
            raise CommandError(str(error), returncode=2) from error
        with file:
            if not options["dry_run"]:
                transfers.make_batch(minimum_usd=minimum_usd)
            batches = list(PayoutBatch.objects.filter(paid_at=None))
            rows = list(transfers.export(batches))
            csv.writer(file).writerows(rows)
        if not options["dry_run"]:
            for batch in batches:
                transfers.note_export(batch)
        total = sum((Decimal(row[4]) for row in rows[1:] if not row[6]), Decimal("0.00"))
        n = len(rows) - 1
        self.stdout.write(
            f"{n} payout{'' if n == 1 else 's'} in {options['file']}, ${total} not yet paid."
        )
