import json
from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import Count, F, Q, Sum, Window
from django.db.models.functions import TruncDate
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from marketplace import clock
from marketplace.documents.answers import read_answers
from marketplace.exceptions import RequestRefused
from marketplace.hits import lifecycle
from marketplace.hits.assignments import find_assignment_of
from marketplace.hits.review import LONGEST_TEXT, appeal as write_appeal
from marketplace.models import (
    Assignment,
    AssignmentQuerySet,
    Hit,
    LedgerAccount,
    LedgerEntry,
    LedgerTransaction,
    WorkerAccount,
    WorkerMessage,
)
from marketplace.money import ledger
from marketplace.web.worker.access import (
    for_participants,
    in_own_browser,
    with_requesters_content,
    worker_required,
)
from marketplace.web.worker.groups import assignments_at_hand
from marketplace.web.worker.tasks import question_of, task_for

ROWS_PER_PAGE = 50
DAYS_LISTED = 30
STATUSES = Assignment.HANDED_IN_STATUSES


@require_safe
@worker_required
def dashboard(request: HttpRequest, worker: WorkerAccount) -> HttpResponse:
    """What the worker is at, and has handed in, by day and status.

    Access: workers, each their own.
    """
    now = clock.now()
    lifecycle.settle_due(Hit.objects.filter(assignments__worker=worker), now=now)
    handed_in = Assignment.objects.by(worker).handed_in()
    status = request.GET.get("status", "")
    rows = handed_in.filter(status=status) if status in STATUSES else handed_in
    rows = rows.select_related("hit__hit_type__requester", "appeal").order_by("-pk")
    context = {
        "worker": worker,
        "held": assignments_at_hand(worker, now),
        "earned_usd": ledger.balance_of(ledger.earnings_account(worker)),
        "pending_usd": _pending_usd(handed_in),
        "counts": handed_in.aggregate(
            submitted=Count("pk"), **{name: Count("pk", Q(status=name)) for name in STATUSES}
        ),
        "days": _by_day(handed_in),
        "status": status if status in STATUSES else "",
        "statuses": [(name, Assignment.Status(name).label) for name in STATUSES],
        "page": Paginator(rows, ROWS_PER_PAGE).get_page(request.GET.get("page")),
    }
    return render(request, "marketplace/dashboard.html", context)


@require_safe
@with_requesters_content
@worker_required
@for_participants
@in_own_browser
def submitted(request: HttpRequest, worker: WorkerAccount, assignment_id: str) -> HttpResponse:
    """What the worker submitted, with its receipt, on the page it was entered on.

    Access: the worker whose assignment it is.
    """
    assignment = find_assignment_of(worker, assignment_id)
    if assignment.status not in STATUSES:
        return redirect("marketplace:assignment", assignment_id)
    fields = read_answers(assignment.answer)
    is_form = question_of(assignment.hit).kind == "form"
    context = {
        "worker": worker,
        "assignment": assignment,
        "hit": assignment.hit,
        "task": None if is_form else task_for(request, assignment.hit, assignment, worker),
        "fields": [(name, _readable(text)) for name, text in fields],
        "state": {"answer": dict(fields)},
    }
    return render(request, "marketplace/submitted.html", context)


@require_safe
@worker_required
def earnings(request: HttpRequest, worker: WorkerAccount) -> HttpResponse:
    """Rewards, bonuses and payouts, as the ledger has them.

    Access: workers, each their own.
    """
    lifecycle.settle_due(Hit.objects.filter(assignments__worker=worker), now=clock.now())
    account = ledger.earnings_account(worker)
    balance = Window(Sum("amount_usd"), order_by=F("id").asc())
    entries = LedgerEntry.objects.filter(account=account).annotate(balance_after_usd=balance)
    entries = entries.order_by("-pk").select_related(
        "transaction__assignment__hit__hit_type__requester", "transaction__bonus_payment"
    )
    context = _totals_usd(account) | {
        "worker": worker,
        "balance_usd": ledger.balance_of(account),
        "pending_usd": _pending_usd(Assignment.objects.by(worker)),
        "page": Paginator(entries, ROWS_PER_PAGE).get_page(request.GET.get("page")),
    }
    return render(request, "marketplace/earnings.html", context)


@require_safe
@worker_required
def inbox(request: HttpRequest, worker: WorkerAccount) -> HttpResponse:
    """What requesters wrote to the worker.

    Access: workers, each their own.
    """
    received = WorkerMessage.objects.filter(worker=worker).select_related("requester")
    page = Paginator(received.order_by("-pk"), ROWS_PER_PAGE).get_page(request.GET.get("page"))
    return render(request, "marketplace/inbox.html", {"worker": worker, "page": page})


@require_POST
@worker_required
def mark_read(request: HttpRequest, worker: WorkerAccount) -> HttpResponse:
    """Note that the worker has read what is there.

    Access: workers, each their own.
    """
    WorkerMessage.objects.filter(worker=worker, read_at=None).update(read_at=clock.now())
    return redirect("marketplace:inbox")


def _readable(text: str) -> str:
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


def _pending_usd(assignments: AssignmentQuerySet) -> Decimal:
    waiting = assignments.filter(status=Assignment.Status.SUBMITTED)
    total: Decimal | None = waiting.aggregate(total=Sum("reward_usd"))["total"]
    return total or Decimal(0)


def _totals_usd(account: LedgerAccount) -> dict[str, Decimal]:
    kinds = LedgerTransaction.Kind
    totals = account.entries.aggregate(
        payment_usd=Sum("amount_usd", filter=Q(transaction__kind=kinds.PAYMENT)),
        bonus_usd=Sum("amount_usd", filter=Q(transaction__kind=kinds.BONUS)),
        payout_usd=Sum("amount_usd", filter=Q(transaction__kind=kinds.PAYOUT)),
    )
    totals = {name: total or Decimal(0) for name, total in totals.items()}
    return totals | {"paid_out_usd": -totals["payout_usd"]}


def _by_day(handed_in: AssignmentQuerySet) -> list[Any]:
    days = (
        handed_in.filter(submitted_at__gte=clock.now() - timedelta(days=DAYS_LISTED))
        .annotate(day=TruncDate("submitted_at"))
        .values("day")
    )
    counted = days.annotate(
        submitted=Count("pk"),
        waiting=Count("pk", Q(status=Assignment.Status.SUBMITTED)),
        approved=Count("pk", Q(status=Assignment.Status.APPROVED)),
        rejected=Count("pk", Q(status=Assignment.Status.REJECTED)),
        approved_usd=Sum("reward_usd", filter=Q(status=Assignment.Status.APPROVED)),
    )
    return list(counted.order_by("-day"))


# Appealing a rejection.


@require_http_methods(["GET", "HEAD", "POST"])
@worker_required
def appeal(request: HttpRequest, worker: WorkerAccount, assignment_id: str) -> HttpResponse:
    """Say why a rejection is wrong.

    Access: the worker whose assignment it is.
    """
    assignment = get_object_or_404(
        Assignment.objects.by(worker).select_related("hit__hit_type__requester", "appeal"),
        public_id=assignment_id,
    )
    reason, problem = request.POST.get("reason", ""), ""
    if request.method == "POST":
        try:
            write_appeal(worker=worker, assignment=assignment, reason=reason)
        except RequestRefused as refused:
            problem = str(refused)
        else:
            messages.success(request, _("Your appeal is with the requester."))
            return redirect("marketplace:dashboard")
    context = {"worker": worker, "assignment": assignment, "reason": reason, "problem": problem}
    return render(request, "marketplace/appeal.html", context | {"most": LONGEST_TEXT})
