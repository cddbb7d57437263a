"""The list of studies, and a study's first page: what needs a decision, then the figures."""

from typing import Any

from django.contrib import messages
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.roles import Permission
from annotation.access import with_roles_of
from annotation.models import Study
from annotation.models.studies import StudyQuerySet
from annotation.pages.study import (
    figures_of,
    panels_of,
    stage_facts,
    study_for,
    study_kind,
    study_page,
)
from annotation.study_facts import simulation_notice
from annotation.study_jobs import RESULT, jobs_of
from console.access import (
    may_of,
    page_permissions,
    person,
)
from console.tables import page_of, search_words, sort_key
from hits.archive import archive_study, restore_study, unfinished_work
from hits.exceptions import HitsError
from hits.pages.decisions import (
    decisions_of,
    waiting_counts,
)
from hits.pages.home import Home
from hits.pages.progress import progress_in

# Of which the newest are looked at for what needs a decision.
MOST_STUDIES = 500
COLUMNS = ["title", "kind", "n_items", "n_submissions", "n_judgments", "created_at"]


@require_safe
def studies(request: HttpRequest) -> HttpResponse:
    """Access: signed in; lists the studies in which one has a role."""
    user = person(request)
    own = with_roles_of(Study.objects.visible_to(user), user).select_related("team")
    is_archive = "archived" in request.GET
    context = _listing(request, own.archived() if is_archive else own.current())
    page_rows, newest = list(context["page"]), own.current()[:MOST_STUDIES]
    home = Home(user, list({study.pk: study for study in (*newest, *page_rows)}.values()))
    context |= {
        "rows": home.rows(page_rows),
        "decisions": [] if is_archive else home.decisions(),
        "team_rooms": home.team_rooms,
        "is_archive": is_archive,
        "n_archived": own.archived().count(),
    }
    return render(request, "hits/studies.html", context)


def _listing(request: HttpRequest, visible: StudyQuerySet) -> dict[str, Any]:
    """A page of the studies that are searched for, in the order that is chosen."""
    words = search_words(request)
    rows = visible.counted().filter(Q(title__icontains=words) | Q(slug__icontains=words))
    key = sort_key(request, COLUMNS, "-created_at")
    page = page_of(request, rows.order_by(key, "-pk"))
    return {"page": page, "sort": key, "words": words, "has_any": page or visible.exists()}


@require_safe
def study(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: whoever has a role in the study."""
    row = study_for(request, slug)
    progress = progress_in(stage_facts(row, **waiting_counts()))
    jobs = list(jobs_of(row).exclude(kind=RESULT).latest_of_each_kind())
    context = {
        "kind": study_kind(row),
        "progress": progress,
        "decisions": decisions_of(row, progress, jobs, page_permissions(request)),
        "figures": figures_of(row, page_permissions(request)),
        "jobs": jobs,
        "panels": panels_of(request, row, may_of(request)),
        "simulated": simulation_notice(row) if row.n_judgments else "",
    }
    return study_page(request, row, "hits/study", context)


@require_http_methods(["GET", "HEAD", "POST"])
def archive(request: HttpRequest, slug: str) -> HttpResponse:
    """First what it does, then doing it.

    Access: those who may edit the study.
    """
    study = study_for(request, slug, Permission.EDIT)
    if request.method == "POST":
        try:
            archive_study(study=study, actor=person(request))
        except HitsError as refused:
            messages.error(request, _("It was not archived. {why}").format(why=refused))
            return redirect("console:archive", slug)
        messages.success(request, _("“{title}” is in the archive.").format(title=study.title))
        return redirect("console:studies")
    return study_page(request, study, "hits/archive", {"reasons": unfinished_work(study)})


@require_POST
def restore(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: those who may edit the study."""
    study = study_for(request, slug, Permission.EDIT)
    restore_study(study=study, actor=person(request))
    messages.success(request, _("The study is out of the archive."))
    return redirect("console:study", slug)
