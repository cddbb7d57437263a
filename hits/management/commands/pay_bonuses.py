from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db import transaction

from annotation.exceptions import ImportRefused
from annotation.readers.tables import read_rows
from hits.decisions import bonus_fee_usd, bonus_purpose, request_payment, validate_bonus
from hits.exceptions import BonusFileRefused
from hits.management.base import (
    ReviewCommand,
    add_spend_argument,
    assignments_of_ids,
    dollars,
    require_room,
    require_typed_amount,
    study_with_batches,
)
from presentation.numbers import count_of, read_usd

COLUMNS = ("assignment_id", "amount_usd", "reason")


@dataclass(frozen=True)
class BonusLine:
    assignment_id: str
    amount_usd: Decimal
    reason: str


def read_bonuses(path: Path) -> list[BonusLine]:
    lines: dict[tuple[str, str], BonusLine] = {}
    try:
        for row in read_rows(path, COLUMNS):
            try:
                amount_usd = read_usd(row.required("amount_usd"))
            except ValueError as error:
                raise row.refuse(str(error), code="not_an_amount") from None
            line = BonusLine(row.required("assignment_id"), amount_usd, row.text("reason").strip())
            if lines.setdefault((line.assignment_id, line.reason), line) is not line:
                raise row.refuse(
                    "the file names this assignment twice for the same reason.", code="named_twice"
                )
    except ImportRefused as error:
        raise BonusFileRefused(f"{error.statement} Nothing was paid.", code=error.code) from None
    return list(lines.values())


class Command(ReviewCommand):
    help = (
        "Pay bonuses, from a CSV file (assignment_id, amount_usd, reason) or for one assignment. "
        "The same file again pays nothing: an assignment gets one bonus for a reason."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("file", nargs="?", type=Path, metavar="FILE")
        parser.add_argument("--assignment", metavar="ID")
        parser.add_argument("--amount", type=dollars, metavar="USD")
        parser.add_argument("--reason", help="what the worker reads")
        add_spend_argument(parser)

    def handle(
        self,
        *args: Any,
        study: str,
        file: Path | None,
        assignment: str | None,
        amount: Decimal | None,
        reason: str | None,
        dry_run: bool,
        json: bool,
        **options: Any,
    ) -> None:
        target = study_with_batches(study)
        if file is not None and assignment is None:
            lines = read_bonuses(file)
        elif assignment and amount and reason:
            lines = [BonusLine(assignment, amount, reason)]
        else:
            raise CommandError("Name a FILE, or --assignment with --amount and --reason.")
        assignments = assignments_of_ids(target, [line.assignment_id for line in lines])
        by_id = {one.assignment_id: one for one in assignments}
        for line in lines:
            validate_bonus(line.amount_usd, line.reason)
        if dry_run:
            total = sum(line.amount_usd for line in lines)
            fees = sum(bonus_fee_usd(by_id[line.assignment_id], line.amount_usd) for line in lines)
            bonuses = count_of(len(lines), "bonus", "bonuses")
            text = f"Would pay {bonuses}, ${total:.2f} and ${fees:.2f} in fees, less "
            self.report(
                f"{text}what was paid before. Nothing was paid.",
                {
                    "n_bonuses": len(lines),
                    "total_usd": f"{total:.2f}",
                    "fees_usd": f"{fees:.2f}",
                },
                as_json=json,
            )
            return
        with transaction.atomic():
            requests = [
                (
                    line,
                    request_payment(
                        assignment=by_id[line.assignment_id],
                        purpose=bonus_purpose(line.reason),
                        amount_usd=line.amount_usd,
                        reason=line.reason,
                    ),
                )
                for line in lines
            ]
            require_typed_amount(
                [
                    (payment.assignment, payment.amount_usd + payment.fee_usd)
                    for _, payment in requests
                    if payment
                ],
                options["spend"],
            )
            # They count as committed from the moment they are written down.
            require_room(target, assignments)
        self.send(
            target,
            as_json=json,
            problems=[
                f"{line.assignment_id}: paid for this reason before."
                for line, payment in requests
                if payment is None
            ],
        )
