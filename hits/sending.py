from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.audit import record
from accounts.models import User
from annotation.models import Study
from annotation.study_facts import REVIEW, request_study_job
from error_codes import CodedText, require
from hits.connections import client_of
from hits.contacts import (
    request_block,
    request_message,
    request_unblock,
    send_blocks,
    send_messages,
)
from hits.costs import require_within_budgets
from hits.decisions import (
    Decision,
    ReviewResult,
    bonus_purpose,
    decide,
    override,
    request_payment,
    send_decisions,
    send_payments,
)
from hits.drafts import NOTHING, drafts_of, require_possible, summary_of, validate_draft
from hits.endpoints import MTurkClient
from hits.exceptions import AssignmentRefused, FeedbackUnfit, PaymentRefused, SummaryOutdated
from hits.limits import run_time
from hits.models import (
    PART,
    Appeal,
    Assignment,
    Batch,
    Connection,
    DeliveryState,
    DraftDecision,
    Inquiry,
    Message,
    Payment,
)
from presentation.numbers import group_values
from presentation.progress import Reporter, without_bars
from work.models import Job

Action = DraftDecision.Action


@dataclass(frozen=True)
class DraftsResult:
    n_recorded: int
    problems: Sequence[CodedText]


@transaction.atomic
def record_drafts(
    *,
    reviewer: User,
    study: Study,
    digest: str,
    typed_usd: Decimal | None = None,
    names_ids: bool = True,
) -> DraftsResult:
    """Record a reviewer's decisions as what is to be sent, once however often it is requested.
    `digest` is that of the summary that was read; `typed_usd` was typed if money is spent
    outside this site. Without `names_ids`, problems contain no AssignmentId."""
    # Whoever presses second waits here, and then finds nothing. As rows: of bare values Django
    # would lock what they are joined with as well, HITs and batches.
    list(DraftDecision.objects.select_for_update(of=("self",)).of(study).by(reviewer).only("pk"))
    summary = summary_of(drafts_of(study, reviewer))
    require(
        summary.digest == digest,
        SummaryOutdated(
            _("The decisions have changed since the summary was made. Look at it again.")
        ),
    )
    require(
        not summary.elsewhere_usd or typed_usd == summary.elsewhere_usd,
        PaymentRefused(
            _("Type the amount that is spent elsewhere, ${amount}, to send it.").format(
                amount=f"{summary.elsewhere_usd:.2f}"
            ),
            code="amount_unconfirmed",
        ),
    )
    if extra_usd_by_batch := summary.extra_usd_by_batch:
        require_within_budgets(study=study, extra_usd_by_batch=extra_usd_by_batch)
    problems = {draft.pk: _record_draft(draft, names_ids) for draft in summary.drafts}
    decisions = [draft for draft in summary.drafts if not problems[draft.pk]]
    _audit(study, reviewer, decisions)
    DraftDecision.objects.filter(pk__in=list(problems)).delete()
    return DraftsResult(len(decisions), [problem for problem in problems.values() if problem])


def _record_draft(draft: DraftDecision, names_ids: bool) -> CodedText | None:
    draft.assignment.refresh_from_db(fields=["status", "decision", "submitted_at"])
    try:
        validate_draft(draft)
        with transaction.atomic():
            _write(draft)
    except FeedbackUnfit as refused:
        return CodedText(str(refused), code=refused.code)
    except AssignmentRefused as refused:
        return CodedText(str(refused) if names_ids else refused.without_id, code=refused.code)
    return None


def _write(draft: DraftDecision) -> None:
    assignment, text, reviewer = draft.assignment, draft.text, draft.reviewer
    connection, worker = assignment.hit.batch.connection, assignment.worker
    match Action(draft.action):
        case Action.APPROVE | Action.REJECT:
            _verdict(draft)
        case Action.PART_PAY:
            _verdict(draft)
            _pay(draft, PART)
        case Action.OVERRIDE:
            n = override(
                assignments=Assignment.objects.filter(pk=draft.assignment_id),
                feedback=text,
                decided_by=reviewer,
            )
            require_possible(
                assignment, bool(n), _("Its rejection is overridden already."), "overridden_already"
            )
        case Action.BONUS:
            _pay(draft, bonus_purpose(text))
        case Action.MESSAGE:
            request_message(
                assignment=assignment, subject=draft.subject, text=text, sent_by=reviewer
            )
        case Action.BLOCK:
            request_block(connection=connection, worker=worker, reason=text, blocked_by=reviewer)
        case Action.UNBLOCK:
            request_unblock(
                connection=connection, worker=worker, reason=text, unblocked_by=reviewer
            )


