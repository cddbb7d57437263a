import json as json_format
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from hits.connections import client_of
from hits.models import Assignment, Batch
from hits.review import APPROVE, decide, send_decisions
from presentation.progress import bar


class Command(BaseCommand):
    help = "Approve, and so pay, every collected assignment of a study that could be read."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("study", metavar="SLUG")
        parser.add_argument("--dry-run", action="store_true", help="say what it would pay")
        parser.add_argument("--json", action="store_true", help="print the outcome as JSON")

    def handle(self, *args: Any, study: str, dry_run: bool, json: bool, **options: Any) -> None:
        outcome = _preview if dry_run else _approve
        batches = [outcome(batch) for batch in Batch.objects.started_of(study)]
        if json:
            content = [
                {name: value for name, value in one.items() if name != "text"} for one in batches
            ]
            self.stdout.write(json_format.dumps({"batches": content}))
            return
        for one in batches:
            self.stdout.write(f"Batch {one['batch']}: {one['text']}")


def _preview(batch: Batch) -> dict[str, Any]:
    """What approving a batch would pay."""
    waiting = Assignment.objects.of(batch).undecided().exclude(submission=None)
    n = waiting.count() + _decided_before(batch)
    rewards_usd = f"{n * batch.reward_usd}"
    text = f"would approve {n} assignments, ${rewards_usd} in rewards. Nothing was paid."
    return {
        "batch": batch.pk,
        "would_approve": n,
        "rewards_usd": rewards_usd,
        "text": text,
    }


def _approve(batch: Batch) -> dict[str, Any]:
    """What approving a batch came to."""
    waiting = Assignment.objects.of(batch).undecided().exclude(submission=None)
    decide(assignments=waiting, decision=APPROVE)
    sent = send_decisions(
        batch=batch, client=client_of(batch.connection), progress=bar("approving")
    )
    return {"batch": batch.pk} | sent.record() | {"text": str(sent)}


def _decided_before(batch: Batch) -> int:
    """Approvals of an earlier run that was stopped before it sent them."""
    unsent = Assignment.objects.of(batch).decided_but_unsent()
    return unsent.filter(decision=APPROVE).count()
