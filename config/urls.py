"""The apps of the site and their addresses."""

from django.urls import URLPattern, URLResolver, include, path

urlpatterns: list[URLPattern | URLResolver] = [
    path("", include("accounts.urls")),
    path("", include("marketplace.urls")),
    path("", include("console.urls")),
]
