"""The same numbers for programs: read-only, by session, one's own studies."""

from typing import cast

from django.db.models import QuerySet
from drf_spectacular.utils import (
    OpenApiParameter,
    OpenApiResponse,
    extend_schema,
    inline_serializer,
)
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.exceptions import APIException, NotFound
from rest_framework.pagination import LimitOffsetPagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import ReadOnlyModelViewSet

from accounts.models import User
from annotation.agreement_versions import current_agreement
from annotation.disputes import adjudication_queue
from annotation.models import AgreementCoefficient, Question, Study
from console.pages.adjudication import QueueSelection
from console.pages.job_progress import job_of
from console.results import AGREEMENT, VALIDATION, outcome_of
from console.validation_view import correlations_of
from validation.rows import StoredResults
from work.models import Job


class QuestionSerializer(serializers.ModelSerializer[Question]):
    class Meta:
        model = Question
        fields = ["name", "wording", "level", "scale_min", "scale_max", "categories"]


class StudySerializer(serializers.ModelSerializer[Study]):
    questions = QuestionSerializer(many=True, read_only=True)
    n_items = serializers.IntegerField(read_only=True)
    n_submissions = serializers.IntegerField(read_only=True)
    n_judgments = serializers.IntegerField(read_only=True)

    class Meta:
        model = Study
        fields = [
            "slug",
            "title",
            "kind",
            "created_at",
            "questions",
            "n_items",
            "n_submissions",
            "n_judgments",
        ]


class AlphaSerializer(serializers.Serializer[object]):
    """Krippendorff's alpha on one question; null where undefined, and then with a reason."""

    question = serializers.CharField(source="question.name")
    by = serializers.CharField(help_text="The condition; empty for all of them.")
    level = serializers.CharField()
    value = serializers.FloatField(allow_null=True)
    ci_low = serializers.FloatField(allow_null=True)
    ci_high = serializers.FloatField(allow_null=True)
    ci_method = serializers.CharField()
    confidence = serializers.FloatField()
    observed = serializers.FloatField(allow_null=True)
    expected = serializers.FloatField(allow_null=True)
    n_items = serializers.IntegerField()
    n_items_dropped = serializers.IntegerField()
    n_annotators = serializers.IntegerField()
    n_labels = serializers.IntegerField()
    n_pairable = serializers.IntegerField()
    reason = serializers.CharField(allow_null=True)
    warnings = serializers.ListField(child=serializers.CharField())


class CorrelationSerializer(serializers.Serializer[object]):
    """One metric against one question at one level; null where undefined, with a reason."""

    question = serializers.CharField()
    by = serializers.CharField(help_text="The condition; empty for all of them.")
    metric = serializers.CharField()
    signature = serializers.CharField()
    level = serializers.CharField()
    coefficient = serializers.CharField()
    value = serializers.FloatField(allow_null=True)
    ci_low = serializers.FloatField(allow_null=True)
    ci_high = serializers.FloatField(allow_null=True)
    ci_method = serializers.CharField()
    confidence = serializers.FloatField()
    n_resamples = serializers.IntegerField()
    seed = serializers.IntegerField(allow_null=True)
    n_groups = serializers.IntegerField()
    n_used = serializers.IntegerField()
    n_too_few = serializers.IntegerField()
    n_constant_human = serializers.IntegerField()
    n_constant_metric = serializers.IntegerField()
    n_rows = serializers.IntegerField()
    n_missing = serializers.IntegerField()
    reason = serializers.CharField(allow_null=True)


class OpinionSerializer(serializers.Serializer[object]):
    """What one annotator gave, and why."""

    annotator = serializers.CharField()
    value = serializers.FloatField()
    category = serializers.CharField()
    justification = serializers.CharField()
    flag_reason = serializers.CharField()


class DecisionSerializer(serializers.Serializer[object]):
    """What someone decided the value to be."""

    value = serializers.FloatField()
    note = serializers.CharField()
    decided_by = serializers.CharField()
    decided_at = serializers.CharField()


class DisputeSerializer(serializers.Serializer[object]):
    """A candidate that its annotators do not agree on."""

    question = serializers.CharField()
    round = serializers.IntegerField()
    item_id = serializers.IntegerField()
    item = serializers.CharField()
    candidate_id = serializers.IntegerField()
    candidate = serializers.CharField()
    blind_name = serializers.CharField(
        help_text="A product's key; of a system's response, a name that does not tell the system."
    )
    agreement = serializers.FloatField(allow_null=True)
    spread = serializers.FloatField(
        help_text="The share of the scale between the lowest and the highest value; at the "
        "nominal level, the share of judgments outside the most frequent category."
    )
    opinions = OpinionSerializer(many=True)
    decision = DecisionSerializer(allow_null=True)


