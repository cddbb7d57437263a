"""What is judged: items with their candidates, and the submissions with their judgments."""

from typing import Any

from django.db.models import Prefetch, Q
from django.shortcuts import get_object_or_404
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.roles import Permission
from annotation.access import loaded_permissions
from annotation.flags import LONGEST_REASON, flag_submissions, unflag_submissions
from annotation.models import Annotator, Candidate, Item, Judgment, Question, Study, Submission
from console.access import within_scopes
from console.api.endpoint import Endpoint, Filters, Input
from console.api.operations import reads, stretch, stretches, writes

SIMULATED = "Whether any answer of the study is simulated, and so nobody's opinion."


class QuestionSerializer(serializers.ModelSerializer[Question]):
    class Meta:
        model = Question
        fields = ["name", "wording", "level", "scale_min", "scale_max", "categories"]


class StudySerializer(serializers.ModelSerializer[Study]):
    team = serializers.SlugRelatedField[Any](slug_field="slug", read_only=True, allow_null=True)
    questions = QuestionSerializer(many=True, read_only=True)
    n_items = serializers.IntegerField(read_only=True)
    n_submissions = serializers.IntegerField(read_only=True)
    n_judgments = serializers.IntegerField(read_only=True)
    may = serializers.SerializerMethodField(help_text="What you may do in it, by permission.")

    class Meta:
        model = Study
        fields = [
            *("slug", "title", "kind", "team", "created_at", "archived_at", "questions"),
            *("n_items", "n_submissions", "n_judgments", "may"),
        ]

    def get_may(self, study: Study) -> list[str]:
        """By role, within the scopes of the token."""
        request = self.context["request"]._request
        return sorted(within_scopes(request, loaded_permissions(study, request.user)))


class CandidateName(serializers.CharField):
    """A candidate's key; its blind name for users who may not view systems."""

    def to_representation(self, value: Candidate) -> str:  # type: ignore[override]
        return value.name_for(self.context["request"]._request.permissions)


class SystemName(serializers.CharField):
    """A candidate's system; null for users who may not view systems."""

    def to_representation(self, value: Candidate) -> str | None:  # type: ignore[override]
        return value.system_for(self.context["request"]._request.permissions)


class CandidateSerializer(serializers.ModelSerializer[Candidate]):
    key = CandidateName(source="*", help_text="A blind name for users who may not view systems.")
    system = SystemName(
        source="*", allow_null=True, help_text="Null for users who may not view systems."
    )
    position = serializers.SerializerMethodField(
        help_text="Null for users who may not view systems."
    )
    picture = serializers.CharField(
        source="picture.sha256", default=None, allow_null=True, help_text="At /pictures/…"
    )

    class Meta:
        model = Candidate
        fields = ["id", "key", "system", "text", "picture", "position"]

    def get_position(self, row: Candidate) -> int | None:
        permissions = self.context["request"]._request.permissions
        return row.position if Permission.VIEW_SYSTEMS in permissions else None


class ItemSerializer(serializers.ModelSerializer[Item]):
    picture = serializers.CharField(
        source="picture.sha256", default=None, allow_null=True, help_text="At /pictures/…"
    )
    candidates = CandidateSerializer(many=True)
    n_submissions = serializers.IntegerField()

    class Meta:
        model = Item
        fields = [
            *("id", "key", "condition", "context", "reference", "picture", "position"),
            *("n_submissions", "candidates"),
        ]


class ItemFilters(Filters):
    q = serializers.CharField(required=False, help_text="Words in the key or the context.")
    key = serializers.CharField(required=False, max_length=200)
    condition = serializers.CharField(required=False, max_length=64)


class Items(Endpoint):
    @stretches("list_items", ItemSerializer, filters=ItemFilters)
    def get(self, request: Request, slug: str) -> Response:
        """The items of a study with their candidates, in the order in which they came.

        Access: whoever has a role in the study.
        """
        study = self.study(slug)  # sets the permissions
        rows = _items(self.permissions).filter(study=study)
        filters: dict[str, Any] = self.filters(ItemFilters)
        if words := filters.pop("q", ""):
            rows = rows.filter(Q(key__icontains=words) | Q(context__icontains=words))
        return stretch(request, rows.filter(**filters), ItemSerializer)


