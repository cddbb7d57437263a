"""The list of studies, and a study's first page: what needs a decision, then the figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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
from annotation.models import Annotator, Candidate, Item, Study
from annotation.models.studies import StudyQuerySet
from annotation.new_studies import rename_study
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
from console.access import may_of, page_permissions, person
from console.tables import page_of, search_words, sort_key
from hits.archive import (
    archive_study,
    contents_of,
    obstacles_to_deletion,
    remove_study,
    restore_study,
    unfinished_work,
)
from hits.exceptions import HitsError, StudyUnfinished
from hits.models import Assignment
from hits.pages.home import Home
from hits.pages.todos import decisions_of, waiting_counts
from hits.progress import progress_in

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
    """What a study is called; its short name, which addresses and files have, stays."""

    class Meta:
        model = Study
        fields = ["title"]
        labels = {"title": gettext_lazy("Name of the study")}

    def clean_title(self) -> str:
        """Refuse what is not seen."""
        title: str = self.cleaned_data["title"]
        require_visible(title)
        return title


@require_http_methods(["GET", "HEAD", "POST"])
def rename(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: those who may edit the study."""
    study = study_for(request, slug, Permission.EDIT)
    row = Study.objects.get(pk=study.pk)
    form = NameForm(request.POST or None, instance=row, label_suffix="")
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
    context = {
        "contents": [(CONTENTS[name], n) for name, n in contents_of(study).items()],
        "reasons": obstacles_to_deletion(study),
        "problem": problem,
    }
    return study_page(request, study, "hits/delete", context)


def _delete_study(request: HttpRequest, study: Study) -> HttpResponse:
    try:
        job = remove_study(study=study, actor=person(request))
    except StudyUnfinished as refused:
        messages.error(
            request, _("It was not deleted. {why}").format(why=refused), extra_tags=refused.code
        )
        return redirect("console:delete", study.slug)
    text = _("“{title}” is being deleted in the background.") if job else _("“{title}” is deleted.")
    code = "deleting" if job else "deleted"
    messages.success(request, text.format(title=study.title), extra_tags=code)
    return redirect("console:studies")


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


MOST_FOUND = 20
LEAST_SIGNS = 2


@dataclass(frozen=True)
class Matches:
    """The first rows that match, and whether there are more."""

    rows: Sequence[Any]
    has_more: bool

    @classmethod
    def of(cls, rows: QuerySet[Any]) -> Matches:
        first = list(rows[: MOST_FOUND + 1])
        return cls(first[:MOST_FOUND], len(first) > MOST_FOUND)


@dataclass(frozen=True)
class StudySearch:
    """What a study holds of these words, as far as the role may know; each kind is one query.

    Who may not view systems finds no system, and no key of a candidate, which often is its
    system's name. Who a worker is, only those know who may view workers.
    """

    study: Study
    words: str
    permissions: frozenset[Permission]

    @property
    def sees_systems(self) -> bool:
        return Permission.VIEW_SYSTEMS in self.permissions

    @property
    def sees_workers(self) -> bool:
        return Permission.VIEW_WORKERS in self.permissions

    @property
    def is_long_enough(self) -> bool:
        return len(self.words) >= LEAST_SIGNS

    def items(self) -> Matches:
        contains = [f"{name}__icontains" for name in ("key", "context", "reference")]
        rows = Item.objects.filter(_any(contains, self.words), study=self.study)
        return Matches.of(rows.only("key", "context").order_by("position", "pk"))

    def candidates(self) -> Matches:
        names = ("text", "key") if self.sees_systems else ("text",)
        matching = _any([f"{name}__icontains" for name in names], self.words)
        rows = Candidate.objects.filter(matching, item__study=self.study)
        only = ("key", "blind_key", "system", "text", "item__key")
        return Matches.of(rows.select_related("item").only(*only).order_by("pk"))

    def systems(self) -> Matches:
        rows = Candidate.objects.filter(
            item__study=self.study, system__icontains=self.words
        ).exclude(system="")
        if not self.sees_systems:
            rows = rows.none()
        counts = rows.order_by().values("system").annotate(n=Count("pk")).order_by("system")
        return Matches.of(counts)

    def annotators(self) -> Matches:
        rows = Annotator.objects.filter(study=self.study, pseudonym__icontains=self.words)
        counts = rows.annotate(n=Count("submissions"), last=Max("submissions__item"))
        return Matches.of(counts.order_by("pseudonym"))

    def workers(self) -> Matches:
        rows = Assignment.objects.filter(
            hit__batch__study=self.study, worker__worker_id__icontains=self.words
        )
        if not self.sees_workers:
            rows = rows.none()
        names = ("worker__worker_id", "submission__annotator__pseudonym")
        counts = rows.order_by().values(*names).annotate(n=Count("pk"), last=Max("hit__item"))
        return Matches.of(counts.order_by(*names))


def _any(lookups: Sequence[str], words: str) -> Q:
    matching = Q()
    for lookup in lookups:
        matching |= Q((lookup, words))
    return matching


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
