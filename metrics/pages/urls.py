from django.urls import URLPattern, URLResolver, path

from lazy_views import LazyPackage

pages = LazyPackage("metrics.pages")
results = LazyPackage("results")

of_a_study: list[URLPattern | URLResolver] = [
    path("scores/", pages.scores.scores, name="scores"),
    path("scores/<slug:chart>.<slug:form>/picture/", pages.scores.picture, name="scores-picture"),
    path(
        "tables/<slug:kind>/<slug:name>.<slug:form>",
        results.pages.table,
        {"subject": "study"},
        name="study-table",
    ),
    path("scores/add/", pages.scoring.add_scores, name="add-scores"),
    path("scores/new/", pages.scoring.scoring, name="scoring"),
    path(
        "scores/requests/<int:request_id>/", pages.scoring.scoring_request, name="scoring-request"
    ),
    path(
        "scores/requests/<int:request_id>/confirm/",
        pages.scoring.scoring_confirm,
        name="scoring-confirm",
    ),
]

of_a_team: list[URLPattern | URLResolver] = [
    path("judges/", pages.scoring.judge_connections, name="judge-connections"),
    path(
        "judges/<int:connection_id>/close/",
        pages.scoring.close,
        name="judge-connection-close",
    ),
]
