"""Operators' Status page: the queues, the ledger's audit, and what could not be delivered."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from marketplace import clock
from marketplace.models import LedgerAudit
from marketplace.notifications.failures import deliveries, given_up_lately
from marketplace.users import User
from marketplace.web.operator.pages import operator_required
from work.backlog import backlogs, failed_lately, is_late


@require_safe
@operator_required
def status(request: HttpRequest, user: User) -> HttpResponse:
    """Whether background work gets on, the ledger balances, and messages arrive.

    Access: operators.
    """
    now = clock.now()
    context = {
        "is_late": is_late(now),
        "backlogs": backlogs(now),
        "failed_jobs": failed_lately(now),
        "audit": LedgerAudit.objects.order_by("pk").last(),
        "deliveries": deliveries(now),
        "given_up": given_up_lately(now),
    }
    return render(request, "marketplace/operator/status.html", context)
