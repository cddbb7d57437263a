"""Who one is to the API, and where it begins."""

from typing import Any

from drf_spectacular.views import SpectacularAPIView
from rest_framework import serializers
from rest_framework.authentication import SessionAuthentication
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import ApiToken, Team
from console.api.endpoint import BearerToken, Endpoint, address_of, token_of
from console.api.operations import reads


class Schema(SpectacularAPIView):
    """The OpenAPI document, without the version in a header: its address names the version."""

    authentication_classes = [BearerToken, SessionAuthentication]
    permission_classes = [IsAuthenticated]


class TokenSerializer(serializers.ModelSerializer[ApiToken]):
    scopes = serializers.ListField(child=serializers.CharField())

    class Meta:
        model = ApiToken
        fields = ["name", "prefix", "scopes", "expires_at"]


class OwnSerializer(serializers.Serializer[Any]):
    """As whom a request acts; without a token, by a person's session."""

    username = serializers.CharField()
    teams = serializers.ListField(child=serializers.SlugField(), help_text="Short names.")
    token = TokenSerializer(allow_null=True)


class Own(Endpoint):
    @reads("get_me", OwnSerializer)
    def get(self, request: Request) -> Response:
        """As whom you act, and what the token is for.

        Access: signed in.
        """
        teams = Team.objects.of(self.person).order_by("slug").values_list("slug", flat=True)
        token = token_of(request)
        return Response(
            {
                "username": self.person.get_username(),
                "teams": list(teams),
                "token": TokenSerializer(token).data if token else None,
            }
        )


class RootSerializer(serializers.Serializer[Any]):
    """Where to begin."""

    studies = serializers.URLField()
    collections = serializers.URLField()
    experiments = serializers.URLField()
    me = serializers.URLField()
    schema = serializers.URLField()


class Root(Endpoint):
    @reads("get_root", RootSerializer)
    def get(self, request: Request) -> Response:
        """Where to begin.

        Access: signed in.
        """
        names = ("studies", "me", "collections", "schema", "experiments")
        return Response({name: address_of(request, name) for name in names})
