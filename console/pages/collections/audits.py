"""Audits of collections that were made anywhere: their files sent, and what is wrong with them."""

from __future__ import annotations

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from accounts.roles import Permission
from console.collections.audit_view import claims_table, list_files
from console.collections.result_forms import AuditForm
from console.pages.collections.collection import collection_for, collection_page
from console.pages.collections.results import job_of, version_for
from console.pages.study import may, person
from results.models import Result
from results.shown import ShownResult
from retrieval.exceptions import RetrievalError
from retrieval.models import Collection, ResultType
from retrieval.result_kinds.audit import AUDIT, request_audit_of_uploads


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def audit(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: members of the team, but for who adjudicates blind; those who may analyse request."""
    is_post = request.method == "POST"
    collection = collection_for(request, slug, Permission.ANALYSE if is_post else Permission.VIEW)
    form = AuditForm(collection, *((request.POST, request.FILES) if is_post else ()))
    if is_post and form.is_valid() and _request(request, collection, form):
        messages.success(request, _("Auditing in the background; this page follows it."))
        return redirect("console:collection-audit", slug)
    versions = Result.objects.of(collection, ResultType.AUDIT)
    version = version_for(request, versions)
    context = {
        "form": form if may(request, Permission.ANALYSE) else None,
        "view": ShownResult(version) if version else None,
        "files": list_files(version) if version else [],
        "claims": claims_table(version) if version else None,
        "versions": versions,
        "job": job_of(collection, AUDIT),
    }
    status = 422 if form.errors else 200
    return collection_page(request, collection, "audit", context, status=status)


def _request(request: HttpRequest, collection: Collection, form: AuditForm) -> bool:
    """Keep the files until they are audited; whether none was refused."""
    data = form.cleaned_data
    try:
        request_audit_of_uploads(
            collection=collection,
            uploads=data["uploads"],
            files=form.chosen_files,
            claims=data["claims"],
            actor=person(request),
        )
    except RetrievalError as refused:
        form.add_error("uploads", ValidationError(str(refused), code=refused.code))
        return False
    return True
