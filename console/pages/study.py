"""What every page of a study has: who may see it, and the stages at its left."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from django.core.cache import cache
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.translation import gettext as _

from accounts.models import ApiToken, User
from accounts.roles import Permission, Role, permissions_of
from annotation.access import loaded_roles, with_roles_of
from annotation.models import Study
from annotation.simulated_answers import simulation_notice
from console.stages import stages_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from console.sizes import CountedStudy


def person(request: HttpRequest) -> User:
    """Who is asking; pages are for people who signed in."""
    return cast(User, request.user)


def study_for(
    request: HttpRequest, slug: str, permission: Permission = Permission.VIEW
) -> CountedStudy:
    """The study of that slug: 404 for whoever may not see it, 403 where their role is too small.

    What they may do is on the request from then on, for the page's buttons.
    """
    studies = Study.objects.visible_to(person(request)).select_related("team").with_n_items()
    study = get_object_or_404(with_roles_of(studies, person(request)), slug=slug)
    roles = loaded_roles(study, person(request))
    require_permission(request, roles, permission)
    sizes = _judged_sizes(study.pk, study.created_at, study.judgments_version)
    for name, number in sizes.items():
        setattr(study, name, number)
    return cast("CountedStudy", study)


def within_scopes(
    request: HttpRequest, permissions: frozenset[Permission]
) -> frozenset[Permission]:
    """Of these permissions, those that a token's scopes reach; all of them in a browser."""
    token = getattr(request, "auth", None)
    return permissions & token.permissions if isinstance(token, ApiToken) else permissions


def require_permission(request: HttpRequest, roles: Sequence[Role], permission: Permission) -> None:
    """403 where the roles, or a token's scopes, are too small; otherwise what they allow is on the
    request from then on, for the page's buttons."""
    permissions = within_scopes(request, permissions_of(*roles))
    if permission not in permissions:
        raise PermissionDenied(refusal_of(roles, permission))
    request.permissions = permissions  # type: ignore[attr-defined]


def refusal_of(roles: Sequence[Role], permission: Permission) -> str:
    """What to say to somebody whose roles, or whose token's scopes, do not reach."""
    if permission in permissions_of(*roles):
        return _("The token's scopes do not allow this.")
    return _("Your role here is {roles}. It does not allow this; a manager can change it.").format(
        roles=", ".join(str(role.label).lower() for role in roles)
    )


@lru_cache(maxsize=1024)
def _judged_sizes(key_of_study: int, created_at: datetime, version: int) -> dict[str, int]:
    """The rest of what `counted()` counts, once for each version of the judgments: a million of
    them take a tenth of a second. The process remembers what the cache would be asked on each page.
    """
    key = f"study-sizes:{key_of_study}:{created_at.timestamp()}:{version}"
    sizes: dict[str, int] | None = cache.get(key)
    if sizes is None:
        row = cast("CountedStudy", Study.objects.counted().get(pk=key_of_study))
        sizes = {"n_submissions": row.n_submissions, "n_judgments": row.n_judgments}
        cache.set(key, sizes)
    return sizes


# What these display is made of answers, as are the pages that give the notice themselves.
MADE_OF_ANSWERS = frozenset(
    {"agreement", "annotators", "disagreement", "adjudication", "labels", "downloads"}
)


def study_page(
    request: HttpRequest, study: CountedStudy, stage: str, context: dict[str, Any] | None = None
) -> HttpResponse:
    """A page of a study: its own template, with the stages beside it."""
    context = context or {}
    may = may_of(request)
    beside = {"study": study, "stage": stage, "stages": stages_of(study, may), "may": may}
    if stage in MADE_OF_ANSWERS and study.n_judgments:
        beside["simulated"] = simulation_notice(study)
    return render(request, f"console/{stage}.html", beside | context)


def page_permissions(request: HttpRequest) -> frozenset[Permission]:
    """What the person may do in the study that `study_for` looked up."""
    return cast("frozenset[Permission]", request.permissions)  # type: ignore[attr-defined]


def may(request: HttpRequest, permission: Permission) -> bool:
    return permission in page_permissions(request)


def may_of(request: HttpRequest) -> dict[str, bool]:
    """What the person may do, by name, for templates."""
    return {permission.value: True for permission in page_permissions(request)}


def require_spending(request: HttpRequest) -> None:
    """Refuse whoever may not spend in this study."""
    if not may(request, Permission.SPEND):
        raise PermissionDenied(_("Your role does not allow spending; a manager can change it."))
