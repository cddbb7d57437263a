import csv
from typing import Any

from django.contrib import messages
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.roles import Permission
from annotation.access import record_in
from annotation.models import Study
from annotation.models.studies import CountedStudy
from annotation.pages.downloads import record_export
from annotation.pages.stages import study_for, study_page
from annotation.study_facts import ANSWER_BY_CROWD, COLLECT, jobs_of, request_study_job
from console.access import may, person
from console.tables import page_of
from error_codes import CodedText
from hits.changes import missing_assignments
from hits.connections import FILES, file_address
from hits.exceptions import HitsError
from hits.invitation_links import (
    INVITE,
    WANTED,
    request_invitations,
    request_link_action,
    request_revocation,
)
from hits.jobs import APPLY_CHANGES
from hits.models import Batch, InvitedPerson, RecruiterCall, Recruitment
from hits.pages.changes import (
    CHANGES,
    ConfirmationForm,
    changes_offered,
    displayed,
    initial_values,
    make_change,
    needs_amount,
)
from hits.pages.invitation_links import LinksView, NamesForm, links_table
from hits.pages.offers import OfferForm
from hits.pages.participants import RecruitView, action_form, action_values
from hits.pages.terms import further_round
from hits.participants import BONUS
from hits.practice import practice_report
from hits.progress import (
    BatchReport,
    batch_report,
    is_offered_here,
    progress_of,
    unreadable_assignments,
)
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
    batches_without_study,
    request_change,
    request_draft,
)
from hits.wages import stated_hourly


