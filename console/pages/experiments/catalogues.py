"""Catalogues that experiments recommend from: those one may see, one sent, one deleted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods

from accounts.models import Membership, Team, User
from accounts.roles import PERMISSIONS, SIGHTED_READERS, Permission, Role, permissions_of
from console.experiments.forms import CATALOGUE_FILES
from console.experiments.sources import teams_that_may_simulate
from console.pages.study import person, refusal_of, within_scopes
from console.tables import page_of
from simulation.exceptions import SimulationError
from simulation.models import StoredCatalogue
from simulation.stored_catalogues import delete_catalogue, uploaded


class CatalogueForm(forms.Form):
    """A catalogue's files, and whose they are to be."""

    team = forms.ModelChoiceField(
        label=gettext_lazy("Team"), queryset=Team.objects.none(), empty_label=None
    )
    file = forms.FileField(
        label=gettext_lazy("File of a catalogue"), help_text=CATALOGUE_FILES, max_length=100
    )

    def __init__(self, teams: list[Team], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"label_suffix": ""} | kwargs)
        field = self.fields["team"]
        assert isinstance(field, forms.ModelChoiceField)
        field.queryset = Team.objects.filter(pk__in=[one.pk for one in teams]).order_by("name")


@require_http_methods(["GET", "HEAD", "POST"])
def catalogues(request: HttpRequest) -> HttpResponse:
    """Access: signed in; lists those of one's teams, but for who adjudicates blind. Those who may
    analyse a team's studies send one."""
    teams = teams_that_may_simulate(person(request))
    data = (request.POST, request.FILES) if request.method == "POST" else ()
    form = CatalogueForm(teams, *data)
    if request.method == "POST" and form.is_valid() and (row := _sent(request, form)) is not None:
        text = _("“{title}” is stored: experiments and recommenders can use it.")
        messages.success(request, text.format(title=row.name))
        return redirect("console:catalogues")
    page = page_of(request, _visible_to(person(request)))
    roles = _roles(person(request))
    for row in page:
        row.may_delete = _may_delete(row, roles.get(row.team_id))
    context = {"page": page, "form": form, "teams": teams}
    status = 422 if form.errors else 200
    return render(request, "console/experiments/catalogues.html", context, status=status)


def _sent(request: HttpRequest, form: CatalogueForm) -> StoredCatalogue | None:
    """The catalogue of a form; None with the form's errors where its files cannot be used."""
    file = form.cleaned_data["file"]
    try:
        return uploaded(
            team=form.cleaned_data["team"], name=file.name, file=file, actor=person(request)
        )
    except SimulationError as refused:
        form.add_error("file", str(refused))
        return None


def _visible_to(user: User) -> QuerySet[StoredCatalogue]:
    rows = StoredCatalogue.objects.visible_to(user).select_related("team")
    return rows.annotate(
        n_experiments=Count("experiments", distinct=True),
        n_recommenders=Count("recommenders", distinct=True),
    ).order_by("-pk")


def _roles(user: User) -> Mapping[int, Role]:
    """The user's role in each team whose catalogues they see; a superuser owns every team's."""
    if user.is_superuser:
        return dict.fromkeys(Team.objects.values_list("pk", flat=True), Role.OWNER)
    memberships = Membership.objects.filter(user=user.pk, role__in=SIGHTED_READERS)
    return {team: Role(role) for team, role in memberships.values_list("team", "role")}


def _may_delete(row: StoredCatalogue, role: Role | None) -> bool:
    is_used = row.n_experiments or row.n_recommenders  # type: ignore[attr-defined]
    return not is_used and role is not None and Permission.EDIT in PERMISSIONS[role]


@require_http_methods(["GET", "HEAD", "POST"])
def delete(request: HttpRequest, key: int) -> HttpResponse:
    """First a question, then doing it.

    Access: those who may edit; not while an experiment or a recommender rests on it.
    """
    row = get_object_or_404(_visible_to(person(request)), pk=key)
    role = _roles(person(request)).get(row.team_id)
    roles = [role] if role else []
    if Permission.EDIT not in within_scopes(request, permissions_of(*roles)):
        raise PermissionDenied(refusal_of(roles, Permission.EDIT))
    if request.method != "POST":
        return render(request, "console/experiments/delete_catalogue.html", {"catalogue": row})
    try:
        delete_catalogue(catalogue=row, actor=person(request))
    except SimulationError as refused:
        messages.error(request, str(refused))
    else:
        messages.success(request, _("“{title}” is deleted.").format(title=row.name))
    return redirect("console:catalogues")
