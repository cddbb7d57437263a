from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

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
from annotation.exceptions import AnnotationError, ImportRefused
from annotation.models import Upload, UploadPart
from annotation.new_studies import begin_study, copy_study
from annotation.pages.import_forms import (
    FROM_COPY,
    FROM_FILE,
    FROM_LABELS,
    FileForm,
    NewStudyForm,
    ReadingForm,
    posted_mapping,
)
from annotation.pages.previews import (
    column_rows,
    format_in_words,
    import_problems,
    map_anew,
    preview_of,
    uses,
)
from annotation.pages.study import (
    study_for,
    study_page,
)
from annotation.pages.tool_settings import (
    labels_context,
    posted_labels,
    posted_scores,
    scores_context,
)
from annotation.readers.drafts import PictureDraft
from annotation.readers.formats import FileFormat
from annotation.readers.pictures import Archive, read_picture
from annotation.readers.rows import Row
from annotation.uploads import (
    IMPORT_UPLOAD,
    PART_BYTES,
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
from presentation.files import reason_of

if TYPE_CHECKING:
    from typing_extensions import Buffer


@require_http_methods(["GET", "HEAD", "POST"])
def new_study(request: HttpRequest) -> HttpResponse:
    """Access: signed in; for a team, those who may edit its studies."""
    user = person(request)
    data = (request.POST, request.FILES) if request.method == "POST" else ()
    form = NewStudyForm(user, *data)
    if request.method == "POST" and form.is_valid():
        try:
            return redirect(_begin(request, form))
        except AnnotationError as refused:
            form.add_error(
                "file" if form.cleaned_data["file"] else None,
                ValidationError(str(refused), code=refused.code),
            )
    status = 200 if not form.errors else 422
    return render(request, "annotation/new_study.html", {"form": form}, status=status)


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
    rows = Upload.objects.visible_to(user).select_related("study", "team", "result")
    upload = get_object_or_404(rows, token=token)
    if upload.study is not None:
        permissions = permissions_in(upload.study, user)
    elif upload.team is not None:
        permissions = permissions_in_team(upload.team, user)
    else:
        permissions = frozenset({Permission.EDIT})
    is_scores = upload.content == Upload.Content.SCORES
    needed = Permission.ANALYSE if is_scores else Permission.EDIT
    if needed not in within_scopes(request, permissions):
        raise PermissionDenied(_("Your role does not allow to import into this study."))
    return upload


@require_safe
@never_cache
def upload(request: HttpRequest, token: UUID) -> HttpResponse:
    """Access: who uploaded the file, and those who may edit the team's studies."""
    row = upload_for(request, token)
    if row.result is not None:
        return redirect(RESULTS[row.content], row.result.slug)
    return _page(request, row)


def _page(request: HttpRequest, row: Upload, status: int = 200) -> HttpResponse:
    context = {"upload": row, "job": jobs_of_upload(row).first()}
    if row.n_rows is not None:
        context |= {
            "reading": ReadingForm(FileFormat.of(row.form)),
            "format": format_in_words(row),
            "sentences": row.reading_sentences,
            **CONTEXTS[Upload.Content(row.content)](row, request.GET.get("page", "1")),
        }
    name = "annotation/_upload_preview.html" if _is_live(request) else TEMPLATES[row.content]
    return render(request, name, context, status=status)


# What the page of a file shows, by what it holds.
CONTEXTS: dict[Upload.Content, Callable[[Upload, str], dict[str, Any]]] = {
    Upload.Content.ITEMS: lambda row, page: {
        "columns": column_rows(row),
        "uses": uses(),
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
    is_over = not (job and job.is_unfinished)
    return progress_page(request, "annotation/_upload_job.html", context, is_over=is_over)


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


@require_POST
def map_upload(request: HttpRequest, token: UUID) -> HttpResponse:
    row = upload_for(request, token)
    if row.result is None:
        _map(request, row)
    if _is_live(request) and row.content == Upload.Content.ITEMS:
        return _page(request, row)
    page = request.POST.get("page", "")
    address = reverse("console:upload", args=[token])
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
        if import_problems(row):
            return redirect("console:upload", token)
        leaves_out = "leave-out" in request.POST
        request_import(upload=row, requested_by=person(request), leaves_out=leaves_out)
        row.refresh_from_db()
        if row.result is not None:
            job = jobs_of_upload(row).first()
            messages.success(request, job.message if job else "")
    return redirect("console:upload", token)


@require_POST
def discard_upload(request: HttpRequest, token: UUID) -> HttpResponse:
    row = upload_for(request, token)
    study = row.study
    back = "console:add-scores" if row.content == Upload.Content.SCORES else "console:items"
    row.delete()
    messages.success(request, _("The file is deleted; nothing was imported."))
    return redirect(back, study.slug) if study else redirect("console:new-study")


PARTS_IN_MEMORY = 4


class StoredFile(io.RawIOBase):
    """An upload's content, of which only the parts that are read leave the database."""

    def __init__(self, upload: Upload) -> None:
        self._size, self._position = upload.n_bytes, 0
        parts = UploadPart.objects.filter(upload=upload)
        # A small file came in one piece, however large that is.
        self._part_bytes = PART_BYTES if parts.count() > 1 else max(self._size, 1)

        @lru_cache(maxsize=PARTS_IN_MEMORY)
        def content(position: int) -> bytes:
            return bytes(parts.values_list("content", flat=True).get(position=position))

        self._part = content

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(base + offset, 0)
        return self._position

    def readinto(self, buffer: Buffer) -> int:
        view = memoryview(buffer).cast("B")
        if self._position >= self._size:
            return 0
        part, start = divmod(self._position, self._part_bytes)
        content = self._part(part)[start : start + len(view)]
        view[: len(content)] = content
        self._position += len(content)
        return len(content)


def uploaded_picture(upload: Upload, name: str) -> PictureDraft:
    path = Path(upload.file_name)
    try:
        with zipfile.ZipFile(io.BufferedReader(StoredFile(upload))) as archive:
            source = Archive(archive, FileFormat.of(upload.form).table)
            picture = read_picture(Row(path, 1, {"": name}), "", source)
    except (zipfile.BadZipFile, UploadPart.DoesNotExist) as error:
        raise ImportRefused(
            path, f"it cannot be read: {reason_of(error)}.", code="unreadable"
        ) from None
    if picture is None:
        raise ImportRefused(path, "no picture is named.", code="no_picture")
    return picture
