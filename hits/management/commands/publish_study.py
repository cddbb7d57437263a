from __future__ import annotations

import re
from argparse import ArgumentTypeError
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandParser

from annotation.models import Study
from hits.connections import client_of, site_connection
from hits.costs import estimate, require_funds
from hits.endpoints import PROFILES
from hits.exceptions import FundsMissing
from hits.models import Batch
from hits.publish import Plan, draft_batch, plan_batch, publish_batch, require_same_terms
from presentation.progress import bar

if TYPE_CHECKING:
    from mypy_boto3_mturk.client import MTurkClient

PLAIN_AMOUNT = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,12})?")


class Command(BaseCommand):
    help = (
        "Publish a study's items as HITs, once a round. Run again, it goes on where it was: "
        "after a failure, or with items imported since."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("study", metavar="SLUG")
        parser.add_argument("--reward", type=_usd, required=True, metavar="USD")
        parser.add_argument("--assignments", type=int, default=3, help="workers per item")
        parser.add_argument("--title", help="shown to workers (default: the study's)")
        parser.add_argument("--description", default="Judge what is on the page.")
        parser.add_argument("--keywords", default="")
        parser.add_argument("--minutes", type=int, default=60, help="to finish one HIT")
        parser.add_argument("--days", type=int, default=7, help="that the HITs are on offer")
        parser.add_argument("--round", type=int, default=1)
        parser.add_argument("--profile", choices=list(PROFILES), default="local")
        parser.add_argument("--dry-run", action="store_true", help="say what it would cost")

    def handle(self, *args: Any, study: str, dry_run: bool, **options: Any) -> None:
        batch = _planned_or_draft(Study.objects.named(study), options)
        if dry_run:
            self.stdout.write(f"Would publish {estimate(batch)}. Nothing was published.")
            return
        client = client_of(batch.connection)
        plan = _plan(batch, client)
        if not plan.is_new:
            self.stdout.write(
                f"Round {plan.batch.round} of study '{study}' is batch {plan.batch.pk} already; "
                "this goes on with it."
            )
        published = publish_batch(
            batch=plan.batch,
            client=client,
            progress=bar("publishing"),
            is_checking_funds=True,
            waiting=self._report_waiting,
        )
        self.stdout.write(
            f"Published {published.n_hits} HITs of batch {plan.batch.pk} ({published.cost})."
        )

    def _report_waiting(self, batch: Batch) -> None:
        self.stderr.write(f"Another command is publishing batch {batch.pk}; waiting for it.")


def _planned_or_draft(study: Study, options: dict[str, Any]) -> Batch:
    """The round's batch on that marketplace, or a draft of a new one."""
    connection = site_connection(options["profile"])
    planned = Batch.objects.of(study).filter(round=options["round"], connection=connection)
    batch = planned.first()
    if batch is not None:
        require_same_terms(
            batch, reward_usd=options["reward"], max_assignments=options["assignments"]
        )
        return batch
    return draft_batch(
        study=study,
        title=options["title"] or study.title,
        description=options["description"],
        keywords=options["keywords"],
        reward_usd=options["reward"],
        max_assignments=options["assignments"],
        assignment_duration_seconds=options["minutes"] * 60,
        lifetime_seconds=options["days"] * 24 * 3600,
        round=options["round"],
        connection=connection,
    )


def _plan(batch: Batch, client: MTurkClient) -> Plan:
    """Plan a draft that can be paid for; where there is no money for it, store nothing."""
    if batch.pk:
        return Plan(batch, is_new=False)
    try:
        require_funds(cost=estimate(batch), client=client)
    except FundsMissing:
        # The money may be gone into this very batch, planned by another command meanwhile.
        if not Batch.objects.planned_like(batch).exists():
            raise
    return plan_batch(draft=batch)


def _usd(text: str) -> Decimal:
    # As in the marketplace's own money forms: no sign, exponent or digits of other scripts.
    if not PLAIN_AMOUNT.fullmatch(text):
        raise ArgumentTypeError(f"'{text}' is not an amount of dollars, such as 0.10")
    return Decimal(text)