class OneItem(Endpoint):
    @reads("get_item", ItemSerializer)
    def get(self, request: Request, slug: str, item_id: int) -> Response:
        """An item with its candidates.

        Access: whoever has a role in the study.
        """
        study = self.study(slug)  # sets the permissions
        row = get_object_or_404(_items(self.permissions), study=study, pk=item_id)
        return Response(ItemSerializer(row, context={"request": request}).data)


def _items(permissions: frozenset[Permission]) -> Any:
    """With all that is answered, in as many statements for a thousand as for one. The order of
    candidates tells no system to users who may not view systems."""
    order = "position" if Permission.VIEW_SYSTEMS in permissions else "blind_key"
    candidates = Candidate.objects.defer("picture__content").select_related("picture")
    candidates = candidates.order_by("item", order, "pk")
    rows = Item.objects.defer("picture__content").select_related("picture").counted()
    return rows.prefetch_related(Prefetch("candidates", queryset=candidates))


class WorkerField(serializers.CharField):
    """Null for users who may not view workers, and without an assignment."""

    def __init__(self, *, source: str | None = None) -> None:
        super().__init__(
            source=source, help_text="For who may view workers.", read_only=True, allow_null=True
        )

    def get_attribute(self, instance: Submission) -> Any:
        permissions = self.context["request"]._request.permissions
        return super().get_attribute(instance) if Permission.VIEW_WORKERS in permissions else None


class SubmissionSerializer(serializers.ModelSerializer[Submission]):
    """Null stands where nothing was measured, and where one may not view workers."""

    item = serializers.CharField(source="item.key")
    item_id = serializers.IntegerField()
    annotator = serializers.CharField(source="annotator.pseudonym", help_text="A pseudonym.")
    protocol = serializers.IntegerField(source="protocol.number", default=None, allow_null=True)
    simulated = serializers.BooleanField(
        source="is_simulated", help_text="Whether a program answered."
    )
    comment = WorkerField()
    worker_id = WorkerField(source="assignment.worker.worker_id")
    hit_id = WorkerField(source="assignment.hit.hit_id")
    assignment_id = WorkerField(source="assignment.assignment_id")

    class Meta:
        model = Submission
        fields = [
            *("id", "item", "item_id", "annotator", "round", "status", "protocol", "accepted_at"),
            *("submitted_at", "consented_at", "seconds", "active_seconds", "pasted", "simulated"),
            *("justification", "flag_reason", "comment", "worker_id", "hit_id", "assignment_id"),
        ]


class SubmissionFilters(Filters):
    item = serializers.CharField(required=False, max_length=200, help_text="An item's key.")
    annotator = serializers.CharField(required=False, max_length=100, help_text="A pseudonym.")
    status = serializers.ChoiceField(choices=Submission.Status.choices, required=False)
    round = serializers.IntegerField(required=False, min_value=1, max_value=32_767)
    flagged = serializers.BooleanField(required=False, allow_null=True, default=None)


class Submissions(Endpoint):
    @stretches("list_submissions", SubmissionSerializer, filters=SubmissionFilters)
    def get(self, request: Request, slug: str) -> Response:
        """Who judged which item when, rejected ones too, in the order in which they came.

        Access: whoever has a role in the study; workers for those who may view them.
        """
        study = self.study(slug)
        filters = self.filters(SubmissionFilters)
        names = {"item": "item__key", "annotator": "annotator__pseudonym"}
        chosen = {names.get(name, name): filters[name] for name in filters if name != "flagged"}
        rows = _submissions(study).filter(**chosen)
        if filters["flagged"] is not None:
            rows = (
                rows.exclude(flag_reason="") if filters["flagged"] else rows.filter(flag_reason="")
            )
        return stretch(request, rows, SubmissionSerializer)


