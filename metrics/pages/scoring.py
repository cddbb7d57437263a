"""Scoring by any metric with its parameters: what it would take, then doing it, under a cap."""

from collections.abc import Callable
from functools import partial
from typing import Any

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.models import User
from accounts.roles import Permission
from annotation.exceptions import AnnotationError
from annotation.models import Study, Upload
from annotation.pages.import_forms import FileForm
from annotation.pages.study import (
    study_for,
    study_page,
)
from annotation.uploads import request_reading, store_upload
from console.access import person, team_for
from metrics.exceptions import MetricsError, ParameterRefused
from metrics.judge_connections import close_judge_connection, connect_judge
from metrics.models import JudgeConnection, ScoringRequest
from metrics.pages.metric_forms import (
    JudgeConnectionForm,
    JudgeForm,
    ParametersForm,
    has_references,
    needing_references,
)
from metrics.scorer_options import has_model
from metrics.scorers.registry import SCORERS
from metrics.scoring_requests import (
    confirm_request,
    last_job_of,
    most_under_way,
    request_plan,
)
from metrics.study_judges import is_judge

REQUESTS_SHOWN = 20


@require_http_methods(["GET", "HEAD", "POST"])
def scoring(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: those who may analyse; by judges, those who may spend, too."""
    study = study_for(request, slug, Permission.ANALYSE)
    metric = request.GET.get("metric", "")
    if metric and metric not in SCORERS:
        raise Http404(f"There is no metric {metric}.")
    if is_judge(metric):
        study = study_for(request, slug, Permission.SPEND)
    data = request.POST if request.method == "POST" else None
    form = scoring_form(study, metric, data) if metric and has_model(metric) else None
    if form is not None and request.method == "POST" and form.is_valid():
        try:
            row = request_by_form(study, metric, form, person(request))
        except MetricsError as refused:
            form.add_error(None, ValidationError(str(refused), code=refused.code))
        else:
            return redirect("console:scoring-request", slug, row.pk)
    return study_page(request, study, "metrics/scoring", _context(study, metric, form))


def scoring_form(study: Study, metric: str, data: Any = None) -> ParametersForm | JudgeForm:
    return JudgeForm(study, metric, data) if is_judge(metric) else ParametersForm(metric, data)


def request_by_form(
    study: Study, metric: str, form: ParametersForm | JudgeForm, user: User
) -> ScoringRequest:
    if isinstance(form, JudgeForm):
        reference = form.settings_reference()
        terms = form.of_judges | {"parameters": {"settings": reference} if reference else {}}
    else:
        terms = {"parameters": form.parameters}
    return request_plan(study=study, metric=metric, requested_by=user, **terms)


def _context(study: Any, metric: str, form: Any) -> dict[str, Any]:
    return {
        "section": "validation",
        "metric": metric,
        "entry": SCORERS.get(metric),
        "metrics": [(name, has_model(name)) for name in SCORERS],
        "entries": SCORERS.items(),
        "lacks_model": bool(metric) and not has_model(metric),
        "lacks_references": metric in needing_references() and not has_references(study),
        "form": form,
        "is_judge": is_judge(metric),
        "has_connection": isinstance(form, JudgeForm)
        and study.team is not None
        and form.fields["connection"].queryset.exists(),  # type: ignore[attr-defined]
        "requests": ScoringRequest.objects.of(study).select_related("connection")[:REQUESTS_SHOWN],
    }


def find_request(find_study: Callable[[Permission], Study], request_id: int) -> ScoringRequest:
    """Find a request of a study that `find_study` returns to whoever has a permission."""
    study = find_study(Permission.ANALYSE)
    rows = ScoringRequest.objects.of(study).select_related("connection", "requested_by")
    row = get_object_or_404(rows, pk=request_id)
    if row.connection_id is not None:
        study = find_study(Permission.SPEND)
    row.study = study
    return row


@require_safe
@never_cache
def scoring_request(request: HttpRequest, slug: str, request_id: int) -> HttpResponse:
    """Access: those who may analyse; of judges, those who may spend, too."""
    row = find_request(partial(study_for, request, slug), request_id)
    context = {"section": "validation", "row": row, "job": last_job_of(row)}
    context["n_under_way"] = most_under_way()
    return study_page(request, row.study, "metrics/scoring_request", context)  # type: ignore[arg-type]


@require_POST
def scoring_confirm(request: HttpRequest, slug: str, request_id: int) -> HttpResponse:
    """Access: those who may analyse; by judges, those who may spend, too."""
    row = find_request(partial(study_for, request, slug), request_id)
    if confirm_request(request=row, actor=person(request)):
        messages.success(request, _("Scoring in the background; this page follows it."))
    return redirect("console:scoring-request", slug, row.pk)


@require_http_methods(["GET", "HEAD", "POST"])
def add_scores(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: those who may analyse the study."""
    study = study_for(request, slug, Permission.ANALYSE)
    form = FileForm(request.POST, request.FILES) if request.method == "POST" else FileForm()
    if request.method == "POST" and form.is_valid():
        try:
            user = person(request)
            file, content = form.cleaned_data["file"], Upload.Content.SCORES
            upload = store_upload(file=file, uploaded_by=user, study=study, content=content)
        except AnnotationError as refused:
            form.add_error("file", ValidationError(str(refused), code=refused.code))
        else:
            request_reading(upload=upload, requested_by=user)
            return redirect("console:upload", upload.token)
    return study_page(request, study, "metrics/add_scores", {"form": form, "section": "validation"})


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def judge_connections(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: members of the team who may see money; managers connect."""
    is_post = request.method == "POST"
    team, permissions = team_for(
        request, slug, Permission.MANAGE if is_post else Permission.VIEW_MONEY
    )
    form = JudgeConnectionForm(request.POST if is_post else None, label_suffix="")
    if is_post and form.is_valid():
        try:
            connect_judge(team=team, actor=person(request), **form.cleaned_data)
        except ParameterRefused as refused:
            form.add_error(None, ValidationError(str(refused), code=refused.code))
        else:
            messages.success(request, _("The connection is stored."))
            return redirect("console:judge-connections", slug)
    context = {
        "team": team,
        "connections": JudgeConnection.objects.of(team),
        "form": form,
        "may_manage": Permission.MANAGE in permissions,
    }
    return render(request, "metrics/judge_connections.html", context)


@require_POST
def close(request: HttpRequest, slug: str, connection_id: int) -> HttpResponse:
    """Access: managers of the team."""
    team, _permissions = team_for(request, slug, Permission.MANAGE)
    connection = get_object_or_404(JudgeConnection.objects.of(team), pk=connection_id)
    close_judge_connection(connection=connection, actor=person(request))
    return redirect("console:judge-connections", slug)
