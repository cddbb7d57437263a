"""Scoring by any metric with its parameters: what it would take, then doing it, under a cap."""

import inspect
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from functools import cache, partial
from typing import Any, get_args

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db.models import Exists, OuterRef
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.text import slugify
from django.utils.translation import gettext as _, gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.models import User
from accounts.roles import Permission
from annotation.exceptions import AnnotationError
from annotation.models import Item, Study, Upload
from annotation.pages.import_forms import FileForm
from annotation.pages.stages import (
    stage_facts,
    study_for,
    study_page,
)
from annotation.uploads import request_reading, store_upload
from console.access import person, team_for
from console.forms import UsdField
from metrics.exceptions import MetricsError, ParameterRefused
from metrics.models import JudgeConnection, JudgeVersion, ScoringRequest
from metrics.scorer_options import has_model
from metrics.scorers.judges.geval import PRESETS, GEvalSettings
from metrics.scorers.judges.grade import GradeSettings
from metrics.scorers.registry import SCORERS, Description, available, defaults_of
from metrics.scoring_requests import (
    close_judge_connection,
    confirm_request,
    connect_judge,
    last_job_of,
    most_under_way,
    request_plan,
)
from metrics.study_judges import Settings, is_judge, keep_judge, stored_settings

OWN, DEFAULT = "own", "default"
# Which files or models of the server a metric reads is its operator's business.
OF_THE_SITE = {
    *("model", "device", "download", "cache_folder", "idf", "baseline", "labels", "endpoint"),
    *("api_key_variable", "client", "settings", "honours_n", "template", "dtype"),
}
MOST_NUMBER = 100_000
LENGTH_FIELDS = [("max_tokens", "max_tokens"), ("max_completion_tokens", "max_completion_tokens")]


class JudgeConnectionForm(forms.Form):
    name = forms.CharField(label=gettext_lazy("Name"), max_length=40)
    base_url = forms.URLField(
        label=gettext_lazy("Address"),
        assume_scheme="https",
        max_length=255,
        help_text=gettext_lazy("Up to and with the version, such as https://api.openai.com/v1"),
    )
    api_key = forms.CharField(
        label=gettext_lazy("Key"),
        max_length=512,
        required=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text=gettext_lazy("Stored encrypted, and never displayed again."),
    )
    length_field = forms.ChoiceField(
        label=gettext_lazy("The longest reply is called"),
        choices=LENGTH_FIELDS,
        help_text=gettext_lazy("Some newer models refuse max_tokens."),
    )


class ParametersForm(forms.Form):
    def __init__(self, metric: str, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"label_suffix": ""} | kwargs)
        self.metric = metric
        known = inspect.signature(SCORERS[metric].factory).parameters
        for name, default in defaults_of(metric).items():
            if name not in OF_THE_SITE:
                self.fields[name] = _field(name, known[name].annotation, default)

    @property
    def parameters(self) -> dict[str, Any]:
        defaults = defaults_of(self.metric)
        data = self.cleaned_data
        values = {name: None if data[name] == "" else data[name] for name in self.fields}
        return {name: value for name, value in values.items() if value != defaults[name]}


def _field(name: str, kind: Any, default: Any) -> forms.Field:
    common: dict[str, Any] = {"label": name, "initial": default, "required": False}
    kinds = get_args(kind) or (kind,)
    if bool in kinds:
        return forms.BooleanField(**common)
    if int in kinds:
        field = forms.IntegerField(min_value=0, max_value=MOST_NUMBER, **common)
        field.required = type(None) not in kinds
        return field
    return forms.CharField(max_length=200, **common)


