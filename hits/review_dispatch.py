"""Sending all that was decided about a study's work: again and again, until nothing is left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotation.study_jobs import REVIEW, request_study_job
from hits.budgets import require_within_budgets
from hits.connections import client_of
from hits.contacts import send_blocks, send_messages
from hits.models import Appeal, Assignment, Batch, Connection, DeliveryState, Message, Payment
from hits.payments import send_payments
from hits.review import send_decisions
from hits.run_limits import run_time
from presentation.progress import Reporter, without_bars

if TYPE_CHECKING:
    from mypy_boto3_mturk.client import MTurkClient

    from accounts.models import User
    from annotation.models import Study
    from work.models import Job


def request_sending(*, study: Study, requested_by: User) -> Job:
    """A job of its own for each press: one that runs may have read before what it is to send."""
    return request_study_job(
        study=study,
        kind=REVIEW,
        arguments={"requested_at": timezone.now().isoformat()},
        requested_by=requested_by,
    )


@dataclass(frozen=True)
class ReviewResult:
    """What one run sent, and the marketplace confirmed."""

    n_approved: int = 0
    n_rejected: int = 0
    n_overridden: int = 0
    n_decided_before: int = 0
    n_paid: int = 0
    paid_usd: Decimal = Decimal(0)
    n_messages: int = 0
    n_blocks: int = 0
    n_appeals_answered: int = 0
    n_refused: int = 0
    rewards_usd: Decimal = Decimal(0)
    """Of what was approved or overridden, with fees; `paid_usd` is of bonuses and parts."""

    def __add__(self, other: ReviewResult) -> ReviewResult:
        mine, theirs = asdict(self), asdict(other)
        return ReviewResult(**{name: mine[name] + theirs[name] for name in mine})

    def __str__(self) -> str:
        """What was sent, in a sentence; what was not is left out."""
        overridden, paid, messages = self.n_overridden, self.n_paid, self.n_messages
        appeals, blocks, before = self.n_appeals_answered, self.n_blocks, self.n_decided_before
        parts = [
            (self.n_approved, _("{n:,} approved")),
            (self.n_rejected, _("{n:,} rejected")),
            (
                overridden,
                ngettext("{n:,} rejection overridden", "{n:,} rejections overridden", overridden),
            ),
            (paid, ngettext("{n:,} payment, ${usd:.2f}", "{n:,} payments, ${usd:.2f}", paid)),
            (messages, ngettext("{n:,} message", "{n:,} messages", messages)),
            (
                blocks,
                ngettext(
                    "{n:,} worker blocked or unblocked",
                    "{n:,} workers blocked or unblocked",
                    blocks,
                ),
            ),
            (
                appeals,
                ngettext("{n:,} appeal answered", "{n:,} appeals answered", appeals),
            ),
            (
                before,
                ngettext(
                    "{n:,} was decided on the marketplace already",
                    "{n:,} were decided on the marketplace already",
                    before,
                ),
            ),
            (self.n_refused, _("{n:,} refused by the marketplace")),
        ]
        phrases = [text.format(n=count, usd=self.paid_usd) for count, text in parts if count]
        return f"{', '.join(phrases)}." if phrases else _("Nothing was to be sent.")

    def record(self) -> dict[str, Any]:
        """As plain values for JSON."""
        amounts = {
            "rewards_usd": self.rewards_usd,
            "paid_usd": self.paid_usd,
            "total_usd": self.rewards_usd + self.paid_usd,
        }
        return asdict(self) | {name: f"{usd:.2f}" for name, usd in amounts.items()}


@run_time()
def send_review(
    *,
    study: Study,
    reporter: Reporter = without_bars,
    client_for: Callable[[Connection], MTurkClient] = client_of,
) -> ReviewResult:
    """Send a study's decisions, then payments, messages and blocks.

    Killed anywhere and run again it does the rest, and no payment twice.
    """
    total = ReviewResult()
    clients: dict[int, MTurkClient] = {}
    for batch in _batches_with_unsent(study):
        if batch.connection_id not in clients:
            clients[batch.connection_id] = client_for(batch.connection)
        total += _send_batch(batch, clients[batch.connection_id], reporter)
    for connection in _connections(study):
        blocks = connection.blocks.filter(state=DeliveryState.INTENDED)
        if blocks.exists():
            client = clients.get(connection.pk) or client_for(connection)
            total += ReviewResult(n_blocks=send_blocks(connection=connection, client=client))
    return total


def _send_batch(batch: Batch, client: MTurkClient, reporter: Reporter) -> ReviewResult:
    decisions = send_decisions(batch=batch, client=client, progress=reporter("decisions"))
    payments = send_payments(batch=batch, client=client, progress=reporter("payments"))
    messages = Message.objects.filter(assignment__hit__batch=batch)
    n_messages = send_messages(messages=messages, client=client, progress=reporter("messages"))
    return ReviewResult(
        n_approved=decisions.n_approved,
        n_rejected=decisions.n_rejected,
        n_overridden=decisions.n_overridden,
        n_decided_before=decisions.n_decided_before,
        n_paid=payments.n_paid,
        paid_usd=payments.paid_usd,
        n_messages=n_messages,
        n_refused=decisions.n_refused + payments.n_refused,
        rewards_usd=decisions.rewards_usd,
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
        or Message.objects.filter(
            assignment__hit__batch=batch, state=DeliveryState.INTENDED
        ).exists()
    )


def _connections(study: Study) -> list[Connection]:
    return list(Connection.objects.filter(batches__study=study).distinct())


@transaction.atomic
def retry_refused(*, study: Study) -> int:
    """Let what the marketplace refused be sent once more; return how many that is."""
    refused = DeliveryState.REFUSED
    assignments = Assignment.objects.filter(hit__batch__study=study).refused()
    payments = Payment.objects.of(study).filter(state=refused)
    messages = Message.objects.filter(assignment__hit__batch__study=study, state=refused)
    touched = set(assignments.values_list("hit__batch", flat=True))
    touched |= set(payments.values_list("assignment__hit__batch", flat=True))
    n = assignments.update(decision_problem="")
    n += payments.update(state=DeliveryState.INTENDED)
    n += messages.update(state=DeliveryState.INTENDED)
    n += Appeal.objects.of(study).filter(state=refused).update(state=DeliveryState.INTENDED)
    # What was refused counted for nothing until now.
    require_within_budgets(study=study, extra_usd_by_batch=dict.fromkeys(touched, Decimal(0)))
    return n