@require_safe
def answers(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: whoever has a role in the study."""
    study = study_for(request, slug)
    page = page_of(request, unreadable_assignments(study).select_related("worker", "hit__item"))
    if len(page) and may(request, Permission.VIEW_WORKERS) and request.method == "GET":
        record_in(
            study,
            actor=person(request),
            action="worker.view",
            details={"page": "answers", "n_workers": len(page)},
        )
    batches = Batch.objects.of(study).select_related("connection").progressing()
    context = {
        "progress": progress_of(study),
        "page": page,
        "batches": batches,
        "is_offered_here": is_offered_here(batches),
        "undrafted": batches_without_study(batches),
        "further_round": further_round(batches),
        "job": jobs_of(study).of_kind(COLLECT, ANSWER_BY_CROWD).first(),
    }
    return study_page(request, study, "hits/answers", context)


@require_POST
def collect(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: those who may edit."""
    request_study_job(
        study=study_for(request, slug, Permission.EDIT), kind=COLLECT, requested_by=person(request)
    )
    messages.success(request, _("Collecting in the background; this page follows it."))
    return redirect("console:answers", slug)


@require_safe
def batch(request: HttpRequest, slug: str, batch_id: int) -> HttpResponse:
    """Access: whoever has a role in the study; money for those who may see it."""
    study = study_for(request, slug)
    row = batch_of(study, batch_id)
    return batch_page(request, study, row, RecruitView(row))


def batch_page(
    request: HttpRequest,
    study: CountedStudy,
    row: Batch,
    recruiting: RecruitView,
    links: LinksView | None = None,
) -> HttpResponse:
    report = batch_report(row)
    context = {
        "section": "answers",
        "batch": row,
        "report": report,
        "practice": practice_report(row),
        "money": _money_rows(report),
        "is_under_floor": _is_under_floor(study, report),
        "estimated_usd": stated_hourly(row),
        "now": timezone.now(),
        "expires_at": row.offered_until,
        "missing": missing_assignments(row),
        "changes": changes_offered(row),
        "job": _last_job(study, row),
        "recruiting": recruiting if row.is_recruited and not row.is_invited else None,
        "links": links or (LinksView(row) if row.is_invited else None),
    }
    return study_page(request, study, "hits/batch", context)


@require_http_methods(["GET", "HEAD", "POST"])
def batch_change(request: HttpRequest, slug: str, batch_id: int, name: str) -> HttpResponse:
    """First what it does and costs, then doing it.

    Access: those who may spend.
    """
    study = study_for(request, slug, Permission.SPEND)
    row, change = batch_of(study, batch_id), CHANGES.get(name)
    if change is None:
        raise Http404
    values = request.POST if request.method == "POST" else request.GET
    names = change.form.base_fields
    is_filled = not names or any(name in values for name in names)
    form = change.form(values if is_filled else None, initial=initial_values(row), label_suffix="")
    preview, confirmation, problem = None, None, ""
    try:
        if is_filled and form.is_valid():
            preview = change.preview(row, form.cleaned_data)
            is_typed = needs_amount(row, preview)
            confirmation = ConfirmationForm(initial=displayed(row, preview), is_typed=is_typed)
            typed = ConfirmationForm(request.POST, is_typed=is_typed)
            if request.method == "POST" and typed.is_valid():
                make_change(
                    batch=row,
                    change=change,
                    values=form.cleaned_data,
                    confirmation=typed,
                    actor=person(request),
                )
                return redirect("console:batch", slug, batch_id)
            confirmation = typed if request.method == "POST" else confirmation
    except HitsError as error:
        problem = str(error)
    context = {
        **{"section": "answers", "batch": row, "name": name, "change": change, "form": form},
        **{"preview": preview, "confirmation": confirmation, "problem": problem},
        "values": form.data if preview else {},
    }
    return study_page(request, study, "hits/batch_change", context)


def _money_rows(report: BatchReport) -> list[dict[str, Any]]:
    here, there = report.spend, report.statement
    return [
        {"label": label, "here": getattr(here, name), "there": getattr(there, name, None)}
        for name, label in {
            "rewards_usd": _("Rewards"),
            "fees_usd": _("Fees on rewards"),
            "bonuses_usd": _("Bonuses"),
            "bonus_fees_usd": _("Fees on bonuses"),
            "total_usd": _("In all"),
        }.items()
    ]


def _is_under_floor(study: Study, report: BatchReport) -> bool:
    floor = study.team.wage_floor_usd if study.team else None
    return bool(floor and report.hourly_usd and report.hourly_usd.median < float(floor))


def batch_of(study: Study, batch_id: int) -> Batch:
    related = ("study__team", "connection", "launched_by", "protocol", "statement")
    return get_object_or_404(Batch.objects.of(study).select_related(*related), pk=batch_id)


def _last_job(study: Study, batch: Batch) -> Any:
    jobs = (
        jobs_of(study)
        .of_kind(APPLY_CHANGES, ANSWER_BY_CROWD)
        .filter(arguments__batch=batch.pk)
        .latest_of_each_kind()
    )
    at_work = (job for job in jobs if job.kind == ANSWER_BY_CROWD and job.is_unfinished)
    return next(at_work, None) or max(jobs, key=lambda job: job.pk, default=None)


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
        request_draft(batch=row, actor=person(request), **form.offer)
    except HitsError as error:
        view.problem = CodedText(str(error), error.code)
        return batch_page(request, study, row, view)
    return _back(slug, batch_id)


@require_POST
def act(
    request: HttpRequest, slug: str, batch_id: int, recruitment_id: int, action: str
) -> HttpResponse:
    """Access: those who may spend; owners, for participants' demographics and erasure."""
    study = study_for(request, slug, Permission.OWN if action in OF_OWNERS else Permission.SPEND)
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
    recruitment = get_object_or_404(
        Recruitment.objects.filter(batch=row).exclude(public_id=""), pk=recruitment_id
    )
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
    row = batch_of(study_for(request, slug, Permission.SPEND), batch_id)
    RecruiterCall.objects.filter(
        recruitment__batch=row, is_uncertain=False, pk=call_id, put_away_at=None
    ).update(put_away_at=timezone.now())
    return _back(slug, batch_id)


@require_POST
def settle(request: HttpRequest, slug: str, batch_id: int, call_id: int) -> HttpResponse:
    """Access: those who may spend."""
    study = study_for(request, slug, Permission.SPEND)
    row = batch_of(study, batch_id)
    call = get_object_or_404(
        RecruiterCall.objects.filter(
            Q(is_uncertain=True) | Q(kind__in=SENT_AGAIN), recruitment__batch=row
        ).select_related("recruitment"),
        pk=call_id,
    )
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


@require_POST
def invite_people(request: HttpRequest, slug: str, batch_id: int) -> HttpResponse:
    """Create a link per name, or share, close or open the links of a batch.

    Access: those who may spend.
    """
    study = study_for(request, slug, Permission.SPEND)
    row = batch_of(study, batch_id)
    if not row.is_invited:
        return _back(slug, batch_id)
    action, actor = request.POST.get("action", ""), person(request)
    form = NamesForm(request.POST if action == INVITE else None)
    try:
        if action in WANTED:
            request_link_action(batch=row, action=action, actor=actor)
        elif form.is_valid():
            names = form.cleaned_data["names"]
            request_invitations(batch=row, names=names, actor=actor)
        else:
            return batch_page(request, study, row, RecruitView(row), LinksView(row, form))
    except HitsError as error:
        view = LinksView(row, form, CodedText(str(error), error.code))
        return batch_page(request, study, row, RecruitView(row), view)
    return _back(slug, batch_id)


@require_POST
def revoke_link(request: HttpRequest, slug: str, batch_id: int, person_id: int) -> HttpResponse:
    """Access: those who may spend."""
    row = batch_of(study_for(request, slug, Permission.SPEND), batch_id)
    people = InvitedPerson.objects.filter(study__batch=row).exclude(name="", number=None)
    one = get_object_or_404(people.select_related("study__batch__study"), pk=person_id)
    request_revocation(person=one, actor=person(request))
    return _back(slug, batch_id)


@require_safe
def links_file(request: HttpRequest, slug: str, batch_id: int) -> HttpResponse:
    """Names, links and work of a batch's invited people.

    Access: those who may spend.
    """
    study = study_for(request, slug, Permission.SPEND)
    row = batch_of(study, batch_id)
    record_export(request, study, f"batch {row.pk}: links.csv")
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    response.headers["Content-Disposition"] = f'attachment; filename="{slug}-links.csv"'
    csv.writer(response).writerows(links_table(row))
    return response


def _back(slug: str, batch_id: int) -> HttpResponseRedirect:
    return redirect(f"{reverse('console:batch', args=[slug, batch_id])}#participants")