class JudgeForm(forms.Form):
    connection = forms.ModelChoiceField(
        JudgeConnection.objects.none(), label=gettext_lazy("Connection")
    )
    model = forms.CharField(
        label=gettext_lazy("Model"),
        max_length=128,
        help_text=gettext_lazy("As the endpoint names it."),
    )
    prompt = forms.ChoiceField(label=gettext_lazy("What it is asked"))
    temperature = forms.FloatField(
        label=gettext_lazy("Temperature"), min_value=0, max_value=2, required=False
    )
    usd_per_million_input = forms.DecimalField(
        label=gettext_lazy("$ per million tokens sent"),
        min_value=Decimal(0),
        max_digits=12,
        decimal_places=6,
        help_text=gettext_lazy("0 where nothing is charged."),
    )
    usd_per_million_output = forms.DecimalField(
        label=gettext_lazy("$ per million tokens received"),
        min_value=Decimal(0),
        max_digits=12,
        decimal_places=6,
    )
    max_usd = UsdField(
        label=gettext_lazy("Stop before it costs more than, $"), max_digits=10, required=False
    )
    max_requests = forms.IntegerField(
        label=gettext_lazy("Stop after so many requests"),
        min_value=1,
        max_value=10_000_000,
        required=False,
    )

    def __init__(self, study: Study, metric: str, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"label_suffix": "", "initial": _last(study)} | kwargs)
        self.study, self.metric = study, metric
        connection = self.fields["connection"]
        assert isinstance(connection, forms.ModelChoiceField)
        if study.team is not None:
            connection.queryset = JudgeConnection.objects.of(study.team).usable()
            connection.empty_label = None
        prompt = self.fields["prompt"]
        assert isinstance(prompt, forms.ChoiceField)
        prompt.choices = [*_prompts(study, metric), (OWN, _("a question of my own, below"))]
        self.fields["temperature"].initial = None
        for name, field in OWN_FIELDS[metric]().items():
            self.fields[name] = field

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if data.get("prompt") == OWN:
            for name in NEEDED_OF_OWN[self.metric]:
                if data.get(name) in ("", None) and name not in self.errors:
                    text = _("Say it, or choose another question.")
                    self.add_error(name, forms.ValidationError(text, code="required"))
        self._require_cap(data)
        return data

    def _require_cap(self, data: dict[str, Any]) -> None:
        prices = [data.get("usd_per_million_input"), data.get("usd_per_million_output")]
        if any(prices) and not data.get("max_usd") and "max_usd" not in self.errors:
            text = _("Say how much it may cost at most.")
            self.add_error("max_usd", forms.ValidationError(text, code="required"))
        if not any(prices) and not data.get("max_requests"):
            text = _("Without a price only a cap on requests can stop the run.")
            self.add_error("max_requests", forms.ValidationError(text, code="required"))

    @property
    def of_judges(self) -> dict[str, Any]:
        names = ("model", "usd_per_million_input", "usd_per_million_output", "max_requests")
        data = {name: self.cleaned_data[name] for name in ("connection", *names)}
        has_price = data["usd_per_million_input"] or data["usd_per_million_output"]
        return data | {"max_usd": self.cleaned_data["max_usd"] if has_price else None}

    def settings_reference(self) -> str:
        """The name of what is asked: a preset's, or that of a version which the study keeps."""
        chosen = self.cleaned_data["prompt"]
        try:
            known = None if chosen == OWN else _settings_of(self.study, self.metric, chosen)
            settings = self._changed(known or self._own())
        except ValueError as error:
            raise ParameterRefused(f"{error}.") from error
        if settings == known:
            return "" if chosen == DEFAULT else str(chosen)
        aspect = getattr(settings, "aspect", "") or "grade"
        name = chosen.partition("@")[0] if chosen not in (OWN, DEFAULT) else slugify(aspect)
        version = keep_judge(
            study=self.study, metric=self.metric, name=name[:64] or "own", settings=settings
        )
        return str(version)

    def _changed(self, settings: Settings) -> Settings:
        data = self.cleaned_data
        names = ("temperature", *CHANGEABLE[self.metric])
        changes = {name: data[name] for name in names if data.get(name) not in ("", None)}
        return replace(settings, **changes)

    def _own(self) -> Settings:
        data = self.cleaned_data
        if self.metric == "judge":
            return GradeSettings(system=data["system"], user=data["user"])
        names = ("aspect", "criteria", "low", "high", "steps")
        return GEvalSettings(**{name: data[name] for name in names})


def _last(study: Study) -> dict[str, Any]:
    """What was said of the team's last judge: its connection, model and prices are known."""
    if study.team is None:
        return {}
    rows = ScoringRequest.objects.filter(connection__team=study.team, connection__closed_at=None)
    names = ("connection", "model", "usd_per_million_input", "usd_per_million_output")
    return {
        name: value.normalize() if isinstance(value, Decimal) else value
        for name, value in (rows.values(*names).first() or {}).items()
    }


