from collections.abc import Callable
from typing import Any
from uuid import UUID

from csp.constants import SELF
from csp.decorators import csp_update
from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.roles import Permission
from accounts.teams import permissions_in_team
from annotation.access import permissions_in
from annotation.exceptions import AnnotationError, ImportRefused, require
from annotation.models import Upload
from annotation.new_studies import begin_study, copy_study
from annotation.pages.import_forms import (
    FROM_COPY,
    FROM_FILE,
    FROM_LABELS,
    NO_PICTURES,
    FileForm,
    NewStudyForm,
    ReadingForm,
    posted_mapping,
)
from annotation.pages.previews import (
    column_rows,
    file_in_words,
    format_in_words,
    import_problems,
    is_mapping_stored,
    map_anew,
    preview_of,
    use_labels,
)
from annotation.pages.stages import (
    study_for,
    study_page,
)
from annotation.pages.tool_settings import (
    labels_context,
    posted_labels,
    posted_scores,
    scores_context,
)
from annotation.readers.formats import FileFormat
from annotation.upload_pictures import uploaded_picture
from annotation.uploads import (
    IMPORT_UPLOAD,
    jobs_of_upload,
    request_import,
    request_reading,
    set_mapping,
    store_upload,
)
from console.access import (
    person,
    within_scopes,
)
from console.pages.pictures import as_picture
from console.pages.progress import progress_page


@require_http_methods(["GET", "HEAD", "POST"])
def new_study(request: HttpRequest) -> HttpResponse:
    """Access: signed in; for a team, those who may edit its studies."""
    user = person(request)
    data = (request.POST, request.FILES) if request.method == "POST" else ()
    # Links to the page choose how to begin, and a task.
    form = NewStudyForm(user, *data, initial=request.GET.dict())
    if request.method == "POST" and form.is_valid():
        try:
            return redirect(_begin(request, form))
        except AnnotationError as refused:
            form.add_error(
                "file" if form.cleaned_data["file"] else None,
                ValidationError(str(refused), code=refused.code),
            )
    return render(
        request, "annotation/new_study.html", {"form": form}, status=200 if not form.errors else 422
    )


def _begin(request: HttpRequest, form: NewStudyForm) -> str:
    data, user = form.cleaned_data, person(request)
    common: dict[str, Any] = {"title": data["title"], "team": form.chosen_team}
    if data["begin"] in (FROM_FILE, FROM_LABELS):
        of_labels = {"content": Upload.Content.LABELS, "mapping": {"tool": data["tool"]}}
        is_labels = data["begin"] == FROM_LABELS
        kind: dict[str, Any] = of_labels if is_labels else {"template": data["template"]}
        upload = store_upload(file=data["file"], uploaded_by=user, **kind, **common)
        request_reading(upload=upload, requested_by=user)
        return reverse("console:upload", args=[upload.token])
    if data["begin"] == FROM_COPY:
        study = copy_study(source=data["source"], owner=user, **common)
    else:
        study = begin_study(template=data["template"], owner=user, **common)
    messages.success(request, _("“{title}” is made.").format(title=study.title))
    return reverse("console:items", args=[study.slug])


@require_http_methods(["GET", "HEAD", "POST"])
def add_items(request: HttpRequest, slug: str) -> HttpResponse:
    study = study_for(request, slug, Permission.EDIT)
    form = FileForm(request.POST, request.FILES) if request.method == "POST" else FileForm()
    if request.method == "POST" and form.is_valid():
        try:
            user = person(request)
            upload = store_upload(file=form.cleaned_data["file"], uploaded_by=user, study=study)
        except AnnotationError as refused:
            form.add_error("file", ValidationError(str(refused), code=refused.code))
        else:
            request_reading(upload=upload, requested_by=user)
            return redirect("console:upload", upload.token)
    return study_page(request, study, "annotation/add_items", {"form": form, "section": "items"})


def upload_for(request: HttpRequest, token: UUID) -> Upload:
    user = person(request)
    upload = get_object_or_404(
        Upload.objects.visible_to(user).select_related("study", "team", "result"), token=token
    )
    if upload.study is not None:
        permissions = permissions_in(upload.study, user)
    elif upload.team is not None:
        permissions = permissions_in_team(upload.team, user)
    else:
        permissions = frozenset({Permission.EDIT})
    needed = Permission.ANALYSE if upload.content == Upload.Content.SCORES else Permission.EDIT
    require(
        needed in within_scopes(request, permissions),
        PermissionDenied(_("Your role does not allow to import into this study.")),
    )
    return upload


@require_safe
@never_cache
@csp_update({"frame-src": [SELF]})  # type: ignore[arg-type]
def upload(request: HttpRequest, token: UUID) -> HttpResponse:
    """Access: who uploaded the file, and those who may edit the team's studies."""
    row = upload_for(request, token)
    if row.result is not None:
        is_new = row.content == Upload.Content.ITEMS and row.study is None
        return redirect("console:protocol" if is_new else RESULTS[row.content], row.result.slug)
    return _page(request, row)


