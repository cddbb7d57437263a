import json
from collections.abc import Iterator
from typing import Any

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Max
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.models import Team
from accounts.roles import Permission
from annotation.relevance import Source
from console.access import may, may_of, person, team_row_for
from console.pages.progress import progress_page
from console.tables import page_of
from error_codes import CorrectableError
from presentation.row_files import FORMS as ROW_FORMS, JSON_LINES
from presentation.writers import TABLE_FORMS, write_table
from results.computing import find_result
from results.models import Result
from results.pages import choose_version, draw_chart, name_download
from simulation.exceptions import SimulationError
from simulation.models import StoredExperiment, StoredRecommender
from simulation.pages.catalogue import (
    DRAWN,
    STAND_IN,
    catalogue_choices,
    chosen_catalogue,
    teams_that_may_simulate,
)
from simulation.pages.forms import (
    ExperimentForm,
    RunForm,
    are_same_users,
    first_key,
    initial_of,
    sources_of,
    users_again,
)
from simulation.pages.tables import TABLES, StoredRun
from simulation.pages.view import ExperimentView, standing_of_run
from simulation.plans import TRAINED
from simulation.run_pieces import LOG_NAME, log_lines
from simulation.stored_experiments import (
    KIND,
    create_experiment,
    delete_experiment,
    find_experiment,
    resume_run,
    same_experiment,
    stop_run,
    store_run,
)
from simulation.stored_results import ROWS


def experiment_for(
    request: HttpRequest, slug: str, permission: Permission = Permission.VIEW
) -> StoredExperiment:
    rows = StoredExperiment.objects.select_related("team", "catalogue", "study")
    return team_row_for(request, rows, permission, slug=slug)


