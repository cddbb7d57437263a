"""Sending what was decided at the review desk, all of it together."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from accounts.roles import Permission
from annotation.models import Study
from annotation.pages.study import (
    study_for,
    study_page,
)
from console.access import person
from console.forms import problems_of
from hits.draft_costs import recruiter_pay, summary_of
from hits.drafts import Action, drafts_of
from hits.exceptions import HitsError
from hits.models import Assignment
from hits.pages.review_forms import SendForm
from hits.record_drafts import record_drafts
from hits.review import withdraw_refused
from hits.review_dispatch import request_sending, retry_refused


def desk_address(study: Study, **query: Any) -> str:
    """Where the review desk is: its list, the submission it opens with."""
    values = {name: value for name, value in query.items() if value}
    return reverse("console:review", args=[study.slug], query=values)


@require_safe
def send(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: those who may review. The summary of what they decided."""
    study = study_for(request, slug, Permission.REVIEW)
    summary = summary_of(drafts_of(study, person(request)))
    actions = [
        (Action(action).label, n, summary.costs_usd[action])
        for action, n in summary.numbers.items()
    ]
    form = SendForm(initial={"digest": summary.digest}, label_suffix="")
    context = {
        "summary": summary,
        "actions": actions,
        "form": form,
        "section": "review",
        "has_participants": any(each.assignment.hit.batch.is_recruited for each in summary.drafts),
        "recruiter_pay": recruiter_pay(summary.drafts),
    }
    return study_page(request, study, "hits/review_send", context)


@require_POST
def send_progress(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: those who may review; what costs more than was held, those who may spend."""
    study = study_for(request, slug, Permission.REVIEW)
    form = SendForm(request.POST)
    if not form.is_valid():
        text = _("Nothing was sent. {why}").format(why=problems_of(form))
        messages.error(request, text, extra_tags="not_sent")
    elif _record_form(request, study, form):
        return redirect(desk_address(study))
    return redirect("console:review-send", slug)


def _record_form(request: HttpRequest, study: Study, form: SendForm) -> bool:
    """Write down what is to be sent and request the job that sends it; say what was refused."""
    values = form.cleaned_data
    try:
        result = record_drafts(
            reviewer=person(request),
            study=study,
            digest=values["digest"],
            typed_usd=values["typed_usd"],
        )
    except HitsError as refused:
        text = _("Nothing was sent. {why}").format(why=refused)
        messages.error(request, text, extra_tags="not_sent")
        return False
    for problem in result.problems:
        messages.warning(request, problem)
    if result.n_recorded:
        begin_sending(request, study)
    return True


def begin_sending(request: HttpRequest, study: Study) -> None:
    """Request the job that sends, and say so."""
    request_sending(study=study, requested_by=person(request))
    text = _("Sending in the background; this page follows it.")
    messages.success(request, text, extra_tags="sending")


@require_POST
def withdraw(request: HttpRequest, slug: str, assignment_id: int) -> HttpResponse:
    """Access: those who may review. Take a refused decision back, and lead to its submission."""
    study = study_for(request, slug, Permission.REVIEW)
    one = get_object_or_404(Assignment, hit__batch__study=study, pk=assignment_id)
    withdraw_refused(assignments=Assignment.objects.filter(pk=one.pk))
    return redirect(desk_address(study, assignment=one.pk))


@require_POST
def retry(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: those who may review and spend."""
    study = study_for(request, slug, Permission.REVIEW)
    study_for(request, slug, Permission.SPEND)
    try:
        if retry_refused(study=study):
            begin_sending(request, study)
    except HitsError as refused:
        messages.error(request, str(refused))
    return redirect(desk_address(study))
