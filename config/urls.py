"""The apps of the site and their addresses."""

from django.urls import URLPattern, URLResolver, include, path

from config.documentation_pages import documentation, page_or_file
from config.front_page import front_page
from config.health import health, readiness
from config.metrics import metrics

handler400 = "config.bad_requests.bad_request"
handler500 = "config.server_errors.server_error"
urlpatterns: list[URLPattern | URLResolver] = [
    path("", front_page, name="front_page"),
    path("healthz", health, name="healthz"),
    path("readyz", readiness, name="readyz"),
    path("metrics", metrics, name="metrics"),
    path("docs/", documentation, name="documentation"),
    path("docs/<path:path>", page_or_file, name="documentation-page"),
    path("", include("accounts.urls")),
    path("", include("marketplace.urls")),
    path("", include("console.urls")),
]
