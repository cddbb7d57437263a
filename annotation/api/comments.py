"""What colleagues say to each other about a candidate that annotators do not agree on."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from django.shortcuts import get_object_or_404
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.roles import Permission
from annotation.api.labels import MOST_ROUNDS
from annotation.disputes import add_comment, delete_comment, edit_comment
from annotation.models import Candidate, DisputeComment
from annotation.models.comments import LONGEST_COMMENT
from console.api.endpoint import Endpoint, Filters, Input
from console.api.operations import stretch, stretches, writes


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
        related = rows.select_related("candidate__item", "question", "written_by")
        return stretch(request, related.filter(**filters), CommentSerializer)

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
        comment = add_comment(
            candidate=candidate, question=question, written_by=self.person, **body
        )
        return Response(CommentSerializer(comment).data, status=HTTPStatus.CREATED)


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
    study = endpoint.study(slug, Permission.ADJUDICATE)
    rows = DisputeComment.objects.of(study).filter(written_by=endpoint.person)
    related = ("candidate__item", "question__study", "written_by")
    return get_object_or_404(rows.select_related(*related), pk=comment_id)
