import json
from argparse import ArgumentTypeError
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from annotation.models import Study
from hits.costs import require_within_budgets
from hits.exceptions import AssignmentsUnknown, PaymentRefused, require
from hits.models import Assignment, AssignmentRecordQuerySet, Batch
from hits.sending import send_review
from presentation.numbers import read_usd
from presentation.progress import bar


def dollars(text: str) -> Decimal:
    try:
        amount = read_usd(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None
    require(amount, ArgumentTypeError(f"'{text}' is not an amount from 0.01 on"))
    return amount


class ReviewCommand(BaseCommand):
    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("study", metavar="SLUG")
        parser.add_argument(
            "--dry-run", action="store_true", help="say what it would do, and do nothing"
        )
        parser.add_argument("--json", action="store_true", help="print the outcome as JSON")

    def report(self, text: str, content: dict[str, Any], *, as_json: bool) -> None:
        self.stdout.write(json.dumps(content) if as_json else text)

    def send(self, study: Study, *, as_json: bool, problems: Sequence[str] = ()) -> None:
        result = send_review(study=study, reporter=bar)
        self.report(
            "\n".join([*problems, str(result)]),
            result.record() | {"problems": list(problems)},
            as_json=as_json,
        )


def add_spend_argument(parser: CommandParser) -> None:
    parser.add_argument(
        "--spend",
        type=dollars,
        metavar="USD",
        help="the sum with fees, typed to confirm it where another marketplace is paid",
    )


def require_typed_amount(payments: Iterable[tuple[Assignment, Decimal]], typed: object) -> None:
    elsewhere_usd = sum(
        (
            amount_usd
            for assignment, amount_usd in payments
            if not assignment.hit.batch.connection.is_on_this_site
        ),
        Decimal(0),
    )
    require(
        not elsewhere_usd or typed == elsewhere_usd,
        PaymentRefused(
            f"This pays ${elsewhere_usd:.2f} with fees on another marketplace. To confirm it, "
            f"run the command again with --spend {elsewhere_usd:.2f}. Nothing was paid."
        ),
    )


def require_room(study: Study, assignments: Iterable[Assignment]) -> None:
    require_within_budgets(
        study=study,
        extra_usd_by_batch=dict.fromkeys(
            {assignment.hit.batch_id for assignment in assignments}, Decimal(0)
        ),
    )


def study_with_batches(slug: str) -> Study:
    return Batch.objects.started_of(slug)[0].study


def assignments_of_ids(study: Study, ids: Iterable[str]) -> AssignmentRecordQuerySet:
    requested_ids = set(ids)
    rows = Assignment.objects.filter(hit__batch__study=study, assignment_id__in=requested_ids)
    unknown = requested_ids - set(rows.values_list("assignment_id", flat=True))
    require(not unknown, AssignmentsUnknown(study.slug, sorted(unknown)))
    return rows.select_related("hit__batch__connection", "worker")
