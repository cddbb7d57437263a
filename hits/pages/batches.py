"""A batch: how it stands, what it cost, and what can still be changed of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.roles import Permission
from annotation.access import record_in
from annotation.models import Study
from annotation.pages.study import study_for, study_page
from annotation.study_jobs import ANSWER_BY_CROWD, COLLECT, jobs_of, request_study_job
from console.access import may, person
from console.tables import page_of
from hits.changes import missing_assignments
from hits.exceptions import HitsError
from hits.jobs import APPLY_CHANGES
from hits.models import Batch
from hits.pages.changes import (
    CHANGES,
    Change,
    ConfirmationForm,
    changes_offered,
    displayed,
    initial_values,
    make_change,
    needs_amount,
)
from hits.pages.participants import RecruitView
from hits.practice import practice_report
from hits.progress import is_offered_here, progress_of, unreadable_assignments
from hits.recruited_batches import batches_without_study
from hits.statements import BatchReport, batch_report

if TYPE_CHECKING:
    from annotation.models.studies import CountedStudy


@require_safe
def answers(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: whoever has a role in the study."""
    study = study_for(request, slug)
    unreadable = unreadable_assignments(study).select_related("worker", "hit__item")
    page = page_of(request, unreadable)
    _record_view(request, study, len(page))
    batches = Batch.objects.of(study).select_related("connection").progressing()
    context = {
        "progress": progress_of(study),
        "page": page,
        "batches": batches,
        "is_offered_here": is_offered_here(batches),
        "undrafted": batches_without_study(batches),
        "job": jobs_of(study).of_kind(COLLECT, ANSWER_BY_CROWD).first(),
    }
    return study_page(request, study, "hits/answers", context)


def _record_view(request: HttpRequest, study: Study, n_workers: int) -> None:
    if n_workers and may(request, Permission.VIEW_WORKERS) and request.method == "GET":
        details = {"page": "answers", "n_workers": n_workers}
        record_in(study, actor=person(request), action="worker.view", details=details)


@require_POST
def collect(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: those who may edit."""
    study = study_for(request, slug, Permission.EDIT)
    request_study_job(study=study, kind=COLLECT, requested_by=person(request))
    messages.success(request, _("Collecting in the background; this page follows it."))
    return redirect("console:answers", slug)


@require_safe
def batch(request: HttpRequest, slug: str, batch_id: int) -> HttpResponse:
    """Access: whoever has a role in the study; money for those who may see it."""
    study = study_for(request, slug)
    row = batch_of(study, batch_id)
    return batch_page(request, study, row, RecruitView(row))


def batch_page(
    request: HttpRequest, study: CountedStudy, row: Batch, recruiting: RecruitView
) -> HttpResponse:
    """The page of a batch, its participants as `recruiting` has them."""
    report = batch_report(row)
    context = {
        "section": "answers",
        "batch": row,
        "report": report,
        "practice": practice_report(row),
        "money": _money_rows(report),
        "is_under_floor": _is_under_floor(study, report),
        "now": timezone.now(),
        "expires_at": row.offered_until,
        "missing": missing_assignments(row),
        "changes": changes_offered(row),
        "job": _last_job(study, row),
        "recruiting": recruiting if row.is_recruited else None,
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
    page = _ChangePage(request, row, change)
    if request.method == "POST" and page.perform():
        return redirect("console:batch", slug, batch_id)
    context = {"section": "answers", "batch": row, "name": name} | page.context()
    return study_page(request, study, "hits/batch_change", context)


class _ChangePage:
    """A change's form, its preview once the form is filled in, and the confirmation."""

    def __init__(self, request: HttpRequest, batch: Batch, change: Change) -> None:
        self.request, self.batch, self.change = request, batch, change
        self.problem = ""
        form_data = request.POST if request.method == "POST" else request.GET
        names = change.form.base_fields
        is_filled = not names or any(name in form_data for name in names)
        self.form = change.form(
            form_data if is_filled else None, initial=initial_values(batch), label_suffix=""
        )
        self.preview = None
        if is_filled and self.form.is_valid():
            self.preview = self._try(lambda: change.preview(batch, self.form.cleaned_data))
        self.confirmation = self._confirmation()

    def perform(self) -> bool:
        """Do what was confirmed; False, with the reason on the page, where it cannot be done."""
        if self.preview is None:
            return False
        is_typed = needs_amount(self.batch, self.preview)
        confirmation = ConfirmationForm(self.request.POST, is_typed=is_typed)
        if not confirmation.is_valid():
            self.confirmation = confirmation
            return False
        self._try(
            lambda: make_change(
                batch=self.batch,
                change=self.change,
                values=self.form.cleaned_data,
                confirmation=confirmation,
                actor=person(self.request),
            )
        )
        return not self.problem

    def context(self) -> dict[str, Any]:
        return {
            "change": self.change,
            "form": self.form,
            "preview": self.preview,
            "confirmation": self.confirmation,
            "problem": self.problem,
            "values": self.form.data if self.preview else {},
        }

    def _confirmation(self) -> ConfirmationForm | None:
        if self.preview is None:
            return None
        return ConfirmationForm(
            initial=displayed(self.batch, self.preview),
            is_typed=needs_amount(self.batch, self.preview),
        )

    def _try(self, act: Any) -> Any:
        try:
            return act()
        except HitsError as error:
            self.problem = str(error)
            return None


def _money_rows(report: BatchReport) -> list[dict[str, Any]]:
    here, there = report.spend, report.statement
    labels = {
        "rewards_usd": _("Rewards"),
        "fees_usd": _("Fees on rewards"),
        "bonuses_usd": _("Bonuses"),
        "bonus_fees_usd": _("Fees on bonuses"),
        "total_usd": _("In all"),
    }
    return [
        {"label": label, "here": getattr(here, name), "there": getattr(there, name, None)}
        for name, label in labels.items()
    ]


def _is_under_floor(study: Study, report: BatchReport) -> bool:
    floor = study.team.wage_floor_usd if study.team else None
    return bool(floor and report.hourly_usd and report.hourly_usd.median < float(floor))


def batch_of(study: Study, batch_id: int) -> Batch:
    """The study's batch of this key; 404 where there is none."""
    batches = Batch.objects.of(study).select_related("study__team", "connection", "launched_by")
    return get_object_or_404(batches, pk=batch_id)


def _last_job(study: Study, batch: Batch) -> Any:
    """The last thing that was done to the batch: a crowd that is at work before all others."""
    of_batch = jobs_of(study).of_kind(APPLY_CHANGES, ANSWER_BY_CROWD)
    jobs = of_batch.filter(arguments__batch=batch.pk).latest_of_each_kind()
    at_work = (job for job in jobs if job.kind == ANSWER_BY_CROWD and job.is_unfinished)
    return next(at_work, None) or max(jobs, key=lambda job: job.pk, default=None)
