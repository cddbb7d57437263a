import json as json_format
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from hits.connections import client_of
from hits.decisions import APPROVE, decide, send_decisions
from hits.drafts import measure_holds
from hits.models import Assignment, AssignmentRecordQuerySet, Batch
from presentation.numbers import count_of
from presentation.progress import bar


class Command(BaseCommand):
    help = "Approve, and so pay, every collected assignment of a study that could be read."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("study", metavar="SLUG")
        parser.add_argument("--dry-run", action="store_true", help="say what it would pay")
        parser.add_argument(
            "--with-held", action="store_true", help="also what the protocol holds for a person"
        )
        parser.add_argument("--json", action="store_true", help="print the outcome as JSON")

    def handle(
        self,
        *args: Any,
        study: str,
        dry_run: bool,
        with_held: bool,
        json: bool,
        **options: Any,
    ) -> None:
        outcome = _preview if dry_run else _approve
        started = Batch.objects.started_of(study)
        if not with_held:
            measure_holds(started[0].study)
        batches = [outcome(batch, with_held) for batch in started]
        if json:
            content = [
                {name: value for name, value in one.items() if name != "text"} for one in batches
            ]
            self.stdout.write(json_format.dumps({"batches": content}))
            return
        for one in batches:
            self.stdout.write(f"Batch {one['batch']}: {one['text']}")


def _readable(batch: Batch, with_held: bool) -> tuple[AssignmentRecordQuerySet, int]:
    readable = Assignment.objects.of(batch).undecided().exclude(submission=None)
    held = readable.held()
    return (readable, 0) if with_held else (readable.exclude(pk__in=held), held.count())


def _held_text(n_held: int) -> str:
    return f" {count_of(n_held, 'assignment')} held for a person, see Review." if n_held else ""


def _preview(batch: Batch, with_held: bool) -> dict[str, Any]:
    assignments, n_held = _readable(batch, with_held)
    n = (
        assignments.count()
        + Assignment.objects.of(batch).decided_but_unsent().filter(decision=APPROVE).count()
    )
    rewards_usd = f"{n * batch.reward_usd}"
    return {
        "batch": batch.pk,
        "would_approve": n,
        "rewards_usd": rewards_usd,
        "held": n_held,
        "text": f"would approve {count_of(n, 'assignment')}, ${rewards_usd} in rewards. "
        "Nothing was paid." + _held_text(n_held),
    }


def _approve(batch: Batch, with_held: bool) -> dict[str, Any]:
    assignments, n_held = _readable(batch, with_held)
    decide(assignments=assignments, decision=APPROVE)
    result = send_decisions(
        batch=batch, client=client_of(batch.connection), progress=bar("approving")
    )
    return (
        {"batch": batch.pk}
        | result.record()
        | {"held": n_held, "text": f"{result}{_held_text(n_held)}"}
    )
