"""Scores of metrics, and scoring: at once without an endpoint, by judges once it is confirmed."""

from decimal import Decimal
from functools import partial
from http import HTTPStatus
from typing import Any

from django import forms
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.roles import Permission
from annotation.api.items import CandidateName, SystemName
from annotation.api.jobs import accepted
from annotation.models import Study
from annotation.study_facts import SCORE, request_study_job
from console.api.endpoint import Endpoint, Input, address_of
from console.api.errors import Conflict
from console.api.job_records import (
    JobSerializer,
    job_record,
)
from console.api.operations import lists, page, reads, stretch, stretches, writes
from metrics.models import JudgeConnection, Score, ScoringRequest, ScoringRun
from metrics.pages.scoring import find_request, metrics_on_offer, request_by_form, scoring_form
from metrics.scorers.registry import SCORERS
from metrics.scoring_requests import close_judge_connection, confirm_request, last_job_of
from metrics.study_judges import is_judge

KINDS: list[tuple[type[forms.Field], str]] = [
    (forms.BooleanField, "boolean"),
    (forms.FloatField, "number"),
    (forms.DecimalField, "number"),
    (forms.IntegerField, "integer"),
    (forms.ChoiceField, "choice"),
    (forms.ModelChoiceField, "choice"),
]


class SettingSerializer(serializers.Serializer[Any]):
    """A setting of a metric, and what it is where none is sent."""

    name = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]
    kind = serializers.ChoiceField(choices=["boolean", "number", "integer", "choice", "text"])
    is_required = serializers.BooleanField()
    default = serializers.CharField(allow_null=True)
    choices = serializers.ListField(child=serializers.CharField(), help_text="Of a choice.")


class MetricSerializer(serializers.Serializer[Any]):
    """A metric. Those that ask a language model cost money, and are for who may spend."""

    name = serializers.CharField()
    summary = serializers.CharField()
    is_judge = serializers.BooleanField()
    settings = SettingSerializer(many=True)


class Metrics(Endpoint):
    @reads("list_metrics", MetricSerializer(many=True))
    def get(self, request: Request, slug: str) -> Response:
        """The metrics that the study can be scored by, each with its settings.

        Access: those who may analyse; judges are listed for those who may spend.
        """
        study = self.study(slug, Permission.ANALYSE)
        may_spend = Permission.SPEND in self.permissions
        names = [name for name in SCORERS if may_spend or not is_judge(name)]
        return Response(MetricSerializer([_metric(study, name) for name in names], many=True).data)


def _metric(study: Study, name: str) -> dict[str, Any]:
    form = scoring_form(study, name)
    settings = [_setting(form, *named) for named in form.fields.items()]
    summary = SCORERS[name].summary
    return {"name": name, "summary": summary, "is_judge": is_judge(name), "settings": settings}


def _setting(form: forms.Form, name: str, field: forms.Field) -> dict[str, Any]:
    kind = next((kind for known, kind in KINDS if isinstance(field, known)), "text")
    initial = form.get_initial_for_field(field, name)
    choices: Any = field.choices if isinstance(field, forms.ChoiceField) else ()
    return {
        "name": name,
        "label": str(field.label),
        "kind": kind,
        "is_required": field.required and initial is None,
        "default": None if initial is None else str(initial),
        "choices": [str(getattr(value, "value", value)) for value, _label in choices],
    }


class ScoringRequestRowSerializer(serializers.ModelSerializer[ScoringRequest]):
    """What scoring takes, and once it is confirmed, what it took; amounts are null for who may not
    see money."""

    parameters = serializers.DictField(help_text="Said otherwise than by default.")
    connection = serializers.CharField(allow_null=True, help_text="Of a judge.")
    estimate = serializers.DictField(allow_null=True, help_text="Null until it is estimated.")
    spent_usd = serializers.SerializerMethodField()
    requested_by = serializers.CharField(allow_null=True)

    class Meta:
        model = ScoringRequest
        fields = [
            *("id", "metric", "parameters", "connection", "model", "max_usd", "max_requests"),
            *("estimate", "n_requests", "spent_usd", "requested_by", "created_at"),
            "confirmed_at",
        ]

    def get_spent_usd(self, row: ScoringRequest) -> str | None:
        return f"{row.spent_usd:.6f}" if self._may_see_money else None

    def to_representation(self, row: ScoringRequest) -> dict[str, Any]:
        record: dict[str, Any] = super().to_representation(row)
        return record if self._may_see_money else _without_amounts(record)

    @property
    def _may_see_money(self) -> bool:
        return Permission.VIEW_MONEY in self.context["request"]._request.permissions


