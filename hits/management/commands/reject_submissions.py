from decimal import Decimal
from typing import Any

from django.core.management.base import CommandParser
from django.db import transaction

from hits.budgets import require_within_budgets
from hits.management.numbers import dollars
from hits.management.review_command import ReviewCommand, assignments_named, study_with_batches
from hits.payments import PART, request_payment, validate_part
from hits.review import REJECT, decide, validate_feedback


class Command(ReviewCommand):
    help = "Reject assignments with a reason that the worker reads; with --part, pay some of it."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--assignment", action="append", required=True, metavar="ID", help="may be repeated"
        )
        parser.add_argument("--reason", required=True, help="what the worker reads")
        parser.add_argument("--part", type=dollars, metavar="USD", help="paid all the same")

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
        studied = study_with_batches(study)
        chosen = assignments_named(studied, assignment).undecided()
        validate_feedback(reason, is_required=True)
        if part is not None:
            for one in chosen:
                validate_part(one, part, reason)
        if dry_run:
            n = chosen.count()
            paid = f", with ${n * (part or 0):.2f} paid in parts" if part else ""
            content = {"would_reject": [one.assignment_id for one in chosen]}
            text = f"Would reject {n} assignments{paid}. Nothing was sent."
            self.report(text, content, as_json=json)
            return
        with transaction.atomic():
            for one in list(chosen):
                if part is not None:
                    request_payment(assignment=one, purpose=PART, amount_usd=part, reason=reason)
            decide(assignments=chosen, decision=REJECT, feedback=reason)
            # They count as committed from the moment they are written down.
            require_within_budgets(study=studied, extra_usd=Decimal(0))
        self.send(studied, as_json=json)
