from django.urls import URLPattern, URLResolver, include, path

from lazy_views import LazyPackage

site, manual = LazyPackage("config"), LazyPackage("config.documentation")

handler400 = "config.middleware.bad_request"
handler500 = "config.middleware.server_error"
urlpatterns: list[URLPattern | URLResolver] = [
    path("", site.health.front_page, name="front_page"),
    path("healthz", site.health.health, name="healthz"),
    path("readyz", site.health.readiness, name="readyz"),
    path("metrics", site.metrics.metrics, name="metrics"),
    path("docs/", manual.site_pages.documentation, name="documentation"),
    path("docs/<path:path>", manual.site_pages.page_or_file, name="documentation-page"),
    path("", include("accounts.urls")),
    path("", include("marketplace.urls")),
    path("", include("console.urls")),
]
