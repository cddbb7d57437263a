"""The apps of the site and their addresses."""

from django.urls import URLPattern, URLResolver, include, path

from config.front_page import front_page
from config.health import health

urlpatterns: list[URLPattern | URLResolver] = [
    path("", front_page, name="front_page"),
    path("healthz", health, name="healthz"),
    path("", include("accounts.urls")),
    path("", include("marketplace.urls")),
    path("", include("console.urls")),
]
