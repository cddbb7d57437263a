from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _, gettext_lazy
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.models import Team, User
from accounts.names import require_visible
from accounts.roles import PERMISSIONS, Permission
from annotation.models import Study
from console.access import may, person
from console.forms import problems_of
from console.tables import page_of
from retrieval.collections import (
    DELETE_COLLECTION,
    create_collection,
    link_studies,
    remove_collection,
)
from retrieval.exceptions import CollectionUnfit
from retrieval.file_readings import subject_of
from retrieval.models import Collection
from retrieval.pages.collection import (
    collection_for,
    collection_page,
    list_stages,
    next_step,
)
from work.models import Job


@require_safe
def collections(request: HttpRequest) -> HttpResponse:
    """Access: signed in; lists the collections of one's teams, but for who adjudicates blind."""
    rows = (
        Collection.objects.visible_to(person(request))
        .select_related("team")
        .with_n_files()
        .order_by("name", "pk")
    )
    return render(request, "retrieval/list.html", {"page": page_of(request, rows)})


@require_http_methods(["GET", "HEAD", "POST"])
def new_collection(request: HttpRequest) -> HttpResponse:
    """Access: signed in; for a team, those who may edit its studies."""
    user = person(request)
    form = CollectionForm(user, request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        data = form.cleaned_data
        collection = create_collection(name=data["name"], team=data["team"], actor=user)
        messages.success(request, _("“{name}” is made.").format(name=collection.name))
        return redirect("console:collection-files", collection.slug)
    status = 422 if form.errors else 200
    return render(request, "retrieval/new.html", {"form": form}, status=status)


@require_safe
def collection(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: members of the team, but for who adjudicates blind."""
    row = collection_for(request, slug)
    studies = list(row.studies.order_by("title"))
    form = None
    if may(request, Permission.EDIT):
        form = StudiesForm(row, initial={"studies": [study.pk for study in studies]})
    stages = list_stages(row)
    step = next_step(stages, n_studies=len(studies))
    context = {"studies": studies, "form": form, "stages": stages, "step": step}
    return collection_page(request, row, "overview", context, stage="collection")


@require_POST
def set_studies(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: those who may edit."""
    row = collection_for(request, slug, Permission.EDIT)
    form = StudiesForm(row, request.POST)
    if form.is_valid():
        link_studies(collection=row, studies=form.cleaned_data["studies"], actor=person(request))
        messages.success(request, _("The collection's studies were saved."))
    else:
        messages.error(request, problems_of(form))
    return redirect("console:collection", slug)


@require_http_methods(["GET", "HEAD", "POST"])
def delete(request: HttpRequest, slug: str) -> HttpResponse:
    """First what goes with it, then doing it, once its short name was typed.

    Access: owners of the team.
    """
    row = collection_for(request, slug, Permission.OWN)
    problem = ""
    if request.method == "POST":
        if request.POST.get("name", "").strip() == row.slug:
            try:
                return _delete(request, row)
            except CollectionUnfit as refused:
                problem = str(refused)
        else:
            problem = _("Nothing was deleted: type {name} to confirm.").format(name=row.slug)
    job = Job.objects.about(subject_of(row)).of_kind(DELETE_COLLECTION).first()
    context = {"n_files": row.files.count(), "problem": problem, "job": job}
    return collection_page(request, row, "delete", context, status=422 if problem else 200)


def _delete(request: HttpRequest, collection: Collection) -> HttpResponse:
    job = remove_collection(collection=collection, actor=person(request))
    if job is None or not Collection.objects.filter(pk=job.arguments["collection"]).exists():
        messages.success(request, _("“{title}” is deleted.").format(title=collection.name))
        return redirect("console:collections")
    return redirect("console:collection-delete", collection.slug)


def teams_that_may_hold_collections(user: User) -> Any:
    roles = [role for role, permissions in PERMISSIONS.items() if Permission.EDIT in permissions]
    return Team.objects.filter(memberships__user=user.pk, memberships__role__in=roles).order_by(
        "name"
    )


class CollectionForm(forms.Form):
    name = forms.CharField(
        label=gettext_lazy("Name of the collection"), max_length=128, validators=[require_visible]
    )
    team = forms.ModelChoiceField(
        label=gettext_lazy("Team"),
        queryset=Team.objects.none(),
        empty_label=None,
        help_text=gettext_lazy("Its members see the collection, by their roles."),
    )

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"label_suffix": ""} | kwargs)
        self.teams = self.fields["team"].queryset = teams_that_may_hold_collections(user)  # type: ignore[attr-defined]

    @property
    def has_teams(self) -> bool:
        return bool(self.teams.exists())


class StudiesForm(forms.Form):
    studies = forms.ModelMultipleChoiceField(
        label=gettext_lazy("Studies whose judgments make its qrels"),
        queryset=Study.objects.none(),
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )

    def __init__(self, collection: Collection, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"label_suffix": ""} | kwargs)
        studies = Study.objects.filter(team=collection.team_id).order_by("title", "pk")
        self.fields["studies"].queryset = studies  # type: ignore[attr-defined]
