"""The language models that a team pays for."""

from __future__ import annotations

from django.shortcuts import get_object_or_404
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.roles import Permission
from console.api.endpoint import Endpoint
from console.api.operations import lists, page, writes
from metrics.judge_connections import close_judge_connection
from metrics.models import JudgeConnection


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
