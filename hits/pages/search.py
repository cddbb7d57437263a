"""One search over all that a study holds."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from annotation.pages.study import (
    study_for,
    study_page,
)
from console.access import page_permissions
from console.tables import search_words
from hits.pages.study_search import StudySearch


@require_safe
def search(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: whoever has a role in the study; of systems and workers, as far as the role goes."""
    study = study_for(request, slug)
    matches = StudySearch(study, search_words(request)[:200], page_permissions(request))
    context: dict[str, Any] = {"search": matches}
    if matches.is_long_enough:
        names = ("items", "candidates", "systems", "annotators", "workers")
        context |= {name: getattr(matches, name)() for name in names}
        context["has_any"] = any(context[name].rows for name in names)
    return study_page(request, study, "hits/search", context)
