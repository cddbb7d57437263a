"""One's own teams: their wage floor, and what was done in their name."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import AuditEntry, Team
from accounts.roles import Permission
from accounts.teams import create_own_team, set_wage_floor
from annotation.pages.teams import readable_entry
from console.api.endpoint import Endpoint, Filters, Input
from console.api.operations import lists, page, reads, writes


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


class AuditEntrySerializer(serializers.ModelSerializer[AuditEntry]):
    """Something that was done; ids of workers are counted for who may not view them."""

    actor = serializers.CharField(source="actor_name")
    details = serializers.DictField()

    class Meta:
        model = AuditEntry
        fields = ["position", "at", "actor", "action", "subject", "details", "hash"]

    def to_representation(self, instance: AuditEntry) -> Any:
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
