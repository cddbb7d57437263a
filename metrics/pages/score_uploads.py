"""Scores that were computed elsewhere, as a file on its way into a study."""

from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from accounts.roles import Permission
from annotation.exceptions import AnnotationError
from annotation.models import Upload
from annotation.pages.study import (
    study_for,
    study_page,
)
from annotation.pages.upload_forms import FileForm
from annotation.uploads import request_reading, store_upload
from console.access import person


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
