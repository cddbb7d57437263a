from django.urls import URLPattern, URLResolver, include, path

from lazy_views import LazyPackage

endpoints = LazyPackage("simulation.api")

of_an_experiment: list[URLPattern | URLResolver] = [
    path("", endpoints.experiments.OneExperiment.as_view(), name="experiment"),
    path("runs/", endpoints.runs.Runs.as_view(), name="runs"),
    path("runs/<int:number>/", endpoints.runs.OneRun.as_view(), name="run"),
    path("runs/<int:number>/stop/", endpoints.runs.StopRun.as_view(), name="run-stop"),
    path("runs/<int:number>/resume/", endpoints.runs.ResumeRun.as_view(), name="run-resume"),
    path("runs/<int:number>/turns/", endpoints.runs.Turns.as_view(), name="run-turns"),
    path("runs/<int:number>/targets/", endpoints.runs.TargetValues.as_view(), name="run-targets"),
    path("runs/<int:number>/choices/", endpoints.runs.Sensitivity.as_view(), name="run-choices"),
]

of_the_site: list[URLPattern | URLResolver] = [
    path("experiments/", endpoints.experiments.Experiments.as_view(), name="experiments"),
    path("experiments/<slug:slug>/", include(of_an_experiment)),
    path("catalogues/", endpoints.experiments.Catalogues.as_view(), name="catalogues"),
    path("recommenders/", endpoints.experiments.Recommenders.as_view(), name="recommenders"),
]
