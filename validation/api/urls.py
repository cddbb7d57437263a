from django.urls import URLPattern, URLResolver, path

from lazy_views import LazyPackage

endpoints = LazyPackage("validation.api")

of_a_study: list[URLPattern | URLResolver] = [
    path("agreement/", endpoints.results.Agreement.as_view(), name="agreement"),
    path("position-effects/", endpoints.results.PositionEffects.as_view(), name="position-effects"),
    path("validation/", endpoints.results.Validation.as_view(), name="validation"),
    path(
        "validation/best/",
        endpoints.results.BestMetricsEndpoint.as_view(),
        name="best-metrics",
    ),
    path(
        "validation/<slug:kind>/",
        endpoints.results.ValidationRows.as_view(),
        name="validation-rows",
    ),
    path("disputes/", endpoints.results.Disputes.as_view(), name="disputes"),
    path("results/", endpoints.results.Results.as_view(), name="results"),
]

former: list[URLPattern | URLResolver] = [
    path(
        "studies/<slug:slug>/agreement/",
        endpoints.results.Agreement.as_view(),
        name="api-study-agreement",
    ),
    path(
        "studies/<slug:slug>/validation/",
        endpoints.results.Validation.as_view(),
        name="api-study-validation",
    ),
    path(
        "studies/<slug:slug>/disputes/",
        endpoints.results.Disputes.as_view(),
        name="api-study-disputes",
    ),
]
