"""One's own teams: who is in them, where they publish, what they may spend."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from django.shortcuts import get_object_or_404
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import AuditEntry, Team
from accounts.roles import Permission
from accounts.teams import create_own_team, set_wage_floor
from console.api.endpoint import Endpoint, Filters, Input
from console.api.operations import lists, reads, writes
from console.api.pagination import page
from console.pages.teams import readable_entry
from hits.budgets import set_budget
from hits.connections import close_connection
from hits.models import Budget, Connection
from metrics.judge_connections import close_judge_connection
from metrics.models import JudgeConnection


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

        Access: signed in, if the site lets everyone create teams; operators; no team's token.
        """
        self.require_scope(Permission.MANAGE)
        self.require_person()
        team = create_own_team(name=self.input(TeamInput)["name"], owner=self.person)
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


class BudgetInput(Input):
    cap_usd = serializers.DecimalField(
        max_digits=10, decimal_places=2, min_value=0, allow_null=True, help_text="Null: no cap."
    )


class BudgetSerializer(serializers.Serializer[Any]):
    cap_usd = serializers.DecimalField(
        max_digits=10, decimal_places=2, allow_null=True, help_text="Null: no cap."
    )


class TeamBudget(Endpoint):
    @reads("get_budget", BudgetSerializer)
    def get(self, request: Request, slug: str) -> Response:
        """What the team may spend in all.

        Access: members of the team who may see money.
        """
        team, _permissions = self.team(slug, Permission.VIEW_MONEY)
        return _cap(Budget.objects.filter(team=team).first())

    @writes("set_budget", BudgetInput, BudgetSerializer)
    def put(self, request: Request, slug: str) -> Response:
        """Set the most that the team may spend in all; null for no cap.

        Access: those who may manage the team.
        """
        team, _permissions = self.team(slug, Permission.MANAGE)
        cap_usd = self.input(BudgetInput)["cap_usd"]
        set_budget(team=team, cap_usd=cap_usd, actor=self.person)
        return _cap(Budget.objects.filter(team=team).first())


class StudyBudget(Endpoint):
    @reads("get_study_budget", BudgetSerializer)
    def get(self, request: Request, slug: str) -> Response:
        """What may be spent on the study in all.

        Access: those who may see money.
        """
        return _cap(Budget.objects.filter(study=self.study(slug, Permission.VIEW_MONEY)).first())

    @writes("set_study_budget", BudgetInput, BudgetSerializer)
    def put(self, request: Request, slug: str) -> Response:
        """Set the most that may be spent on the study in all; null for no cap.

        Access: those who may manage the study.
        """
        study = self.study(slug, Permission.MANAGE)
        cap_usd = self.input(BudgetInput)["cap_usd"]
        set_budget(study=study, cap_usd=cap_usd, actor=self.person)
        return _cap(Budget.objects.filter(study=study).first())


def _cap(budget: Budget | None) -> Response:
    return Response(BudgetSerializer({"cap_usd": budget.cap_usd if budget else None}).data)


class AuditEntrySerializer(serializers.ModelSerializer[AuditEntry]):
    """Something that was done; ids of workers are counted for who may not view them."""

    actor = serializers.CharField(source="actor_name")
    details = serializers.DictField()

    class Meta:
        model = AuditEntry
        fields = ["position", "at", "actor", "action", "subject", "details", "hash"]

    def to_representation(self, instance: AuditEntry) -> Any:
        """What the person, or the program, may read of it."""
        permissions = self.context["request"]._request.permissions
        return super().to_representation(readable_entry(instance, permissions))


class AuditFilters(Filters):
    action = serializers.CharField(required=False, max_length=40)
    actor = serializers.CharField(required=False, max_length=150)


class AuditLog(Endpoint):
    @lists("list_audit_entries", AuditEntrySerializer, filters=AuditFilters)
    def get(self, request: Request, slug: str) -> Response:
        """What was done in the team's name, newest first.

        Access: those who may view the audit log.
        """
        team, _permissions = self.team(slug, Permission.VIEW_AUDIT_LOG)
        filters = self.filters(AuditFilters)
        chosen = {("actor_name" if name == "actor" else name): filters[name] for name in filters}
        rows = AuditEntry.objects.of(team).filter(**chosen).order_by("-position")
        return page(request, rows, AuditEntrySerializer)
