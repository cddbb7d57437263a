"""One's own teams: who is in them, where they publish, what they may spend."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import Team
from accounts.roles import Permission
from accounts.teams import create_team, set_wage_floor
from console.api.endpoint import Endpoint, Input
from console.api.operations import lists, reads, writes
from console.api.paging import page
from hits.models import Budget, Connection


class TeamSerializer(serializers.ModelSerializer[Team]):
    class Meta:
        model = Team
        fields = ["slug", "name", "wage_floor_usd", "created_at"]


class TeamInput(Input):
    name = serializers.CharField(max_length=80)


class WageFloorInput(Input):
    wage_floor_usd = serializers.DecimalField(
        max_digits=6, decimal_places=2, min_value=0, allow_null=True
    )


class Teams(Endpoint):
    @lists("list_teams", TeamSerializer)
    def get(self, request: Request) -> Response:
        """The teams one is in.

        Access: signed in.
        """
        return page(request, Team.objects.of(self.person).order_by("name", "pk"), TeamSerializer)

    @writes("create_team", TeamInput, TeamSerializer, status=HTTPStatus.CREATED)
    def post(self, request: Request) -> Response:
        """Make a team; who makes it owns it.

        Access: signed in; no team's token.
        """
        self.require_scope(Permission.MANAGE)
        self.require_person()
        team = create_team(name=self.input(TeamInput)["name"], owner=self.person)
        return Response(TeamSerializer(team).data, status=HTTPStatus.CREATED)


class OneTeam(Endpoint):
    @reads("get_team", TeamSerializer)
    def get(self, request: Request, slug: str) -> Response:
        """A team.

        Access: members of the team.
        """
        return Response(TeamSerializer(self.team(slug)[0]).data)

    @writes("set_wage_floor", WageFloorInput, TeamSerializer)
    def patch(self, request: Request, slug: str) -> Response:
        """Set the least pay an hour under which pages warn; null for none.

        Access: those who may manage the team.
        """
        team, _permissions = self.team(slug, Permission.MANAGE)
        floor = self.input(WageFloorInput)["wage_floor_usd"]
        set_wage_floor(team=team, wage_floor_usd=floor, actor=self.person)
        return Response(TeamSerializer(team).data)


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


class BudgetSerializer(serializers.Serializer[Any]):
    cap_usd = serializers.DecimalField(
        max_digits=12, decimal_places=2, allow_null=True, help_text="Null: no cap."
    )


class TeamBudget(Endpoint):
    @reads("get_budget", BudgetSerializer)
    def get(self, request: Request, slug: str) -> Response:
        """What the team may spend in all.

        Access: members of the team who may see money.
        """
        team, _permissions = self.team(slug, Permission.VIEW_MONEY)
        budget = Budget.objects.filter(team=team).first()
        return Response(BudgetSerializer({"cap_usd": budget.cap_usd if budget else None}).data)
