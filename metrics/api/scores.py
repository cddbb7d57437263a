"""Metrics' scores, run by run, and scoring by those that ask no endpoint."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from django.shortcuts import get_object_or_404
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.roles import Permission
from annotation.api.items import CandidateName, SystemName
from annotation.api.jobs import accepted
from annotation.study_jobs import SCORE, request_study_job
from console.api.endpoint import Endpoint, Input
from console.api.job_records import JobSerializer
from console.api.operations import lists, page, stretch, stretches, writes
from metrics.models import Score, ScoringRun
from metrics.pages.metric_forms import metrics_on_offer

MOST_METRICS = 50


class RunSerializer(serializers.ModelSerializer[ScoringRun]):
    """One output of a metric over a study, as its signature describes it."""

    n_scores = serializers.IntegerField()
    n_undefined = serializers.IntegerField()
    error = serializers.SerializerMethodField(
        help_text="Why it broke off; of a judge, which names its cap, for who may see money."
    )

    class Meta:
        model = ScoringRun
        fields = [
            *("id", "metric", "signature", "higher_is_better", "is_primary", "state", "error"),
            *("n_scores", "n_undefined", "created_at"),
        ]

    def get_error(self, run: ScoringRun) -> str:
        may = self.context["request"]._request.permissions
        is_for_all = run.judge is None or Permission.VIEW_MONEY in may
        return run.error if is_for_all else ""


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
