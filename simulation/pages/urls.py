from django.urls import URLPattern, URLResolver, include, path

from lazy_views import LazyPackage

pages = LazyPackage("simulation.pages")

of_a_study: list[URLPattern | URLResolver] = [
    path("simulated-users/", pages.dialogue_studies.dialogues, name="dialogues"),
    path(
        "simulated-users/<slug:chart>.<slug:form>/picture/",
        pages.dialogue_studies.picture,
        name="dialogues-picture",
    ),
    path("simulated-users/<str:name>", pages.dialogue_studies.download, name="dialogues-download"),
]

of_an_experiment: list[URLPattern | URLResolver] = [
    path("", pages.experiments.experiment, name="experiment"),
    path("delete/", pages.experiments.delete, name="experiment-delete"),
    path("runs/<int:number>/", pages.experiments.progress, name="experiment-progress"),
    path("runs/<int:number>/stop/", pages.experiments.stop, name="experiment-stop"),
    path("runs/<int:number>/again/", pages.experiments.resume, name="experiment-again"),
    path(
        "<slug:chart>.<slug:form>/picture/",
        pages.experiments.picture,
        name="experiment-picture",
    ),
    path("<str:name>", pages.experiments.download, name="experiment-download"),
]

of_a_recommender: list[URLPattern | URLResolver] = [
    path("", pages.recommenders.recommender, name="recommender"),
    path("training/", pages.recommenders.progress, name="recommender-progress"),
    path("stop/", pages.recommenders.stop, name="recommender-stop"),
    path("again/", pages.recommenders.resume, name="recommender-again"),
    path("delete/", pages.recommenders.delete, name="recommender-delete"),
]

of_the_site: list[URLPattern | URLResolver] = [
    path("simulations/", pages.experiments.experiments, name="experiments"),
    path("new-simulation/", pages.experiments.new_experiment, name="new-experiment"),
    path("simulations/<slug:slug>/", include(of_an_experiment)),
    path("catalogues/", pages.catalogue.catalogues, name="catalogues"),
    path("catalogues/<int:key>/", pages.catalogue.catalogue, name="catalogue"),
    path(
        "catalogues/<int:key>/<str:name>",
        pages.catalogue.download,
        name="catalogue-download",
    ),
    path("catalogues/<int:key>/delete/", pages.catalogue.delete, name="catalogue-delete"),
    path(
        "new-dialogue-study/", pages.dialogue_studies.new_dialogue_study, name="new-dialogue-study"
    ),
    path("recommenders/", pages.recommenders.recommenders, name="recommenders"),
    path("new-recommender/", pages.recommenders.new_recommender, name="new-recommender"),
    path("recommenders/<int:key>/", include(of_a_recommender)),
]