def _without_amounts(record: dict[str, Any]) -> dict[str, Any]:
    estimate = record["estimate"]
    if estimate and estimate.get("estimate"):
        estimate = estimate | {"estimate": estimate["estimate"] | {"usd": None}}
    return record | {"max_usd": None, "estimate": estimate}


class ScoringRequestSerializer(ScoringRequestRowSerializer):
    """A request with its job."""

    job = serializers.SerializerMethodField(help_text="What estimates, or scores.")

    class Meta(ScoringRequestRowSerializer.Meta):
        fields = [*ScoringRequestRowSerializer.Meta.fields, "job"]

    @extend_schema_field(JobSerializer(allow_null=True))
    def get_job(self, row: ScoringRequest) -> Any:
        job = last_job_of(row)
        return job_record(self.context["request"], job) if job else None


class ScoringRequestInput(Input):
    """A metric and its settings, as `metrics/` lists them; what is left out is by default."""

    metric = serializers.ChoiceField(choices=list(SCORERS))
    settings = serializers.DictField(
        required=False,
        default=dict,
        child=serializers.JSONField(allow_null=True),
        help_text="A judge needs a connection, a model, prices and a cap.",
    )


class ScoringRequests(Endpoint):
    @lists("list_scoring_requests", ScoringRequestRowSerializer)
    def get(self, request: Request, slug: str) -> Response:
        """What scoring was asked for, newest first.

        Access: those who may analyse; of judges, those who may spend.
        """
        rows = ScoringRequest.objects.of(self.study(slug, Permission.ANALYSE))
        if Permission.SPEND not in self.permissions:
            rows = rows.filter(connection=None)
        related = rows.select_related("connection", "requested_by")
        return page(request, related, ScoringRequestRowSerializer)

    @writes(
        "request_scoring",
        ScoringRequestInput,
        ScoringRequestSerializer,
        status=HTTPStatus.ACCEPTED,
    )
    def post(self, request: Request, slug: str) -> Response:
        """Have it found out what scoring would take; nothing is scored before it is confirmed.

        Access: those who may analyse; by judges, those who may spend, too.
        """
        study, body = self.study(slug, Permission.ANALYSE), self.input(ScoringRequestInput)
        metric: str = body["metric"]
        if is_judge(metric):
            study = self.study(slug, Permission.SPEND)
        form = _filled(study, metric, body["settings"])
        return _answer(request, study, request_by_form(study, metric, form, self.person))


def _filled(study: Study, metric: str, settings: dict[str, Any]) -> Any:
    """The page's form with these settings; a 400 with each that is at fault."""
    start = scoring_form(study, metric)
    if unknown := sorted(settings.keys() - start.fields.keys()):
        raise serializers.ValidationError(
            {"settings": [_("There is no such setting: {names}.").format(names=", ".join(unknown))]}
        )
    initial = {
        name: start.get_initial_for_field(field, name) for name, field in start.fields.items()
    }
    data = {name: _posted(value) for name, value in (initial | settings).items()}
    form = scoring_form(study, metric, data)
    if not form.is_valid():
        errors = {
            "settings" if name == "__all__" else f"settings.{name}": list(map(str, problems))
            for name, problems in form.errors.items()
        }
        raise serializers.ValidationError(errors)
    return form


def _posted(value: Any) -> Any:
    """As a browser would send it, which is what a form's field expects."""
    if value is None or isinstance(value, list | dict):
        return ""
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


class OneScoringRequest(Endpoint):
    @reads("get_scoring_request", ScoringRequestSerializer)
    def get(self, request: Request, slug: str, request_id: int) -> Response:
        """What scoring would take, or how far it is.

        Access: those who may analyse; of judges, those who may spend, too.
        """
        row = find_request(partial(self.study, slug), request_id)
        return Response(ScoringRequestSerializer(row, context={"request": request}).data)


class Confirmation(Endpoint):
    @writes(
        "confirm_scoring", None, ScoringRequestSerializer, status=HTTPStatus.ACCEPTED, spends=True
    )
    def post(self, request: Request, slug: str, request_id: int) -> Response:
        """Have it scored, once, within its caps; its job is stopped and resumed as others are.

        Access: those who may analyse; by judges, those who may spend, too.
        """
        row = find_request(partial(self.study, slug), request_id)
        if row.estimate is None:
            raise Conflict(_("It is not estimated: look at its job."))
        confirm_request(request=row, actor=self.person)
        return _answer(request, row.study, row)


def _answer(request: Request, study: Study, row: ScoringRequest) -> Response:
    row.refresh_from_db()
    headers = {"Location": address_of(request, "scoring-request", study.slug, row.pk)}
    data = ScoringRequestSerializer(row, context={"request": request}).data
    return Response(data, status=HTTPStatus.ACCEPTED, headers=headers)


