"""One's own teams: their members, their wage floor, and what was done in their name."""

from http import HTTPStatus
from typing import Any

from django.shortcuts import get_object_or_404
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import ApiToken, AuditEntry, Membership, Team
from accounts.roles import Permission, Role
from accounts.teams import create_own_team, remove_member, set_role, set_wage_floor
from annotation.access import give_to_team, invite, remove_study_member, revoke, set_study_role
from annotation.api.items import StudySerializer
from annotation.models import Invitation, Study, StudyMembership
from annotation.pages.members import invitation_link
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
        return super().to_representation(
            readable_entry(instance, self.context["request"]._request.permissions)
        )


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


class MemberSerializer(serializers.Serializer[Any]):
    """A person's role; a team's token is none of its members."""

    id = serializers.IntegerField()
    username = serializers.CharField(source="user.username")
    role = serializers.ChoiceField(choices=Role.choices)
    created_at = serializers.DateTimeField()


class RoleInput(Input):
    role = serializers.ChoiceField(choices=Role.choices)


class InvitationInput(Input):
    email = serializers.EmailField(max_length=254)
    role = serializers.ChoiceField(choices=Role.choices)


class InvitationSerializer(serializers.ModelSerializer[Invitation]):
    invited_by = serializers.CharField()

    class Meta:
        model = Invitation
        fields = ["id", "email", "role", "was_mailed", "invited_by", "created_at", "expires_at"]


class NewInvitationSerializer(serializers.Serializer[Any]):
    """Without a mail server the link is to be passed on: it opens the study or team, once."""

    link = serializers.CharField(allow_null=True, help_text="Null where it was sent by mail.")


def _invited(endpoint: Endpoint, to: Team | Study) -> Response:
    body = endpoint.input(InvitationInput)
    link = invite(
        to=to,
        email=body["email"],
        role=Role(body["role"]),
        actor=endpoint.person,
        link_of=invitation_link,
    )
    return Response({"link": link or None}, status=HTTPStatus.CREATED)


def _people(team: Team) -> Any:
    programs = ApiToken.objects.filter(team=team).values("user")
    return team.memberships.exclude(user__in=programs).select_related("user").order_by("pk")


class TeamMembers(Endpoint):
    @lists("list_team_members", MemberSerializer)
    def get(self, request: Request, slug: str) -> Response:
        """Who is in a team.

        Access: members of the team.
        """
        return page(request, _people(self.team(slug)[0]), MemberSerializer)


class TeamMember(Endpoint):
    @reads("get_team_member", MemberSerializer)
    def get(self, request: Request, slug: str, member_id: int) -> Response:
        """A member of a team.

        Access: members of the team.
        """
        return Response(
            MemberSerializer(get_object_or_404(_people(self.team(slug)[0]), pk=member_id)).data
        )

    @writes("change_team_role", RoleInput, MemberSerializer)
    def patch(self, request: Request, slug: str, member_id: int) -> Response:
        """Give a member another role.

        Access: those who may manage the team; owners are an owner's to change.
        """
        team, _permissions = self.team(slug, Permission.MANAGE)
        member: Membership = get_object_or_404(_people(team), pk=member_id)
        member = set_role(
            team=team, user=member.user, role=Role(self.input(RoleInput)["role"]), actor=self.person
        )
        return Response(MemberSerializer(member).data)

    @writes("remove_team_member", None, None, status=HTTPStatus.NO_CONTENT)
    def delete(self, request: Request, slug: str, member_id: int) -> Response:
        """End a membership.

        Access: those who may manage the team.
        """
        team, _permissions = self.team(slug, Permission.MANAGE)
        remove_member(member=get_object_or_404(_people(team), pk=member_id), actor=self.person)
        return Response(status=HTTPStatus.NO_CONTENT)


class TeamInvitations(Endpoint):
    @lists("list_team_invitations", InvitationSerializer)
    def get(self, request: Request, slug: str) -> Response:
        """The invitations that still hold.

        Access: those who may manage the team.
        """
        team, _permissions = self.team(slug, Permission.MANAGE)
        return page(
            request,
            Invitation.objects.open().filter(team=team).select_related("invited_by").order_by("pk"),
            InvitationSerializer,
        )

    @writes("invite_to_team", InvitationInput, NewInvitationSerializer, status=HTTPStatus.CREATED)
    def post(self, request: Request, slug: str) -> Response:
        """Invite somebody to a team.

        Access: those who may manage the team.
        """
        return _invited(self, self.team(slug, Permission.MANAGE)[0])


