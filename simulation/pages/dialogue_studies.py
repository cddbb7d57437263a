import json
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _, gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from accounts.models import User
from accounts.names import require_visible
from accounts.roles import Permission
from annotation.access import record_in
from annotation.exceptions import AnnotationError
from annotation.models.studies import CountedStudy
from annotation.pages.import_forms import teams_to_import_into
from annotation.pages.stages import (
    study_for,
    study_page,
)
from annotation.study_facts import jobs_of, simulation_notice
from console.access import (
    may,
    person,
)
from console.forms import PlainForm, offer_choices
from presentation.row_files import FORMS as ROW_FORMS
from presentation.writers import write_table
from results.computing import find_computed, request_result
from results.kinds import result_kind
from results.models import Result
from results.pages import ResultForm, choose_version, draw_chart
from results.shown import ShownResult
from simulation.exceptions import SimulationError
from simulation.models import (
    DialogueStudy,
    StoredExperiment,
)
from simulation.outcome_study import LEAST_TARGETS
from simulation.recorded_dialogues import origin_of
from simulation.recorded_studies import MAKE_DIALOGUES, request_dialogue_study
from simulation.result_kinds.switching import DialogueKind
from work.models import Job

JSON = "application/json"
REPORT_JSON, ESTIMATES = "report.json", "estimates"


@require_http_methods(["GET", "HEAD", "POST"])
def new_dialogue_study(request: HttpRequest) -> HttpResponse:
    """Access: signed in; for a team, those who may edit its studies and see its experiments."""
    data = (request.POST, request.FILES) if request.method == "POST" else ()
    form = NewDialogueStudyForm(person(request), *data, initial=_chosen(request))
    if request.method == "POST" and form.is_valid():
        try:
            made = request_dialogue_study(actor=person(request), **form.request)
        except (SimulationError, AnnotationError) as refused:
            form.add_error(None, ValidationError(str(refused), code=refused.code))
        else:
            messages.success(request, _("“{title}” is made.").format(title=made.study.title))
            return redirect("console:dialogues", made.study.slug)
    status = 422 if form.errors else 200
    return render(request, "simulation/new_dialogue_study.html", {"form": form}, status=status)


def _chosen(request: HttpRequest) -> dict[str, str]:
    version = request.GET.get("version", "")
    return {"dialogues": f"version:{version}"} if version.isdecimal() else {}


