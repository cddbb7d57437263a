"""What is judged: items with their candidates."""

from __future__ import annotations

from typing import Any

from django.db.models import Prefetch, Q
from django.shortcuts import get_object_or_404
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.roles import Permission
from annotation.access import loaded_permissions
from annotation.models import Candidate, Item, Question, Study
from console.access import within_scopes
from console.api.endpoint import Endpoint, Filters
from console.api.operations import reads, stretch, stretches

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
        rows = _items(self.permissions).filter(study=self.study(slug))
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
        row = get_object_or_404(_items(self.permissions), study=self.study(slug), pk=item_id)
        return Response(ItemSerializer(row, context={"request": request}).data)


def _items(permissions: frozenset[Permission]) -> Any:
    """With all that is answered, in as many statements for a thousand as for one. The order of
    candidates tells no system to users who may not view systems."""
    order = "position" if Permission.VIEW_SYSTEMS in permissions else "blind_key"
    candidates = Candidate.objects.defer("picture__content").select_related("picture")
    candidates = candidates.order_by("item", order, "pk")
    rows = Item.objects.defer("picture__content").select_related("picture").counted()
    return rows.prefetch_related(Prefetch("candidates", queryset=candidates))
