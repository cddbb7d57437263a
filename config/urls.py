"""The apps of the site and their addresses."""

from django.urls import URLPattern, URLResolver, include, path

from config.front_page import front_page

urlpatterns: list[URLPattern | URLResolver] = [
    path("", front_page, name="front_page"),
    path("", include("accounts.urls")),
    path("", include("marketplace.urls")),
    path("", include("console.urls")),
]
