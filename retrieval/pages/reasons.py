"""Why documents were found relevant or not: written reasons, and the terms that they mention."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from annotation.pages.study import (
    study_for,
    study_page,
)
from retrieval.pages.reasons_view import reasons_view


@require_safe
def reasons(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: whoever has a role in the study."""
    study = study_for(request, slug)
    return study_page(
        request,
        study,
        "retrieval/reasons",
        {"view": reasons_view(request, study), "section": "labels"},
    )