class OneSubmission(Endpoint):
    @reads("get_submission", SubmissionSerializer)
    def get(self, request: Request, slug: str, submission_id: int) -> Response:
        """A submission.

        Access: whoever has a role in the study; the worker for those who may view them.
        """
        row = get_object_or_404(_submissions(self.study(slug)), pk=submission_id)
        return Response(SubmissionSerializer(row, context={"request": request}).data)


class FlagInput(Input):
    reason = serializers.CharField(max_length=LONGEST_REASON)


class Flag(OneSubmission):
    http_method_names = ["put", "delete"]

    @writes("flag_submission", FlagInput, SubmissionSerializer)
    def put(self, request: Request, slug: str, submission_id: int) -> Response:
        """Doubt a submission; it counts until it is rejected.

        Access: those who may review.
        """
        flag_submissions(
            submissions=self._rows(slug, submission_id),
            reason=self.input(FlagInput)["reason"],
            actor=self.person,
        )
        return self.get(request, slug, submission_id)

    @writes("unflag_submission", None, SubmissionSerializer)
    def delete(self, request: Request, slug: str, submission_id: int) -> Response:
        """Take the doubt away.

        Access: those who may review.
        """
        unflag_submissions(submissions=self._rows(slug, submission_id), actor=self.person)
        return self.get(request, slug, submission_id)

    def _rows(self, slug: str, submission_id: int) -> Any:
        rows = Submission.objects.of(self.study(slug, Permission.REVIEW)).filter(pk=submission_id)
        get_object_or_404(rows)
        return rows


def _submissions(study: Study) -> Any:
    """Through the annotators, who are fewer than the items, and in the order of their keys."""
    return (
        Submission.objects.filter(annotator__in=Annotator.objects.filter(study=study))
        .select_related("item", "annotator", "protocol", "assignment__hit", "assignment__worker")
        .defer(
            *("raw", "shown_order", "item__context", "item__reference", "protocol__document"),
            "assignment__answer_xml",
        )
    )


class JudgmentSerializer(serializers.Serializer[Any]):
    """A row of the long frame."""

    id = serializers.IntegerField()
    submission_id = serializers.IntegerField()
    round = serializers.IntegerField(source="submission.round")
    item = serializers.CharField(source="submission.item.key")
    condition = serializers.CharField(source="submission.item.condition")
    candidate = CandidateName(allow_null=True, help_text="Null: of the whole item.")
    system = SystemName(source="candidate", allow_null=True)
    question = serializers.CharField(source="question.name")
    annotator = serializers.CharField(source="submission.annotator.pseudonym")
    status = serializers.CharField(source="submission.status")
    value = serializers.FloatField()
    position = serializers.IntegerField(allow_null=True)
    seconds = serializers.FloatField(allow_null=True)
    simulated = serializers.BooleanField(
        source="submission.is_simulated", help_text="Whether a program answered."
    )


class JudgmentFilters(Filters):
    question = serializers.CharField(
        required=False, max_length=64, help_text="The first of the study without it."
    )
    accepted = serializers.BooleanField(
        required=False, default=False, help_text="Without those of rejected submissions."
    )


class Judgments(Endpoint):
    @stretches("list_judgments", JudgmentSerializer, filters=JudgmentFilters)
    def get(self, request: Request, slug: str) -> Response:
        """The judgments under one question, in the order in which they came.

        Access: those who may export.
        """
        study = self.study(slug, Permission.EXPORT)
        filters = self.filters(JudgmentFilters)
        # Of one question: its index has them in the order of their keys.
        rows = Judgment.objects.filter(question=study.question(filters.get("question", "")))
        rows = rows.accepted() if filters["accepted"] else rows
        related = ("question", "candidate", "submission__item", "submission__annotator")
        long = ("submission__raw", "submission__item__context", "candidate__text")
        return stretch(request, rows.select_related(*related).defer(*long), JudgmentSerializer)
