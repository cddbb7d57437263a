"""What every address of the API shares: who may come in, what is read of a request."""

import json
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

from django.conf import settings
from django.core.cache import cache
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, QueryDict
from django.urls import reverse
from django.utils.translation import gettext as _
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework import serializers
from rest_framework.authentication import (
    BaseAuthentication,
    SessionAuthentication,
    get_authorization_header,
)
from rest_framework.exceptions import AuthenticationFailed, ParseError
from rest_framework.parsers import BaseParser, JSONParser
from rest_framework.permissions import SAFE_METHODS, IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.throttling import BaseThrottle
from rest_framework.views import APIView

from accounts.models import ApiToken, Team, User
from accounts.roles import Permission
from accounts.tokens import usable_token
from console.access import team_for, within_scopes
from console.registrations import load_registrations

# No document of the API is a tenth as deep; one much deeper ends Python's stack.
MOST_LEVELS = 100
# What was asked of whom a request acts for: of a subject of which kind, by its name, which
# permission.
Check = tuple[str, str, str]
Finder = Callable[[HttpRequest, str, Permission], Any]

_finders: dict[str, Finder] = {}


def register_subject(kind: str, find: Finder) -> None:
    _finders[kind] = find


def find_subject(kind: str, request: HttpRequest, name: str, permission: Permission) -> Any:
    """What an app registered as the subject of that kind and name: 404 if it is not visible, 403
    if role or scopes are too small."""
    load_registrations()
    return _finders[kind](request, name, permission)


SCHEME = "Bearer"
# Longer than any token: what is longer is not even hashed.
MOST_CHARACTERS = 200


class BearerToken(BaseAuthentication):
    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        # The user and the token; None where no token was sent, so that a session may do.
        scheme, _, text = get_authorization_header(request).partition(b" ")
        if scheme.lower() != SCHEME.lower().encode():
            return None
        token = usable_token(text.strip().decode("latin-1")[:MOST_CHARACTERS])
        if token is None:
            raise AuthenticationFailed("The token is not valid: unknown, expired or revoked.")
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        return SCHEME


class BearerTokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = BearerToken
    name = "token"

    def get_security_definition(self, auto_schema: object) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer"}


def token_of(request: HttpRequest | Request) -> ApiToken | None:
    token = getattr(request, "auth", None)
    return token if isinstance(token, ApiToken) else None


MINUTE_SECONDS = 60


class RequestsAMinute(BaseThrottle):
    """Counts in the cache that all processes share, writes apart from reads; 0 is no limit."""

    def allow_request(self, request: Request, view: APIView) -> bool:
        is_read = request.method in SAFE_METHODS
        most = settings.API_READS_PER_MINUTE if is_read else settings.API_WRITES_PER_MINUTE
        if not most:
            return True
        minute = int(time.time()) // MINUTE_SECONDS
        key = f"api:{holder_of(request)}:{'reads' if is_read else 'writes'}:{minute}"
        n_before: int = cache.get(key, 0)
        if n_before >= most:
            return False
        # Two at once may count as one: the limit is for kindness, not for money.
        cache.set(key, n_before + 1, timeout=2 * MINUTE_SECONDS)
        return True

    def wait(self) -> float:
        return MINUTE_SECONDS - time.time() % MINUTE_SECONDS


def holder_of(request: Request) -> str:
    token = token_of(request)
    return f"token-{token.pk}" if token else f"user-{request.user.pk}"


class ShallowJSON(JSONParser):
    """JSON that is not nested deeper than what stores and renders it can follow."""

    def parse(self, *args: Any, **kwargs: Any) -> Any:
        with suppress(RecursionError):
            values = super().parse(*args, **kwargs)
            if not _is_deeper(values, MOST_LEVELS):
                return values
        raise ParseError(
            _("Lists and objects are nested deeper than {n} levels.").format(n=MOST_LEVELS)
        )


