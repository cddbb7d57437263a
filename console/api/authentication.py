"""Who a program is: the token that it sends, or a person's session with its CSRF token."""

from __future__ import annotations

from django.http import HttpRequest
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from accounts.models import ApiToken, User
from accounts.tokens import usable_token

SCHEME = "Bearer"
# Longer than any token: what is longer is not even hashed.
MOST_CHARACTERS = 200


class BearerToken(BaseAuthentication):
    """A header `Authorization: Bearer` with a token."""

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        """The user and the token; None where no token was sent, so that a session may do."""
        scheme, _, text = get_authorization_header(request).partition(b" ")
        if scheme.lower() != SCHEME.lower().encode():
            return None
        token = usable_token(text.strip().decode("latin-1")[:MOST_CHARACTERS])
        if token is None:
            raise AuthenticationFailed("The token is not valid: unknown, expired or revoked.")
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        """What a 401 says is wanted."""
        return SCHEME


class BearerTokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How the schema calls it."""

    target_class = BearerToken
    name = "token"

    def get_security_definition(self, auto_schema: object) -> dict[str, str]:
        """An HTTP scheme that clients know."""
        return {"type": "http", "scheme": "bearer"}


def token_of(request: HttpRequest | Request) -> ApiToken | None:
    """The token by which a request was made; None for a person's session."""
    token = getattr(request, "auth", None)
    return token if isinstance(token, ApiToken) else None
