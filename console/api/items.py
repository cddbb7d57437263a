"""What is judged: items with their candidates."""

from __future__ import annotations

from typing import Any

from django.db.models import Prefetch, Q
from django.shortcuts import get_object_or_404
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.roles import Permission
from annotation.models import Candidate, Item
from console.api.endpoint import Endpoint, Filters
from console.api.operations import reads, stretches
from console.api.pagination import stretch


class CandidateSerializer(serializers.ModelSerializer[Candidate]):
    system = serializers.SerializerMethodField(
        help_text="Null for who may not export: who adjudicates is not told."
    )
    picture = serializers.CharField(
        source="picture.sha256", default=None, allow_null=True, help_text="At /pictures/…"
    )

    class Meta:
        model = Candidate
        fields = ["id", "key", "system", "text", "picture", "position"]

    def get_system(self, row: Candidate) -> str | None:
        permissions = self.context["request"]._request.permissions
        return row.system if Permission.EXPORT in permissions else None


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
        rows = _items().filter(study=self.study(slug))
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
        row = get_object_or_404(_items(), study=self.study(slug), pk=item_id)
        return Response(ItemSerializer(row, context={"request": request}).data)


def _items() -> Any:
    """With all that is answered, in as many statements for a thousand as for one."""
    candidates = Candidate.objects.defer("picture__content").select_related("picture")
    rows = Item.objects.defer("picture__content").select_related("picture").counted()
    return rows.prefetch_related(Prefetch("candidates", queryset=candidates))
