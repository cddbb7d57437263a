"""The addresses of this app under /api/v1/."""

from django.urls import URLPattern, URLResolver, path

from lazy_views import LazyPackage

endpoints = LazyPackage("metrics.api")

of_a_team: list[URLPattern | URLResolver] = [
    path(
        "judges/", endpoints.judge_connections.JudgeConnections.as_view(), name="judge-connections"
    ),
    path(
        "judges/<int:connection_id>/",
        endpoints.judge_connections.OneJudgeConnection.as_view(),
        name="judge-connection",
    ),
]
