"""The files of a study, and the pictures its pages show."""

from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext as _
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe

from accounts.roles import Permission
from annotation.audit import record_in
from annotation.exceptions import StudyUnfit
from annotation.models import Picture, Study
from console.downloads import DOWNLOADS, file_names
from console.pages.study import person, study_for, study_page
from console.pages.waiting import job_of


@require_safe
def downloads(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: those who may export."""
    shown = study_for(request, slug, Permission.EXPORT)
    files = [(name, DOWNLOADS[name]) for name in _names(request, shown)]
    return study_page(request, shown, "downloads", {"files": files})


@require_safe
def download(request: HttpRequest, slug: str, name: str) -> HttpResponseBase:
    """Access: those who may export."""
    shown = study_for(request, slug, Permission.EXPORT)
    if name not in _names(request, shown):
        raise Http404(f"There is no download {name}.")
    made = DOWNLOADS[name]
    if made.result and job_of(request, shown, made.result):
        text = _("%(file)s is still being computed; fetch it once it is there.")
        messages.warning(request, text % {"file": name})
        return redirect(f"console:{made.result}", slug)
    try:
        response = StreamingHttpResponse(made.write(shown), content_type=made.content_type)
    except StudyUnfit as unfit:
        messages.error(request, str(unfit))
        return redirect("console:downloads", slug)
    response["Content-Disposition"] = f'attachment; filename="{shown.slug}-{name}"'
    record_export(request, shown, name)
    return response


def _names(request: HttpRequest, study: Study) -> list[str]:
    """The files that the study has and the person may read, as `study_for` found."""
    permissions = request.permissions  # type: ignore[attr-defined]
    return [name for name in file_names(study) if DOWNLOADS[name].permission in permissions]


def record_export(request: HttpRequest, study: Study, name: str) -> None:
    """Say in the team's audit log who took a file away."""
    if request.method == "GET":
        record_in(study, actor=person(request), action="export", details={"file": name})


@login_not_required
@require_safe
@cache_control(public=True, max_age=31_536_000, immutable=True)
def picture(request: HttpRequest, sha256: str) -> HttpResponse:
    """Access: anyone who knows the content's hash, since workers' frames have no session."""
    found = get_object_or_404(Picture, sha256=sha256)
    response = HttpResponse(bytes(found.content), content_type=found.media_type)
    response["Content-Security-Policy"] = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
    response["X-Content-Type-Options"] = "nosniff"
    response["Cross-Origin-Resource-Policy"] = "cross-origin"
    return response
