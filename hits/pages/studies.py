from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import Count, Max, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _, gettext_lazy
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.names import require_visible
from accounts.roles import Permission
from annotation.access import with_roles_of
from annotation.models import Annotator, Candidate, CountedStudy, Item, Study, StudyQuerySet
from annotation.new_studies import rename_study
from annotation.pages.stages import (
    figures_of,
    panels_of,
    stage_facts,
    study_for,
    study_kind,
    study_page,
)
from annotation.study_facts import simulation_notice
from console.access import may, page_permissions, person
from console.tables import page_of, search_words, sort_key
from hits.exceptions import HitsError, StudyUnfinished
from hits.limits import is_marketplace_here
from hits.models import Assignment
from hits.pages.home import Home
from hits.pages.tasks import TASKS
from hits.pages.todos import decisions_of, newest_jobs, waiting_counts
from hits.progress import progress_in
from hits.rehearsals import rehearsal_of
from hits.studies import (
    archive_study,
    contents_of,
    obstacles_to_deletion,
    remove_study,
    restore_study,
    unfinished_work,
)

CONTENTS = {
    "items": gettext_lazy("Items"),
    "candidates": gettext_lazy("Candidates"),
    "submissions": gettext_lazy("Submissions"),
    "judgments": gettext_lazy("Judgments"),
    "label_sets": gettext_lazy("Label sets"),
    "scores": gettext_lazy("Metrics' scores"),
    "hits": gettext_lazy("HITs"),
    "assignments": gettext_lazy("Assignments"),
}


class NameForm(forms.ModelForm[Study]):
    class Meta:
        model = Study
        fields = ["title"]
        labels = {"title": gettext_lazy("Name of the study")}

    def clean_title(self) -> str:
        title: str = self.cleaned_data["title"]
        require_visible(title)
        return title


