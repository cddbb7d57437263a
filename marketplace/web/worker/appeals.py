"""Appealing a rejection."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from marketplace.exceptions import RequestRefused
from marketplace.hits.review import LONGEST_TEXT
from marketplace.hits.review import appeal as write_appeal
from marketplace.models import Assignment, WorkerAccount
from marketplace.web.worker.access import worker_required


@require_http_methods(["GET", "HEAD", "POST"])
@worker_required
def appeal(request: HttpRequest, worker: WorkerAccount, assignment_id: str) -> HttpResponse:
    """Say why a rejection is wrong.

    Access: the worker whose assignment it is.
    """
    rows = Assignment.objects.by(worker).select_related("hit__hit_type__requester", "appeal")
    assignment = get_object_or_404(rows, public_id=assignment_id)
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