class TeamInvitation(Endpoint):
    @writes("revoke_team_invitation", None, None, status=HTTPStatus.NO_CONTENT)
    def delete(self, request: Request, slug: str, invitation_id: int) -> Response:
        """Take an invitation back.

        Access: those who may manage the team.
        """
        team, _permissions = self.team(slug, Permission.MANAGE)
        revoke(
            invitation=get_object_or_404(Invitation, team=team, pk=invitation_id), actor=self.person
        )
        return Response(status=HTTPStatus.NO_CONTENT)


class StudyMembers(Endpoint):
    @lists("list_study_members", MemberSerializer)
    def get(self, request: Request, slug: str) -> Response:
        """Who has a role in this study alone.

        Access: whoever has a role in the study.
        """
        rows = self.study(slug).memberships.select_related("user").order_by("pk")
        return page(request, rows, MemberSerializer)


class StudyMember(Endpoint):
    @writes("change_study_role", RoleInput, MemberSerializer)
    def patch(self, request: Request, slug: str, member_id: int) -> Response:
        """Give somebody another role in this study.

        Access: those who may manage the study.
        """
        study = self.study(slug, Permission.MANAGE)
        member = get_object_or_404(StudyMembership, study=study, pk=member_id)
        role = Role(self.input(RoleInput)["role"])
        member = set_study_role(study=study, user=member.user, role=role, actor=self.person)
        return Response(MemberSerializer(member).data)

    @writes("remove_study_member", None, None, status=HTTPStatus.NO_CONTENT)
    def delete(self, request: Request, slug: str, member_id: int) -> Response:
        """End somebody's role in this study.

        Access: those who may manage the study.
        """
        remove_study_member(
            member=get_object_or_404(
                StudyMembership, study=self.study(slug, Permission.MANAGE), pk=member_id
            ),
            actor=self.person,
        )
        return Response(status=HTTPStatus.NO_CONTENT)


class StudyInvitations(Endpoint):
    @lists("list_study_invitations", InvitationSerializer)
    def get(self, request: Request, slug: str) -> Response:
        """The invitations that still hold.

        Access: those who may manage the study.
        """
        study = self.study(slug, Permission.MANAGE)
        rows = Invitation.objects.open().filter(study=study).select_related("invited_by")
        return page(request, rows.order_by("pk"), InvitationSerializer)

    @writes("invite_to_study", InvitationInput, NewInvitationSerializer, status=HTTPStatus.CREATED)
    def post(self, request: Request, slug: str) -> Response:
        """Invite somebody to this study alone.

        Access: those who may manage the study.
        """
        return _invited(self, self.study(slug, Permission.MANAGE))


class StudyInvitation(Endpoint):
    @writes("revoke_study_invitation", None, None, status=HTTPStatus.NO_CONTENT)
    def delete(self, request: Request, slug: str, invitation_id: int) -> Response:
        """Take an invitation back.

        Access: those who may manage the study.
        """
        revoke(
            invitation=get_object_or_404(
                Invitation, study=self.study(slug, Permission.MANAGE), pk=invitation_id
            ),
            actor=self.person,
        )
        return Response(status=HTTPStatus.NO_CONTENT)


class TeamOfStudyInput(Input):
    team = serializers.SlugField()


class TeamOfStudy(Endpoint):
    @writes("give_study", TeamOfStudyInput, StudySerializer)
    def put(self, request: Request, slug: str) -> Response:
        """Give a study that no team has to a team, which then sees it.

        Access: the owner of the study, for a team whose studies they may edit.
        """
        study = self.study(slug, Permission.OWN)
        team, _permissions = self.team(self.input(TeamOfStudyInput)["team"], Permission.EDIT)
        give_to_team(study=study, team=team, actor=self.person)
        return Response(StudySerializer(self.study(slug), context={"request": request}).data)
