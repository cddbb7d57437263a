"""Runs and qrels of a collection: uploaded, described, taken away, removed."""

from __future__ import annotations

from collections.abc import Iterator

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.audit import record
from accounts.roles import Permission
from console.collections.file_view import faulty_files, listed_qrels, listed_runs
from console.collections.forms import DescriptionForm, FilesForm, MergingForm
from console.collections.judgments_view import merging_rule_choices
from console.collections.source_view import SOURCES
from console.forms import problems_of
from console.pages.collections.collection import collection_for, collection_page
from console.pages.study import may, person
from retrieval.collection_files import describe_file, remove_file, store_file
from retrieval.exceptions import CollectionUnfit
from retrieval.file_readings import READ_FILES, request_reading, subject_of
from retrieval.merged_qrels import MERGED_QRELS, request_merged_qrels
from retrieval.models import Collection, CollectionFile
from work.models import Job


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def files(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: members of the team, but for who adjudicates blind; those who may edit upload."""
    is_post = request.method == "POST"
    collection = collection_for(request, slug, Permission.EDIT if is_post else Permission.VIEW)
    form = FilesForm(request.POST, request.FILES) if is_post else FilesForm()
    if is_post and form.is_valid() and _store(request, collection, form):
        return redirect("console:collection-files", slug)
    context = {
        "form": form if may(request, Permission.EDIT) else None,
        "runs": listed_runs(collection),
        "qrels": listed_qrels(collection),
        "faulty": faulty_files(collection),
        "rules": merging_rule_choices(),
        "job": Job.objects.about(subject_of(collection)).of_kind(READ_FILES, MERGED_QRELS).first(),
    }
    status = 422 if form.errors else 200
    return collection_page(request, collection, "files", context, status=status)


def _store(request: HttpRequest, collection: Collection, form: FilesForm) -> bool:
    """Keep the files and have them read; whether none was refused."""
    data, stored = form.cleaned_data, []
    for file in data["uploads"]:
        try:
            stored.append(
                store_file(
                    collection=collection,
                    file=file,
                    actor=person(request),
                    kind=data["kind"],
                    family=data["family"],
                    made_by=data["made_by"],
                )
            )
        except CollectionUnfit as refused:
            text = f"{file.name}: {refused}"
            form.add_error("uploads", ValidationError(text, code=refused.code))
    if stored:
        request_reading(collection=collection, files=stored, requested_by=person(request))
    return not form.errors


def file_for(
    request: HttpRequest, slug: str, file_id: int, permission: Permission = Permission.VIEW
) -> CollectionFile:
    """A file of a collection that one may see."""
    collection = collection_for(request, slug, permission)
    file = get_object_or_404(collection.files.defer("faults"), pk=file_id)
    file.collection = collection
    return file


@require_http_methods(["GET", "HEAD", "POST"])
def file(request: HttpRequest, slug: str, file_id: int) -> HttpResponse:
    """Access: members of the team, but for who adjudicates blind; those who may edit describe."""
    is_post = request.method == "POST"
    row = file_for(request, slug, file_id, Permission.EDIT if is_post else Permission.VIEW)
    stored = CollectionFile.objects.select_related("collection__team").get(pk=row.pk)
    form = DescriptionForm(request.POST if is_post else None, instance=stored)
    if is_post and form.is_valid():
        try:
            describe_file(file=row, actor=person(request), **form.cleaned_data)
        except CollectionUnfit as refused:
            form.add_error("name", ValidationError(str(refused), code=refused.code))
        else:
            messages.success(request, _("Saved."))
            return redirect(f"console:{_listing_of(row)}", slug)
    stage = _listing_of(row)
    context = {"file": row, "form": form if may(request, Permission.EDIT) else None}
    status = 422 if form.errors else 200
    return collection_page(request, row.collection, "file", context, stage=stage, status=status)


def _listing_of(file: CollectionFile) -> str:
    """The page that lists a file."""
    return "collection-pools" if file.kind in SOURCES else "collection-files"


@require_POST
def remove(request: HttpRequest, slug: str, file_id: int) -> HttpResponse:
    """Access: those who may edit."""
    row = file_for(request, slug, file_id, Permission.EDIT)
    remove_file(file=row, actor=person(request))
    messages.success(request, _("{name} was removed.").format(name=row.name))
    return redirect(f"console:{_listing_of(row)}", slug)


@require_POST
def make_qrels(request: HttpRequest, slug: str, file_id: int) -> HttpResponse:
    """Access: those who may edit. Qrels of several assessors' grades."""
    row = file_for(request, slug, file_id, Permission.EDIT)
    form = MergingForm(request.POST)
    if row.kind != CollectionFile.Kind.ASSESSORS or not row.is_usable:
        messages.error(
            request, _("{name} does not hold several assessors' grades.").format(name=row)
        )
    elif form.is_valid():
        request_merged_qrels(
            collection=row.collection, file=row, actor=person(request), **form.cleaned_data
        )
    else:
        problem = problems_of(form)
        text = _("No qrels were made: {problem}").format(problem=problem)
        messages.error(request, text, extra_tags="no_qrels_made")
    return redirect("console:collection-files", slug)


@require_safe
def content(request: HttpRequest, slug: str, file_id: int) -> StreamingHttpResponse:
    """Access: those who may export. The file as it was sent."""
    row = file_for(request, slug, file_id, Permission.EXPORT)
    response = StreamingHttpResponse(_parts(row), content_type="application/octet-stream")
    response["Content-Disposition"] = f'attachment; filename="{slug}-{row.kind}-{row.pk}.txt"'
    details = {"file": row.file_name}
    if request.method == "GET":
        team = row.collection.team
        record(team=team, actor=person(request), action="export", subject=slug, details=details)
    return response


def _parts(file: CollectionFile) -> Iterator[bytes]:
    for part in file.parts.order_by("position").iterator(chunk_size=4):
        yield bytes(part.content)
