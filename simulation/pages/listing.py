"""Experiments with simulated users: those one may see, and a new one."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Max
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from accounts.models import Team
from annotation.relevance import Source
from console.access import person
from console.tables import page_of
from error_codes import CorrectableError
from simulation.models import ExperimentVersion, StoredExperiment, StoredRecommender
from simulation.pages.catalogue_choices import DRAWN, STAND_IN, catalogue_choices, chosen_catalogue
from simulation.pages.forms import ExperimentForm
from simulation.pages.sources import first_key, sources_of, teams_that_may_simulate
from simulation.plans import TRAINED
from simulation.stored_experiments import (
    create_experiment,
    resume_run,
    same_experiment,
    store_run,
)


@require_safe
def experiments(request: HttpRequest) -> HttpResponse:
    """Access: signed in; lists the experiments of one's teams, but for who adjudicates blind."""
    rows = StoredExperiment.objects.visible_to(person(request)).select_related("team", "catalogue")
    with_last = rows.annotate(finished_at=Max("versions__finished_at")).order_by("-pk")
    context = {"page": page_of(request, with_last)}
    return render(request, "simulation/list.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def new_experiment(request: HttpRequest) -> HttpResponse:
    """Access: signed in; for a team, those who may analyse its studies."""
    teams = teams_that_may_simulate(person(request))
    sources = sources_of(teams)
    form = _form(request, teams, sources)
    seconds = None
    if request.method == "POST" and form.is_valid():
        is_check = "check" in request.POST
        version = _create(request, form, teams, is_check=is_check)
        if version is not None and not is_check:
            resume_run(version=version, actor=person(request))
            return redirect("console:experiment", version.experiment.slug)
        seconds = _seconds(form, version)
    context = {"form": form, "seconds": seconds}
    status = 422 if form.errors else 200
    return render(request, "simulation/new.html", context, status=status)


def _seconds(form: ExperimentForm, version: ExperimentVersion | None) -> float | None:
    """About how long the experiment of a form that is right takes one core."""
    if version is None or form.plan is None:
        return None
    experiment = version.experiment
    return form.plan.seconds(experiment.n_targets, experiment.catalogue.n_items)


def _form(request: HttpRequest, teams: list[Team], sources: dict[str, Source]) -> ExperimentForm:
    data = (request.POST, request.FILES) if request.method == "POST" else ()
    trained = StoredRecommender.objects.filter(catalogue__team__in=teams)
    rows = trained.exclude(finished_at=None).values_list("pk", "name", "catalogue__name")
    names = [(f"{TRAINED}:{pk}", f"{name} ({catalogue})") for pk, name, catalogue in rows]
    choices = catalogue_choices(teams)
    study, collection = (request.GET.get(name, "") for name in ("study", "collection"))
    first = first_key(sources, study=study, collection=collection)
    initial = {"judgments": first, "catalogue": _first_catalogue(choices, sources.get(first))}
    return ExperimentForm(sources, choices, names, *data, initial=initial)


def _first_catalogue(choices: list[tuple[str, str]], source: Source | None) -> str:
    """The newest that has embeddings of its own, and else what needs none."""
    own = [key for key, _title in choices if ":" in key]
    if own:
        return own[0]
    return STAND_IN if source is not None else DRAWN


def _create(
    request: HttpRequest, form: ExperimentForm, teams: list[Team], *, is_check: bool
) -> ExperimentVersion | None:
    """The run of a form, stored with its catalogue and experiment or not at all, as where it is
    only checked; None with the form's errors where it is refused."""
    try:
        with transaction.atomic():
            version = _store(request, form, teams)
            same = same_experiment(version)
            transaction.set_rollback(is_check or same is not None)
    except CorrectableError as refused:
        form.add_error(None, ValidationError(str(refused), code=refused.code))
        return None
    if same is not None and not is_check:
        return same.versions.get(fingerprint=version.fingerprint)
    return version


def _store(request: HttpRequest, form: ExperimentForm, teams: list[Team]) -> ExperimentVersion:
    data, source, actor = form.cleaned_data, form.source, person(request)
    team = next(team for team in teams if team.pk == source.team_id)
    # The same form may be sent twice at once. What else is stored for the team goes on meanwhile.
    Team.objects.select_for_update(no_key=True).get(pk=team.pk)
    catalogue = chosen_catalogue(data["catalogue"], source, team, data, actor)
    row = create_experiment(
        team=team,
        name=data["name"],
        catalogue=catalogue,
        judgments=source.judgments(),
        made_of=source.made_of,
        actor=actor,
        study=source.study,
        collection=source.collection,
    )
    return store_run(experiment=row, rules=form.rules, actor=actor)