def dialogues_for(
    request: HttpRequest, slug: str, permission: Permission = Permission.VIEW_SYSTEMS
) -> tuple[CountedStudy, DialogueStudy]:
    """403 for users who may not view systems; 404 if the study is not of dialogues."""
    study = study_for(request, slug, permission)
    rows = DialogueStudy.objects.select_related("experiment", "version")
    dialogues = get_object_or_404(rows, study=study.pk)
    dialogues.study = study
    return study, dialogues


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def dialogues(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: those who may view systems; those who may analyse have a report computed."""
    is_post = request.method == "POST"
    study, row = dialogues_for(
        request, slug, Permission.ANALYSE if is_post else Permission.VIEW_SYSTEMS
    )
    kind = result_kind(row.kind)
    reports = list(Result.objects.of(study, kind.name))
    report = report_in(request, study, reports)
    form = None
    if row.made_at is not None and may(request, Permission.ANALYSE):
        form = ResultForm(kind, study, request.POST if is_post else None)
        if report is not None:
            form.begin_with_result(report, ())
    if is_post and form is not None and form.is_valid():
        return redirect(f"{request.path}{_request_report(study, form, person(request))}")
    context = {
        "dialogues": row,
        "job": _job(study, kind.job),
        "reports": reports,
        "report": report,
        "is_current": report is None
        or report.facts["judgments_version"] == study.judgments_version,
        "view": ShownResult(report) if report else None,
        "query": f"report={report.number}" if report else "",
        "row_forms": list(ROW_FORMS),
        "simulated": simulation_notice(study),
        "form": form,
    }
    response = study_page(request, study, "simulation/dialogues", context)
    response.status_code = 422 if form is not None and form.errors else 200
    return response


def _request_report(study: CountedStudy, form: ResultForm, actor: User) -> str:
    """The query of its address if it was computed before."""
    if same := find_computed(form.kind, study, (), form.settings):
        return f"?report={same.number}"
    request_result(kind=form.kind, subject=study, chosen={}, settings=form.settings, actor=actor)
    return ""


def _job(study: CountedStudy, report: str) -> Job | None:
    last = jobs_of(study).filter(kind__in=(MAKE_DIALOGUES, report)).order_by("-pk").first()
    return None if last is None or last.state == Job.State.DONE else last


def report_in(request: HttpRequest, study: CountedStudy, reports: list[Result]) -> Result | None:
    """The report in the address, or the newest; 404 for an unknown number."""
    report = choose_version(request, reports, parameter="report")
    if report is not None:
        report.subject = study
    return report


def _find_report(
    request: HttpRequest, slug: str, permission: Permission = Permission.VIEW_SYSTEMS
) -> tuple[CountedStudy, DialogueStudy, ShownResult]:
    study, row = dialogues_for(request, slug, permission)
    report = report_in(request, study, list(Result.objects.of(study, row.kind)))
    if report is None:
        raise Http404("There is no report yet.")
    return study, row, ShownResult(report)


@require_safe
def picture(request: HttpRequest, slug: str, chart: str, form: str) -> HttpResponse:
    """Access: whoever has a role in the study, but for who adjudicates blind. A chart as
    specification, data or file."""
    _study, _row, shown = _find_report(request, slug)
    figure = next((one for one in shown.charts if one.name == chart), None)
    return draw_chart(request, figure, name=f"{slug}-{chart}", form=form)


def _content(name: str, row: DialogueStudy, shown: ShownResult) -> tuple[str, Any] | None:
    base, _dot, form = name.partition(".")
    if name == REPORT_JSON:
        return JSON, [json.dumps(_record(row, shown.result), indent=1, ensure_ascii=False)]
    if base == ESTIMATES and form in ROW_FORMS:
        content_type, write = ROW_FORMS[form]
        return content_type, write(_kind(shown.result).write_estimates(shown.result))
    return write_table(shown.tables.get(base), form)


def _record(row: DialogueStudy, result: Result) -> dict[str, Any]:
    return {
        "study": row.study.slug,
        "report": result.number,
        "kind": row.kind,
        "fingerprint": result.fingerprint,
        "origin": origin_of(row),
        "rules": result.settings
        | {"users": result.facts["users"], "confidence": result.record["confidence"]},
        **{name: result.facts[name] for name in ("n_answers", "n_annotators", "n_targets")},
        "estimates": list(_kind(result).list_estimates(result.record)),
    }


def _kind(result: Result) -> DialogueKind:
    kind = result_kind(result.kind)
    assert isinstance(kind, DialogueKind)
    return kind


@require_safe
def download(request: HttpRequest, slug: str, name: str) -> StreamingHttpResponse:
    """Access: those who may export, but for who adjudicates blind."""
    study, row, shown = _find_report(request, slug, Permission.EXPORT)
    written = _content(name, row, shown)
    if written is None:
        raise Http404(f"There is no download {name}.")
    content_type, parts = written
    number = shown.result.number
    response = StreamingHttpResponse(parts, content_type=content_type)
    response["Content-Disposition"] = f'attachment; filename="{slug}-{number}-{name}"'
    if request.method == "GET":
        details = {"file": name, "report": number}
        record_in(study, actor=person(request), action="export", details=details)
    return response


KIND = DialogueStudy.Kind
VERSION, LOG = "version", "log"
MOST_OFFERED, MOST_SEED = 200, 2**31 - 1


class NewDialogueStudyForm(PlainForm):
    title = forms.CharField(
        label=gettext_lazy("Name of the study"), max_length=128, validators=[require_visible]
    )
    kind = forms.ChoiceField(
        label=gettext_lazy("What people are asked"),
        choices=[
            (
                KIND.OUTCOMES,
                gettext_lazy("Outcomes: which of the dialogues' final items would do?"),
            ),
            (
                KIND.SWITCHING,
                gettext_lazy("Switching: at a turn, keep looking, take another, or leave?"),
            ),
        ],
        widget=forms.RadioSelect,
        initial=KIND.OUTCOMES,
    )
    dialogues = forms.ChoiceField(
        label=gettext_lazy("Dialogues"),
        help_text=gettext_lazy(
            "Catalogue and judgments are those of the experiment, for a log that you send as well."
        ),
    )
    file = forms.FileField(
        label=gettext_lazy("Log of dialogues"),
        required=False,
        help_text=gettext_lazy(
            "Only where Dialogues has “the log that I send”: JSON Lines, as “simulate --log” and "
            "the downloads write them."
        ),
    )
    final_user = forms.CharField(
        label=gettext_lazy("Whose final items"),
        required=False,
        max_length=255,
        help_text=gettext_lazy(
            "Outcomes only: the simulated user's name as the log has it; its first where this is "
            "empty."
        ),
    )
    most_targets = forms.IntegerField(
        label=gettext_lazy("Targets to draw"),
        required=False,
        min_value=LEAST_TARGETS,
        max_value=100_000,
        help_text=gettext_lazy("Outcomes only; all where this is empty."),
    )
    per_target = forms.IntegerField(
        label=gettext_lazy("Turns of each target"),
        initial=2,
        min_value=1,
        max_value=20,
        help_text=gettext_lazy("Switching only: a loss and a gain by turns."),
    )
    seed = forms.IntegerField(
        label=gettext_lazy("Seed of what is drawn"), initial=0, min_value=0, max_value=MOST_SEED
    )

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.experiments = experiments_of(user)
        groups = [(one.name, list(self._choices(one))) for one in self.experiments.values()]
        offer_choices(self, dialogues=groups)

    @staticmethod
    def _choices(experiment: StoredExperiment) -> Any:
        for version in experiment.finished:  # type: ignore[attr-defined]
            title = _("{name}, result {number}").format(name=experiment.name, number=version.number)
            yield f"{VERSION}:{version.pk}", title
        yield (
            f"{LOG}:{experiment.pk}",
            _("{name}, the log that I send").format(name=experiment.name),
        )

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        wants_log = str(data.get("dialogues", "")).startswith(LOG)
        if wants_log and not data.get("file") and "file" not in self.errors:
            self.add_error(
                "file",
                forms.ValidationError(_("Choose the log of the dialogues."), code="log_missing"),
            )
        if str(data.get("dialogues", "")).startswith(VERSION) and data.get("kind") == KIND.OUTCOMES:
            self._check_outcomes(self._version(int(data["dialogues"].partition(":")[2])), data)
        return data

    def _check_outcomes(self, version: Result, data: dict[str, Any]) -> None:
        """What can be checked before the dialogues are read, while it can still be changed."""
        if (n_targets := self.experiments[version.subject_id].n_targets) < LEAST_TARGETS:
            text = _("The experiment has {n} targets; an outcome study needs {least}.")
            text = text.format(n=n_targets, least=LEAST_TARGETS)
            self.add_error("dialogues", forms.ValidationError(text, code="too_few_targets"))
        if len(version.settings["recommenders"]) < 2:
            text = _("The result is of one recommender; an outcome study needs two.")
            self.add_error("dialogues", forms.ValidationError(text, code="one_recommender"))
        names = [one["name"] for one in version.facts["users"]]
        wanted = data.get("final_user")
        if wanted and wanted not in names:
            text = _("The result has no user “{name}”. It has: {names}.")
            text = text.format(name=wanted, names="; ".join(names))
            self.add_error("final_user", forms.ValidationError(text, code="unknown_user"))

    @property
    def request(self) -> dict[str, Any]:
        """Arguments of `request_dialogue_study`."""
        data = self.cleaned_data
        what, _colon, key = data["dialogues"].partition(":")
        version = self._version(int(key)) if what == VERSION else None
        names = ("title", "final_user", "most_targets", "per_target", "seed")
        return {name: data[name] for name in names} | {
            "kind": KIND(data["kind"]),
            "experiment": self.experiments[version.subject_id if version else int(key)],
            "version": version,
            "file": None if version else data["file"],
        }

    def _version(self, key: int) -> Result:
        rows = (one.finished for one in self.experiments.values())  # type: ignore[attr-defined]
        versions: dict[int, Result] = {version.pk: version for some in rows for version in some}
        return versions[key]


def experiments_of(user: User) -> dict[int, StoredExperiment]:
    """Newest first with finished versions, of teams in which the user may make studies and see the
    recommenders."""
    rows = StoredExperiment.objects.visible_to(user).filter(team__in=teams_to_import_into(user))
    found = {one.pk: one for one in rows.select_related("team", "catalogue")[:MOST_OFFERED]}
    versions = Result.objects.filter(experiment__in=list(found))
    for one in found.values():
        one.finished = []  # type: ignore[attr-defined]
    for version in versions.exclude(finished_at=None).order_by("-number").defer("packed_record"):
        found[version.subject_id].finished.append(version)  # type: ignore[attr-defined]
    return found
