from django.urls import URLPattern, URLResolver, path

from lazy_views import LazyPackage

endpoints = LazyPackage("metrics.api")

of_a_team: list[URLPattern | URLResolver] = [
    path("judges/", endpoints.scoring.JudgeConnections.as_view(), name="judge-connections"),
    path(
        "judges/<int:connection_id>/",
        endpoints.scoring.OneJudgeConnection.as_view(),
        name="judge-connection",
    ),
]

of_a_study: list[URLPattern | URLResolver] = [
    path("scores/", endpoints.scoring.Runs.as_view(), name="scoring-runs"),
    path("scores/<int:run_id>/", endpoints.scoring.Scores.as_view(), name="scores"),
    path("metrics/", endpoints.scoring.Metrics.as_view(), name="metrics"),
    path("scoring-requests/", endpoints.scoring.ScoringRequests.as_view(), name="scoring-requests"),
    path(
        "scoring-requests/<int:request_id>/",
        endpoints.scoring.OneScoringRequest.as_view(),
        name="scoring-request",
    ),
    path(
        "scoring-requests/<int:request_id>/confirm/",
        endpoints.scoring.Confirmation.as_view(),
        name="scoring-confirm",
    ),
]
