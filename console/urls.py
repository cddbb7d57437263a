from django.urls import URLPattern, URLResolver, include, path
from rest_framework.urlpatterns import format_suffix_patterns

from console.registrations import app_modules

app_name = "console"


def _declared(module: str, name: str) -> list[URLPattern | URLResolver]:
    """The addresses that apps declare under a name; those that take any name come last."""
    patterns = [each for urls in app_modules(module) for each in getattr(urls, name, ())]
    return sorted(patterns, key=lambda each: str(each.pattern).startswith("<str:"))


api: list[URLPattern | URLResolver] = [
    *_declared("api.urls", "of_the_site"),
    path("studies/<slug:slug>/", include(_declared("api.urls", "of_a_study"))),
    path("teams/<slug:slug>/", include(_declared("api.urls", "of_a_team"))),
]
# From before there were versions: they answer as the same addresses of version 1 do.
former = [
    *format_suffix_patterns(_declared("api.urls", "former"), allowed=["json"]),
    *_declared("api.urls", "former_files"),
]

urlpatterns: list[URLPattern | URLResolver] = [
    *_declared("pages.urls", "of_the_site"),
    path("studies/<slug:slug>/", include(_declared("pages.urls", "of_a_study"))),
    path("teams/<slug:slug>/", include(_declared("pages.urls", "of_a_team"))),
    path("api/v1/", include((api, "api"))),
    path("api/", include(former)),
]
