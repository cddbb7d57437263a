"""Where a team publishes, and what it and its studies may spend."""

from __future__ import annotations

from typing import Any

from django.shortcuts import get_object_or_404
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.roles import Permission
from console.api.endpoint import Endpoint, Input
from console.api.operations import lists, page, reads, writes
from hits.budgets import set_budget
from hits.connections import close_connection
from hits.models import Budget, Connection


class ConnectionSerializer(serializers.ModelSerializer[Connection]):
    """A marketplace the team is a requester at; its key is never answered."""

    is_on_this_site = serializers.BooleanField()

    class Meta:
        model = Connection
        fields = [
            *("id", "name", "marketplace", "endpoint_url", "fees", "is_on_this_site"),
            *("created_at", "closed_at", "problem"),
        ]


class Connections(Endpoint):
    @lists("list_connections", ConnectionSerializer)
    def get(self, request: Request, slug: str) -> Response:
        """Where the team publishes.

        Access: members of the team who may see money.
        """
        team, _permissions = self.team(slug, Permission.VIEW_MONEY)
        return page(request, Connection.objects.of(team).order_by("pk"), ConnectionSerializer)


class OneConnection(Endpoint):
    @writes("close_connection", None, ConnectionSerializer)
    def delete(self, request: Request, slug: str, connection_id: int) -> Response:
        """Publish nothing more over a connection; what is out is still collected.

        Access: those who may manage the team.
        """
        team, _permissions = self.team(slug, Permission.MANAGE)
        row = get_object_or_404(Connection.objects.of(team), pk=connection_id)
        close_connection(connection=row, actor=self.person)
        row.refresh_from_db()
        return Response(ConnectionSerializer(row).data)


class BudgetInput(Input):
    cap_usd = serializers.DecimalField(
        max_digits=10, decimal_places=2, min_value=0, allow_null=True, help_text="Null: no cap."
    )


class BudgetSerializer(BudgetInput):
    """What may be spent; the same that is sent to change it."""


class TeamBudget(Endpoint):
    @reads("get_budget", BudgetSerializer)
    def get(self, request: Request, slug: str) -> Response:
        """What the team may spend in all.

        Access: members of the team who may see money.
        """
        return self.answer(team=self.team(slug, Permission.VIEW_MONEY)[0])

    @writes("set_budget", BudgetInput, BudgetSerializer)
    def put(self, request: Request, slug: str) -> Response:
        """Set the most that the team may spend in all; null for no cap.

        Access: those who may manage the team.
        """
        return self.set(team=self.team(slug, Permission.MANAGE)[0])

    def set(self, **subject: Any) -> Response:
        set_budget(**subject, **self.input(BudgetInput), actor=self.person)
        return self.answer(**subject)

    def answer(self, **subject: Any) -> Response:
        budget = Budget.objects.filter(**subject).first()
        return Response(BudgetSerializer({"cap_usd": budget.cap_usd if budget else None}).data)


class StudyBudget(TeamBudget):
    @reads("get_study_budget", BudgetSerializer)
    def get(self, request: Request, slug: str) -> Response:
        """What may be spent on the study in all.

        Access: those who may see money.
        """
        return self.answer(study=self.study(slug, Permission.VIEW_MONEY))

    @writes("set_study_budget", BudgetInput, BudgetSerializer)
    def put(self, request: Request, slug: str) -> Response:
        """Set the most that may be spent on the study in all; null for no cap.

        Access: those who may manage the study.
        """
        return self.set(study=self.study(slug, Permission.MANAGE))
