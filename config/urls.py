"""The apps of the site and their addresses."""

from django.urls import URLPattern, URLResolver, include, path

from lazy_views import LazyPackage

site = LazyPackage("config")

handler400 = "config.bad_requests.bad_request"
handler500 = "config.server_errors.server_error"
urlpatterns: list[URLPattern | URLResolver] = [
    path("", site.front_page.front_page, name="front_page"),
    path("healthz", site.health.health, name="healthz"),
    path("readyz", site.health.readiness, name="readyz"),
    path("metrics", site.metrics.metrics, name="metrics"),
    path("docs/", site.documentation_pages.documentation, name="documentation"),
    path("docs/<path:path>", site.documentation_pages.page_or_file, name="documentation-page"),
    path("", include("accounts.urls")),
    path("", include("marketplace.urls")),
    path("", include("console.urls")),
]
