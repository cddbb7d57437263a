from django.urls import URLPattern, URLResolver, path

from lazy_views import LazyPackage

endpoints = LazyPackage("console.api")

of_the_site: list[URLPattern | URLResolver] = [
    path("", endpoints.own.Root.as_view(), name="root"),
    path("me/", endpoints.own.Own.as_view(), name="me"),
    path("schema/", endpoints.own.Schema.as_view(api_version="1"), name="schema"),
]

# From before there were versions: they answer as the same addresses of version 1 do.
former: list[URLPattern | URLResolver] = [
    path("", endpoints.own.Root.as_view(), name="api-root"),
]
former_files: list[URLPattern | URLResolver] = [
    path("schema/", endpoints.own.Schema.as_view(api_version="1"), name="schema"),
]