def _prompts(study: Study, metric: str) -> list[tuple[str, str]]:
    presets = (
        [(name, f"{each.aspect} ({each.low}–{each.high})") for name, each in PRESETS.items()]
        if metric == "geval"
        else [(DEFAULT, _("LMStyle's prompt: how appropriate, 0 to 100"))]
    )
    versions = JudgeVersion.objects.of(study).filter(metric=metric)
    return [*presets, *((str(each), str(each)) for each in versions)]


def _settings_of(study: Study, metric: str, chosen: str) -> Settings | None:
    if metric == "judge" and chosen == DEFAULT:
        return GradeSettings()
    return stored_settings(study, metric, chosen) or PRESETS.get(chosen)


def _geval_fields() -> dict[str, forms.Field]:
    text = forms.Textarea(attrs={"rows": 4})
    return {
        "n": forms.IntegerField(
            label=_("Replies for each response"), min_value=1, max_value=100, required=False
        ),
        "distribution": forms.ChoiceField(
            label=_("Weighted by"),
            required=False,
            choices=[
                ("", _("as the question says")),
                ("samples", _("the shares of the replies")),
                ("logprobs", _("the probabilities that the endpoint reports")),
            ],
        ),
        "aspect": forms.CharField(label=_("Aspect"), max_length=60, required=False),
        "criteria": forms.CharField(
            label=_("What makes it good"), max_length=4000, required=False, widget=text
        ),
        "low": forms.IntegerField(
            label=_("Scale from"), min_value=0, max_value=100, required=False
        ),
        "high": forms.IntegerField(label=_("to"), min_value=1, max_value=100, required=False),
        "steps": forms.CharField(
            label=_("Steps of rating, if any"), max_length=8000, required=False, widget=text
        ),
    }


def _grade_fields() -> dict[str, forms.Field]:
    usable = _("$context, $response, $reference and $condition stand for the texts.")
    text = forms.Textarea(attrs={"rows": 5})
    return {
        "system": forms.CharField(
            label=_("Instruction"), max_length=8000, required=False, widget=text, help_text=usable
        ),
        "user": forms.CharField(
            label=_("Message"), max_length=8000, required=False, widget=text, help_text=usable
        ),
    }


OWN_FIELDS = {"geval": _geval_fields, "judge": _grade_fields}
NEEDED_OF_OWN = {"geval": ("aspect", "criteria", "low", "high"), "judge": ("user",)}
CHANGEABLE = {"geval": ("n", "distribution"), "judge": ()}


def has_references(study: Study) -> bool:
    references = Item.objects.filter(study=OuterRef("pk")).exclude(reference="").order_by()
    return bool(stage_facts(study, has_references=Exists(references))["has_references"])


@cache
def metrics_on_offer() -> tuple[Description, ...]:
    """The metrics a page may start: none that asks an endpoint, which may cost money.

    Known once for a process, since describing them builds every scorer.
    """
    return tuple(metric for metric in available() if "endpoint" not in metric.requires)


@cache
def needing_references() -> frozenset[str]:
    return frozenset(metric.name for metric in metrics_on_offer() if "reference" in metric.needs)


@cache
def lacking_models() -> tuple[str, ...]:
    return tuple(metric.name for metric in metrics_on_offer() if not has_model(metric.name))


REQUESTS_SHOWN = 20


