from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _, gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.models import Team
from accounts.names import require_visible
from accounts.roles import Permission
from console.access import may_of, person, team_row_for
from console.forms import offer_choices
from console.pages.progress import progress_page
from console.tables import page_of
from simulation.exceptions import ExperimentUnfit, SimulationError
from simulation.models import StoredCatalogue, StoredRecommender
from simulation.models.catalogue import NAME_LENGTH
from simulation.pages.catalogue import DRAWN, STORED, TeamForm, teams_that_may_simulate
from simulation.pages.view import standing_of_training
from simulation.stored_catalogues import (
    MOST_DRAWN,
    MOST_EPOCHS,
    REINFORCED,
    delete_recommender,
    drawn_products,
    request_training,
    resume_training,
    subject_of_training,
)
from work.models import Job
from work.tasks import stop_job


def recommender_for(
    request: HttpRequest, key: int, permission: Permission = Permission.VIEW
) -> StoredRecommender:
    rows = StoredRecommender.objects.select_related("catalogue__team", "start_from")
    return team_row_for(request, rows.defer("checkpoint"), permission, pk=key)


@require_safe
def recommenders(request: HttpRequest) -> HttpResponse:
    """Access: signed in; lists those of one's teams, but for who adjudicates blind."""
    rows = StoredRecommender.objects.visible_to(person(request)).defer("checkpoint")
    context = {"page": page_of(request, rows.select_related("catalogue__team").order_by("-pk"))}
    return render(request, "simulation/recommenders.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def new_recommender(request: HttpRequest) -> HttpResponse:
    """Access: signed in; for a team, those who may analyse its studies."""
    teams = teams_that_may_simulate(person(request))
    form = TrainingForm(teams, request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        try:
            row = _request(request, form)
        except SimulationError as refused:
            form.add_error(None, ValidationError(str(refused), code=refused.code))
        else:
            return redirect("console:recommender", row.pk)
    status = 422 if form.errors else 200
    context = {"form": form, "teams": teams}
    return render(request, "simulation/new_recommender.html", context, status=status)


KINDS = [
    ("gru-sl", gettext_lazy("GRU-SL: supervised, by a margin to the target (Guo 2018)")),
    ("gru-rl", gettext_lazy("GRU-RL: goes on from a GRU-SL, looking ahead (Guo 2018)")),
    ("gru-rl-later", gettext_lazy("GRU-RL by policy gradient: goes on from a GRU-SL (Wu 2022)")),
    ("ege", gettext_lazy("EGE: estimator, generator, evaluator (Wu 2021)")),
]


class TrainingForm(TeamForm):
    field_order = ("name", "kind", "team")

    name = forms.CharField(
        label=gettext_lazy("Name of the recommender"),
        max_length=NAME_LENGTH,
        validators=[require_visible],
        initial="GRU-SL",
    )
    kind = forms.ChoiceField(label=gettext_lazy("Kind"), choices=KINDS)
    catalogue = forms.ChoiceField(
        label=gettext_lazy("Catalogue"),
        help_text=gettext_lazy(
            "It recommends from this catalogue alone. Four fifths of the items are for training."
        ),
    )
    n_items = forms.IntegerField(
        label=gettext_lazy("Drawn shoes"), initial=5000, min_value=50, max_value=MOST_DRAWN
    )
    start_from = forms.ChoiceField(
        label=gettext_lazy("Goes on from"),
        required=False,
        help_text=gettext_lazy("Of GRU-RL: a GRU-SL of the same catalogue, width and join."),
    )
    width = forms.IntegerField(label=gettext_lazy("Width"), initial=64, min_value=4, max_value=1024)
    epochs = forms.IntegerField(
        label=gettext_lazy("Epochs"), initial=15, min_value=1, max_value=MOST_EPOCHS
    )
    seed = forms.IntegerField(
        label=gettext_lazy("Seed"), initial=0, min_value=0, max_value=2**31 - 1
    )

    def __init__(self, teams: list[Team], *args: Any, **kwargs: Any) -> None:
        super().__init__(teams, *args, **kwargs)
        catalogues = StoredCatalogue.objects.filter(team__in=teams).order_by("-pk")
        supervised = StoredRecommender.objects.filter(catalogue__team__in=teams, kind="gru-sl")
        rows = supervised.exclude(finished_at=None).select_related("catalogue")
        self.supervised = {str(row.pk): row for row in rows}
        names = [(key, f"{row} ({row.catalogue})") for key, row in self.supervised.items()]
        offer_choices(
            self,
            catalogue=[
                *((f"{STORED}:{one.pk}", one.name) for one in catalogues),
                (DRAWN, _("drawn shoes, as many as below")),
            ],
            start_from=[("", _("nothing")), *names],
        )

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if data.get("kind") in REINFORCED and not data.get("start_from"):
            self.add_error("start_from", _("Choose the GRU-SL that it goes on from."))
        return data


@transaction.atomic
def _request(request: HttpRequest, form: TrainingForm) -> StoredRecommender:
    """In one transaction: a refusal leaves no drawn catalogue behind."""
    data, actor = form.cleaned_data, person(request)
    kind, _colon, key = data["catalogue"].partition(":")
    if kind == DRAWN:
        catalogue = drawn_products(
            team=data["team"], n_items=data["n_items"], seed=data["seed"], actor=actor
        )
    else:
        assert kind == STORED
        rows = StoredCatalogue.objects.select_related("team").filter(team__in=form.teams)
        catalogue = get_object_or_404(rows, pk=int(key))
    start = form.supervised.get(data["start_from"])
    if start is not None and start.catalogue_id != catalogue.pk:
        raise ExperimentUnfit(
            _("{name} was trained on another catalogue. Choose that one.").format(name=start)
        )
    return request_training(
        catalogue=catalogue,
        name=data["name"],
        kind=data["kind"],
        choices={name: data[name] for name in ("width", "epochs", "seed")},
        start_from=start,
        actor=actor,
    )


@require_safe
@never_cache
def recommender(request: HttpRequest, key: int) -> HttpResponse:
    """Access: members of the team, but for who adjudicates blind."""
    row = recommender_for(request, key)
    epochs = list(row.epochs.order_by("epoch"))
    context = {
        "recommender": row,
        "epochs": epochs,
        "best": max(epochs, key=lambda epoch: epoch.validation, default=None),
        "standing": standing_of_training(row),
        "may": may_of(request),
    }
    return render(request, "simulation/recommender.html", context)


@require_safe
@never_cache
def progress(request: HttpRequest, key: int) -> HttpResponse:
    """Access: members of the team, but for who adjudicates blind. Polled by the page; reloads it at
    the end."""
    row = recommender_for(request, key)
    standing = standing_of_training(row)
    context = {"recommender": row, "standing": standing, "may": may_of(request)}
    is_over = not standing.is_under_way
    return progress_page(request, "simulation/_training.html", context, is_over=is_over)


@require_POST
def stop(request: HttpRequest, key: int) -> HttpResponse:
    """Access: those who may analyse. Epochs that are done stay."""
    row = recommender_for(request, key, Permission.ANALYSE)
    for job in Job.objects.about(subject_of_training(row)).unfinished():
        stop_job(job=job)
    return redirect("console:recommender", row.pk)


@require_POST
def resume(request: HttpRequest, key: int) -> HttpResponse:
    """Access: those who may analyse. It goes on from the last epoch."""
    row = recommender_for(request, key, Permission.ANALYSE)
    if row.finished_at is None:
        resume_training(recommender=row, actor=person(request))
    return redirect("console:recommender", row.pk)


@require_http_methods(["GET", "HEAD", "POST"])
def delete(request: HttpRequest, key: int) -> HttpResponse:
    """First what goes with it, then doing it.

    Access: those who may edit; not while an experiment rests on it.
    """
    row = recommender_for(request, key, Permission.EDIT)
    if request.method != "POST":
        seconds = row.epochs.aggregate(seconds=Sum("seconds"))["seconds"]
        context = {"recommender": row, "n_epochs": row.epochs.count(), "seconds": seconds or 0.0}
        return render(request, "simulation/delete_recommender.html", context)
    try:
        delete_recommender(recommender=row, actor=person(request))
    except SimulationError as refused:
        messages.error(request, str(refused), extra_tags=refused.code)
        return redirect("console:recommender", row.pk)
    messages.success(request, _("“{title}” is deleted.").format(title=row.name))
    return redirect("console:recommenders")