class Input(serializers.Serializer[Any]):
    """What a request may hold; a name that is not known is refused, not overlooked.

    Names of such classes end in `Input`: the schema then says that there is nothing else.
    """

    def to_internal_value(self, data: Any) -> Any:
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
    parser_classes: list[type[BaseParser]] = [ShallowJSON]
    throttle_classes = [RequestsAMinute]
    metadata_class = None

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Response:
        # A former address may end in `.json`, which says nothing new.
        kwargs.pop("format", None)
        self.checks: list[Check] = []
        return super().dispatch(request, *args, **kwargs)  # type: ignore[return-value]

    @property
    def person(self) -> User:
        return cast(User, self.request.user)

    @property
    def plain_request(self) -> HttpRequest:
        return self.request._request

    @property
    def permissions(self) -> frozenset[Permission]:
        """What is allowed in the study or team that was read last, within the scopes."""
        return self.plain_request.permissions  # type: ignore[attr-defined,no-any-return]

    def subject(self, kind: str, name: str, permission: Permission = Permission.VIEW) -> Any:
        """A subject, which is checked again before a stored answer is given out."""
        found = find_subject(kind, self.plain_request, name, permission)
        self.checks.append((kind, name, permission))
        return found

    def study(self, slug: str, permission: Permission = Permission.VIEW) -> Any:
        return self.subject("study", slug, permission)

    def collection(self, slug: str, permission: Permission = Permission.VIEW) -> Any:
        return self.subject("collection", slug, permission)

    def experiment(self, slug: str, permission: Permission = Permission.VIEW) -> Any:
        return self.subject("experiment", slug, permission)

    def team(
        self, slug: str, permission: Permission = Permission.VIEW
    ) -> tuple[Team, frozenset[Permission]]:
        team, permissions = team_for(self.plain_request, slug, permission)
        self.plain_request.permissions = permissions  # type: ignore[attr-defined]
        self.checks.append(("team", slug, permission))
        return team, permissions

    def require(self, permission: Permission) -> None:
        """403 where what was read last, a study or a team, does not allow this as well."""
        kind, name, _permission = self.checks[-1]
        self._check(kind, name, permission)

    def check_again(self, checks: list[Check]) -> None:
        """404 or 403 where what a request was allowed to do then, it is not allowed to do now."""
        for kind, name, permission in checks:
            self._check(kind, name, Permission(permission))

    def _check(self, kind: str, name: str, permission: Permission) -> None:
        if kind == "team":
            self.team(name, permission)
        elif kind == "scope":
            self.require_scope(permission)
        else:
            self.subject(kind, name, permission)

    def require_scope(self, permission: Permission) -> None:
        """403 where a token's scopes do not reach, for what is in no study and no team yet."""
        self.checks.append(("scope", "", permission))
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
        _require_text(self.request.data)
        return self._checked(form(data=self.request.data))

    def filters(self, form: type[serializers.Serializer[Any]]) -> dict[str, Any]:
        return self._checked(form(data=self.request.query_params))

    def _checked(self, form: serializers.Serializer[Any]) -> dict[str, Any]:
        form.is_valid(raise_exception=True)
        return cast("dict[str, Any]", form.validated_data)


def _require_text(data: Any) -> None:
    """A 400 where JSON names half a surrogate pair, which is no text that can be stored."""
    if isinstance(data, dict | list) and not isinstance(data, QueryDict):
        try:
            json.dumps(data, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise serializers.ValidationError(_("A text holds half a surrogate pair.")) from None


def _is_deeper(values: Any, most: int) -> bool:
    level = [values]
    for _level in range(most + 1):
        containers = [each for each in level if isinstance(each, dict | list)]
        level = [
            inner
            for each in containers
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
        if not containers:
            return False
    return True


def address_of(request: Request, name: str, *parts: object) -> str:
    return request.build_absolute_uri(reverse(f"console:api:{name}", args=parts))