@require_http_methods(["GET", "HEAD", "POST"])
def scoring(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: those who may analyse; by judges, those who may spend, too."""
    study = study_for(request, slug, Permission.ANALYSE)
    metric = request.GET.get("metric", "")
    if metric and metric not in SCORERS:
        raise Http404(f"There is no metric {metric}.")
    if is_judge(metric):
        study = study_for(request, slug, Permission.SPEND)
    data = request.POST if request.method == "POST" else None
    form = scoring_form(study, metric, data) if metric and has_model(metric) else None
    if form is not None and request.method == "POST" and form.is_valid():
        try:
            row = request_by_form(study, metric, form, person(request))
        except MetricsError as refused:
            form.add_error(None, ValidationError(str(refused), code=refused.code))
        else:
            return redirect("console:scoring-request", slug, row.pk)
    return study_page(request, study, "metrics/scoring", _context(study, metric, form))


def scoring_form(study: Study, metric: str, data: Any = None) -> ParametersForm | JudgeForm:
    return JudgeForm(study, metric, data) if is_judge(metric) else ParametersForm(metric, data)


def request_by_form(
    study: Study, metric: str, form: ParametersForm | JudgeForm, user: User
) -> ScoringRequest:
    if isinstance(form, JudgeForm):
        reference = form.settings_reference()
        terms = form.of_judges | {"parameters": {"settings": reference} if reference else {}}
    else:
        terms = {"parameters": form.parameters}
    return request_plan(study=study, metric=metric, requested_by=user, **terms)


def _context(study: Any, metric: str, form: Any) -> dict[str, Any]:
    return {
        "section": "validation",
        "metric": metric,
        "entry": SCORERS.get(metric),
        "metrics": [(name, has_model(name)) for name in SCORERS],
        "entries": SCORERS.items(),
        "lacks_model": bool(metric) and not has_model(metric),
        "lacks_references": metric in needing_references() and not has_references(study),
        "form": form,
        "is_judge": is_judge(metric),
        "has_connection": isinstance(form, JudgeForm)
        and study.team is not None
        and form.fields["connection"].queryset.exists(),  # type: ignore[attr-defined]
        "requests": ScoringRequest.objects.of(study).select_related("connection")[:REQUESTS_SHOWN],
    }


def find_request(find_study: Callable[[Permission], Study], request_id: int) -> ScoringRequest:
    """Find a request of a study that `find_study` returns to whoever has a permission."""
    study = find_study(Permission.ANALYSE)
    rows = ScoringRequest.objects.of(study).select_related("connection", "requested_by")
    row = get_object_or_404(rows, pk=request_id)
    if row.connection_id is not None:
        study = find_study(Permission.SPEND)
    row.study = study
    return row


@require_safe
@never_cache
def scoring_request(request: HttpRequest, slug: str, request_id: int) -> HttpResponse:
    """Access: those who may analyse; of judges, those who may spend, too."""
    row = find_request(partial(study_for, request, slug), request_id)
    context = {"section": "validation", "row": row, "job": last_job_of(row)}
    context["n_under_way"] = most_under_way()
    return study_page(request, row.study, "metrics/scoring_request", context)  # type: ignore[arg-type]


@require_POST
def scoring_confirm(request: HttpRequest, slug: str, request_id: int) -> HttpResponse:
    """Access: those who may analyse; by judges, those who may spend, too."""
    row = find_request(partial(study_for, request, slug), request_id)
    if confirm_request(request=row, actor=person(request)):
        messages.success(request, _("Scoring in the background; this page follows it."))
    return redirect("console:scoring-request", slug, row.pk)


@require_http_methods(["GET", "HEAD", "POST"])
def add_scores(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: those who may analyse the study."""
    study = study_for(request, slug, Permission.ANALYSE)
    form = FileForm(request.POST, request.FILES) if request.method == "POST" else FileForm()
    if request.method == "POST" and form.is_valid():
        try:
            user = person(request)
            file, content = form.cleaned_data["file"], Upload.Content.SCORES
            upload = store_upload(file=file, uploaded_by=user, study=study, content=content)
        except AnnotationError as refused:
            form.add_error("file", ValidationError(str(refused), code=refused.code))
        else:
            request_reading(upload=upload, requested_by=user)
            return redirect("console:upload", upload.token)
    return study_page(request, study, "metrics/add_scores", {"form": form, "section": "validation"})


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def judge_connections(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: members of the team who may see money; managers connect."""
    is_post = request.method == "POST"
    team, permissions = team_for(
        request, slug, Permission.MANAGE if is_post else Permission.VIEW_MONEY
    )
    form = JudgeConnectionForm(request.POST if is_post else None, label_suffix="")
    if is_post and form.is_valid():
        try:
            connect_judge(team=team, actor=person(request), **form.cleaned_data)
        except ParameterRefused as refused:
            form.add_error(None, ValidationError(str(refused), code=refused.code))
        else:
            messages.success(request, _("The connection is stored."))
            return redirect("console:judge-connections", slug)
    context = {
        "team": team,
        "connections": JudgeConnection.objects.of(team),
        "form": form,
        "may_manage": Permission.MANAGE in permissions,
    }
    return render(request, "metrics/judge_connections.html", context)


@require_POST
def close(request: HttpRequest, slug: str, connection_id: int) -> HttpResponse:
    """Access: managers of the team."""
    team, _permissions = team_for(request, slug, Permission.MANAGE)
    connection = get_object_or_404(JudgeConnection.objects.of(team), pk=connection_id)
    close_judge_connection(connection=connection, actor=person(request))
    return redirect("console:judge-connections", slug)