class JudgeConnectionSerializer(serializers.ModelSerializer[JudgeConnection]):
    """A connection to language models, without its key."""

    class Meta:
        model = JudgeConnection
        fields = ["id", "name", "base_url", "length_field", "created_at", "closed_at"]


class JudgeConnections(Endpoint):
    @lists("list_judge_connections", JudgeConnectionSerializer)
    def get(self, request: Request, slug: str) -> Response:
        """Which language models the team pays for.

        Access: members of the team who may see money.
        """
        team, _permissions = self.team(slug, Permission.VIEW_MONEY)
        rows = JudgeConnection.objects.of(team).order_by("pk")
        return page(request, rows, JudgeConnectionSerializer)


class OneJudgeConnection(Endpoint):
    @writes("close_judge_connection", None, JudgeConnectionSerializer)
    def delete(self, request: Request, slug: str, connection_id: int) -> Response:
        """Ask nothing more over a connection; its key is deleted.

        Access: those who may manage the team.
        """
        team, _permissions = self.team(slug, Permission.MANAGE)
        row = get_object_or_404(JudgeConnection.objects.of(team), pk=connection_id)
        close_judge_connection(connection=row, actor=self.person)
        row.refresh_from_db()
        return Response(JudgeConnectionSerializer(row).data)


MOST_METRICS = 50


class RunSerializer(serializers.ModelSerializer[ScoringRun]):
    """One output of a metric over a study, as its signature describes it."""

    n_scores = serializers.IntegerField()
    n_undefined = serializers.IntegerField()
    error = serializers.SerializerMethodField(
        help_text="Why it broke off; of a judge, which names its cap, for who may see money."
    )

    warnings = serializers.SerializerMethodField(
        help_text="What the metric warns of, such as texts that its model cut; of its first output."
    )

    class Meta:
        model = ScoringRun
        fields = [
            *("id", "metric", "signature", "higher_is_better", "is_primary", "state", "error"),
            *("n_scores", "n_undefined", "warnings", "created_at"),
        ]

    def get_warnings(self, run: ScoringRun) -> list[dict[str, str]]:
        return [{"code": each.code, "text": str(each)} for each in run.coded_warnings]

    def get_error(self, run: ScoringRun) -> str:
        may = self.context["request"]._request.permissions
        return run.error if run.judge is None or Permission.VIEW_MONEY in may else ""


class ScoreSerializer(serializers.ModelSerializer[Score]):
    """A metric's value for a candidate; null where undefined, and then with a reason."""

    item = serializers.CharField(source="candidate.item.key")
    candidate = CandidateName()
    system = SystemName(source="candidate")

    class Meta:
        model = Score
        fields = ["id", "item", "candidate", "system", "value", "reason"]


class ScoringInput(Input):
    metrics = serializers.ListField(
        child=serializers.CharField(max_length=64), min_length=1, max_length=MOST_METRICS
    )

    def validate_metrics(self, names: list[str]) -> list[str]:
        """Those that a page may start: none that costs money."""
        known = {metric.name for metric in metrics_on_offer()}
        if unknown := sorted(set(names) - known):
            raise serializers.ValidationError(
                f"Not metrics that are started here: {', '.join(unknown)}. "
                f"Metrics: {', '.join(sorted(known))}."
            )
        return list(dict.fromkeys(names))


class Runs(Endpoint):
    @lists("list_scoring_runs", RunSerializer)
    def get(self, request: Request, slug: str) -> Response:
        """The metrics a study was scored with.

        Access: whoever has a role in the study.
        """
        rows = ScoringRun.objects.of(self.study(slug)).counted().order_by("pk")
        return page(request, rows, RunSerializer)

    @writes("score_study", ScoringInput, JobSerializer, status=HTTPStatus.ACCEPTED)
    def post(self, request: Request, slug: str) -> Response:
        """Score a study in the background; what is scored is skipped.

        Access: those who may analyse.
        """
        study = self.study(slug, Permission.ANALYSE)
        names: list[str] = self.input(ScoringInput)["metrics"]
        job = request_study_job(study=study, kind=SCORE, names=names, requested_by=self.person)
        return accepted(request, study, job)


class Scores(Endpoint):
    @stretches("list_scores", ScoreSerializer)
    def get(self, request: Request, slug: str, run_id: int) -> Response:
        """The scores of one run.

        Access: those who may export.
        """
        study = self.study(slug, Permission.EXPORT)
        run = get_object_or_404(ScoringRun.objects.of(study), pk=run_id)
        rows: Any = Score.objects.filter(run=run).select_related("candidate__item")
        return stretch(
            request,
            rows.defer("raw", "candidate__text", "candidate__item__context"),
            ScoreSerializer,
        )
