"""Catalogues that experiments recommend from: those one may see, one sent or drawn, one deleted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods

from accounts.models import Membership, Team, User
from accounts.roles import PERMISSIONS, SYSTEM_VIEWERS, Permission, Role
from console.access import person, require_permission
from console.tables import page_of
from simulation.exceptions import SimulationError
from simulation.models import StoredCatalogue
from simulation.pages.forms import CATALOGUE_FILES
from simulation.pages.sources import teams_that_may_simulate
from simulation.stored_catalogues import MOST_DRAWN, delete_catalogue, drawn_products, store_upload


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


class DrawnForm(forms.Form):
    """How many shoes are drawn, and whose they are to be."""

    team = forms.ModelChoiceField(
        label=gettext_lazy("Team"), queryset=Team.objects.none(), empty_label=None
    )
    n_items = forms.IntegerField(
        label=gettext_lazy("Drawn shoes"), initial=5000, min_value=2, max_value=MOST_DRAWN
    )
    seed = forms.IntegerField(
        label=gettext_lazy("Seed of what is drawn"), initial=0, min_value=0, max_value=2**31 - 1
    )

    def __init__(self, teams: list[Team], *args: Any, **kwargs: Any) -> None:
        # Another form on the page has a team too.
        super().__init__(*args, **{"label_suffix": "", "auto_id": "id_drawn_%s"} | kwargs)
        field = self.fields["team"]
        assert isinstance(field, forms.ModelChoiceField)
        field.queryset = Team.objects.filter(pk__in=[one.pk for one in teams]).order_by("name")


@require_http_methods(["GET", "HEAD", "POST"])
def catalogues(request: HttpRequest) -> HttpResponse:
    """Access: signed in; lists those of one's teams, but for who adjudicates blind. Those who may
    analyse a team's studies send one, or have one drawn."""
    teams = teams_that_may_simulate(person(request))
    is_drawn = "draw" in request.POST
    is_sent = request.method == "POST" and not is_drawn
    form = CatalogueForm(teams, *((request.POST, request.FILES) if is_sent else ()))
    drawn_form = DrawnForm(teams, *((request.POST,) if is_drawn else ()))
    row = None
    if is_sent and form.is_valid():
        row = _store_upload(request, form)
    elif is_drawn and drawn_form.is_valid():
        row = drawn_products(**drawn_form.cleaned_data, actor=person(request))
    if row is not None:
        text = _("“{title}” is stored: experiments and recommenders can use it.")
        messages.success(request, text.format(title=row.name))
        return redirect("console:catalogue", row.pk)
    page = page_of(request, _visible_to(person(request)))
    roles = _roles(person(request))
    for row in page:
        row.may_delete = _may_delete(row, roles.get(row.team_id))
    context = {"page": page, "form": form, "drawn_form": drawn_form, "teams": teams}
    status = 422 if form.errors or drawn_form.errors else 200
    return render(request, "simulation/catalogues.html", context, status=status)


def _store_upload(request: HttpRequest, form: CatalogueForm) -> StoredCatalogue | None:
    """The catalogue of a form; None with the form's errors where its files cannot be used."""
    file = form.cleaned_data["file"]
    try:
        return store_upload(
            team=form.cleaned_data["team"], name=file.name, file=file, actor=person(request)
        )
    except SimulationError as refused:
        form.add_error("file", ValidationError(str(refused), code=refused.code))
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
    memberships = Membership.objects.filter(user=user.pk, role__in=SYSTEM_VIEWERS)
    return {team: Role(role) for team, role in memberships.values_list("team", "role")}


def _may_delete(row: StoredCatalogue, role: Role | None) -> bool:
    is_used = row.n_experiments or row.n_recommenders  # type: ignore[attr-defined]
    return not is_used and role is not None and Permission.EDIT in PERMISSIONS[role]


def catalogue_for(request: HttpRequest, key: int, permission: Permission) -> StoredCatalogue:
    """The catalogue of that number: 404 for whoever may not see it, 403 where their role is too
    small."""
    row: StoredCatalogue = get_object_or_404(_visible_to(person(request)), pk=key)
    role = _roles(person(request)).get(row.team_id)
    roles = [role] if role else []
    require_permission(request, roles, permission)
    return row


@require_http_methods(["GET", "HEAD", "POST"])
def delete(request: HttpRequest, key: int) -> HttpResponse:
    """First a question, then doing it.

    Access: those who may edit; not while an experiment or a recommender rests on it.
    """
    row = catalogue_for(request, key, Permission.EDIT)
    if request.method != "POST":
        return render(request, "simulation/delete_catalogue.html", {"catalogue": row})
    try:
        delete_catalogue(catalogue=row, actor=person(request))
    except SimulationError as refused:
        messages.error(request, str(refused), extra_tags=refused.code)
    else:
        messages.success(request, _("“{title}” is deleted.").format(title=row.name))
    return redirect("console:catalogues")
