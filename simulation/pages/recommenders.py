"""Recommenders that are trained here: those one may see, a new one, how training goes, its end."""

from __future__ import annotations

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.models import Membership
from accounts.roles import SYSTEM_VIEWERS, Permission, Role
from console.access import may_of, person, require_permission
from console.tables import page_of
from simulation.exceptions import ExperimentUnfit, SimulationError
from simulation.models import StoredCatalogue, StoredRecommender
from simulation.pages.catalogue_choices import DRAWN, STORED
from simulation.pages.sources import teams_that_may_simulate
from simulation.pages.standing import standing_of_training
from simulation.pages.training_forms import TrainingForm
from simulation.stored_catalogues import drawn_products
from simulation.stored_training import (
    delete_recommender,
    request_training,
    resume_training,
    subject_of_training,
)
from work.models import Job
from work.request import stop_job


def recommender_for(
    request: HttpRequest, key: int, permission: Permission = Permission.VIEW
) -> StoredRecommender:
    """The recommender of that number: 404 for whoever may not see its team's experiments, 403
    where their role is too small."""
    rows = StoredRecommender.objects.select_related("catalogue__team", "start_from")
    row = get_object_or_404(rows.defer("checkpoint"), pk=key)
    user = person(request)
    memberships = Membership.objects.filter(team=row.catalogue.team_id, user=user.pk)
    role = memberships.filter(role__in=SYSTEM_VIEWERS).values_list("role", flat=True).first()
    roles = [Role.OWNER] if user.is_superuser else [Role(role)] if role else []
    if not roles:
        get_object_or_404(StoredRecommender.objects.none())
    require_permission(request, roles, permission)
    return row


@require_safe
def recommenders(request: HttpRequest) -> HttpResponse:
    """Access: signed in; lists those of one's teams, but for who adjudicates blind."""
    rows = StoredRecommender.objects.visible_to(person(request)).defer("checkpoint")
    rows = rows.select_related("catalogue__team")
    context = {"page": page_of(request, rows.order_by("-pk"))}
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


@transaction.atomic
def _request(request: HttpRequest, form: TrainingForm) -> StoredRecommender:
    """The training of a form, requested; a refusal leaves no drawn catalogue behind."""
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
    start = form.supervised_one
    if start is not None and start.catalogue_id != catalogue.pk:
        raise ExperimentUnfit(
            _("{name} was trained on another catalogue. Choose that one.").format(name=start)
        )
    return request_training(
        catalogue=catalogue,
        name=data["name"],
        kind=data["kind"],
        choices=form.choices,
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
    if not standing.is_under_way and request.headers.get("HX-Request"):
        return HttpResponse(headers={"HX-Refresh": "true"})
    context = {"recommender": row, "standing": standing, "may": may_of(request)}
    return render(request, "simulation/_training.html", context)


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