def trained_choices(row: StoredExperiment) -> list[tuple[str, str]]:
    trained = StoredRecommender.objects.filter(catalogue=row.catalogue_id)
    names = trained.exclude(finished_at=None).values_list("pk", "name", "kind")
    return [(f"{TRAINED}:{pk}", f"{name} ({kind})") for pk, name, kind in names]


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def experiment(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: members of the team, but for who adjudicates blind; those who may analyse run it."""
    is_post = request.method == "POST"
    row = experiment_for(request, slug, Permission.ANALYSE if is_post else Permission.VIEW)
    versions = list(Result.objects.of(row, KIND))
    version = choose_version(request, versions)
    form = _form(request, row, version)
    if form is not None and is_post and form.is_valid():
        new_version = _run(request, row, form, is_check="check" in request.POST)
        if new_version is not None:
            resume_run(version=new_version, actor=person(request))
            return redirect(f"{request.path}?version={new_version.number}")
    return _page(request, row, versions, version, form)


def _run(
    request: HttpRequest, row: StoredExperiment, form: RunForm, *, is_check: bool
) -> Result | None:
    """None if it is only a check, or if refused, with errors in the form."""
    try:
        with transaction.atomic():
            version = store_run(experiment=row, rules=form.rules, actor=person(request))
            transaction.set_rollback(is_check)
    except SimulationError as refused:
        form.add_error(None, ValidationError(str(refused), code=refused.code))
        return None
    return None if is_check else version


def _form(request: HttpRequest, row: StoredExperiment, version: Result | None) -> RunForm | None:
    if not may(request, Permission.ANALYSE):
        return None
    data = request.POST if request.method == "POST" else None
    initial = initial_of(version.settings, form=version.form) if version else {}
    return RunForm(trained_choices(row), data, initial=initial)


def _page(
    request: HttpRequest,
    row: StoredExperiment,
    versions: list[Result],
    version: Result | None,
    form: RunForm | None,
) -> HttpResponse:
    finished = version if version is not None and version.finished_at is not None else None
    plan = form.plan if form is not None and form.is_bound and not form.errors else None
    context: dict[str, Any] = {
        "experiment": row,
        "versions": versions,
        "version": version,
        "view": ExperimentView(StoredRun(finished), request.GET) if finished else None,
        "standing": None if version is None or finished else standing_of_run(version),
        "form": form,
        "other_users": _other_users(version) if form is not None and not form.is_bound else (),
        "table_forms": tuple(TABLE_FORMS),
        "table_names": tuple(TABLES),
        "row_names": (
            ("turns", _("Every turn:")),
            ("seeds", _("Every seed:")),
            ("targets", _("Every target:")),
            ("sensitivity", _("Every other choice:")),
        ),
        "seconds": plan.seconds(row.n_targets, row.catalogue.n_items) if plan else None,
        "may": may_of(request),
    }
    status = 422 if form is not None and form.errors else 200
    return render(request, "simulation/experiment.html", context, status=status)


def _other_users(version: Result | None) -> list[str]:
    """Users of another run with the offered settings, if they differ from the version's."""
    if version is None:
        return []
    users, mode = users_again(version.settings), version.settings["mode"]
    return [] if are_same_users(users, version.settings["users"], mode=mode) else users


@require_safe
@never_cache
def progress(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """Access: members of the team, but for who adjudicates blind. Polled by the page; reloads it at
    the end."""
    row = experiment_for(request, slug)
    version = get_object_or_404(row.versions, number=number)
    standing = standing_of_run(version)
    context = {"experiment": row, "version": version, "standing": standing}
    context |= {"may": may_of(request)}
    is_over = not standing.is_under_way
    return progress_page(request, "simulation/_run.html", context, is_over=is_over)


@require_POST
def stop(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """Access: those who may analyse."""
    row = experiment_for(request, slug, Permission.ANALYSE)
    stop_run(version=get_object_or_404(row.versions, number=number))
    return redirect("console:experiment", slug)


@require_POST
def resume(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """Access: those who may analyse. What is done stays done."""
    row = experiment_for(request, slug, Permission.ANALYSE)
    resume_run(version=get_object_or_404(row.versions, number=number), actor=person(request))
    return redirect("console:experiment", slug)


@require_http_methods(["GET", "HEAD", "POST"])
def delete(request: HttpRequest, slug: str) -> HttpResponse:
    """First what goes with it, then doing it, once its short name was typed.

    Access: owners of the team.
    """
    row = experiment_for(request, slug, Permission.OWN)
    problem = ""
    if request.method == "POST":
        if request.POST.get("name", "").strip() == row.slug:
            delete_experiment(experiment=row, actor=person(request))
            messages.success(request, _("“{title}” is deleted.").format(title=row.name))
            return redirect("console:experiments")
        problem = _("Nothing was deleted: type {name} to confirm.").format(name=row.slug)
    context = {"experiment": row, "problem": problem, "n_versions": row.versions.count()}
    return render(request, "simulation/delete.html", context, status=422 if problem else 200)


@require_safe
def picture(request: HttpRequest, slug: str, chart: str, form: str) -> HttpResponse:
    """Access: members of the team, but for who adjudicates blind. A chart as specification, data or
    file."""
    version = choose_version(request, Result.objects.of(experiment_for(request, slug), KIND))
    if version is None or version.finished_at is None:
        raise Http404(f"There is no chart {chart}.{form}.")
    figure = ExperimentView(StoredRun(version), request.GET).figures.get(chart)
    return draw_chart(request, figure, name=f"{slug}-{chart}", form=form)


@require_safe
def experiments(request: HttpRequest) -> HttpResponse:
    """Access: signed in; lists the experiments of one's teams, but for who adjudicates blind."""
    rows = StoredExperiment.objects.visible_to(person(request)).select_related("team", "catalogue")
    with_last = rows.annotate(finished_at=Max("versions__finished_at")).order_by("-pk")
    return render(request, "simulation/list.html", {"page": page_of(request, with_last)})


@require_http_methods(["GET", "HEAD", "POST"])
def new_experiment(request: HttpRequest) -> HttpResponse:
    """Access: signed in; for a team, those who may analyse its studies."""
    teams = teams_that_may_simulate(person(request))
    form = _new_form(request, teams, sources_of(teams))
    seconds = None
    if request.method == "POST" and form.is_valid():
        is_check = "check" in request.POST
        version = _create(request, form, teams, is_check=is_check)
        if version is not None and not is_check:
            resume_run(version=version, actor=person(request))
            return redirect("console:experiment", find_experiment(version).slug)
        seconds = _seconds(form, version)
    context = {"form": form, "seconds": seconds}
    return render(request, "simulation/new.html", context, status=422 if form.errors else 200)


def _seconds(form: ExperimentForm, version: Result | None) -> float | None:
    if version is None or form.plan is None:
        return None
    experiment = find_experiment(version)
    return form.plan.seconds(experiment.n_targets, experiment.catalogue.n_items)


def _new_form(
    request: HttpRequest, teams: list[Team], sources: dict[str, Source]
) -> ExperimentForm:
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
    own = [key for key, _title in choices if ":" in key]
    if own:
        return own[0]
    return STAND_IN if source is not None else DRAWN


def _create(
    request: HttpRequest, form: ExperimentForm, teams: list[Team], *, is_check: bool
) -> Result | None:
    """The run, stored with its catalogue and experiment in one transaction. None if it is only a
    check, or if refused, with errors in the form."""
    try:
        with transaction.atomic():
            version = _store(request, form, teams)
            same = same_experiment(version)
            transaction.set_rollback(is_check or same is not None)
    except CorrectableError as refused:
        form.add_error(None, ValidationError(str(refused), code=refused.code))
        return None
    if same is not None and not is_check:
        return find_result(same, KIND, version.fingerprint)
    return version


def _store(request: HttpRequest, form: ExperimentForm, teams: list[Team]) -> Result:
    data, source, actor = form.cleaned_data, form.source, person(request)
    team = next(team for team in teams if team.pk == source.team_id)
    # The same form may be sent twice at once. What else is stored for the team goes on meanwhile.
    Team.objects.select_for_update(no_key=True).get(pk=team.pk)
    row = create_experiment(
        team=team,
        name=data["name"],
        catalogue=chosen_catalogue(data["catalogue"], source, team, data, actor),
        judgments=source.judgments(),
        made_of=source.made_of,
        actor=actor,
        study=source.study,
        collection=source.collection,
    )
    return store_run(experiment=row, rules=form.rules, actor=actor)


JSON = "application/json"


def _all(run: StoredRun) -> Iterator[str]:
    tables = {name: list(make(run, run.measures).records()) for name, make in TABLES.items()}
    yield json.dumps(run.record() | {"tables": tables}, indent=1, ensure_ascii=False)


def _content(name: str, run: StoredRun) -> tuple[str, Any] | None:
    base, _dot, form = name.partition(".")
    if name == "experiment.json":
        return JSON, _all(run)
    if name == LOG_NAME:
        return JSON_LINES, log_lines(run.version)
    if base in TABLES:
        return write_table(TABLES[base](run, run.measures), form)
    if base in ROWS and form in ROW_FORMS:
        content_type, write = ROW_FORMS[form]
        return content_type, write(run.file(base))
    return None


@require_safe
def download(request: HttpRequest, slug: str, name: str) -> StreamingHttpResponse:
    """Access: those who may export."""
    row = experiment_for(request, slug, Permission.EXPORT)
    version = choose_version(request, Result.objects.of(row, KIND).exclude(finished_at=None))
    content = None if version is None else _content(name, StoredRun(version))
    if version is None or content is None:
        raise Http404(f"There is no download {name}.")
    content_type, parts = content
    response = StreamingHttpResponse(parts, content_type=content_type)
    details = {"file": name, "version": version.number}
    name_download(request, response, row, f"{slug}-{version.number}-{name}", **details)
    return response
