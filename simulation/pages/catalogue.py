from collections.abc import Iterator
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db.models import Count
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _, gettext_lazy
from django.views.decorators.http import require_http_methods, require_safe

from accounts.audit import record
from accounts.models import Team, TeamRowQuerySet, User
from accounts.roles import PERMISSIONS, SYSTEM_VIEWERS, Permission, Role
from annotation.relevance import Source, relevance_sources
from console.access import may_of, person, team_row_for
from console.forms import PlainForm
from console.tables import page_of
from error_codes import CorrectableError
from presentation.row_files import CSV, Kind, RowFile, row_csv
from simulation.catalogue import Catalogue
from simulation.exceptions import CatalogueUnfit, SimulationError
from simulation.models import StoredCatalogue
from simulation.stored_catalogues import (
    MOST_DRAWN,
    delete_catalogue,
    drawn_products,
    pictures_zip,
    read_stored,
    stand_ins,
    store_upload,
    vectors,
)

CATALOGUE_FILES = gettext_lazy(
    "A zip of ids.txt (an id a line) and embeddings.npy (a row an id), with attributes.csv and "
    "captions.txt where there are any; or of a .npy with Shoes' eval_im_names.txt or FashionIQ's "
    "split.….json. Their file of relative captions may come along: critiques are then in people's "
    "words. Or Fashion-MNIST's sprite."
)


def teams_that_may_simulate(user: User) -> list[Team]:
    roles = [role for role in SYSTEM_VIEWERS if Permission.ANALYSE in PERMISSIONS[role]]
    rows = Team.objects.filter(memberships__user=user.pk, memberships__role__in=roles)
    return list(rows.order_by("name"))


