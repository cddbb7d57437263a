"""What every page of a study has: who may see it, and the stages at its left."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from django.core.cache import cache
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render

from accounts.roles import Permission
from annotation.access import loaded_roles, with_roles_of
from annotation.models import Study
from annotation.pages.stages import stages_of
from annotation.simulated_answers import simulation_notice
from console.access import may_of, person, require_permission

if TYPE_CHECKING:
    from datetime import datetime

    from annotation.study_sizes import CountedStudy


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


# Pages that show answers, and so say which of these are simulated; others say it themselves.
SHOW_ANSWERS = frozenset(
    {"agreement", "annotators", "disagreement", "adjudication", "labels", "downloads"}
)


def study_page(
    request: HttpRequest, study: CountedStudy, page: str, context: dict[str, Any] | None = None
) -> HttpResponse:
    """A page of a study with the stages at its left.

    `page` is the name of its stage, after the folder of its template unless that is `console`.
    """
    folder, _slash, stage = page.rpartition("/")
    may = may_of(request)
    beside = {"study": study, "stage": stage, "stages": stages_of(study, may), "may": may}
    if stage in SHOW_ANSWERS and study.n_judgments:
        beside["simulated"] = simulation_notice(study)
    return render(request, f"{folder or 'console'}/{stage}.html", beside | (context or {}))