def _verdict(draft: DraftDecision) -> None:
    n = decide(
        assignments=Assignment.objects.filter(pk=draft.assignment_id),
        decision=Decision.APPROVE if draft.action == Action.APPROVE else Decision.REJECT,
        feedback=draft.text,
        decided_by=draft.reviewer,
    )
    require_possible(draft.assignment, bool(n), _("It is decided already."), "decided_already")


def _pay(draft: DraftDecision, purpose: str) -> None:
    payment = request_payment(
        assignment=draft.assignment,
        purpose=purpose,
        amount_usd=draft.amount_usd or NOTHING,
        reason=draft.text,
        requested_by=draft.reviewer,
    )
    if payment is None:
        raise PaymentRefused(
            _("A bonus for this reason is paid already, or on its way."),
            assignment=draft.assignment,
            code="paid_already",
        )


def _audit(study: Study, reviewer: User, drafts: Sequence[DraftDecision]) -> None:
    for (action, text, amount), assignments in group_values(
        (
            (draft.action, draft.text, f"{draft.amount_usd:.2f}" if draft.amount_usd else ""),
            draft.assignment.assignment_id,
        )
        for draft in drafts
    ).items():
        details = {"assignments": assignments, "text": text, "amount_usd": amount}
        record(
            team=study.team,
            actor=reviewer,
            action=f"review.{action}",
            subject=study.slug,
            details={name: value for name, value in details.items() if value},
        )


def request_sending(*, study: Study, requested_by: User) -> Job:
    # A job per press: one that runs may have read before what it is to send.
    return request_study_job(
        study=study,
        kind=REVIEW,
        arguments={"requested_at": timezone.now().isoformat()},
        requested_by=requested_by,
    )


@run_time()
def send_review(
    *,
    study: Study,
    reporter: Reporter = without_bars,
    client_for: Callable[[Connection], MTurkClient] = client_of,
) -> ReviewResult:
    """Send a study's decisions, then payments, messages and blocks. It can be killed anywhere
    and run again, and pays nothing twice."""
    total = ReviewResult()
    clients: dict[int, MTurkClient] = {}
    for batch in Batch.objects.of(study).started().select_related("connection", "study"):
        if not _has_unsent(batch):
            continue
        if batch.connection_id not in clients:
            clients[batch.connection_id] = client_for(batch.connection)
        total += _send_batch(batch, clients[batch.connection_id], reporter)
    for connection in list(Connection.objects.filter(batches__study=study).distinct()):
        if connection.blocks.filter(state=DeliveryState.INTENDED).exists():
            client = clients.get(connection.pk) or client_for(connection)
            total += ReviewResult(n_blocks=send_blocks(connection=connection, client=client))
    return total


def _send_batch(batch: Batch, client: MTurkClient, reporter: Reporter) -> ReviewResult:
    messages = Message.objects.filter(assignment__hit__batch=batch)
    decisions = send_decisions(batch=batch, client=client, progress=reporter("decisions"))
    payments = send_payments(batch=batch, client=client, progress=reporter("payments"))
    n_messages = send_messages(messages=messages, client=client, progress=reporter("messages"))
    return decisions + payments + ReviewResult(n_messages=n_messages)


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


@transaction.atomic
def retry_refused(*, study: Study) -> int:
    refused = DeliveryState.REFUSED
    assignments = Assignment.objects.filter(hit__batch__study=study).refused()
    payments = Payment.objects.of(study).filter(state=refused)
    messages = Message.objects.filter(assignment__hit__batch__study=study, state=refused)
    touched = set(assignments.values_list("hit__batch", flat=True))
    touched |= set(payments.values_list("assignment__hit__batch", flat=True))
    n = assignments.update(decision_problem="")
    n += payments.update(state=DeliveryState.INTENDED)
    n += messages.update(state=DeliveryState.INTENDED)
    for answered in (Appeal.objects, Inquiry.objects):
        n += answered.of(study).filter(state=refused).update(state=DeliveryState.INTENDED)
    # What was refused counted for nothing until now.
    require_within_budgets(study=study, extra_usd_by_batch=dict.fromkeys(touched, Decimal(0)))
    return n
