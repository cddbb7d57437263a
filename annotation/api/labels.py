"""Label sets, which never change, and the decisions that override their rules, with comments."""

from http import HTTPStatus
from typing import Any

from django.db.models import QuerySet, Value
from django.shortcuts import get_object_or_404
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.roles import Permission
from annotation.api.items import SIMULATED, CandidateName, SystemName
from annotation.api.jobs import accepted
from annotation.disputes import add_comment, decide, delete_comment, edit_comment
from annotation.label_sets import METHODS, METHODS_AT_LEVEL
from annotation.models import (
    LONGEST_COMMENT,
    Adjudication,
    Candidate,
    DisputeComment,
    Label,
    LabelSet,
    Question,
    Study,
)
from annotation.study_facts import LABEL, has_simulated, request_study_job
from console.api.endpoint import Endpoint, Filters, Input
from console.api.job_records import JobSerializer
from console.api.operations import lists, page, reads, stretch, stretches, writes

MOST_ROUNDS = 32_767


class LabelSetSerializer(serializers.ModelSerializer[LabelSet]):
    question = serializers.CharField(source="question.name")
    parameters = serializers.DictField()
    warnings = serializers.ListField(child=serializers.CharField())
    created_by = serializers.CharField(allow_null=True)
    simulated = serializers.BooleanField(help_text=SIMULATED)

    class Meta:
        model = LabelSet
        fields = [
            *("version", "question", "round", "method", "parameters", "with_flagged"),
            *("with_adjudications", "converged", "iterations", "warnings", "n_labels"),
            *("n_adjudicated", "signature", "created_by", "created_at", "simulated"),
        ]


class LabelSerializer(serializers.ModelSerializer[Label]):
    item = serializers.CharField(source="candidate.item.key")
    candidate = CandidateName()
    system = SystemName(source="candidate")

    class Meta:
        model = Label
        fields = [
            *("id", "item", "candidate", "system", "value", "probability", "se", "n_judgments"),
            *("is_tied", "is_adjudicated"),
        ]


class LabelSetInput(Input):
    question = serializers.CharField(max_length=64)
    method = serializers.ChoiceField(choices=METHODS)
    round = serializers.IntegerField(min_value=1, max_value=MOST_ROUNDS, default=1)
    with_flagged = serializers.BooleanField(default=True)
    with_adjudications = serializers.BooleanField(default=True)


class LabelSets(Endpoint):
    @lists("list_label_sets", LabelSetSerializer)
    def get(self, request: Request, slug: str) -> Response:
        """The label sets of a study, newest first.

        Access: whoever has a role in the study.
        """
        return page(request, _label_sets(self.study(slug)).order_by("-version"), LabelSetSerializer)

    @writes("make_label_set", LabelSetInput, JobSerializer, status=HTTPStatus.ACCEPTED)
    def post(self, request: Request, slug: str) -> Response:
        """Make a label set in the background; the same of the same is the one there is.

        Access: those who may analyse.
        """
        study = self.study(slug, Permission.ANALYSE)
        rule = self.input(LabelSetInput)
        require_fit(study.question(rule["question"]), rule["method"])
        return accepted(
            request,
            study,
            request_study_job(
                study=study,
                kind=LABEL,
                names=[rule["question"], rule["method"]],
                arguments={"rule": rule},
                requested_by=self.person,
            ),
        )


def _label_sets(study: Study) -> QuerySet[LabelSet]:
    sets: QuerySet[LabelSet] = LabelSet.objects.of(study).select_related("question", "created_by")
    return sets.annotate(simulated=Value(has_simulated(study)))


def require_fit(question: Question, method: str) -> None:
    fit = METHODS_AT_LEVEL[Question.Level(question.level)]
    if method not in fit:
        raise serializers.ValidationError(
            {"method": [f"The question is {question.level}. Use one of {', '.join(fit)}."]}
        )


class OneLabelSet(Endpoint):
    @reads("get_label_set", LabelSetSerializer)
    def get(self, request: Request, slug: str, version: int) -> Response:
        """A label set without its labels.

        Access: whoever has a role in the study.
        """
        sets = _label_sets(self.study(slug))
        return Response(LabelSetSerializer(get_object_or_404(sets, version=version)).data)


class Labels(Endpoint):
    @stretches("list_labels", LabelSerializer)
    def get(self, request: Request, slug: str, version: int) -> Response:
        """The labels of a set.

        Access: those who may export.
        """
        sets = LabelSet.objects.of(self.study(slug, Permission.EXPORT))
        rows: Any = Label.objects.filter(label_set=get_object_or_404(sets, version=version))
        rows = rows.select_related("candidate__item").defer(
            "candidate__text", "candidate__item__context"
        )
        return stretch(request, rows, LabelSerializer)


class AdjudicationSerializer(serializers.ModelSerializer[Adjudication]):
    candidate_id = serializers.IntegerField()
    item = serializers.CharField(source="candidate.item.key")
    candidate = serializers.CharField(source="candidate.blind_name")
    question = serializers.CharField(source="question.name")
    decided_by = serializers.CharField()

    class Meta:
        model = Adjudication
        fields = [
            *("id", "candidate_id", "item", "candidate", "question", "round", "value", "note"),
            *("decided_by", "decided_at"),
        ]


