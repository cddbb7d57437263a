"""What every page of a collection has: who may see it, and its pages at the left."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render

from accounts.roles import Permission
from console.collections.stages import stages_of_collection
from console.pages.study import may_of, person, require_permission
from retrieval.models import Collection


def collection_for(
    request: HttpRequest, slug: str, permission: Permission = Permission.VIEW
) -> Collection:
    """The collection of that slug: 404 for whoever may not see it, 403 where their role is too
    small. What they may do is on the request from then on, for the page's buttons."""
    user = person(request)
    rows = Collection.objects.visible_to(user).with_role_of(user).select_related("team")
    collection = get_object_or_404(rows, slug=slug)
    role = collection.role_of(user)
    roles = [role] if role else []
    require_permission(request, roles, permission)
    return collection


def collection_page(
    request: HttpRequest,
    collection: Collection,
    template: str,
    context: dict[str, Any] | None = None,
    *,
    stage: str = "",
    status: int = 200,
) -> HttpResponse:
    """A page of a collection: its own template, with the collection's pages beside it."""
    values = context or {}
    beside = {
        "collection": collection,
        "stage": stage or f"collection-{template}",
        "stages": values.get("stages") or stages_of_collection(collection),
        "may": may_of(request),
    }
    name = f"console/collections/{template}.html"
    return render(request, name, beside | values, status=status)