def _page(request: HttpRequest, row: Upload, status: int = 200) -> HttpResponse:
    context = {"upload": row, "job": jobs_of_upload(row).first(), "is_live": _is_live(request)}
    if row.n_rows is not None:
        context |= {
            "reading": ReadingForm(FileFormat.of(row.form)),
            "format": format_in_words(row),
            "sentences": row.reading_sentences,
            **CONTEXTS[Upload.Content(row.content)](
                row, request.POST.get("page") or request.GET.get("page", "1")
            ),
        }
    name = "annotation/_upload_preview.html" if _is_live(request) else TEMPLATES[row.content]
    return render(request, name, context, status=status)


# What the page of a file shows, by what it holds.
CONTEXTS: dict[Upload.Content, Callable[[Upload, str], dict[str, Any]]] = {
    Upload.Content.ITEMS: lambda row, page: {
        "columns": column_rows(row),
        "uses": use_labels(row),
        "is_stored": is_mapping_stored(row),
        "file": file_in_words(row),
        "preview": preview_of(row, page),
    },
    Upload.Content.LABELS: labels_context,
    Upload.Content.SCORES: scores_context,
}
TEMPLATES = {
    "items": "annotation/upload.html",
    "labels": "annotation/upload_labels.html",
    "scores": "annotation/upload_scores.html",
}
# The page of a study that shows what came of a file.
RESULTS = {"items": "console:study", "labels": "console:study", "scores": "console:validation"}
POSTED = {Upload.Content.LABELS: posted_labels, Upload.Content.SCORES: posted_scores}


def _is_live(request: HttpRequest) -> bool:
    return request.method == "POST" and "HX-Request" in request.headers


@require_safe
@never_cache
def upload_progress(request: HttpRequest, token: UUID) -> HttpResponse:
    row = upload_for(request, token)
    job = jobs_of_upload(row).first()
    context = {"upload": row, "job": job}
    return progress_page(
        request, "annotation/_upload_job.html", context, is_over=not (job and job.is_unfinished)
    )


@require_POST
def read_upload_again(request: HttpRequest, token: UUID) -> HttpResponse:
    row = upload_for(request, token)
    form = ReadingForm(FileFormat.of(row.form), request.POST)
    if form.is_valid() and row.result is None:
        request_reading(upload=row, requested_by=person(request), form=form.choice)
    return redirect("console:upload", token)


@require_safe
def upload_picture(request: HttpRequest, token: UUID) -> HttpResponse:
    row = upload_for(request, token)
    try:
        picture = uploaded_picture(row, request.GET.get("name", "")[:1000])
    except ImportRefused as refused:
        raise Http404(str(refused)) from refused
    return as_picture(picture.media_type, picture.content)


# These change the fields of the columns, which a live answer does not contain.
FIXES_OF_COLUMNS = ("item=", f"{NO_PICTURES}=")


@require_POST
@csp_update({"frame-src": [SELF]})  # type: ignore[arg-type]
def map_upload(request: HttpRequest, token: UUID) -> HttpResponse:
    row = upload_for(request, token)
    if row.result is None:
        _map(request, row)
    if _is_live(request) and row.content == Upload.Content.ITEMS:
        if request.POST.get("fix", "").startswith(FIXES_OF_COLUMNS):
            # A reload would keep the fields as they were.
            return HttpResponse(headers={"HX-Redirect": reverse("console:upload", args=[token])})
        return _page(request, row)
    page = request.POST.get("page", "")
    address = reverse("console:upload", args=[token])
    if "fix" in request.POST:
        address += "#to-resolve"
    return redirect(f"{address}?page={page}#upload-preview" if page.isdigit() else address)


def _map(request: HttpRequest, row: Upload) -> bool:
    if posted := POSTED.get(Upload.Content(row.content)):
        return map_anew(row, posted(row, request.POST), person(request))
    mapping = posted_mapping(row, request.POST)
    if mapping.plain != row.mapping:
        last = jobs_of_upload(row).first()
        if last is not None and last.kind == IMPORT_UPLOAD:
            # What was wrong was wrong by the mapping before.
            Upload.objects.filter(pk=row.pk).update(faults=[], n_faults=0)
            row.faults, row.n_faults = [], 0
        set_mapping(upload=row, mapping=mapping)
    return True


@require_POST
def import_upload_now(request: HttpRequest, token: UUID) -> HttpResponse:
    row = upload_for(request, token)
    if row.result is None and row.n_rows is not None:
        if not _map(request, row):
            messages.info(
                request, _("The file is read anew by what you said. Look at it, then confirm it.")
            )
            return redirect("console:upload", token)
        leaves_out = "leave-out" in request.POST
        if import_problems(row) or _has_open_problems(row, leaves_out=leaves_out):
            return redirect("console:upload", token)
        request_import(upload=row, requested_by=person(request), leaves_out=leaves_out)
        row.refresh_from_db()
        if row.result is not None:
            job = jobs_of_upload(row).first()
            messages.success(request, job.message if job else "")
    return redirect("console:upload", token)


def _has_open_problems(row: Upload, *, leaves_out: bool) -> bool:
    if row.content != Upload.Content.ITEMS:
        return False
    return any(
        each.is_open and not (leaves_out and each.is_fault) for each in preview_of(row).to_resolve
    )


@require_POST
def discard_upload(request: HttpRequest, token: UUID) -> HttpResponse:
    row = upload_for(request, token)
    study = row.study
    back = "console:add-scores" if row.content == Upload.Content.SCORES else "console:items"
    row.delete()
    messages.success(request, _("The file is deleted; nothing was imported."))
    return redirect(back, study.slug) if study else redirect("console:new-study")
