from typing import Any
from urllib.parse import urlencode

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from accounts.roles import Permission
from annotation.pages.stages import study_for
from annotation.protocols.versions import current_document
from console.access import may, may_of
from hits.pages.questionnaire import document_of
from hits.study_sizes import POWER, Precision, study_size

# Width of the drawn scale, in pixels of the narrowest page: in a wider drawing text would shrink.
RULER_WIDTH = 300
MOST_TICKS = 11


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def size(request: HttpRequest, slug: str) -> HttpResponse:
    """The figures of the panel `hits/protocol/_size.html`: of the newest version, or of what a
    form holds that was not saved yet.

    Access: whoever has a role in the study; a form from those who may edit it.
    """
    study = study_for(request, slug)
    document = current_document(study)
    if request.method == "POST":
        if not may(request, Permission.EDIT):
            raise PermissionDenied
        document = document_of(request.POST.dict(), document)
    figures = study_size(study, document)
    context: dict[str, Any] = {"study": study, "size": figures, "may": may_of(request)}
    # Only a page with a draft sends its form.
    context["may_edit"] = request.method == "POST"
    if precision := figures.precision:
        context |= {"query": _query(precision), "ruler": _ruler(precision)}
    return render(request, "hits/protocol/_size_figures.html", context)


def _query(precision: Precision) -> str:
    """The page on sample sizes with the same numbers."""
    values = {
        "difference": f"{precision.difference:.4g}",
        # Rounded down, so that rounding asks for no further item.
        "sd": f"{precision.sd_of_items * 0.999:.4g}",
        "systems": 2,
        "power": POWER,
        "alpha": f"{precision.alpha:.4g}",
    }
    return f"{reverse('console:how-many')}?{urlencode({'ask': 'difference', **values})}"


def _ruler(precision: Precision) -> dict[str, Any] | None:
    """The scale with a piece as long as the difference, at its middle."""
    if precision.is_win_rate or not precision.is_possible:
        return None
    low, high = precision.scale
    per_unit = RULER_WIDTH / (high - low)
    whole = int(high - low)
    step = 1 if whole + 1 <= MOST_TICKS and whole == high - low else (high - low) / 4
    return {
        "width": RULER_WIDTH,
        "ticks": [
            {"x": round(n * step * per_unit, 1), "text": f"{low + n * step:g}"}
            for n in range(round((high - low) / step) + 1)
        ],
        "x": round((RULER_WIDTH - precision.difference * per_unit) / 2, 1),
        "length": round(precision.difference * per_unit, 1),
    }
