"""What every address of the API shares: who may come in, what is read of a request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext as _
from rest_framework import serializers
from rest_framework.authentication import SessionAuthentication
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.models import Team, User
from accounts.roles import Permission
from console.api.authentication import BearerToken, token_of
from console.api.throttles import RequestsAMinute
from console.pages.study import study_for, within_scopes
from console.pages.teams import team_for

if TYPE_CHECKING:
    from console.sizes import CountedStudy


class Input(serializers.Serializer[Any]):
    """What a request may hold; a name that is not known is refused, not overlooked.

    Names of such classes end in `Input`: the schema then says that there is nothing else.
    """

    def to_internal_value(self, data: Any) -> Any:
        """Refuse names that no field has."""
        if hasattr(data, "keys") and (unknown := set(data.keys()) - set(self.fields)):
            raise serializers.ValidationError(
                {str(name): [_("There is no such field.")] for name in sorted(unknown)}
            )
        return super().to_internal_value(data)


class Filters(serializers.Serializer[Any]):
    """What an address may ask for after its question mark."""


class Endpoint(APIView):
    """An address; its methods are decorated by `reads`, `lists`, `stretches` or `writes`
    (console/api/operations.py)."""

    authentication_classes = [BearerToken, SessionAuthentication]
    permission_classes = [IsAuthenticated]
    throttle_classes = [RequestsAMinute]
    metadata_class = None

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Response:
        """A former address may end in `.json`, which says nothing new."""
        kwargs.pop("format", None)
        return super().dispatch(request, *args, **kwargs)  # type: ignore[return-value]

    @property
    def person(self) -> User:
        """As whom the request acts: a person, or the user of a team's token."""
        return cast(User, self.request.user)

    @property
    def plain_request(self) -> HttpRequest:
        """The request as pages know it."""
        return self.request._request

    @property
    def permissions(self) -> frozenset[Permission]:
        """What is allowed in the study or team that was read last, within the scopes."""
        return self.plain_request.permissions  # type: ignore[attr-defined,no-any-return]

    def study(self, slug: str, permission: Permission = Permission.VIEW) -> CountedStudy:
        """404 where the study is not visible, 403 where role or scopes are too small."""
        return study_for(self.plain_request, slug, permission)

    def team(
        self, slug: str, permission: Permission = Permission.VIEW
    ) -> tuple[Team, frozenset[Permission]]:
        """404 for who is not in the team, 403 where role or scopes are too small."""
        team, permissions = team_for(self.plain_request, slug, permission)
        self.plain_request.permissions = permissions  # type: ignore[attr-defined]
        return team, permissions

    def require_scope(self, permission: Permission) -> None:
        """403 where a token's scopes do not reach, for what is in no study and no team yet."""
        if not within_scopes(self.plain_request, frozenset({permission})):
            raise PermissionDenied(_("The token's scopes do not allow this."))

    def team_to_edit(self, slug: str | None) -> Team | None:
        """The team a study is made for; None for a person's own study."""
        token = token_of(self.request)
        if slug is None and token is not None and token.team is not None:
            slug = token.team.slug
        if slug is not None:
            return self.team(slug, Permission.EDIT)[0]
        self.require_scope(Permission.EDIT)
        return None

    def require_person(self) -> None:
        """403 for a team's token, which has one team and no studies of its own."""
        token = token_of(self.request)
        if token is not None and token.team_id is not None:
            raise PermissionDenied(_("A team's token does not do this; a person does."))

    def input(self, form: type[serializers.Serializer[Any]]) -> dict[str, Any]:
        """What was sent, checked; a 400 with each field at fault."""
        return self._checked(form(data=self.request.data))

    def filters(self, form: type[serializers.Serializer[Any]]) -> dict[str, Any]:
        """What the address asks for, checked; without what it does not name."""
        return self._checked(form(data=self.request.query_params))

    def _checked(self, form: serializers.Serializer[Any]) -> dict[str, Any]:
        form.is_valid(raise_exception=True)
        return cast("dict[str, Any]", form.validated_data)


def address_of(request: Request, name: str, *parts: object) -> str:
    """The whole address of something of the API."""
    return request.build_absolute_uri(reverse(f"console:api:{name}", args=parts))
