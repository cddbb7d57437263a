"""The list of studies, and a study's first page: what needs a decision, then the figures."""

from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from annotation.models import Study
from annotation.study_jobs import RESULT, jobs_of
from console.decisions import decisions_of
from console.figures import figures_of
from console.home import Home
from console.pages.study import person, study_for, study_page
from console.tables import page_of, sort_key
from hits.progress import study_progress

# Of which the newest are looked at for what needs a decision.
MOST_STUDIES = 500
COLUMNS = ["title", "kind", "n_items", "n_submissions", "n_judgments", "created_at"]


@require_safe
def studies(request: HttpRequest) -> HttpResponse:
    """Access: signed in; lists the studies in which one has a role."""
    visible = Study.objects.visible_to(person(request)).counted()
    words = request.GET.get("q", "").strip()
    found = visible.filter(Q(title__icontains=words) | Q(slug__icontains=words))
    key = sort_key(request, COLUMNS, "-created_at")
    page = page_of(request, found.order_by(key, "-pk"))
    listed = list(page)
    newest = Study.objects.visible_to(person(request))[:MOST_STUDIES]
    home = Home(person(request), list({study.pk: study for study in (*newest, *listed)}.values()))
    context = {
        "page": page,
        "rows": home.rows(listed),
        "decisions": home.decisions(),
        "sort": key,
        "words": words,
        "has_any": page or visible.exists(),
    }
    return render(request, "console/studies.html", context)


@require_safe
def study(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: whoever has a role in the study."""
    shown = study_for(request, slug)
    progress = study_progress(shown)
    jobs = list(jobs_of(shown).exclude(kind=RESULT).latest_of_each_kind())
    context = {
        "progress": progress,
        "decisions": decisions_of(shown, progress, jobs),
        "figures": figures_of(shown, progress),
        "jobs": jobs,
    }
    return study_page(request, shown, "study", context)
