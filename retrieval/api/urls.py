from django.urls import URLPattern, URLResolver, include, path

from lazy_views import LazyPackage

endpoints = LazyPackage("retrieval.api")

of_a_collection: list[URLPattern | URLResolver] = [
    path("", endpoints.collections.OneCollection.as_view(), name="collection"),
    path("files/", endpoints.collections.CollectionFiles.as_view(), name="collection-files"),
    path("jobs/", endpoints.collections.CollectionJobs.as_view(), name="collection-jobs"),
    path(
        "jobs/<int:job_id>/",
        endpoints.collections.OneCollectionJob.as_view(),
        name="collection-job",
    ),
    path(
        "evaluations/",
        endpoints.results.Evaluations.as_view(),
        name="collection-evaluations",
    ),
    path(
        "evaluations/<int:number>/topics/",
        endpoints.results.TopicValues.as_view(),
        name="collection-topics",
    ),
    path("targets/", endpoints.results.TargetSamples.as_view(), name="collection-targets"),
    path(
        "targets/<int:number>/drawn/",
        endpoints.results.SampledTargets.as_view(),
        name="collection-drawn",
    ),
    path(
        "<slug:kind>/",
        endpoints.results.CollectionResults.as_view(),
        name="collection-results",
    ),
    path(
        "<slug:kind>/<int:number>/",
        endpoints.results.OneCollectionResult.as_view(),
        name="collection-result",
    ),
]

of_the_site: list[URLPattern | URLResolver] = [
    path("collections/", endpoints.collections.Collections.as_view(), name="collections"),
    path("collections/<slug:slug>/", include(of_a_collection)),
]
