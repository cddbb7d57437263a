"""Participants of a batch: its study at a recruiter, from the draft to the last settled call."""

from __future__ import annotations

from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from accounts.roles import Permission
from annotation.pages.jobs import record_export
from annotation.pages.study import study_for
from console.access import person
from error_codes import CodedText
from hits.exceptions import HitsError
from hits.models import RecruiterCall, Recruitment
from hits.pages.batches import batch_of, batch_page
from hits.pages.offers import OfferForm
from hits.pages.participants import RecruitView, action_form, action_values
from hits.participant_bonuses import BONUS
from hits.recruited_batches import (
    DEMOGRAPHICS,
    DISCARD,
    ERASE,
    PAUSE,
    PLACES,
    PRICE,
    PRICE_BONUS,
    PUBLISH,
    RESUME,
    SETTLE,
    STOP,
    request_change,
    request_draft,
)
from hits.requester_api import FILES, file_address

# Of those that a recruiter refused, what can be tried once more, as when there is money again.
SENT_AGAIN = ("approve", "reject")
ACTIONS = (
    *(PUBLISH, PRICE, PLACES, PAUSE, RESUME, STOP, DISCARD),
    *(DEMOGRAPHICS, BONUS, PRICE_BONUS, ERASE),
)
# Of these each says, or forgets, who participants are.
OF_OWNERS = (DEMOGRAPHICS, ERASE)


@require_POST
def draft(request: HttpRequest, slug: str, batch_id: int) -> HttpResponse:
    """Access: those who may spend."""
    study = study_for(request, slug, Permission.SPEND)
    row = batch_of(study, batch_id)
    form, view = OfferForm(row, request.POST), RecruitView(row, "draft", request.POST)
    if not form.is_valid():
        return batch_page(request, study, row, view)
    try:
        request_draft(batch=row, offer=form.offer, actor=person(request))
    except HitsError as error:
        view.problem = CodedText(str(error), error.code)
        return batch_page(request, study, row, view)
    return _back(slug, batch_id)


@require_POST
def act(
    request: HttpRequest, slug: str, batch_id: int, recruitment_id: int, action: str
) -> HttpResponse:
    """Access: those who may spend; owners, for participants' demographics and erasure."""
    needed = Permission.OWN if action in OF_OWNERS else Permission.SPEND
    study = study_for(request, slug, needed)
    row = batch_of(study, batch_id)
    recruitment = get_object_or_404(Recruitment.objects.filter(batch=row), pk=recruitment_id)
    if action not in ACTIONS:
        raise Http404
    view = RecruitView(row, action, request.POST)
    form = action_form(recruitment, action, request.POST)
    if not form.is_valid():
        return batch_page(request, study, row, view)
    try:
        request_change(
            recruitment=recruitment,
            action=action,
            number=form.cleaned_data["number"],
            values=action_values(recruitment, action, form),
            actor=person(request),
        )
    except HitsError as error:
        view.problem, view.data = CodedText(str(error), error.code), None
        return batch_page(request, study, row, view)
    return _back(slug, batch_id)


@require_safe
def file(
    request: HttpRequest, slug: str, batch_id: int, recruitment_id: int, name: str
) -> HttpResponse:
    """To a file that the marketplace keeps, which the audit log then names.

    Access: owners.
    """
    study = study_for(request, slug, Permission.OWN)
    row = batch_of(study, batch_id)
    drafted = Recruitment.objects.filter(batch=row).exclude(public_id="")
    recruitment = get_object_or_404(drafted, pk=recruitment_id)
    if name not in FILES:
        raise Http404
    try:
        address = file_address(recruitment, name, reader=person(request).get_username())
    except HitsError as error:
        return batch_page(
            request, study, row, RecruitView(row, problem=CodedText(str(error), error.code))
        )
    record_export(request, study, f"batch {row.pk}, {recruitment.recruiter}: {name}.csv")
    return redirect(address)


@require_POST
def put_away(request: HttpRequest, slug: str, batch_id: int, call_id: int) -> HttpResponse:
    """Access: those who may spend. A call that was refused is listed no more."""
    study = study_for(request, slug, Permission.SPEND)
    row = batch_of(study, batch_id)
    calls = RecruiterCall.objects.filter(recruitment__batch=row, is_uncertain=False)
    calls.filter(pk=call_id, put_away_at=None).update(put_away_at=timezone.now())
    return _back(slug, batch_id)


@require_POST
def settle(request: HttpRequest, slug: str, batch_id: int, call_id: int) -> HttpResponse:
    """Access: those who may spend."""
    study = study_for(request, slug, Permission.SPEND)
    row = batch_of(study, batch_id)
    decisions = Q(is_uncertain=True) | Q(kind__in=SENT_AGAIN)
    calls = RecruiterCall.objects.filter(decisions, recruitment__batch=row)
    call = get_object_or_404(calls.select_related("recruitment"), pk=call_id)
    values = {"call": call.number, "was_done": request.POST.get("was_done") == "yes"}
    try:
        request_change(
            recruitment=call.recruitment,
            action=SETTLE,
            number=call.recruitment.n_requests,
            values=values,
            actor=person(request),
        )
    except HitsError as error:
        return batch_page(
            request, study, row, RecruitView(row, problem=CodedText(str(error), error.code))
        )
    return _back(slug, batch_id)


def _back(slug: str, batch_id: int) -> HttpResponseRedirect:
    return redirect(f"{reverse('console:batch', args=[slug, batch_id])}#participants")
