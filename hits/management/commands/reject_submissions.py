from decimal import Decimal
from typing import Any

from django.core.management.base import CommandParser
from django.db import transaction

from hits.decisions import REJECT, decide, request_payment, validate_feedback, validate_part
from hits.management.base import (
    ReviewCommand,
    add_spend_argument,
    assignments_of_ids,
    dollars,
    require_room,
    require_typed_amount,
    study_with_batches,
)
from hits.models import PART
from presentation.numbers import count_of


class Command(ReviewCommand):
    help = "Reject assignments with a reason that the worker reads; with --part, pay some of it."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--assignment", action="append", required=True, metavar="ID", help="may be repeated"
        )
        parser.add_argument("--reason", required=True, help="what the worker reads")
        parser.add_argument("--part", type=dollars, metavar="USD", help="paid all the same")
        add_spend_argument(parser)

    def handle(
        self,
        *args: Any,
        study: str,
        assignment: list[str],
        reason: str,
        part: Decimal | None,
        dry_run: bool,
        json: bool,
        **options: Any,
    ) -> None:
        target = study_with_batches(study)
        assignments = assignments_of_ids(target, assignment).undecided()
        validate_feedback(reason, is_required=True)
        if part is not None:
            for one in assignments:
                validate_part(one, part, reason)
        if dry_run:
            n = assignments.count()
            payment_text = f", with ${n * (part or 0):.2f} paid in parts" if part else ""
            self.report(
                f"Would reject {count_of(n, 'assignment')}{payment_text}. Nothing was sent.",
                {"would_reject": [one.assignment_id for one in assignments]},
                as_json=json,
            )
            return
        with transaction.atomic():
            if part is not None:
                payments = [
                    request_payment(assignment=one, purpose=PART, amount_usd=part, reason=reason)
                    for one in assignments
                ]
                require_typed_amount(
                    [(one.assignment, one.amount_usd + one.fee_usd) for one in payments if one],
                    options["spend"],
                )
            decide(assignments=assignments, decision=REJECT, feedback=reason)
            # They count as committed from the moment they are written down.
            require_room(target, assignments)
        self.send(target, as_json=json)
