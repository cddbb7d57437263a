"""Pages for everybody who is signed in, whichever of the sites they use."""

from allauth.account.views import PasswordChangeView
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase
from django.urls import reverse_lazy


class ChangePasswordView(PasswordChangeView):  # type: ignore[misc]
    """Change one's own password; all other sessions of the user end.

    Access: signed-in users, each their own; not participants of a panel, who have no password.
    """

    template_name = "accounts/change_password.html"
    success_url = reverse_lazy("account_change_password")

    def dispatch(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        """Refuse those who came by a link and have no password."""
        if not request.user.is_authenticated or not request.user.has_usable_password():
            raise PermissionDenied
        response: HttpResponseBase = super().dispatch(request, *args, **kwargs)
        return response


change_password = ChangePasswordView.as_view()
