"""What the pages of one's own account share."""

from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase
from django.utils.translation import gettext as _

from accounts.models import User


class OwnAccountMixin:
    """A page of one's own account, which somebody who came by a link and has no password lacks."""

    section = "account"

    def dispatch(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        """Refuse those who have no password."""
        require_password(request)
        response: HttpResponseBase = super().dispatch(request, *args, **kwargs)  # type: ignore[misc]
        return response

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Which of the pages this is."""
        context: dict[str, Any] = super().get_context_data(**kwargs)  # type: ignore[misc]
        return context | {"section": self.section, "sends_mail": settings.SENDS_MAIL}


def require_password(request: HttpRequest) -> User:
    """The person who is asking; PermissionDenied where they have no password."""
    if not request.user.is_authenticated or not request.user.has_usable_password():
        raise PermissionDenied(_("This account has no password, and so no pages of its own."))
    return request.user