class QueueSerializer(serializers.Serializer[object]):
    """Undecided disputes, least agreement first, and how many there are in all."""

    question = serializers.CharField()
    round = serializers.IntegerField()
    threshold = serializers.FloatField()
    n_disputed = serializers.IntegerField()
    n_decided = serializers.IntegerField()
    disputes = DisputeSerializer(many=True)


class Pages(LimitOffsetPagination):
    default_limit = 100
    max_limit = 1000


class ComputingFailed(APIException):
    """The background worker could not compute what was asked for."""

    status_code = status.HTTP_500_INTERNAL_SERVER_ERROR


PENDING = OpenApiResponse(
    response=inline_serializer("Pending", {"detail": serializers.CharField()}),
    description="Being computed in the background; ask again after `Retry-After` seconds.",
)


class StudyViewSet(ReadOnlyModelViewSet[Study]):
    """Studies with their agreement and the validation of their metrics.

    Access: whoever has a role in a study.
    """

    serializer_class = StudySerializer
    pagination_class = Pages
    lookup_field = "slug"

    def get_queryset(self) -> QuerySet[Study]:
        if getattr(self, "swagger_fake_view", False):
            return Study.objects.none()
        visible = Study.objects.visible_to(cast(User, self.request.user))
        return visible.counted().prefetch_related("questions")

    @extend_schema(responses={200: AlphaSerializer(many=True), 202: PENDING})
    @action(detail=True, pagination_class=None)
    def agreement(self, request: Request, slug: str, format: str | None = None) -> Response:
        """Krippendorff's alpha by question and condition."""
        study = self.get_object()
        version = None if _is_pending(request, study, AGREEMENT) else current_agreement(study)
        if version is None:
            return _being_computed()
        alphas = AgreementCoefficient.objects.of(version).alphas(version.first_round)
        return Response(AlphaSerializer(alphas.filter(with_flagged=True), many=True).data)

    @extend_schema(
        responses={
            200: CorrelationSerializer(many=True),
            202: PENDING,
            404: OpenApiResponse(description="No such study, or judgments or scores are missing."),
        }
    )
    @action(detail=True, pagination_class=None)
    def validation(self, request: Request, slug: str, format: str | None = None) -> Response:
        """Every metric against every question, at every level."""
        study = self.get_object()
        outcome = None if _is_pending(request, study, VALIDATION) else outcome_of(study, VALIDATION)
        if outcome is None:
            return _being_computed()
        if outcome.version is None:
            raise NotFound(outcome.reason)
        rows = correlations_of(StoredResults(outcome.version, with_variants=True))
        return Response(CorrelationSerializer(rows, many=True).data)

    @extend_schema(
        parameters=[
            OpenApiParameter("question", description="The first of the study, if none is named."),
            OpenApiParameter("round", int, description="The first that was judged, if none."),
            OpenApiParameter(
                "threshold",
                float,
                description="A share from 0 to below 1; without it, the one that fits the scale.",
            ),
            OpenApiParameter("skip", int, description="How many to leave out at the start."),
        ],
        responses={200: QueueSerializer, 202: PENDING},
    )
    @action(detail=True, pagination_class=None)
    def disputes(self, request: Request, slug: str, format: str | None = None) -> Response:
        """The next 50 candidates whose judgments lie further apart than a threshold."""
        study = self.get_object()
        if _is_pending(request, study, AGREEMENT):
            return _being_computed()
        selection = QueueSelection.of(study, request.GET)
        if selection.threshold_problem:
            raise serializers.ValidationError(
                {"threshold": ["Not a share from 0 to below 1. Leave it out for the scale's own."]}
            )
        queue = adjudication_queue(
            selection.question,
            round=selection.round,
            threshold=selection.threshold,
            skip=selection.skip,
        )
        return Response(QueueSerializer(queue.record(selection.question, selection.round)).data)


def _is_pending(request: Request, study: Study, name: str) -> bool:
    """Whether a job has yet to make the result of that name; ComputingFailed if it could not."""
    job = job_of(request, study, name)
    if job and job.state == Job.State.FAILED:
        raise ComputingFailed(job.message)
    return job is not None


def _being_computed() -> Response:
    """Neither there nor missing: ask again in a moment."""
    body = {"detail": "Being computed; ask again in a moment."}
    return Response(body, status=status.HTTP_202_ACCEPTED, headers={"Retry-After": "2"})
