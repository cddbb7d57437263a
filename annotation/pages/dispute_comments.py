"""Comments between colleagues on a candidate in dispute."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from accounts.roles import Permission
from annotation.disputes import add_comment, delete_comment, edit_comment
from annotation.exceptions import CommentRefused
from annotation.models import Candidate, DisputeComment, Study
from annotation.pages.adjudication import (
    QueueSelection,
    queue_address,
)
from annotation.pages.study import study_for
from console.access import person


@require_POST
def add(request: HttpRequest, slug: str, candidate_id: int) -> HttpResponse:
    """Access: those who may adjudicate."""
    study = study_for(request, slug, Permission.ADJUDICATE)
    candidate = get_object_or_404(Candidate, item__study=study, pk=candidate_id)
    selection = QueueSelection.of(study, request.POST)
    try:
        add_comment(
            candidate=candidate,
            question=selection.question,
            round=selection.round,
            text=request.POST.get("text", ""),
            written_by=person(request),
        )
    except CommentRefused as refused:
        messages.error(request, str(refused), extra_tags=refused.code)
    return redirect(f"{queue_address(slug, request.POST, selection)}#comments")


@require_POST
def edit(request: HttpRequest, slug: str, comment_id: int) -> HttpResponse:
    """Access: who wrote it, while they may adjudicate."""
    study = study_for(request, slug, Permission.ADJUDICATE)
    comment = _own(request, study, comment_id)
    try:
        edit_comment(comment=comment, text=request.POST.get("text", ""), actor=person(request))
    except CommentRefused as refused:
        messages.error(request, str(refused), extra_tags=refused.code)
    selection = QueueSelection.of(study, request.POST)
    return redirect(f"{queue_address(slug, request.POST, selection)}#comments")


@require_POST
def delete(request: HttpRequest, slug: str, comment_id: int) -> HttpResponse:
    """Access: who wrote it, while they may adjudicate."""
    study = study_for(request, slug, Permission.ADJUDICATE)
    delete_comment(comment=_own(request, study, comment_id), actor=person(request))
    messages.success(request, _("The comment is deleted."))
    selection = QueueSelection.of(study, request.POST)
    return redirect(f"{queue_address(slug, request.POST, selection)}#comments")


def _own(request: HttpRequest, study: Study, comment_id: int) -> DisputeComment:
    """A comment of the person's own; 404 for anybody else's."""
    comments = DisputeComment.objects.of(study).select_related("candidate__item", "question__study")
    return get_object_or_404(comments, pk=comment_id, written_by=person(request))
