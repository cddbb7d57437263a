from argparse import ArgumentTypeError
from decimal import Decimal, InvalidOperation
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from annotation.models import Study
from hits.costs import estimate, require_funds
from hits.endpoints import PROFILES, connect
from hits.exceptions import BatchUnfit
from hits.models import Batch
from hits.publish import create_batch, draft_batch, publish_batch
from presentation.progress import bar


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
        batch = _batch(Study.objects.named(study), options)
        cost = estimate(batch)
        if dry_run:
            self.stdout.write(f"Would publish {cost}. Nothing was published.")
            return
        client = connect(batch.profile)
        require_funds(cost=cost, client=client)
        kept = batch if batch.pk else create_batch(batch)
        published = publish_batch(batch=kept, client=client, progress=bar("publishing"))
        self.stdout.write(f"Published {published} HITs of batch {kept.pk} ({cost}).")


def _batch(study: Study, options: dict[str, Any]) -> Batch:
    """The round's batch on that marketplace, or a draft of a new one."""
    known = Batch.objects.of(study).filter(round=options["round"], profile=options["profile"])
    batch = known.first()
    if batch is not None:
        _require_same(batch, options)
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
        profile=options["profile"],
    )


def _require_same(batch: Batch, options: dict[str, Any]) -> None:
    if (batch.reward_usd, batch.max_assignments) != (options["reward"], options["assignments"]):
        raise BatchUnfit(
            f"Round {batch.round} of study '{batch.study.slug}' is batch {batch.pk}, with --reward "
            f"{batch.reward_usd} and --assignments {batch.max_assignments}. Repeat those to go on "
            f"with it, or begin --round {batch.round + 1}."
        )


def _usd(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        raise ArgumentTypeError(f"'{text}' is not an amount of money") from None
