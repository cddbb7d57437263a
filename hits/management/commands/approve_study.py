from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from hits.connections import client_of
from hits.models import Assignment, Batch
from hits.review import decide, send_decisions
from presentation.progress import bar


class Command(BaseCommand):
    help = "Approve, and so pay, every collected assignment of a study that could be read."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("study", metavar="SLUG")
        parser.add_argument("--dry-run", action="store_true", help="say what it would pay")

    def handle(self, *args: Any, study: str, dry_run: bool, **options: Any) -> None:
        for batch in Batch.objects.started_of(study):
            waiting = Assignment.objects.of(batch).undecided().exclude(submission=None)
            if dry_run:
                n = waiting.count() + _decided_before(batch)
                told = f"would approve {n} assignments, ${n * batch.reward_usd} in rewards"
                self.stdout.write(f"Batch {batch.pk}: {told}. Nothing was paid.")
                continue
            decide(assignments=waiting, decision=Assignment.Decision.APPROVE)
            client = client_of(batch.connection)
            sent = send_decisions(batch=batch, client=client, progress=bar("approving"))
            self.stdout.write(f"Batch {batch.pk}: {sent}")


def _decided_before(batch: Batch) -> int:
    """Approvals of an earlier run that was stopped before it sent them."""
    unsent = Assignment.objects.of(batch).decided_but_unsent()
    return unsent.filter(decision=Assignment.Decision.APPROVE).count()
