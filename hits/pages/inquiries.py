"""Messages of workers about a study's HITs, and their answers."""

from django.contrib import messages
from django.db.models import F
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST, require_safe

from accounts.roles import Permission
from annotation.pages.stages import study_for, study_page
from annotation.submission_imports import pseudonym
from console.access import person
from hits.contacts import LONGEST_TEXT, answer_inquiry
from hits.exceptions import HitsError
from hits.models import Inquiry
from hits.pages.review import begin_sending

MOST_LISTED = 200


@require_safe
def inquiries(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: those who may review."""
    study = study_for(request, slug, Permission.REVIEW)
    rows = Inquiry.objects.of(study).select_related("worker", "hit__item", "answered_by")
    rows = rows.order_by(F("answered_at").desc(nulls_first=True), "-sent_at", "-pk")[:MOST_LISTED]
    named = [
        (row, pseudonym(study, f"{row.worker.marketplace}:{row.worker.worker_id}")) for row in rows
    ]
    context = {"section": "review", "rows": named, "most": LONGEST_TEXT}
    return study_page(request, study, "hits/review_messages", context)


@require_POST
def answer(request: HttpRequest, slug: str, inquiry_id: int) -> HttpResponse:
    """Access: those who may review."""
    study = study_for(request, slug, Permission.REVIEW)
    row = get_object_or_404(Inquiry.objects.of(study), pk=inquiry_id)
    try:
        answer_inquiry(
            inquiry=row, answer=request.POST.get("answer", ""), actor=person(request), study=study
        )
        begin_sending(request, study)
    except HitsError as refused:
        messages.error(request, str(refused))
    return redirect("console:review-messages", slug)
