"""Addresses by the names that django-allauth gives them, which it looks up itself."""

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.urls import URLPattern, URLResolver, path
from django.views.generic import RedirectView

from accounts.pages import change_password

sign_in = login_not_required(
    RedirectView.as_view(pattern_name=settings.LOGIN_URL, query_string=True)
)

urlpatterns: list[URLPattern | URLResolver] = [
    path("account/login/", sign_in, name="account_login"),
    path("account/password/", change_password, name="account_change_password"),
]