class TeamForm(PlainForm):
    team = forms.ModelChoiceField(
        label=gettext_lazy("Team"), queryset=Team.objects.none(), empty_label=None
    )

    def __init__(self, teams: list[Team], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.teams = teams
        offered = Team.objects.filter(pk__in=[one.pk for one in teams]).order_by("name")
        self.fields["team"].queryset = offered  # type: ignore[attr-defined]


class CatalogueForm(TeamForm):
    file = forms.FileField(
        label=gettext_lazy("File of a catalogue"), help_text=CATALOGUE_FILES, max_length=100
    )


class DrawnForm(TeamForm):
    n_items = forms.IntegerField(
        label=gettext_lazy("Drawn shoes"), initial=5000, min_value=2, max_value=MOST_DRAWN
    )
    seed = forms.IntegerField(
        label=gettext_lazy("Seed of what is drawn"), initial=0, min_value=0, max_value=2**31 - 1
    )


@require_http_methods(["GET", "HEAD", "POST"])
def catalogues(request: HttpRequest) -> HttpResponse:
    """Access: signed in; lists those of one's teams, but for who adjudicates blind. Those who may
    analyse a team's studies send one, or have one drawn."""
    teams = teams_that_may_simulate(person(request))
    is_drawn = "draw" in request.POST
    is_sent = request.method == "POST" and not is_drawn
    form = CatalogueForm(teams, *((request.POST, request.FILES) if is_sent else ()))
    # Both forms of the page have a team.
    drawn = (request.POST,) if is_drawn else ()
    drawn_form = DrawnForm(teams, *drawn, auto_id="id_drawn_%s")
    row = None
    if is_sent and form.is_valid():
        row = _store_upload(request, form)
    elif is_drawn and drawn_form.is_valid():
        row = drawn_products(**drawn_form.cleaned_data, actor=person(request))
    if row is not None:
        text = _("“{title}” is stored: experiments and recommenders can use it.")
        messages.success(request, text.format(title=row.name))
        return redirect("console:catalogue", row.pk)
    user = person(request)
    page = page_of(request, _used().visible_to(user).with_role_of(user))
    for row in page:
        row.may_delete = _may_delete(row)
    context = {"page": page, "form": form, "drawn_form": drawn_form, "teams": teams}
    status = 422 if form.errors or drawn_form.errors else 200
    return render(request, "simulation/catalogues.html", context, status=status)


def _store_upload(request: HttpRequest, form: CatalogueForm) -> StoredCatalogue | None:
    file = form.cleaned_data["file"]
    try:
        return store_upload(
            team=form.cleaned_data["team"], name=file.name, file=file, actor=person(request)
        )
    except SimulationError as refused:
        form.add_error("file", ValidationError(str(refused), code=refused.code))
        return None


def _used() -> TeamRowQuerySet[Any]:
    rows = StoredCatalogue.objects.select_related("team").order_by("-pk")
    return rows.annotate(
        n_experiments=Count("experiments", distinct=True),
        n_recommenders=Count("recommenders", distinct=True),
    )


def _may_delete(row: Any) -> bool:
    is_used = row.n_experiments or row.n_recommenders
    return not is_used and Permission.EDIT in PERMISSIONS[Role(row.user_role)]


def catalogue_for(request: HttpRequest, key: int, permission: Permission) -> StoredCatalogue:
    row: StoredCatalogue = team_row_for(request, _used(), permission, pk=key)
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


DRAWN, STAND_IN, SENT, STORED, EMBEDDINGS = "drawn", "stand-in", "sent", "stored", "embeddings"


def catalogue_choices(teams: list[Team]) -> list[tuple[str, str]]:
    catalogues = StoredCatalogue.objects.filter(team__in=teams).order_by("-pk")
    embeddings = relevance_sources().list_embeddings(teams)
    return [
        (DRAWN, _("drawn shoes, as many as below")),
        (STAND_IN, _("stand-in embeddings, drawn for the judged ids")),
        *((f"{STORED}:{one.pk}", one.name) for one in catalogues),
        *((f"{EMBEDDINGS}:{key}", title) for key, title in embeddings),
        (SENT, _("the file that I send below")),
    ]


def chosen_catalogue(
    key: str, source: Source, team: Team, data: dict[str, Any], actor: User | None
) -> StoredCatalogue:
    """Stored for the team if it is new. Raises CatalogueUnfit."""
    kind, _colon, number = key.partition(":")
    if kind == STORED:
        return _of_team(StoredCatalogue.objects.filter(team=team, pk=int(number)).first())
    if kind == DRAWN:
        return drawn_products(
            team=team, n_items=data["n_items"], seed=data["catalogue_seed"], actor=actor
        )
    if kind == EMBEDDINGS:
        return _of_embeddings(int(number), team, actor)
    if kind == SENT:
        file = data["file"]
        return store_upload(team=team, name=file.name, file=file, actor=actor)
    judged = source.judgments()
    ids = dict.fromkeys(name for target, item, _grade in judged for name in (target, item))
    return stand_ins(team=team, ids=list(ids), seed=data["catalogue_seed"], actor=actor)


def _of_team(row: StoredCatalogue | None) -> StoredCatalogue:
    if row is None:
        raise CatalogueUnfit(
            _("The catalogue is of another team than the judgments. Choose one of the same team.")
        )
    return row


def _of_embeddings(key: int, team: Team, actor: User | None) -> StoredCatalogue:
    try:
        found = relevance_sources().read_embeddings(team, key)
    except CorrectableError as refused:
        raise CatalogueUnfit(str(refused)) from None
    if found is None:
        raise CatalogueUnfit(
            _("The embeddings are of another team than the judgments. Choose one of the same team.")
        )
    name, ids, embeddings = found
    return vectors(team=team, name=name, ids=ids, embeddings=embeddings, actor=actor)


ITEMS, PICTURES = "items.csv", "pictures.zip"


@require_safe
def catalogue(request: HttpRequest, key: int) -> HttpResponse:
    """Access: members of the team, but for who adjudicates blind."""
    row = catalogue_for(request, key, Permission.VIEW)
    items = read_stored(row)
    page = page_of(request, range(len(items)))
    context = {
        "catalogue": row,
        "page": page,
        "items": [(items.ids[number], items.words(number)) for number in page],
        "has_words": bool(items.captions or items.attributes),
        "has_pictures": items.picture is not None,
        "may": may_of(request),
    }
    return render(request, "simulation/catalogue.html", context)


@require_safe
def download(request: HttpRequest, key: int, name: str) -> HttpResponse | StreamingHttpResponse:
    """Access: those who may export."""
    row = catalogue_for(request, key, Permission.EXPORT)
    items = read_stored(row)
    response: HttpResponse | StreamingHttpResponse
    if name == ITEMS:
        response = StreamingHttpResponse(row_csv(_items(items)), content_type=CSV)
    elif name == PICTURES and items.picture is not None:
        response = HttpResponse(pictures_zip(items), content_type="application/zip")
    else:
        raise Http404(f"There is no download {name}.")
    response["Content-Disposition"] = f'attachment; filename="catalogue-{row.pk}-{name}"'
    if request.method == "GET":
        record(
            team=row.team,
            actor=person(request),
            action="export",
            subject=row.name,
            details={"file": name, "catalogue": row.pk},
        )
    return response


def _items(items: Catalogue) -> RowFile:
    kinds = items.attributes.kinds if items.attributes else ()
    columns: dict[str, Kind] = {"id": "text", "words": "text"}
    columns |= {kind.name: "text" for kind in kinds}

    def rows() -> Iterator[tuple[str, ...]]:
        for number, one in enumerate(items.ids):
            values = items.attributes.describe(number) if items.attributes else {}
            yield one, items.words(number), *(values[kind.name] for kind in kinds)

    return RowFile(columns, rows())