class AdjudicationInput(Input):
    candidate_id = serializers.IntegerField(min_value=1)
    question = serializers.CharField(max_length=64)
    round = serializers.IntegerField(min_value=1, max_value=MOST_ROUNDS, default=1)
    value = serializers.FloatField(help_text="On the question's scale.")
    note = serializers.CharField(max_length=2000, required=False, default="", allow_blank=True)


class Adjudications(Endpoint):
    @stretches("list_adjudications", AdjudicationSerializer)
    def get(self, request: Request, slug: str) -> Response:
        """The decisions that stand.

        Access: whoever has a role in the study.
        """
        rows = Adjudication.objects.of(self.study(slug)).standing()
        related = ("candidate__item", "question", "decided_by")
        return stretch(request, rows.select_related(*related), AdjudicationSerializer)

    @writes("decide", AdjudicationInput, AdjudicationSerializer, status=HTTPStatus.CREATED)
    def post(self, request: Request, slug: str) -> Response:
        """Decide what a candidate's value is; it stands until the next decision.

        Access: those who may adjudicate.
        """
        study = self.study(slug, Permission.ADJUDICATE)
        body = self.input(AdjudicationInput)
        candidate = get_object_or_404(
            Candidate.objects.select_related("item"), item__study=study, pk=body.pop("candidate_id")
        )
        question = study.question(body.pop("question"))
        decision = decide(candidate=candidate, question=question, decided_by=self.person, **body)
        return Response(AdjudicationSerializer(decision).data, status=HTTPStatus.CREATED)


class CommentSerializer(serializers.ModelSerializer[DisputeComment]):
    item = serializers.CharField(source="candidate.item.key")
    candidate_id = serializers.IntegerField()
    candidate = serializers.CharField(source="candidate.blind_name")
    question = serializers.CharField(source="question.name")
    written_by = serializers.CharField()

    class Meta:
        model = DisputeComment
        fields = [
            *("id", "item", "candidate_id", "candidate", "question", "round", "text"),
            *("written_by", "written_at", "edited_at"),
        ]


class CommentFilters(Filters):
    candidate_id = serializers.IntegerField(required=False, min_value=1, max_value=2**63 - 1)
    question = serializers.CharField(required=False, max_length=64)
    round = serializers.IntegerField(required=False, min_value=1, max_value=MOST_ROUNDS)


class CommentTextInput(Input):
    text = serializers.CharField(max_length=LONGEST_COMMENT)


class CommentInput(CommentTextInput):
    candidate_id = serializers.IntegerField(min_value=1, max_value=2**63 - 1)
    question = serializers.CharField(max_length=64)
    round = serializers.IntegerField(min_value=1, max_value=MOST_ROUNDS, default=1)


class Comments(Endpoint):
    @stretches("list_comments", CommentSerializer, filters=CommentFilters)
    def get(self, request: Request, slug: str) -> Response:
        """What colleagues said about disputes.

        Access: whoever has a role in the study.
        """
        rows = DisputeComment.objects.of(self.study(slug))
        filters = self.filters(CommentFilters)
        if "question" in filters:
            filters["question__name"] = filters.pop("question")
        return stretch(
            request,
            rows.select_related("candidate__item", "question", "written_by").filter(**filters),
            CommentSerializer,
        )

    @writes("add_comment", CommentInput, CommentSerializer, status=HTTPStatus.CREATED)
    def post(self, request: Request, slug: str) -> Response:
        """Say something about a candidate under a question.

        Access: those who may adjudicate.
        """
        study = self.study(slug, Permission.ADJUDICATE)
        body: dict[str, Any] = self.input(CommentInput)
        candidates = Candidate.objects.filter(item__study=study).select_related("item")
        candidate = get_object_or_404(candidates, pk=body.pop("candidate_id"))
        question = study.question(body.pop("question"))
        return Response(
            CommentSerializer(
                add_comment(candidate=candidate, question=question, written_by=self.person, **body)
            ).data,
            status=HTTPStatus.CREATED,
        )


class OneComment(Endpoint):
    @writes("edit_comment", CommentTextInput, CommentSerializer)
    def patch(self, request: Request, slug: str, comment_id: int) -> Response:
        """Change what you said; it then says since when.

        Access: who wrote it, while they may adjudicate.
        """
        comment = _own(self, slug, comment_id)
        edit_comment(comment=comment, text=self.input(CommentTextInput)["text"], actor=self.person)
        return Response(CommentSerializer(comment).data)

    @writes("delete_comment", None, None, status=HTTPStatus.NO_CONTENT)
    def delete(self, request: Request, slug: str, comment_id: int) -> Response:
        """Take back what you said.

        Access: who wrote it, while they may adjudicate.
        """
        delete_comment(comment=_own(self, slug, comment_id), actor=self.person)
        return Response(status=HTTPStatus.NO_CONTENT)


def _own(endpoint: Endpoint, slug: str, comment_id: int) -> DisputeComment:
    return get_object_or_404(
        DisputeComment.objects.of(endpoint.study(slug, Permission.ADJUDICATE))
        .filter(written_by=endpoint.person)
        .select_related("candidate__item", "question__study", "written_by"),
        pk=comment_id,
    )
