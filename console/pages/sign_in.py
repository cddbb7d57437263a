"""Signing in and out as a researcher or an analyst."""

from allauth.account.views import LoginView
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import LogoutView
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse_lazy


class SignInView(LoginView):  # type: ignore[misc]
    """The console's sign-in page.

    Access: anybody.
    """

    template_name = "console/login.html"
    success_url = reverse_lazy("console:studies")

    def dispatch(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        """Send on whoever is signed in already."""
        if request.user.is_authenticated:
            return redirect(self.get_success_url())
        response: HttpResponseBase = super().dispatch(request, *args, **kwargs)
        return response


login = login_not_required(SignInView.as_view())
logout = LogoutView.as_view()
