"""Sending all that was decided about a study's work: again and again, until nothing is left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from django.db import transaction

from hits.budgets import require_within_budgets
from hits.connections import client_of
from hits.contacts import send_blocks, send_messages
from hits.models import Assignment, Batch, Connection, Message, Payment, Sending
from hits.payments import send_payments
from hits.review import send_decisions
from presentation.progress import Reporter, without_bars

if TYPE_CHECKING:
    from mypy_boto3_mturk.client import MTurkClient

    from annotation.models import Study


@dataclass(frozen=True)
class Sent:
    """What one run sent, and the marketplace confirmed."""

    n_approved: int = 0
    n_rejected: int = 0
    n_overridden: int = 0
    n_decided_before: int = 0
    n_paid: int = 0
    paid_usd: Decimal = Decimal(0)
    n_messages: int = 0
    n_blocks: int = 0
    n_refused: int = 0

    def __add__(self, other: Sent) -> Sent:
        mine, theirs = asdict(self), asdict(other)
        return Sent(**{name: mine[name] + theirs[name] for name in mine})

    def __str__(self) -> str:
        parts = [
            f"{self.n_approved} approved",
            f"{self.n_rejected} rejected",
            f"{self.n_overridden} rejections overridden",
            f"{self.n_paid} payments, ${self.paid_usd:.2f}",
            f"{self.n_messages} messages",
            f"{self.n_blocks} workers blocked or unblocked",
            f"{self.n_decided_before} were decided on the marketplace already",
            f"{self.n_refused} refused by the marketplace",
        ]
        named = [part for part in parts if not part.startswith("0 ")]
        return f"{', '.join(named)}." if named else "Nothing was to be sent."

    def record(self) -> dict[str, Any]:
        """As plain values for JSON."""
        return asdict(self) | {"paid_usd": f"{self.paid_usd:.2f}"}


def send_review(
    *,
    study: Study,
    reporter: Reporter = without_bars,
    client_for: Callable[[Connection], MTurkClient] = client_of,
) -> Sent:
    """Send a study's decisions, then payments, messages and blocks.

    Killed anywhere and run again it does the rest, and no payment twice.
    """
    sent = Sent()
    clients: dict[int, MTurkClient] = {}
    for batch in _batches_with_unsent(study):
        if batch.connection_id not in clients:
            clients[batch.connection_id] = client_for(batch.connection)
        sent += _send_batch(batch, clients[batch.connection_id], reporter)
    for connection in _connections(study):
        blocks = connection.blocks.filter(state=Sending.INTENDED)
        if blocks.exists():
            client = clients.get(connection.pk) or client_for(connection)
            sent += Sent(n_blocks=send_blocks(connection=connection, client=client))
    return sent


def _send_batch(batch: Batch, client: MTurkClient, reporter: Reporter) -> Sent:
    decided = send_decisions(batch=batch, client=client, progress=reporter("decisions"))
    paid = send_payments(batch=batch, client=client, progress=reporter("payments"))
    messages = Message.objects.filter(assignment__hit__batch=batch)
    n_messages = send_messages(messages=messages, client=client, progress=reporter("messages"))
    return Sent(
        n_approved=decided.n_approved,
        n_rejected=decided.n_rejected,
        n_overridden=decided.n_overridden,
        n_decided_before=decided.n_decided_before,
        n_paid=paid.n_paid,
        paid_usd=paid.paid_usd,
        n_messages=n_messages,
        n_refused=decided.n_refused + paid.n_refused,
    )


def _batches_with_unsent(study: Study) -> list[Batch]:
    batches = Batch.objects.of(study).started().select_related("connection", "study")
    return [batch for batch in batches if _has_unsent(batch)]


def _has_unsent(batch: Batch) -> bool:
    assignments = Assignment.objects.of(batch)
    return (
        assignments.decided_but_unsent().exists()
        or assignments.overridden_but_unsent().exists()
        or Payment.objects.unsent().filter(assignment__hit__batch=batch).exists()
        or Message.objects.filter(assignment__hit__batch=batch, state=Sending.INTENDED).exists()
    )


def _connections(study: Study) -> list[Connection]:
    return list(Connection.objects.filter(batches__study=study).distinct())


@transaction.atomic
def retry_refused(*, study: Study) -> int:
    """Let what the marketplace refused be sent once more; return how many that is."""
    assignments = Assignment.objects.filter(hit__batch__study=study).refused()
    n = assignments.update(decision_problem="")
    n += Payment.objects.of(study).filter(state=Sending.REFUSED).update(state=Sending.INTENDED)
    messages = Message.objects.filter(assignment__hit__batch__study=study, state=Sending.REFUSED)
    n += messages.update(state=Sending.INTENDED)
    # What was refused counted for nothing until now.
    require_within_budgets(study=study, extra_usd=Decimal(0))
    return n