@require_http_methods(["GET", "HEAD", "POST"])
def rename(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: those who may edit the study."""
    study = study_for(request, slug, Permission.EDIT)
    form = NameForm(request.POST or None, instance=Study.objects.get(pk=study.pk), label_suffix="")
    if request.method == "POST" and form.is_valid():
        title = form.cleaned_data["title"]
        rename_study(study=study, title=title, actor=person(request))
        messages.success(
            request, _("The study is called “{title}”.").format(title=title), extra_tags="renamed"
        )
        return redirect("console:study", slug)
    return study_page(request, study, "hits/rename", {"form": form})


@require_http_methods(["GET", "HEAD", "POST"])
def delete(request: HttpRequest, slug: str) -> HttpResponse:
    """First what goes with it, then doing it, once its short name was typed.

    Access: those who own the study.
    """
    study = study_for(request, slug, Permission.OWN)
    problem = ""
    if request.method == "POST":
        if request.POST.get("name", "").strip() != study.slug:
            problem = _("Nothing was deleted: type {name} to confirm.").format(name=study.slug)
        elif not obstacles_to_deletion(study):
            return _delete_study(request, study)
    return study_page(
        request,
        study,
        "hits/delete",
        {
            "contents": [(CONTENTS[name], n) for name, n in contents_of(study).items()],
            "reasons": obstacles_to_deletion(study),
            "problem": problem,
        },
    )


def _delete_study(request: HttpRequest, study: Study) -> HttpResponse:
    try:
        job = remove_study(study=study, actor=person(request))
    except StudyUnfinished as refused:
        messages.error(
            request, _("It was not deleted. {why}").format(why=refused), extra_tags=refused.code
        )
        return redirect("console:delete", study.slug)
    text = _("“{title}” is being deleted in the background.") if job else _("“{title}” is deleted.")
    messages.success(
        request, text.format(title=study.title), extra_tags="deleting" if job else "deleted"
    )
    return redirect("console:studies")


# Of which the newest are looked at for what needs a decision.
MOST_STUDIES = 500
COLUMNS = ["title", "kind", "n_items", "created_at"]


@require_safe
def studies(request: HttpRequest) -> HttpResponse:
    """Access: signed in; lists the studies in which one has a role."""
    user = person(request)
    own = with_roles_of(Study.objects.visible_to(user), user).select_related("team")
    is_archive = "archived" in request.GET
    context = _listing(request, own.archived() if is_archive else own.current())
    page_rows = list(context["page"])
    # Usually the page has them all.
    is_whole = not (is_archive or context["words"] or context["page"].has_other_pages())
    newest = () if is_whole else own.current()[:MOST_STUDIES]
    home = Home(user, list({study.pk: study for study in (*newest, *page_rows)}.values()))
    context |= {
        "rows": home.rows(page_rows),
        "decisions": [] if is_archive else home.decisions(),
        "team_rooms": home.team_rooms,
        "is_archive": is_archive,
        "n_archived": own.archived().count(),
        "tasks": TASKS,
    }
    return render(request, "hits/studies.html", context)


def _listing(request: HttpRequest, visible: StudyQuerySet) -> dict[str, Any]:
    words = search_words(request)
    rows = visible.with_n_items().filter(Q(title__icontains=words) | Q(slug__icontains=words))
    key = sort_key(request, COLUMNS, "-created_at")
    page = page_of(request, rows.order_by(key, "-pk"))
    return {"page": page, "sort": key, "words": words, "has_any": page or visible.exists()}


@require_safe
def study(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: whoever has a role in the study."""
    row = study_for(request, slug)
    progress = progress_in(stage_facts(row, **waiting_counts()))
    jobs = newest_jobs(row)
    context = {
        "kind": study_kind(row),
        "progress": progress,
        "decisions": decisions_of(row, progress, jobs, page_permissions(request)),
        "jobs": jobs,
        "is_computing": any(job.is_unfinished for job in jobs),
        "can_rehearse": is_marketplace_here() and not row.rehearsal_of_id,
    }
    return study_page(request, row, "hits/study", context | _shown(request, row))


def _shown(request: HttpRequest, row: CountedStudy) -> dict[str, Any]:
    """Figures and panels; of the study's rehearsal until something is published or answered."""
    permissions, shown = page_permissions(request), row
    is_begun = row.n_judgments or stage_facts(row)["n_published"]
    rehearsal = None if is_begun else rehearsal_of(row)
    if rehearsal is not None and rehearsal.judgments_version:
        shown = study_for(request, rehearsal.slug)
        stage_facts(shown, **waiting_counts())
    context = {
        "shown": shown,
        "figures": figures_of(shown, page_permissions(request)) if shown.n_judgments else [],
        "panels": panels_of(request, shown),
        "simulated": simulation_notice(row) if row.n_judgments else "",
    }
    # What the rehearsal allows is less than what the study's page offers.
    request.permissions = permissions  # type: ignore[attr-defined]
    return context


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
    restore_study(study=study_for(request, slug, Permission.EDIT), actor=person(request))
    messages.success(request, _("The study is out of the archive."))
    return redirect("console:study", slug)


MOST_FOUND = 20
LEAST_SIGNS = 2


def _first_matches(rows: QuerySet[Any]) -> dict[str, Any]:
    first = list(rows[: MOST_FOUND + 1])
    return {"rows": first[:MOST_FOUND], "has_more": len(first) > MOST_FOUND}


@require_safe
def search(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: whoever has a role in the study; of systems and workers, as far as the role goes."""
    study, words = study_for(request, slug), search_words(request)[:200]
    context: dict[str, Any] = {
        "words": words,
        "is_long_enough": len(words) >= LEAST_SIGNS,
        "sees_systems": may(request, Permission.VIEW_SYSTEMS),
        "sees_workers": may(request, Permission.VIEW_WORKERS),
    }
    if context["is_long_enough"]:
        found = _found(study, words, context["sees_systems"], context["sees_workers"])
        matches = {name: _first_matches(rows) for name, rows in found.items()}
        context |= matches | {"has_any": any(each["rows"] for each in matches.values())}
    return study_page(request, study, "hits/search", context)


def _found(
    study: Study, words: str, sees_systems: bool, sees_workers: bool
) -> dict[str, QuerySet[Any]]:
    """Who may not view systems finds no system, and no candidate by its key, which often is its
    system's name."""
    of_items = Item.objects.filter(
        Q(key__icontains=words) | Q(context__icontains=words) | Q(reference__icontains=words),
        study=study,
    )
    of_candidates = Candidate.objects.filter(item__study=study)
    contains = Q(text__icontains=words) | (Q(key__icontains=words) if sees_systems else Q())
    candidates = of_candidates.filter(contains).select_related("item")
    systems = of_candidates.filter(system__icontains=words).exclude(system="").order_by()
    annotators = Annotator.objects.filter(study=study, pseudonym__icontains=words)
    of_worker = ("worker__worker_id", "submission__annotator__pseudonym")
    workers = Assignment.objects.filter(
        hit__batch__study=study, worker__worker_id__icontains=words
    ).order_by()
    return {
        "items": of_items.only("key", "context").order_by("position", "pk"),
        "candidates": candidates.only("key", "blind_key", "system", "text", "item__key").order_by(
            "pk"
        ),
        "systems": (systems if sees_systems else systems.none())
        .values("system")
        .annotate(n=Count("pk"))
        .order_by("system"),
        "annotators": annotators.annotate(
            n=Count("submissions"), last=Max("submissions__item")
        ).order_by("pseudonym"),
        "workers": (workers if sees_workers else workers.none())
        .values(*of_worker)
        .annotate(n=Count("pk"), last=Max("hit__item"))
        .order_by(*of_worker),
    }
